#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Claim: the documented example runs as the build made it; and it compiles from an installed tree with
# what pkg-config says, against the shared and against the static library, and runs on the software
# device. So does the one for CUDA where there is nvcc; where there is no GPU it says so.
set -eu

build=${DOORBELL_BUILD:?names the build directory}
"$build/examples/put" | grep -qx 'the target holds: hello from a put' ||
    { echo "examples/put of the build does not put"; exit 1; }
if [ "${DOORBELL_SANITIZE:-none}" != none ]; then
    echo "skipped: a sanitized library cannot be preloaded into a program that is not"
    exit 77
fi
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

cmake --install "$build" --prefix "$prefix" >"$prefix/log"
pc=$(find "$prefix" -name doorbell.pc)
PKG_CONFIG_PATH=${pc%/*}
export PKG_CONFIG_PATH
# The tree was configured for another prefix than the one it is installed at here.
flags() {
    pkg-config --define-variable=prefix="$prefix" "$@" doorbell
}
libdir=$(flags --variable=libdir)
example=$prefix/share/doc/doorbell/examples/put.c

# $1: the program. On the software device and nothing else, with real ones hidden.
run() {
    env -u LD_PRELOAD LD_LIBRARY_PATH="$libdir" SOFTNIC=on \
        timeout 50 "$prefix/bin/doorbell" softnic -- "$1" >"$prefix/out"
    grep -q '^using mlx5_soft0, port 1, GID 3 ' "$prefix/out" || { cat "$prefix/out"; exit 1; }
    grep -qx 'the target holds: hello from a put' "$prefix/out" || { cat "$prefix/out"; exit 1; }
}

# The flags are words for the compiler.
# shellcheck disable=SC2046
cc -Wall -Wextra -Werror "$example" $(flags --cflags --libs) \
    -o "$prefix/put"
readelf -d "$prefix/put" | grep -q 'NEEDED.*libdoorbell.so.0' ||
    { echo "the example does not use the shared library"; exit 1; }
run "$prefix/put"

nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
if command -v "$nvcc" >/dev/null; then
    # shellcheck disable=SC2046
    "$nvcc" -std=c++17 -Werror all-warnings "${example%/*}/pingpong.cu" $(flags --cflags --libs) \
        -o "$prefix/pingpong"
    for how in gpu proxy; do
        if env -u LD_PRELOAD LD_LIBRARY_PATH="$libdir" SOFTNIC=on timeout 50 \
            "$prefix/bin/doorbell" softnic -- "$prefix/pingpong" $how >"$prefix/out" 2>"$prefix/err"; then
            grep -q '^1000 round trips, posted by .*, over the software device' "$prefix/out" ||
                { cat "$prefix/out"; exit 1; }
        elif [ -e /dev/nvidia0 ] || ! grep -q 'NVIDIA' "$prefix/err"; then
            cat "$prefix/out" "$prefix/err"
            exit 1
        fi
    done
fi

rm "$libdir"/libdoorbell.so*
# shellcheck disable=SC2046
cc -Wall -Wextra -Werror "$example" $(flags --static --cflags --libs) \
    -o "$prefix/put_static"
run "$prefix/put_static"

# Without any device it says so, and ends with status 1.
if env -u LD_PRELOAD SOFTNIC=off "$prefix/put_static" >"$prefix/out" 2>"$prefix/err"; then
    [ -e /sys/class/infiniband ] || { echo "it found a device where there is none"; exit 1; }
else
    [ -s "$prefix/err" ] || { echo "it failed without a word"; exit 1; }
fi
echo "the example runs with the shared and the static library"
