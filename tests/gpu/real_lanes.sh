#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Claim: on a real GPU the lanes of a warp that share a queue get on: at the lock, by hand-off, by
# ticket, and many warps together. What a compiler makes of a loop decides it, and no other test sees
# it: kernels that CPU threads run schedule their threads otherwise. Status 77 without a GPU
# that runs kernels.
set -eu

doorbell=${DOORBELL_BUILD:?names the build directory}/doorbell
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$doorbell" info >"$work/info"
if ! grep -q '^  kernels: yes' "$work/info"; then
    sed -nE 's/^(no GPU|GPU [0-9]+: cannot be used|  kernels: no): /skipped: /p' "$work/info"
    exit 77
fi
status=0
"$doorbell" bench rate --gpu=cuda --repetitions=1 --timeout=2 >"$work/out" 2>&1 || status=$?
[ $status -ne 3 ] || status=0 # what makes figures doubtful does not matter here
for sharing in 'lock per WQE' 'slot hand-off' ticket 'one warp' 'warps of a block'; do
    grep -q "^ *$sharing " "$work/out" || status=1
done
[ $status -eq 0 ] || cat "$work/out"
exit $status
