#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Claim: of a GPU that runs no kernel of this program `doorbell info` says why; --gpu=cuda fails with that,
# and without --gpu CPU threads play it, with a warning. So where no GPU can be used or is there, which
# alone needs no warning. Over the fake driver (fake_driver.c), which LD_LIBRARY_PATH leads to.
set -u

doorbell=${DOORBELL_BUILD:?names the build directory}/doorbell
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cases=0 failures=0

# expect STATUS VARIABLE=VALUE ARGUMENT...: the exit status of `doorbell ARGUMENT...`, a pattern.
expect() {
    status=$1 setting=$2
    shift 2
    what="$setting doorbell $*"
    cases=$((cases + 1)) got=0
    env "$setting" "$doorbell" "$@" >"$work/out" 2>&1 </dev/null || got=$?
    # shellcheck disable=SC2254 # a pattern
    case $got in
    $status) ;;
    *) fail "status $got, expected $status" ;;
    esac
}

# The words are in what it printed.
said() {
    for words in "$@"; do
        grep -qF -- "$words" "$work/out" || fail "no '$words'"
    done
}

fail() {
    failures=$((failures + 1))
    echo "FAILED: $what: $1"
    sed 's/^/    /' "$work/out"
}

# What `doorbell info` prints is one document.
document() {
    expect '[03]' "$1" info --json
    if command -v python3 >/dev/null; then
        python3 -m json.tool "$work/out" >/dev/null || fail 'no JSON'
    fi
}

# refused VARIABLE=VALUE WORDS...: --gpu=cuda, for this reason.
refused() {
    setting=$1
    shift
    expect 1 "$setting" bench ordering -n 5 --gpu=cuda
    said 'failed: --gpu=cuda: ' "$@" 'use the GPU that CPU threads play (--gpu=cpu)'
}

# played VARIABLE=VALUE WORDS...: by CPU threads without --gpu, with a warning for this reason.
played() {
    setting=$1
    shift
    expect '[03]' "$setting" bench ordering -n 5
    said 'GPU threads played by CPU threads' 'warning: CPU threads play the GPU: ' "$@"
}

# no_kernels VARIABLE=VALUE WORDS...: there is a GPU, on which none runs, for this reason.
no_kernels() {
    refused "$@"
    played "$@"
    setting=$1
    shift
    expect '[03]' "$setting" info
    said 'GPU 0: Fake GPU 0, sm_90' '  kernels: no: ' "$@"
    document "$setting"
    said '"name": "Fake GPU 0"' '"kernels": "no: ' "$@"
}

expect '[03]' FAKE_DRIVER_INIT=0 info
grep -qE 'SM clock ([0-9]+ of )?at most 1980 MHz$' "$work/out" || fail 'the highest clock is not told as that'
if grep -q 'built without nvcc' "$work/out"; then
    no_kernels FAKE_DRIVER_INIT=0 'no GPU kernels' 'build it with nvcc'
else
    said '  kernels: yes'
    document FAKE_DRIVER_INIT=0
    said '"kernels": "yes"'
    no_kernels FAKE_DRIVER_VERSION=10020 'driver supports CUDA 10.2, but' 'made with CUDA' 'later driver'
    no_kernels FAKE_DRIVER_LOAD=209 'GPU cuda:0 (Fake GPU 0, sm_90) has no kernels' 'FAKE_209' 'build it'
fi

refused FAKE_DRIVER_INIT=802 'driver does not start' FAKE_802
played FAKE_DRIVER_INIT=802 'driver does not start' FAKE_802
# An experiment that opens a GPU twice.
expect '[03]' FAKE_DRIVER_INIT=802 bench inline -n 5 --warmup_iters=2 --repetitions=1
[ "$(grep -c 'warning: CPU' "$work/out")" -eq 1 ] || fail 'not one warning'

none='the NVIDIA driver shows no GPU; see'
refused FAKE_DRIVER_COUNT=0 "$none"
expect '[03]' FAKE_DRIVER_COUNT=0 bench ordering -n 5
said 'GPU threads played by CPU threads'
grep -q 'warning: CPU' "$work/out" && fail 'a warning without a GPU'
expect '[03]' FAKE_DRIVER_COUNT=0 info
said "no GPU: $none"

echo "$cases runs, $failures failures"
[ "$failures" -eq 0 ]
