#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Claim: Debian's own RDMA programs, unchanged, list and describe the device through libsoftnic.so, also
# under valgrind; nothing stays behind in the file system; the report is JSON.
set -eu

build=${DOORBELL_BUILD:?names the build directory}
if [ "${DOORBELL_SANITIZE:-none}" != none ]; then
    echo "skipped: a sanitized libsoftnic.so cannot be preloaded into programs that are not"
    exit 77
fi
command -v ibv_devinfo >/dev/null || { echo "skipped: ibverbs-utils is not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tmp"
export TMPDIR="$work/tmp"

# run ARGUMENT...: the program's output is in $work/out; it must end by itself and with 0.
run() {
    if ! timeout 50 "$build/doorbell" softnic "$@" >"$work/out" 2>"$work/err"; then
        echo "FAILED: doorbell softnic $*"
        cat "$work/out" "$work/err"
        exit 1
    fi
}

# has TEXT...: each in the output.
has() {
    for text in "$@"; do
        grep -qE -- "$text" "$work/out" || { echo "no '$text' in:"; cat "$work/out"; exit 1; }
    done
}

run -- ibv_devices
has mlx5_soft0
run -- ibv_devinfo
has 'hca_id:[[:space:]]*mlx5_soft0' 'PORT_ACTIVE' 'link_layer:[[:space:]]*Ethernet'
run -- ibv_devinfo -v
has 'GID\[ *3\]:.*::ffff:127.0.0.1, RoCE v2' 'max_qp:' 'active_mtu:[[:space:]]*4096'
run --mode=off -- sh -c 'ibv_devices || true'
if grep -q mlx5_soft0 "$work/out"; then
    echo "the device is listed with --mode=off"
    exit 1
fi

run --report="$work/report" --strict -- ibv_devinfo
if command -v jq >/dev/null; then
    jq -e 'type == "object"' "$work/report" >"$work/out"
else
    echo "not tried: the report's form, for want of jq"
fi

# %p: a file for each process that used the device.
run --report="$work/of.%p" -- sh -c 'echo $$ >"$0"; ibv_devinfo & wait $!; exec ibv_devinfo' "$work/pid"
[ -s "$work/of.$(cat "$work/pid")" ] || { echo "no report of the process $(cat "$work/pid")"; exit 1; }
[ "$(find "$work" -name 'of.*' | wc -l)" -eq 2 ] || { echo "not two reports:"; ls "$work"; exit 1; }

if command -v valgrind >/dev/null; then
    run -- valgrind -q --error-exitcode=9 ibv_devinfo -v
    has mlx5_soft0
else
    echo "not tried: valgrind, which is not installed"
fi

left=$(find "$work/tmp" -mindepth 1 | head)
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
