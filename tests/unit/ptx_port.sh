#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Compiles ptx_port.cu for each architecture and reads in the PTX that every operation of port.h became
# the instruction it should: order, scope and width; and in ptxas' report that no kernel needs local
# memory. Status 77 when there is no nvcc. NVCC names another compiler.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
if ! command -v "$nvcc" >/dev/null; then
    echo "skipped: $nvcc is no program; NVCC names the compiler"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# The memory, warp and clock instructions of kernel $2 on architecture $1, operands cut off; accesses
# to parameters are left out.
instructions() {
    sed -n "/^\.visible \.entry $2(/,/^}/p" "$work/$1.ptx" |
        grep -oE '(ld|st|atom|fence|bar|shfl|prefetch|nanosleep)\.[a-zA-Z0-9_.]+|%(laneid|globaltimer|clock64)' |
        grep -v '^[ls][dt]\.param'
}

# expect ARCH KERNEL INSTRUCTION...: exactly these, in this order.
expect() {
    arch=$1 kernel=$2
    shift 2
    want=$(printf '%s\n' "$@")
    got=$(instructions "$arch" "$kernel" || true)
    if [ "$got" != "$want" ]; then
        printf 'sm_%s %s: expected\n%s\nfound\n%s\n' "$arch" "$kernel" "$want" "$got" >&2
        failures=$((failures + 1))
    fi
}

compile() {
    "$nvcc" -std=c++17 -Werror all-warnings -I"$here/../../include" "$@" "$here/ptx_port.cu"
}

for arch in 80 90 100; do
    compile -ptx -arch="compute_$arch" -o "$work/$arch.ptx"

    expect "$arch" ptx_loads \
        ld.relaxed.gpu.global.u32 ld.relaxed.sys.global.u32 \
        ld.acquire.gpu.global.u32 ld.acquire.sys.global.u32 \
        ld.relaxed.gpu.global.u64 ld.relaxed.sys.global.u64 \
        ld.acquire.gpu.global.u64 ld.acquire.sys.global.u64 st.relaxed.gpu.global.u64
    expect "$arch" ptx_stores \
        st.relaxed.gpu.global.u32 st.relaxed.sys.global.u32 \
        st.release.gpu.global.u32 st.release.sys.global.u32 \
        st.relaxed.gpu.global.u64 st.relaxed.sys.global.u64 \
        st.release.gpu.global.u64 st.release.sys.global.u64
    expect "$arch" ptx_atomics \
        atom.relaxed.gpu.global.add.u32 atom.relaxed.gpu.global.cas.b32 \
        atom.relaxed.gpu.global.exch.b32 atom.relaxed.gpu.global.add.u64 atom.relaxed.gpu.global.cas.b64 \
        atom.relaxed.gpu.global.max.u64 atom.acquire.gpu.global.exch.b64 st.relaxed.gpu.global.u64
    expect "$arch" ptx_warp \
        %laneid shfl.sync.idx.b32 shfl.sync.idx.b32 bar.warp.sync bar.sync \
        st.shared.u64 bar.sync ld.shared.u64 st.global.u64
    expect "$arch" ptx_clocks %globaltimer %clock64 st.relaxed.gpu.global.u64

    # A release in one direction where the architecture has one.
    release=fence.release acquire=fence.acquire
    if [ "$arch" -lt 90 ]; then
        release=fence.acq_rel acquire=fence.acq_rel
    fi
    expect "$arch" ptx_fences $release.gpu $release.sys $acquire.gpu $acquire.sys
    expect "$arch" ptx_post \
        st.relaxed.sys.global.v4.u32 st.relaxed.sys.global.v4.u32 st.relaxed.sys.global.v4.u32 \
        $release.gpu st.relaxed.gpu.global.u32 $release.gpu st.mmio.relaxed.sys.global.u64

    # The wait, after a prefetch, polls with an acquire, looks at the timer and lets other lanes go on.
    for part in 'ld\.acquire\.gpu\.global\.u64' '%globaltimer' 'prefetch\.global\.L2' 'nanosleep\.u32'; do
        if ! instructions "$arch" ptx_wait | grep -q "$part"; then
            echo "sm_$arch ptx_wait: no $part" >&2
            failures=$((failures + 1))
        fi
    done

    # Machine code: nothing spilled or on the stack. The registers are for the reader.
    compile -cubin -arch="sm_$arch" -Xptxas -v -o "$work/$arch.cubin" 2>"$work/$arch.report"
    if grep -E '[1-9][0-9]* bytes (stack frame|spill)' "$work/$arch.report"; then
        echo "sm_$arch: a kernel uses local memory" >&2
        failures=$((failures + 1))
    fi
    registers=$(grep -A3 "entry function 'ptx_post'" "$work/$arch.report" |
        sed -n 's/.*Used \([0-9]*\) registers.*/\1/p')
    echo "sm_$arch: ptx_post uses $registers registers"
done

# The host's half of a compilation must accept the headers as well.
compile -c -arch=sm_80 -o "$work/both.o"

[ "$failures" -eq 0 ]
