#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Claim: the device serves one process. Of two that connect to each other neither meets a queue pair of
# its own by mistake: the sender gets the error of a peer that does not answer, and both strict mode's
# report and SOFTNIC_DEBUG say that the peer is not of this process.
set -eu

build=${DOORBELL_BUILD:?names the build directory}
if [ "${DOORBELL_SANITIZE:-none}" != none ]; then
    echo "skipped: a sanitized libsoftnic.so cannot be preloaded into programs that are not"
    exit 77
fi
if ! command -v ibv_rc_pingpong >/dev/null; then
    echo "skipped: there is no ibv_rc_pingpong"
    exit 77
fi
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || :; rm -rf "$work"' EXIT

fail() {
    echo "FAILED: $1"
    sed 's/^/    /' "$work/out" "$work/err" "$work/server"
    exit 1
}

# qpn WHOSE: a queue pair's number, as the client printed it.
qpn() {
    sed -n "s/.*$1 address:.*QPN \(0x[0-9a-f]*\),.*/\1/p" "$work/out"
}

# meet: a server and a client. The server waits for ever for what never comes. The client's status
# is in $status.
meet() {
    port=$((20000 + $$ % 20000))
    timeout 60 "$build/doorbell" softnic -- ibv_rc_pingpong -g 3 -p "$port" >"$work/server" 2>&1 &
    server=$!
    for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        status=0
        timeout 30 "$build/doorbell" softnic --strict --debug --report="$work/report" -- \
            ibv_rc_pingpong -g 3 -p "$port" localhost >"$work/out" 2>"$work/err" || status=$?
        grep -q "Couldn't connect" "$work/err" || break
        sleep 0.2
    done
    kill "$server"
    wait "$server" || :
    server=
}

# The numbers are drawn: they agree once in 65,000 times.
for round in 1 2 3; do
    meet
    [ "$(qpn local)" = "$(qpn remote)" ] || break
done
[ -n "$(qpn local)" ] || fail "the client names no queue pair"
[ "$(qpn local)" != "$(qpn remote)" ] || fail "both processes have the same queue pair, thrice"
[ "$status" -eq 1 ] || fail "the client ends with status $status"
grep -q 'transport retry counter exceeded' "$work/out" "$work/err" || fail "no transport retry error"
grep -q 'no queue pair of this process' "$work/err" || fail "SOFTNIC_DEBUG does not say why"
grep -q '"no_such_peer"' "$work/report" || fail "strict mode's report does not say why"
