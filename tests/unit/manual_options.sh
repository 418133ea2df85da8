#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Claim: docs/doorbell.1 has the options that `doorbell COMMAND --help` has, with the same letters and
# arguments, and no others; for every command.
set -eu

doorbell=${DOORBELL_BUILD:?names the build directory}/doorbell
manual=${DOORBELL_SOURCE:?names the source directory}/docs/doorbell.1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# A line for each option: its letter, if any, its name and its argument. What every command takes is said
# once in the manual and is no option of one.
from_help() {
    "$doorbell" "$1" --help |
        sed -nE 's/^ {2}(-[a-zA-Z?]), (--[^ ]+).*/\1 \2/p; t; s/^ {6}(--[^ ]+).*/\1/p' |
        grep -vE -- '--(help|usage|version)$' | sort
}

# The tags of the command's section: the lines behind .TP and .TQ that begin with an option.
from_manual() {
    awk -v section=".SS doorbell $1" '
        /^\.S[SH]/ { inside = $0 == section; next }
        inside && tag { print }
        { tag = /^\.T[PQ]/ }
    ' "$manual" | sed -E 's/\\-/-/g; s/\\f[A-Z]//g; s/^\.[A-Z]+ //; s/[", ]//g; s/^(-[a-zA-Z])--/\1 --/' |
        grep -E '^-' | sort
}

for command in bench explore info softnic; do
    from_help $command >"$work/help"
    from_manual $command >"$work/manual"
    if ! [ -s "$work/help" ] || ! diff -U 0 "$work/help" "$work/manual" >"$work/difference"; then
        echo "doorbell $command: --help (-) and the manual (+) differ:"
        grep -E '^[-+] ?--?[a-zA-Z]' "$work/difference" || echo "  --help lists nothing"
        failures=$((failures + 1))
    fi
    echo "$command: $(wc -l <"$work/help") options"
done
[ "$failures" -eq 0 ]
