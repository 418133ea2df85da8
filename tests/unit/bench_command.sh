#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Claim: `doorbell bench` keeps its contract with scripts: exit statuses, options in any order, results
# and nothing else on standard output, a JSON document that another program reads and finds complete, a
# falsified payload byte found and named (C21), and believable figures of the harness itself.
set -u

doorbell=${DOORBELL_BUILD:?names the build directory}/doorbell
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cases=0 failures=0

fail() {
    failures=$((failures + 1))
    echo "FAILED: $1"
    sed 's/^/    out: /' "$work/out"
    sed 's/^/    err: /' "$work/err"
}

# expect STATUSES STREAM TEXT ARGUMENT...: an exit status of `doorbell bench ARGUMENT...`, and a text
# that STREAM (out or err) holds.
expect() {
    status=$1 stream=$2 text=$3
    shift 3
    cases=$((cases + 1))
    timeout 50 "$doorbell" bench "$@" >"$work/out" 2>"$work/err" </dev/null
    got=$?
    case " $status " in
    *" $got "*) ;;
    *) fail "doorbell bench $*: status $got, expected $status" ;;
    esac
    grep -qF -- "$text" "$work/$stream" || fail "doorbell bench $*: no '$text' on $stream"
}

# refuse TEXT ARGUMENT...: a usage error before anything ran.
refuse() {
    text=$1
    shift
    expect 2 err "$text" "$@"
    [ -s "$work/out" ] && fail "doorbell bench $*: a result on standard output"
}

# What there is, and what is unknown.
refuse 'timer          X17'
expect 0 out 'timer          X17' --list
# Names, ids and summaries begin in one column each: a row has its two gaps where the longest cells end.
awk 'NR == 1 { summary = index($0, "what the") } \
    { if (substr($0, summary - 2, 2) != "  " || substr($0, summary, 1) == " ") exit 1 }' "$work/out" ||
    fail 'the summaries of --list do not begin in one column'
expect 0 out 'Usage: doorbell bench' --help
refuse "unknown experiment 'nul'; the nearest is 'null'" nul
refuse "unknown experiment 'X18'; the nearest is 'X17'" null X18
refuse "unknown option '--itres'; the nearest is '--iters'" null --itres 5
refuse "unknown option '--itres'; the nearest is '--iters'" --size 8 --itres=5 null
refuse "unknown option '--nope'" --nope null
grep -q nearest "$work/err" && fail 'a name is suggested for --nope'
refuse "unknown experiment 'bandwidth'" bandwidth
grep -q nearest "$work/err" && fail 'an experiment is suggested for bandwidth'
refuse "invalid option -- 'Z'" null -Z
refuse '--size=8Q: a size from 1' null -s 8Q
refuse '--iters and --duration exclude each other' -n 5 null -D 1
refuse '--iters and --duration exclude each other' -D 1 -n 5 null
refuse '--inject needs --check=on' --inject flip=0 --check off null
refuse "have no 'T99'" --reference T99
# A depth that some row of an experiment cannot have, before the first row.
refuse '--tx-depth=1: one-op needs 2 or more: a ring of a proxied queue' --gpu=cpu null one-op -t 1
refuse '--tx-depth=16: rate needs 32 or more' rate --gpu=cpu -t 16
refuse '--tx-depth=32: inline needs 64 or more' -t 32 --gpu=cpu inline

# The paper's figures, by row, by experiment, by our name.
expect 0 out 'R041  T3' --reference r041
expect 0 out 'R331  X17' --reference x17
expect 0 out 'R333  X17' --reference timer
expect 0 out 'R420  G1' --reference

# Names and ids, and options wherever they stand.
expect 0 out 'null: what' -n 20 null
expect 0 out 'null: what' null -n 20 NULL
[ "$(grep -c '^null: what' "$work/out")" -eq 1 ] || fail 'an experiment named twice ran twice'
# An id means all that have it. Other programs may make the delay doubtful.
expect "0 3" out 'timer (X17)' x17 --gpu=cpu -n 100
for name in timer delay; do
    grep -qF "$name (X17): timer check" "$work/out" || fail "x17 did not run $name"
done
expect 0 out 'No NIC and no GPU took part.' null --iters=20
for line in '-n 20 -s 64 --seed 3 null -U' 'null -U --seed 3 -n20 -s64' '-U null --size=64 --iters 20 --seed=3' \
    '--seed 3 -Un 20 -s 64 null'; do
    # shellcheck disable=SC2086 # the line is several arguments
    expect 0 out '19, ' $line
    grep -q '^ *copy  *64  *20 ' "$work/out" || fail "'$line' means something else"
done
expect "0 3" err 'warning: timer does not use --size' timer -n 100 -s 8
expect 0 out 'samples' null -n 50 -H

# A kernel that does not end in time: once by name, and what to do.
expect 1 err '; it had 0.4 s, and a longer --timeout gives more' \
    rate --gpu=cpu -n 20000000 --timeout=0.2 --repetitions=1
grep -q 'kernel bench_rate was ended at its deadline' "$work/err" || fail 'the kernel is not named'
[ "$(grep -o bench_rate "$work/err" | wc -l)" -eq 1 ] || fail 'the kernel is named more than once'

# The GPU that is not there is the one that was asked for.
status=0
"$doorbell" bench ordering --gpu=99 -n 5 >"$work/out" 2>"$work/err" || status=$?
[ "$status" -eq 1 ] && grep -qF -- '--gpu=99: ' "$work/err" || fail '--gpu=99 is not named'

# What a proxy cannot do is said before anything ran.
refuse 'a worker serves at most 32' proxy-rate --gpu=cpu --rings=33 --workers=1
refuse '1 to 16 requests' proxy-rate --gpu=cpu --post-list=17
refuse '1 to 16 requests' loaded --gpu=cpu --post-list=17
refuse '--workers=7: at most 6' loaded --gpu=cpu --workers=7
refuse '--rings=2: with' loaded --gpu=cpu --rings=2
refuse '--rings=33: with 1 workers 3 to 32 are possible' loaded --gpu=cpu --rings=33 --workers=1

# The library offers another way, and the option for it is named.
MLX5_CQE_SIZE=128 expect 1 err 'use DB_POST_VERBS (--post=verbs)' proxy-rate --gpu=cpu --post=wqe -n 5

# The negative control: one byte of each payload falsified.
expect 1 err 'first wrong byte is at offset 5' null -n 20 -s 64 --inject flip=5
expect 1 out 'WRONG' null -n 20 -s 64 --inject flip=5
expect 0 out 'valid' null -n 20 -s 64
expect 2 err 'the payload has only 64 bytes' null -n 20 -s 64 --inject flip=64
# Where no payload moves, one byte of each WQE.
expect 1 err 'the WQE at index 29: byte 27 of 48 is' issue --gpu=cpu -n 20 --warmup_iters=10 --inject flip=27
expect 1 out 'WRONG' issue --gpu=cpu -n 20 --warmup_iters=10 --inject flip=40
expect 2 err 'a WQE has only 48 bytes' issue --gpu=cpu -n 20 --warmup_iters=10 --inject flip=48

# Places that cannot be written.
expect 1 err "--out_json_file=$work/none/r.json" null -n 5 --out_json_file="$work/none/r.json"
if [ -w /dev/full ]; then
    "$doorbell" bench null -n 5 >/dev/full 2>"$work/err" && fail 'a full standard output passed'
fi

# check_json FILE EXPRESSION: a Python expression about the document d.
check_json() {
    cases=$((cases + 1))
    python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
results = {(r["experiment"], r["metric"]): r for r in d["results"]}
copy, timer = results.get(("null", "copy")), results.get(("null", "timer"))
keys = "experiment paper_id system config metric unit n_iterations t_min t_typical t_avg t_max t_stdev " \
    "percentile_90 percentile_99 percentile_99.9 outliers MsgSize valid where reference".split()
def ordered(r):
    return r["t_min"] <= r["t_typical"] <= r["percentile_90"] <= r["percentile_99"] \
        <= r["percentile_99.9"] <= r["t_max"] and r["t_min"] <= r["t_avg"] <= r["t_max"]
if not eval(sys.argv[2]):
    sys.exit("not true of %s: %s" % (sys.argv[1], sys.argv[2]))
' "$1" "$2" || fail "JSON: $2"
}

if command -v python3 >/dev/null; then
    expect "0 3" out '"results"' --out_json null timer -n 100 --out_json_file="$work/n.json" -s 1K
    check_json "$work/out" 'len(d["results"]) == 6'
    check_json "$work/n.json" 'd == json.load(open("'"$work/out"'"))'
    check_json "$work/n.json" 'set(d) == {"doorbell", "command", "machine", "results"}'
    check_json "$work/n.json" 'd["command"].startswith("doorbell bench --out_json null timer -n 100")'
    check_json "$work/n.json" 'd["machine"]["cpu"] and d["machine"]["cpus_online"] > 0'
    check_json "$work/n.json" 'all(set(keys) <= set(r) for r in d["results"])'
    check_json "$work/n.json" 'all(ordered(r) for r in d["results"])'
    check_json "$work/n.json" 'all(set(r["where"]) == {"nic", "gpu", "cpu"} for r in d["results"])'
    check_json "$work/n.json" 'copy["valid"] is True and copy["MsgSize"] == 1024'
    check_json "$work/n.json" 'timer["n_iterations"] == 100 and timer["valid"] is None'
    check_json "$work/n.json" 'results["timer", "added_delay"]["reference"][0] == "R329"'
    check_json "$work/n.json" 'results["timer", "added_delay"]["paper_id"] == "X17"'

    # The clocks of a GPU, or of what plays it; a driver states none here.
    expect 0 out '"results"' ordering --gpu=cpu -n 20 --out_json
    check_json "$work/out" 'all(r["where"]["gpu"]["sm_mhz"] > 0 < r["where"]["gpu"]["sm_mhz_before"] for r in d["results"])'
    check_json "$work/out" 'all(r["where"]["gpu"]["sm_mhz_stated"] is None for r in d["results"])'

    # The harness's own cost, and the timer: more than nothing, less than what would spoil a result.
    check_json "$work/n.json" '0 < timer["t_typical"] < 10000'
    check_json "$work/n.json" 'abs(results["timer", "added_delay"]["t_typical"] - 50) < 1'

    # By count and by time: the same operation, so about the same median.
    expect 0 out 'null: ' null -n 50000 -s 1K --out_json_file="$work/n.json"
    expect 0 out 'null: ' null -D 0.1 -s 1K --out_json_file="$work/d.json"
    check_json "$work/d.json" '0.5 < timer["t_typical"] / json.load(open("'"$work/n.json"'"))["results"][0]["t_typical"] < 2'
    check_json "$work/d.json" 'timer["n_iterations"] > 1000 and ordered(copy)'

    # What -H and -U print is in the document when it is asked for.
    expect 0 out 'doorbell' null -n 30 -HU --out_json
    check_json "$work/out" 'len(copy["samples"]) == 30 and sum(b[2] for b in copy["histogram"]) == 30'

    expect 1 out '"valid": false' null -n 5 --inject=flip=3 --out_json
    check_json "$work/out" 'copy["valid"] is False'
else
    echo 'not tried: the JSON document, for lack of python3'
fi

echo "$cases checks, $failures failures"
[ "$failures" -eq 0 ]
