#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# How many instructions a post takes, counted by callgrind: libmlx5's ibv_post_send() and Doorbell's
# device code, for the same 8-byte inline write on the same software device. A count, not a time: it is
# the same on a busy machine.
#
# Usage: tests/speed/post_instructions.sh [BUILD-DIRECTORY]
set -eu
program=${1:-build}/post_instructions
posts=3200
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# count MODE FUNCTION: instructions for each post.
count() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="$2" \
        "$program" "$1" >"$out" 2>&1 || { cat "$out"; exit 1; }
    awk -v posts=$posts '/Collected/ { printf "%.1f", $4 / posts }' "$out"
}

verbs=$(count verbs counted_verbs)
verbs32=$(count verbs32 counted_verbs)
doorbell=$(count doorbell counted_doorbell)
doorbell32=$(count doorbell32 counted_doorbell)
printf '%-24s %12s %12s %8s\n' "instructions a put" libmlx5 doorbell ratio
printf '%-24s %12s %12s %8s\n' "1 to a doorbell" "$verbs" "$doorbell" \
    "$(echo "$doorbell $verbs" | awk '{ printf "%.2fx", $1 / $2 }')"
printf '%-24s %12s %12s %8s\n' "32 to a doorbell" "$verbs32" "$doorbell32" \
    "$(echo "$doorbell32 $verbs32" | awk '{ printf "%.2fx", $1 / $2 }')"
