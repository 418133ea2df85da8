#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Claim: a figure of the paper stands only beside a result of the same configuration: system, order,
# payload, threads, queues, CTAs and batch, as far as data/reference.csv names them. Where CPU
# threads play the GPU, a rate says how many OS threads and CPUs that were.
set -eu

command -v python3 >/dev/null || { echo "skipped: python3 reads the documents"; exit 77; }
doorbell=${DOORBELL_BUILD:?names the build directory}/doorbell
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

compare() {
    python3 - "$DOORBELL_SOURCE/data/reference.csv" "$work/r.json" "$@" <<'EOF'
import csv, json, os, re, sys
rows = {r["id"]: r for r in csv.DictReader(open(sys.argv[1]))}
results = json.load(open(sys.argv[2]))["results"]
beside, wrong = set(), []

def whole(text):
    """The numbers that "16", or a range "2-32", stands for."""
    ends = [int(n) for n in text.split("-")]
    return range(ends[0], ends[-1] + 1)

for r in results:
    c = r["config"]
    for id in r["reference"]:
        ref, says = rows[id], rows[id]["config"]
        beside.add(id)
        facts = {"system": r["system"] in ref["system"].split("; ")}
        if "ordering" in c:
            for words, ours in (("GPU-scope", "gpu scope"), ("system-scope", "system scope"),
                                ("unordered", "none (unsafe)"), ("fences omitted", "none (unsafe)")):
                if words in says:
                    facts[words] = c["ordering"] == ours
        for part in (p.strip() for p in says.split(";")):
            if part in ("inline", "non-inline") and "payload" in c:
                facts[part] = c["payload"] == {"inline": "inline", "non-inline": "pointer"}[part]
            m = re.fullmatch(r"(threads|QPs|SMs|batch)=([\d-]+)", part)
            if m:
                ours = {"QPs": "queues", "SMs": "ctas"}.get(m[1], m[1])
                facts[part] = c[ours] in whole(m[2])
        wrong += ["%s beside %s %s: not %s" % (id, r["metric"], c, f) for f in facts if not facts[f]]
    if r["metric"] == "rate" and "ctas" in c:
        if not 1 <= c.get("os_threads", 0) <= c["ctas"] or c.get("cpus") != len(os.sched_getaffinity(0)):
            wrong.append("a rate by CPU threads does not say how many: %s" % c)
wrong += ["%s is nowhere" % id for id in sys.argv[3:] if id not in beside]
sys.exit("\n".join(wrong) if wrong else 0)
EOF
}

# run EXPERIMENT ID...: its results have what they should beside them, and these figures somewhere.
run() {
    experiment=$1
    shift
    status=0
    "$doorbell" bench "$experiment" --gpu=cpu -n 32 --warmup_iters=2 \
        --repetitions=1 --out_json >"$work/r.json" 2>"$work/err" || status=$?
    case $status in
    0 | 3) ;;
    *)
        echo "doorbell bench $experiment: status $status"
        cat "$work/err"
        exit 1
        ;;
    esac
    compare "$@"
}

run one-op R041 R043 R047 R051
run ordering R114 R115 R117
run inline R216
run rate R201 R203 R204 R206 R210 R212 R214 R216 R218 R220 R222 R230
