#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Claim: each way to post, to poll and to push is compiled for a GPU as it should be: its stores by width
# and scope, its fences by kind and scope, its doorbell, all in their order; and no local memory. And no
# kernel of the benchmarks needs more registers than tests/gpu/registers.txt says, which the compiler's
# reports of the build are compared with; 'ptx_paths.sh --update' writes that file anew. Status 77 without
# nvcc.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build=${DOORBELL_BUILD:-$here/../../build}
recorded=$here/../gpu/registers.txt
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
if ! command -v "$nvcc" >/dev/null; then
    echo "skipped: $nvcc is no program; NVCC names the compiler"
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

# The stores, atomics, fences and barriers of a kernel, and its loads at a scope, line by line; what is the
# thread's own apart.
instructions() {
    kernel "$1" "$2" | grep -oE '(st|atom|fence|bar\.warp|ld\.(relaxed|acquire))\.[a-z0-9_.]+' |
        grep -v -e '^st\.param' -e '\.cta\.'
}

# compare WHERE WANT GOT
compare() {
    [ "$2" = "$3" ] || fail "$1: expected
$2
found
$3"
}

loads='^ld' others='^[^l]' scoped='^[^s]|^st\.[^g]' # without the plain stores of results

# expect ARCH KERNEL PATTERN INSTRUCTION...: those that match are exactly these, in this order of the text,
# which is that of the run where the compiler moves no part behind another.
expect() {
    where="sm_$1 $2" got=$(instructions "$1" "$2" | grep -E "$3" || true)
    shift 3
    compare "$where" "$(printf '%s\n' "$@")" "$got"
}

# expect_set: the same in any order.
expect_set() {
    where="sm_$1 $2" got=$(instructions "$1" "$2" | grep -E "$3" | sort || true)
    shift 3
    compare "$where, sorted" "$(printf '%s\n' "$@" | sort)" "$got"
}

# expect_posts ARCH KERNEL POST...: of a kernel that posts in one of several ways, what stands before each
# doorbell, and it; in any order of the ways.
expect_posts() {
    where="sm_$1 $2"
    got=$(instructions "$1" "$2" | grep -E '^fence|^st\.mmio|^st\.relaxed\.sys\.global\.u32|exch' |
        awk '{ post = post " " $0 } /mmio/ { print post; post = "" } END { print post }' | sort)
    shift 2
    compare "$where, sorted" "$({ printf ' %s\n' "$@"; echo; } | sort)" "$got"
}

# expect_made_of_answer ARCH KERNEL STORE: what the last STORE stores was worked out from what the exchange
# answered, register by register.
expect_made_of_answer() {
    kernel "$1" "$2" | tr ';' '\n' | tr -d ',[]{}' | sed 's/@so //' | awk -v store="$3" '
        / exch|\.exch\./ { made[$2] = 1; next }
        $1 == store { found = ($3 in made); next }
        $1 !~ /^(st|@|\.)/ { for (i = 3; i <= NF; i++) if ($i in made) { made[$2] = 1; break } }
        END { exit !found }' || fail "sm_$1 $2: $3 does not wait for the exchange"
}

# expect_when ARCH KERNEL INSTRUCTION...: each is conditional, and there is no branch.
expect_when() {
    text=$(kernel "$1" "$2") where="sm_$1 $2"
    shift 2
    for instruction; do
        echo "$text" | grep -qE "setp\.ne\.u32 so, %r[0-9]+, 0; @so $instruction" ||
            fail "$where: $instruction is not conditional"
    done
    ! echo "$text" | grep -w bra || fail "$where: a branch"
}

for arch in 80 90 100; do
    "$nvcc" -std=c++17 -Werror all-warnings -I"$here/../../include" -ptx -arch="compute_$arch" \
        -o "$work/$arch.ptx" "$here/ptx_paths.cu"
    # A fence in one direction where the architecture has one.
    release=fence.release acquire=fence.acquire both=fence.acq_rel
    if [ $arch -lt 90 ]; then
        release=fence.acq_rel acquire=fence.acq_rel
    fi
    segment=st.relaxed.sys.global.v4.u32
    descriptor=st.relaxed.sys.global.v2.u64 # whose halves are whole, each
    wqe="$segment $segment $segment"
    record=st.relaxed.sys.global.u32
    exchange=atom.relaxed.gpu.global.exch.b32
    bell=st.mmio.relaxed.sys.global.u64
    word=st.relaxed.gpu.global.u64 # of the queue, which other threads read
    freed=st.release.gpu.global.u64

    # One owner, whose state is its own.
    expect $arch path_owner_none "$others" $wqe $record $bell
    expect $arch path_owner_gpu "$others" $wqe $release.gpu $record $release.gpu $bell
    expect $arch path_owner_gpu_no_record "$others" $wqe $release.gpu $bell
    expect $arch path_owner_gpu_exchanged "$others" $wqe $release.gpu $exchange $bell
    expect_made_of_answer $arch path_owner_gpu_exchanged $bell
    expect $arch path_owner_system "$others" $wqe $release.sys $record $release.sys $bell
    # The same without a claim: the doorbell is rung when there is room, and nothing jumps.
    expect $arch path_try_gpu "$scoped" $wqe $release.gpu $record $release.gpu $bell
    expect $arch path_try_gpu_no_record "$scoped" $wqe $release.gpu $bell
    expect $arch path_try_gpu_exchanged "$scoped" $wqe $release.gpu $exchange $bell
    expect_made_of_answer $arch path_try_gpu_exchanged $bell
    expect $arch path_try_system "$scoped" $wqe $release.sys $record $release.sys $bell
    for path in path_try_gpu path_try_gpu_no_record path_try_gpu_exchanged path_try_system; do
        expect_when $arch $path $bell
    done
    expect $arch path_owner_warp "$others" $wqe bar.warp.sync $release.gpu $record $release.gpu $bell

    # Queues in memory. A hand-off has a release before its mark; then whoever rings publishes.
    post="$release.gpu $record $release.gpu $bell $word"
    ticket="$both.gpu $record $release.gpu $bell $word"
    expect $arch path_publish "$others" $wqe $post
    expect $arch path_locked "$others" $wqe $post $freed
    expect $arch path_ticket "$others" $wqe $ticket
    expect $arch path_ticket_exchanged "$others" $wqe $both.gpu $exchange $bell $word
    expect_made_of_answer $arch path_ticket_exchanged $bell
    expect_made_of_answer $arch path_ticket_exchanged $word
    expect $arch path_publish_warp "$others" $wqe bar.warp.sync $ticket
    expect $arch path_handoff "$others" $wqe $release.gpu st.relaxed.gpu.global.u32 \
        atom.acq_rel.gpu.global.add.u64 $post atom.acq_rel.gpu.global.cas.b64
    # The first mark's load and the next one's may be one instruction or two.
    compare "sm_$arch path_handoff" "$(printf '%s\n' ld.relaxed.gpu.global.u64 ld.acquire.gpu.global.u32)" \
        "$(instructions $arch path_handoff | grep -E "$loads" | uniq)"

    # device.h's calls have all five orders, of which one runs.
    for path in path_put path_put_inline; do
        expect $arch $path 'v[24]' $wqe
        expect_posts $arch $path "$release.gpu $record $release.gpu $bell" "$release.gpu $bell" \
            "$release.gpu $exchange $bell" \
            "$release.sys $record $release.sys $bell" "$release.sys $bell"
    done
    # What they claimed and published goes back to the queue by stores that the loads of the next call see.
    for path in path_put path_put_inline path_try_push; do
        [ "$(kernel $arch $path | grep -c 'st\.relaxed\.cta\.global\.u64')" = 2 ] ||
            fail "sm_$arch $path: not two counts given back"
    done
    # A shared one acquires the room that it found, here in front of the first way, and then the turn.
    expect $arch path_put_shared 'v[24]' $wqe
    room=''
    if [ $arch -ge 90 ]; then
        room="$acquire.gpu "
    fi
    expect_posts $arch path_put_shared "$room$both.gpu $record $release.gpu $bell" "$both.gpu $bell" \
        "$both.gpu $exchange $bell" \
        "$both.sys $record $release.sys $bell" "$both.sys $bell"
    instructions $arch path_put_shared | grep -B1 'add.u64' | grep -q "^ld.relaxed.gpu.global.u64" ||
        fail "sm_$arch path_put_shared: what is complete is not asked for before the claim"

    # A look at a CQ acquires the CQE and fences nothing but what completed before an error, which it
    # then tells; the consumer's count follows.
    error="$freed $release.gpu atom.relaxed.gpu.global.cas.b64"
    cqe='ld.relaxed.gpu.global.u64 ld.relaxed.gpu.global.u64 ld.acquire.sys.global.u64'
    cqe="$cqe ld.relaxed.sys.global.u32"
    expect $arch path_drain "$others" $error $word $record $word
    expect $arch path_drain "$loads" $cqe
    expect $arch path_drain_shared "$others" $error $word $record $freed
    expect $arch path_drain_shared "$loads" $cqe
    expect $arch path_poll_collapsed "$loads" ld.relaxed.gpu.global.u64 ld.acquire.sys.global.u64 \
        ld.relaxed.sys.global.u32
    expect $arch path_poll_collapsed '^[^ls]' atom.relaxed.gpu.global.cas.b64 \
        atom.relaxed.gpu.global.max.u64
    # The lock is acquired and released, and what its holder found is acquired by the others.
    expect_set $arch path_poll_shared '^fence|^st\.r|acquire' $acquire.gpu $freed $release.gpu $word \
        $record $freed $freed ld.acquire.sys.global.u64 ld.acquire.sys.global.u64 ld.acquire.gpu.global.u64

    # Pushes: a descriptor is one store of 16 bytes, or two with a release between them.
    expect $arch path_push_tuned "$scoped" $descriptor
    expect $arch path_push_tuned_payload "$scoped" $release.sys $descriptor
    expect $arch path_push_shared "$scoped" atom.relaxed.gpu.global.add.u64 ld.acquire.gpu.global.u64 $word \
        $release.gpu atom.relaxed.gpu.global.max.u64 $descriptor
    expect $arch path_push_baseline '^ld|^fence|sys' ld.acquire.sys.global.u64 \
        st.relaxed.sys.global.u64 $release.sys st.relaxed.sys.global.u64
    expect $arch path_try_push "$scoped" $descriptor
    expect_when $arch path_try_push $descriptor

    ! grep -E '(ld|st)\.local|\.local ' "$work/$arch.ptx" || fail "sm_$arch: local memory"
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
