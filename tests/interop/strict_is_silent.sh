#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Claim: strict mode does not cry wolf. libmlx5 keeps every rule, so what it posts earns no diagnostic,
# with executed slots poisoned and fetches late, and every byte is right all the same.
set -eu

build=${DOORBELL_BUILD:?names the build directory}
report=$(mktemp)
trap 'rm -f "$report"' EXIT
export SOFTNIC=on SOFTNIC_REPORT="$report"

for strict in on poison,fetch=1000; do
    for program in all_opcodes scatter_gather wr_api extended_poll many_queues ring_wrap; do
        : >"$report"
        SOFTNIC_STRICT=$strict "$build/tests/interop/test_interop_$program"
        if ! grep -q '"diagnostics": {}' "$report" || grep -q '"send_wqes": 0' "$report"; then
            echo "FAILED: $program, SOFTNIC_STRICT=$strict: a diagnostic, or nothing executed"
            head -n 40 "$report"
            exit 1
        fi
    done
done
