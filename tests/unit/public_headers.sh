#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Claim: each public header compiles by itself, without a warning, in C, in C++17, and in CUDA where
# there is nvcc.
set -eu

include=$(cd "$(dirname "$0")/../../include" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

count=0
for header in "$include"/doorbell/*.h; do
    echo "#include <doorbell/${header##*/}>" >"$work/one.c"
    cc -std=gnu11 -Wall -Wextra -Wshadow -Werror -I"$include" -fsyntax-only "$work/one.c"
    if command -v c++ >/dev/null; then
        c++ -x c++ -std=c++17 -Wall -Wextra -Werror -I"$include" -fsyntax-only "$work/one.c"
    fi
    count=$((count + 1))
done
[ "$count" -ge 5 ] || { echo "only $count headers"; exit 1; }
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
if command -v "$nvcc" >/dev/null; then
    for header in "$include"/doorbell/*.h; do
        echo "#include <doorbell/${header##*/}>"
    done >"$work/all.cu"
    "$nvcc" -std=c++17 -Werror all-warnings -I"$include" -c "$work/all.cu" -o "$work/all.o"
fi
echo "$count headers"
