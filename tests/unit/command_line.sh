#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Claim: `doorbell` keeps its contract with scripts: exit statuses, which stream carries what, and a
# message that names the mistake and the nearest right name. docs/doorbell.1 states it.
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

# expect STATUS STREAM TEXT ARGUMENT...: the exit status, and a text that STREAM (out or err) holds while
# the other stream stays empty.
expect() {
    status=$1 stream=$2 text=$3
    shift 3
    cases=$((cases + 1))
    timeout 20 "$doorbell" "$@" >"$work/out" 2>"$work/err" </dev/null
    got=$?
    [ "$got" -eq "$status" ] || fail "doorbell $*: status $got, expected $status"
    case $stream in
    out) other=err ;;
    err) other=out ;;
    esac
    grep -qF -- "$text" "$work/$stream" || fail "doorbell $*: no '$text' on $stream"
    [ -s "$work/$other" ] && fail "doorbell $*: something on $other"
}

# Help and version of everything go to standard output.
expect 0 out 'Usage: doorbell COMMAND' --help
expect 0 out 'Usage: doorbell COMMAND' -h
expect 0 out 'Usage: doorbell COMMAND' help
expect 0 out 'Usage: doorbell COMMAND' help help
expect 0 out 'Usage: doorbell COMMAND' help --help
expect 0 out 'doorbell 0.' --version
expect 0 out 'doorbell 0.' help --version
for command in bench explore info softnic; do
    expect 0 out "  $command " --help
    expect 0 out "Usage: doorbell $command" $command --help
    expect 0 out "Usage: doorbell $command" $command -h
    expect 0 out "Usage: doorbell $command" help $command
    expect 0 out 'doorbell 0.' $command --version
done

expect 0 out '%p in FILE' softnic --help

# Usage errors: status 2, the mistake and the nearest name, and nothing on standard output.
expect 2 err 'Usage: doorbell COMMAND'
expect 2 err "unknown command 'inof'; the nearest is 'info'" inof
expect 2 err "unknown command 'softnik'; the nearest is 'softnic'" softnik -- true
expect 2 err "unknown command 'inof'; the nearest is 'info'" help inof
expect 2 err "unknown option '--versoin'; the nearest is '--version'" --versoin
expect 2 err "unknown option '--jsno'; the nearest is '--json'" info --jsno
expect 2 err "unknown option '--jsno'; the nearest is '--json'" info --ib-dev x --jsno
expect 2 err "unknown option '--jsno'; the nearest is '--json'" info -d x --jsno=1
expect 2 err "unknown option '--pool'; the nearest is '--poll'" softnic --mode=on --pool=spin
expect 2 err "unknown option '--strikt'; the nearest is '--strict'" softnic --strikt=on -- true
expect 2 err "invalid option -- 'z'" info -z
expect 2 err "option '--ib-dev' requires an argument" info --ib-dev
expect 2 err "there is 'extra'" info extra
expect 2 err '--ib-port=0: a number from 1 to 255' info --ib-port=0
expect 2 err '--ib-port=1x: a number from 1 to 255' info -i 1x
expect 2 err '--gid-index=-1: a number from 0' info --gid-index=-1
expect 2 err "--softnic=offf: choose one of auto, on, off; the nearest is 'off'" info --softnic=offf
expect 0 out 'collapsed of up to 16384; with or without a doorbell record' info --softnic=on
expect 0 out '"without_record": true' info --softnic=on --json
expect 2 err 'COMMAND is missing' softnic
expect 2 err 'COMMAND is missing' softnic --strict --
expect 2 err "the nearest is 'on'" softnic --mode=onn -- true
expect 2 err "the nearest is 'spin'" softnic --poll=spni -- true
expect 2 err "the nearest is 'poison'" softnic --strict=on,poisn -- true
expect 2 err '--strict=fetch=x: a number' softnic --strict=fetch=x -- true
expect 2 err '--seed=: a number' softnic --seed= -- true
expect 2 err '--seed=0: a number' softnic --seed=0 -- true
expect 2 err '--seed=99999999999999999999: a number' softnic --seed=99999999999999999999 -- true
expect 2 err 'did you mean --report=file?' softnic --report file -- true

if [ "${DOORBELL_SANITIZE:-none}" != none ] || ! [ -e "$DOORBELL_BUILD/libsoftnic.so" ]; then
    echo "not tried: running programs, which a sanitized or missing libsoftnic.so does not allow"
else
    # The program gets its arguments as they are, its status comes back, and settings reach it.
    unset SOFTNIC SOFTNIC_STRICT SOFTNIC_POLL SOFTNIC_SEED SOFTNIC_REPORT
    expect 7 out seven softnic -- sh -c 'echo seven; exit 7'
    expect 0 out '--mode --json' softnic -- echo --mode --json
    expect 0 out on, softnic --strict=early,merge,fetch=5 -- sh -c 'echo $SOFTNIC,'
    expect 0 out 'on,spin,poison,18446744073709551615' softnic --seed=18446744073709551615 --poll=spin --strict=poison -- \
        sh -c 'echo $SOFTNIC,$SOFTNIC_POLL,$SOFTNIC_STRICT,$SOFTNIC_SEED'
    expect 0 out "[$PWD/r.json]" softnic --mode=off --report=r.json -- \
        sh -c 'echo "[$SOFTNIC_REPORT]"; unset SOFTNIC_REPORT'
    expect 127 err "cannot run 'no-such-program'" softnic -- no-such-program
    expect 126 err "cannot run '/etc'" softnic -- /etc
    SOFTNIC=auto expect 0 out '[auto]' softnic -- sh -c 'echo "[$SOFTNIC]"'
    SOFTNIC=auto expect 0 out '[off]' softnic --mode=off -- sh -c 'echo "[$SOFTNIC]"'
    rm -f r.json
fi

echo "$cases command lines, $failures failures"
[ "$failures" -eq 0 ]
