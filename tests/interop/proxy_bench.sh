#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Claim: every experiment about the proxy runs to its end on the software device, with results of both
# systems whose payloads were checked; and fails, naming the byte, when one is falsified. The results
# tell what was done, on a machine however slow; the times themselves say nothing here.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run STATUSES ARGUMENT...: the exit status is one of them (3: something makes the numbers doubtful).
run() {
    allowed=$1
    shift
    status=0
    "$DOORBELL_BUILD/doorbell" bench --gpu=cpu --warmup_iters=2 "$@" >"$work/out" 2>"$work/err" ||
        status=$?
    case " $allowed " in
    *" $status "*) ;;
    *)
        echo "doorbell bench $*: status $status, wanted one of: $allowed"
        cat "$work/err" "$work/out"
        exit 1
        ;;
    esac
}

# systems NAME...: each has results, and none of theirs holds a wrong payload.
systems() {
    for system in "$@"; do
        grep -q "\"system\": *\"$system\"" "$work/out" ||
            { echo "no result of $system"; cat "$work/out"; exit 1; }
    done
    if grep -q '"valid": *false' "$work/out"; then
        echo "a wrong payload"
        exit 1
    fi
}

# told EXPRESSION...: Python's, each true of the last document, whose results are r, and whose best goodput
# is best; rows(KEY=VALUE...) are those with these fields or properties. Without python3 nothing is looked
# at.
told() {
    command -v python3 >/dev/null || return 0
    python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))["results"]
best = max((x["t_typical"] for x in r if x["metric"] == "best_goodput"), default=0)
def rows(**wanted):
    return [x for x in r if all({**x, **x["config"]}.get(k) == v for k, v in wanted.items())]
for claim in sys.argv[2:]:
    if not eval(claim):
        sys.exit("not true: " + claim)
' "$work/out" "$@" || { cat "$work/out"; exit 1; }
}

run "0 3" proxy-enqueue -n 20 --out_json
systems mini-proxy mini-gda
told 'len(rows(protocol="baseline", atomics_per_push=1)) == 2' \
    'len(rows(protocol="baseline, room in GPU memory", atomics_per_push=1)) == 2' \
    'len(rows(protocol="many producers", atomics_per_push=1)) == 2' \
    'len(rows(protocol="many producers, payload released", atomics_per_push=1)) == 2' \
    'len(rows(atomics_per_push=0)) == 8'
run "0 3" delay -n 100 --out_json
systems mini-proxy mini-gda
told 'len(rows(metric="added_delay", paper_id="X17", delay_us=50)) == 2' \
    'all(x["t_min"] > 49 for x in rows(metric="round_trip", delay_us=50))'
# What the background carried; at a pace that every machine can keep, no more than that.
run "0 3" loaded -D 0.1 --ctas=4 --pace=2000 --out_json
systems mini-proxy mini-gda
told 'all(any(x["config"]["carried_k_msg_s"] for x in rows(system=s)) for s in ("mini-gda", "mini-proxy"))' \
    'not any(x["config"]["carried_k_msg_s"] for x in rows(background_ctas=0))' \
    'len(rows(pace_k_msg_s=2)) == 2' \
    'all(x["config"]["carried_k_msg_s"] <= 3 for x in rows(pace_k_msg_s=2))'
run "0 3" proxy-rate -n 200 --repetitions=1 --out_json
systems mini-proxy mini-gda libmlx5
told 'all(rows(system="libmlx5", batch=n)[0]["n_samples"] == 10 for n in (1, 16))' \
    'all(rows(system="libmlx5", batch=n)[0]["t_min"] * 0.999 <= rows(metric="rate", posting=p, rings=32, batch=n)[0]["t_typical"] / rows(metric="over_libmlx5", posting=p, batch=n)[0]["t_typical"] <= rows(system="libmlx5", batch=n)[0]["t_max"] * 1.001 for p in ("ibv_post_send", "own WQEs") for n in (1, 16))' \
    'len(rows(metric="over_libmlx5")) == 4'
run "0 3" proxy-rate -n 200 --repetitions=1 --post=wqe --workers=2 --rings=5 --out_json
systems mini-proxy
run "0 3" payload -n 20 --repetitions=1 --minbytes=8 --maxbytes=4096 --stepfactor=8 --out_json
systems mini-proxy mini-gda
# The best of all rows is one of these rows, so one system at least reaches 90 % of it.
run "0 3" payload -n 20 --repetitions=1 --minbytes=256 --maxbytes=1M --stepfactor=64 --out_json
told 'len(rows(metric="goodput")) == 6 and len(rows(metric="first_size")) == 2' \
    'best == max(x["t_typical"] for x in rows(metric="goodput", MsgSize=rows(metric="best_goodput")[0]["MsgSize"]))' \
    'all(x["t_typical"] == min((g["MsgSize"] for g in rows(metric="goodput", system=x["system"]) if g["t_typical"] >= 0.9 * best), default=None) for x in rows(metric="first_size"))' \
    'any(x["t_typical"] for x in rows(metric="first_size"))' \
    'all((x["t_typical"] is None) == (x.get("why_none") == "not reached") for x in rows(metric="first_size"))' \
    'all(abs(x["config"]["share_of_best_percent"] - 100 * x["t_typical"] / best) <= 1 for x in rows(metric="goodput"))'
# A put and a round trip of each system: four times both, which the clock of the wall has to agree with.
started=$(date +%s)
run "0 3" warmth -n 20 --cold=0.3 --warm=0.2 --idle=sleep --out_json
if [ $(($(date +%s) - started)) -lt 2 ]; then
    echo "warmth neither idled nor worked as long as it should"
    exit 1
fi
systems mini-proxy mini-gda
told 'len(rows(metric="round_trip")) == 4' \
    'all(x["config"]["idle_ms"] >= 300 for x in rows(state="cold"))' \
    'all(x["config"]["load_ms"] >= 200 for x in rows(state="warm"))' \
    'all(m == "unknown" or m > 0 for m in (x["config"]["worker_mhz"] for x in rows(system="mini-proxy")))' \
    '[x["reference"] for x in rows(system="mini-proxy", metric="round_trip")] == [["R360"], ["R361"]]'
run "0 3" idle -n 2 --out_json
systems mini-proxy
told 'all(x["n_samples"] == 2 for m in ("first_put", "first_put_woken") for x in rows(metric=m))' \
    'all(len(rows(metric=m)) == 3 for m in ("first_put", "first_put_woken", "rate"))'
run "0 3" one-op -n 20 --out_json
systems mini-proxy mini-gda

run 1 proxy-enqueue -n 20 --inject=flip=3
grep -q 'offset 3' "$work/err"
run 1 loaded -n 5 --ctas=1 --inject=flip=130
grep -q 'byte 130' "$work/err"
run 1 payload -n 20 -s 64 --inject=flip=9
grep -q 'offset 9' "$work/err"
run 1 proxy-rate -n 200 --inject=flip=9
grep -q 'byte 9' "$work/err"
run 2 loaded --ctas=65

# A thousand round trips of 20 ms do not fit into a launch, which ends with those that it has.
export SOFTNIC_STRICT=fetch=20000000
run "0 3" loaded -n 1000 --timeout=1 --ctas=1 --out_json
unset SOFTNIC_STRICT
systems mini-proxy mini-gda
told 'all(0 < x["n_samples"] < 1000 for x in rows(metric="round_trip"))'
