#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Claim: a rate runs for as long as --duration says: fifty times as long makes more than five times as many
# puts, all rows together.
set -eu

command -v python3 >/dev/null || { echo "skipped: python3 reads the documents"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for seconds in 0.002 0.1; do
    status=0
    "${DOORBELL_BUILD:?names the build directory}/doorbell" bench rate --gpu cpu --repetitions=1 \
        --duration=$seconds --out_json_file "$work/$seconds.json" >"$work/out" 2>&1 || status=$?
    [ $status -eq 0 ] || [ $status -eq 3 ] || { cat "$work/out"; exit 1; }
done
python3 - "$work/0.002.json" "$work/0.1.json" <<'EOF'
import json, sys
short, long = (sum(r["n_iterations"] for r in json.load(open(name))["results"]
                   if r["system"] == "mini-gda") for name in sys.argv[1:])
assert long > 5 * short > 0, "%d puts, and %d in fifty times as long" % (short, long)
EOF
echo "rates run for --duration"
