#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Makes the results of this folder, on a machine with an NVIDIA GPU: tests the backend, then runs the
# experiments on the GPU, over the software device where it needs a NIC and without one where it does not.
#
#     results/h200/run.sh OUT [BUILD]
#
# OUT gets one JSON document for each experiment and run.log, which holds what was printed. BUILD is the
# build directory (build). A short table comes last. Status 0: all ran; 1: something failed, and the
# rest ran nevertheless.
set -u

out=${1:?usage: results/h200/run.sh OUT [BUILD]}
build=${2:-build}
vendors=${VENDORS-} # where the vendors' headers are; empty: they are looked for
here=$(cd "$(dirname "$0")" && pwd)
failed=""
mkdir -p "$out"
: >"$out/run.log"

say() {
    echo "$*" | tee -a "$out/run.log"
}

# step NAME SECONDS COMMAND...: its output goes to the log; the rest runs whatever comes of it.
step() {
    name=$1 limit=$2
    shift 2
    say "== $name: $*"
    started=$(date +%s)
    timeout -k 5 "$limit" "$@" >"$out/step.log" 2>&1
    status=$?
    cat "$out/step.log" >>"$out/run.log"
    say "== $name: status $status, $(($(date +%s) - started)) s"
    # What went wrong or is doubtful stands on lines of its own.
    case $status in
    0) ;;
    3 | 77) grep -E 'doubtful:|skipped:' "$out/step.log" ;;
    *)
        failed="$failed $name"
        tail -n 5 "$out/step.log"
        ;;
    esac
    rm "$out/step.log"
}

# bench_as FILE EXPERIMENT SECONDS OPTION...
bench_as() {
    file=$1 name=$2 limit=$3
    shift 3
    step "$file" "$limit" "$build/doorbell" bench "$name" --gpu cuda --out_json_file "$out/$file.json" "$@"
}

bench() {
    bench_as "$1" "$@"
}

step machine 20 uname -a
step gpu 20 nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.max.sm,persistence_mode --format=csv
step info 60 "$build/doorbell" info
step test 120 "$build/tests/gpu/test_gpu_real_gpu"
bench l2 60
bench issue 240 --vendors${vendors:+=$vendors}
bench one-op 120 --timeout 4
bench ordering 120 --timeout 4
bench inline 120
bench rate 120
bench clock 60
bench proxy-enqueue 100
bench delay 60
bench loaded 100
bench proxy-rate 100
bench_as proxy-rate-wqe proxy-rate 100 --post=wqe
bench payload 100
bench idle 100
bench warmth 400
if command -v nvidia-smi >/dev/null; then
    step gpu-after 20 nvidia-smi --query-gpu=clocks.sm,clocks_event_reasons.active,temperature.gpu --format=csv
fi

# ---- The short table ----

if command -v python3 >/dev/null; then
    python3 "$here/table.py" "$out"/*.json | tee -a "$out/run.log"
else
    say "no python3: the figures are in $out/*.json"
fi
[ -z "$failed" ] || say "failed:$failed"
[ -z "$failed" ]
