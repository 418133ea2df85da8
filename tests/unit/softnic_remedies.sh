#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Claim: where the software device cannot be used, or is not, `doorbell` says the reason and the remedy
# that is one: a wrong value by name and with those that are right, SOFTNIC=off, a device of the
# machine's own that nobody can use.
set -u

doorbell=${DOORBELL_BUILD:?names the build directory}/doorbell
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
unset SOFTNIC SOFTNIC_STRICT SOFTNIC_POLL SOFTNIC_SEED SOFTNIC_REPORT

# says TEXT COMMAND...: the command fails, on one of its lines is TEXT, and on none a remedy that is none.
says() {
    text=$1
    shift
    timeout 60 "$@" >"$work/out" 2>&1 </dev/null
    status=$?
    if [ "$status" -ne 1 ] || ! grep -qF -- "$text" "$work/out" ||
        grep -qE "kernel's log|doorbell softnic --" "$work/out"; then
        failures=$((failures + 1))
        echo "FAILED: $*: status $status, expected 1 and '$text', and no wrong remedy"
        sed 's/^/    /' "$work/out"
    fi
}

mode='mlx5_soft0 cannot be opened: SOFTNIC=bogus is not a mode; use auto, on or off'
word="mlx5_soft0 cannot be opened: SOFTNIC_STRICT has no word 'foo'; use on,"
off='is not used: it is switched off (SOFTNIC=off); SOFTNIC=on brings it'
for command in info 'bench one-op --gpu=cpu --iters=100'; do
    if [ ! -e /sys/class/infiniband_verbs/uverbs0 ]; then
        # shellcheck disable=SC2086 # words
        says "$mode" env SOFTNIC=bogus "$doorbell" $command
        # shellcheck disable=SC2086
        says "$off" env SOFTNIC=off "$doorbell" $command
    fi
    # shellcheck disable=SC2086
    says "$word" env SOFTNIC=on SOFTNIC_STRICT=foo "$doorbell" $command
done

# An entry in /sys that nothing stands behind.
bare='mount -t tmpfs none /sys/class && mkdir -p /sys/class/infiniband_verbs/uverbs0 && exec "$@"'
if unshare -rm sh -c "$bare" sh true 2>/dev/null; then
    says 'this machine has an RDMA device of its own in /sys/class/infiniband_verbs; SOFTNIC=on brings it' \
        unshare -rm sh -c "$bare" sh "$doorbell" info
else
    echo "not tried: an entry in /sys that nobody can use, for want of user namespaces"
fi
[ "$failures" -eq 0 ]
