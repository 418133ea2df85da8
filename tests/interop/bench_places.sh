#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Claim: a record says where each part that an option can place was: ring, CQ and doorbell record of
# GPU-submitted queues, a proxy's progress, payloads; and an option places them in every row of an
# experiment that takes it.
set -eu

command -v python3 >/dev/null || { echo "skipped: python3 reads the documents"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run ARGUMENT...: the document of `doorbell bench ARGUMENT...` is $work/r.json.
run() {
    status=0
    "$DOORBELL_BUILD/doorbell" bench --gpu=cpu --warmup_iters=2 --out_json "$@" \
        >"$work/r.json" 2>"$work/err" || status=$?
    case $status in
    0 | 3) ;;
    *)
        echo "doorbell bench $*: status $status"
        cat "$work/err"
        exit 1
        ;;
    esac
}

# places SYSTEM KEY=PLACE...: these, and no others, are in all records of the system that are about a
# queue, of which there is one at least.
places() {
    python3 - "$work/r.json" "$@" <<'EOF'
import json, sys
expected = dict(a.split("=") for a in sys.argv[3:])
parts = {"ring", "cq", "record_memory", "payload_memory", "progress"}
seen = 0
for r in json.load(open(sys.argv[1]))["results"]:
    c = r["config"]
    if r["system"] != sys.argv[2] or not {"threads", "queues", "rings", "sharing"} & set(c):
        continue
    seen += 1
    told = {k: v.split()[0].lower() for k, v in c.items() if k in parts}
    if told != expected:
        sys.exit("%s %s: %s, expected %s" % (r["experiment"], r["metric"], c, expected))
sys.exit(None if seen else "no record of %s" % sys.argv[2])
EOF
}

run one-op -n 20
places mini-gda ring=host cq=host record_memory=host payload_memory=host
places mini-proxy progress=host payload_memory=host
run inline -n 20 --payload-memory=gpu --repetitions=1
places mini-gda ring=host cq=host record_memory=host payload_memory=gpu
run proxy-enqueue -n 20 --payload-memory=gpu
places mini-gda ring=host cq=host record_memory=host payload_memory=gpu
places mini-proxy progress=host payload_memory=gpu
run loaded -n 5 --ctas=1
places mini-gda ring=host cq=host record_memory=host payload_memory=host
places mini-proxy progress=host payload_memory=host

# Without a device, single posts and rates alike.
run issue -D 0.01
places mini-gda ring=gpu cq=gpu record_memory=gpu
run issue -D 0.01 --ring-memory=host --record-memory=host
places mini-gda ring=host cq=gpu record_memory=host
