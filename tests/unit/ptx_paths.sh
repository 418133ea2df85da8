#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Claim: each way to post is compiled for a GPU as it should be: three 16-byte stores for a WQE, one
# doorbell of st.mmio, the fences of its order in number and scope, no local memory. And no kernel of
# the benchmarks needs more registers than tests/gpu/registers.txt says, which the compiler's reports of
# the build are compared with; 'ptx_paths.sh --update' writes that file anew. Status 77 without nvcc.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build=${DOORBELL_BUILD:-$here/../../build}
recorded=$here/../gpu/registers.txt
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
if ! [ -x "$nvcc" ]; then
    echo "skipped: no nvcc (neither in PATH nor in /usr/local/cuda/bin)"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
    echo "$*" >&2
    failures=$((failures + 1))
}

# ---- Instructions ----

# The PTX of kernel $2 on architecture $1.
kernel() {
    sed -n "/^\.visible \.entry $2(/,/^}/p" "$work/$1.ptx"
}

# How many instructions of a kernel match; $3 is a pattern.
count() {
    kernel "$1" "$2" | grep -cE "^[[:space:]]*(@%p[0-9]+ )?$3" || true
}

# expect ARCH KERNEL WQE-STORES GPU-RELEASES SYSTEM-RELEASES: and one doorbell, always.
expect() {
    release=$(if [ "$1" -lt 90 ]; then echo acq_rel; else echo release; fi)
    got="$(count "$1" "$2" 'st\.relaxed\.sys\.global\.v2\.u64') $(count "$1" "$2" "fence\.$release\.gpu;")"
    got="$got $(count "$1" "$2" "fence\.$release\.sys;")"
    [ "$got" = "$3 $4 $5" ] ||
        fail "sm_$1 $2: 16-byte stores, gpu releases, system releases are $got instead of $3 $4 $5"
    [ "$(count "$1" "$2" 'st\.mmio\.')" -ge 1 ] || fail "sm_$1 $2: no st.mmio"
    # Nothing else is ordered at a scope that costs: the fences above are all.
    [ "$(count "$1" "$2" 'fence\.')" = $(($4 + $5)) ] || fail "sm_$1 $2: there are other fences"
}

# expect_order ARCH KERNEL INSTRUCTION...: the stores and fences of a path without branches, in order.
expect_order() {
    arch=$1 name=$2
    shift 2
    want=$(printf '%s\n' "$@")
    got=$(kernel "$arch" "$name" | grep -oE '(st|fence|atom)\.[a-z0-9_.]+' | grep -v '^st\.param')
    [ "$got" = "$want" ] || fail "sm_$arch $name: expected
$want
found
$got"
}

for arch in 80 90 100; do
    "$nvcc" -std=c++17 -Werror all-warnings -I"$here/../../include" -ptx -arch="compute_$arch" \
        -o "$work/$arch.ptx" "$here/ptx_paths.cu"
    release=fence.$(if [ $arch -lt 90 ]; then echo acq_rel; else echo release; fi)
    wqe=st.relaxed.sys.global.v2.u64
    record=st.relaxed.sys.global.u32
    bell=st.mmio.relaxed.sys.global.u64
    expect_order $arch path_owner_none $wqe $wqe $wqe $record $bell
    expect_order $arch path_owner_gpu $wqe $wqe $wqe $release.gpu $record $release.gpu $bell
    expect_order $arch path_owner_gpu_no_record $wqe $wqe $wqe $release.gpu $bell
    expect_order $arch path_owner_system $wqe $wqe $wqe $release.sys $record $release.sys $bell
    expect $arch path_owner_warp 3 2 0
    expect $arch path_publish 3 2 0
    expect $arch path_locked 3 2 0
    expect $arch path_ticket 3 2 0
    for path in path_owner_none path_owner_gpu path_owner_gpu_no_record path_owner_system \
        path_owner_warp path_publish path_locked path_ticket path_handoff; do
        ! kernel $arch $path | grep -qE '(ld|st)\.local|\.local ' || fail "sm_$arch $path: local memory"
    done
    # Hand-off: one release before the mark, then those of the publication, by whoever rings.
    [ "$(count $arch path_handoff 'st\.relaxed\.sys\.global\.v2\.u64')" = 3 ] ||
        fail "sm_$arch path_handoff: a WQE is not three 16-byte stores"
done

# ---- Registers ----

# "sm_90 bench_put 68 0" of every kernel in the reports: registers, and bytes of stack and spills.
registers() {
    cat "$build"/src/*.fatbin.report "$build"/bench/*.fatbin.report | awk '
        /Compiling entry function/ { split($0, part, "\047"); name = part[2]; arch = part[4] }
        /bytes stack frame/ { local = $1 + $5 + $9 }
        /Used [0-9]+ registers/ { for (i = 1; i < NF; i++) if ($i == "Used") print arch, name, $(i + 1), local }
    ' | sort -V
}

release=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
if ! ls "$build"/bench/*.fatbin.report >/dev/null 2>&1; then
    echo "registers: not compared, because $build has no GPU kernels"
elif [ "${1:-}" = --update ]; then
    { echo "# Registers of each kernel, and its bytes of local memory, by nvcc $release."; registers; } \
        >"$recorded"
elif ! grep -q "by nvcc $release\.$" "$recorded"; then
    echo "registers: not compared, because they are recorded for another nvcc than $release"
else
    registers >"$work/now"
    [ -s "$work/now" ] || fail "the compiler's reports name no kernel"
    while read -r arch name used local; do
        [ "$local" = 0 ] || fail "$arch $name: $local bytes of local memory"
        was=$(awk -v a="$arch" -v n="$name" '$1 == a && $2 == n { print $3 }' "$recorded")
        if [ -z "$was" ] || [ "$used" -gt "$was" ]; then
            fail "$arch $name needs $used registers, ${was:-none} are recorded; if that is meant, run" \
                "'DOORBELL_BUILD=build tests/unit/ptx_paths.sh --update' and commit tests/gpu/registers.txt"
        fi
    done <"$work/now"
fi

[ "$failures" -eq 0 ]
