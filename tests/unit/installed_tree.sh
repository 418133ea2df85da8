#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Claim: what is installed works from where it is installed: the command finds its library, pkg-config
# finds the headers, and each header compiles by itself.
set -eu

build=${DOORBELL_BUILD:?names the build directory}
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

cmake --install "$build" --prefix "$prefix" >"$prefix/log"
pc=$(find "$prefix" -name doorbell.pc)
version=$("$prefix/bin/doorbell" --version)
[ "$version" = "doorbell $(PKG_CONFIG_PATH=${pc%/*} pkg-config --modversion doorbell)" ]
for file in share/man/man1/doorbell.1 share/doc/doorbell/README.md share/doc/doorbell/LICENSE; do
    [ -s "$prefix/$file" ] || { echo "$file is not installed"; exit 1; }
done

headers=$(cd "$prefix/include" && find doorbell -name '*.h' | sort)
[ -n "$headers" ]
for header in $headers; do
    case $header in
    *_cuda.h) continue ;; # for nvcc alone
    */port_cpu.h | */port_explore.h | */port_weak.h) continue ;; # parts of port.h
    esac
    echo "#include <$header>" | cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only \
        -I"$prefix/include" -xc - || { echo "$header does not compile by itself"; exit 1; }
done

# A sanitized library cannot be linked or preloaded into a program that is not.
if [ "${DOORBELL_SANITIZE:-none}" = none ]; then
    # shellcheck disable=SC2046 # flags are meant to split
    echo 'int main(void) { return 0; }' | cc -xc - -o "$prefix/linked" -Wl,--no-as-needed \
        $(PKG_CONFIG_PATH=${pc%/*} pkg-config --define-prefix --cflags --libs doorbell)
    LD_LIBRARY_PATH=$(dirname "${pc%/*}") "$prefix/linked"
    if command -v ibv_devinfo >/dev/null; then
        env -u SOFTNIC "$prefix/bin/doorbell" softnic -- ibv_devinfo >"$prefix/devinfo"
        grep -q mlx5_soft0 "$prefix/devinfo"
    fi
    case $(PKG_CONFIG_PATH=${pc%/*} pkg-config --variable=softnic doorbell) in
    */libsoftnic.so) ;;
    *) echo "doorbell.pc does not name libsoftnic.so"; exit 1 ;;
    esac
fi
echo "installed: $(find "$prefix" -type f | wc -l) files"
