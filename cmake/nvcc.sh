#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# nvcc.sh REPORT COMMAND...: runs the compiler with its report of registers and memory in a file, which
# tests/unit/ptx_paths.sh reads, and shows that only when it fails.
report=$1
shift
"$@" 2>"$report.new" || {
    status=$?
    cat "$report.new" >&2
    exit $status
}
mv "$report.new" "$report"
