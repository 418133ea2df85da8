#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Claim: every #include in the tree is an arrow that the design allows. Names each one that is not, and
# each local include that names no file. First the search itself is tried on a tree with known faults.
set -eu

root=${DOORBELL_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The layers, by the first pattern that matches a file's path, and what each may include. Tests may
# include anything and are no layer. "rdma" and "infiniband" are the kernel's and rdma-core's headers.
cat >"$work/rules" <<'RULES'
layer ^include/doorbell/impl/port[a-z_]*\.h$            port
layer ^include/doorbell/impl/m5_[a-z0-9_]*\.h$          formats
layer ^include/doorbell/impl/[a-z0-9_]*_format\.h$      formats
layer ^include/doorbell/impl/qp\.h$                     qp
layer ^include/doorbell/impl/wqe(_inline)?\.h$          wqe
layer ^include/doorbell/impl/sq(_shared)?\.h$           sq
layer ^include/doorbell/impl/cq\.h$                     cq
layer ^include/doorbell/impl/owner\.h$                  owner
layer ^include/doorbell/impl/ring\.h$                   ring
layer ^include/doorbell/impl/push\.h$                   push
layer ^include/doorbell/device(_shared)?\.h$            device
layer ^include/doorbell/(doorbell|gpu|inventory)\.h$    host
layer ^src/                                             src
layer ^softnic/core/                                    core
layer ^softnic/adapter/                                 adapter
layer ^softnic/softnic\.[ch]$                           softnic
layer ^explore/                                         explore
layer ^bench/kernels/                                   kernels
layer ^bench/                                           bench
layer ^tool/                                            tool
layer ^examples/                                        examples

may port      port
may formats   port formats
may qp        port formats
may wqe       port formats qp wqe
may sq        port formats qp wqe sq cq
may cq        port formats qp
may owner     port formats qp wqe sq cq
may ring      port formats qp
may push      port formats qp ring
may device    device port formats qp wqe sq cq owner ring push
may host      host port
may src       src port formats qp wqe sq cq owner ring device host infiniband
may core      core port formats
may softnic   softnic adapter core
may adapter   adapter softnic core port formats infiniband rdma
may explore   explore core port formats qp wqe sq cq owner ring device
may kernels   kernels device port
may bench     bench kernels host device infiniband
may tool      tool bench explore host device infiniband
may examples  host device
RULES

cat >"$work/arrows.awk" <<'AWK'
FILENAME == rules && $1 == "layer" { pattern[++layers] = $2; named[layers] = $3; next }
FILENAME == rules && $1 == "may"   { for (i = 3; i <= NF; i++) may[$2, $i] = 1; next }
FILENAME == rules                  { next }

function layer_of(path,    i) {
    for (i = 1; i <= layers; i++)
        if (path ~ pattern[i])
            return named[i]
    return ""
}

function fault(text) {
    printf "%s:%d: %s\n", path, FNR, text
    faults++
}

# a/b/../c becomes a/c.
function tidy(name) {
    while (match(name, /[^\/]+\/\.\.\//))
        name = substr(name, 1, RSTART - 1) substr(name, RSTART + RLENGTH)
    return name
}

function is_file(name,    line, found) {
    found = (getline line < (root "/" name)) >= 0
    close(root "/" name)
    return found
}

FNR == 1 {
    path = substr(FILENAME, length(root) + 2)
    from = layer_of(path)
    if (from == "" && path !~ /^tests\//)
        fault("belongs to no layer of the design")
}

/^[ \t]*#[ \t]*include[ \t]*[<"]/ {
    match($0, /[<"][^>"]*[>"]/)
    quote = substr($0, RSTART, 1)
    name = substr($0, RSTART + 1, RLENGTH - 2)
    includes++
    if (quote == "<") {
        if (name ~ /^doorbell\//)
            target = "include/" name
        else if (name ~ /^(infiniband|rdma)\//) {
            split(name, part, "/")
            if (from != "" && !((from, part[1]) in may))
                fault(from " may not include <" name ">")
            next
        } else
            next
    } else {
        folder = path
        sub(/[^\/]*$/, "", folder)
        target = tidy(folder name)
        if (!is_file(target) && is_file("softnic/" name))
            target = "softnic/" name
        if (!is_file(target) && path ~ /^tests\// && is_file("tests/" name))
            target = "tests/" name
        if (!is_file(target) && is_file(name))
            target = name
    }
    if (!is_file(target)) {
        fault("includes " name ", which is not there")
        next
    }
    if (from == "")
        next
    to = layer_of(target)
    if (to == "")
        fault(from " may not include " target)
    else if (!((from, to) in may))
        fault("the layer " from " may not include the layer " to " (" target ")")
}

END {
    printf "%d includes, %d faults\n", includes, faults
    exit faults > 0 || includes == 0
}
AWK

# The faults of the tree at $1, and the number of includes.
arrows() {
    find "$1" -mindepth 2 \( -path "$1/.*" -o -path "$1/build*" \) -prune -o \
        -name '*.[ch]' -print -o -name '*.cu' -print | sort >"$work/files"
    [ -s "$work/files" ] || { echo "no source in $1"; return 1; }
    # shellcheck disable=SC2046 # names in the tree hold no spaces
    awk -v root="$1" -v rules="$work/rules" -f "$work/arrows.awk" "$work/rules" $(cat "$work/files")
}

# A tree whose four faults must all be found, and whose good includes must not.
bad=$work/bad
mkdir -p "$bad/include/doorbell/impl" "$bad/softnic/core" "$bad/src" "$bad/tests/unit" "$bad/odd"
echo '#include <stdint.h>' >"$bad/include/doorbell/impl/port.h"
echo '#include "port.h"' >"$bad/include/doorbell/impl/m5_format.h"
echo '#include "m5_format.h"' >"$bad/include/doorbell/impl/qp.h"
echo '#include <doorbell/impl/qp.h>' >"$bad/softnic/core/nic.h"
echo '#include "../softnic/core/nic.h"' >"$bad/src/queue.c"
echo '#include "../../softnic/core/nic.h"' >"$bad/tests/unit/free.c"
echo '#include "gone.h"' >>"$bad/tests/unit/free.c"
echo 'int x;' >"$bad/odd/odd.c"
if arrows "$bad" >"$work/found"; then
    echo "a tree with faults passed"
    exit 1
fi
for fault in 'softnic/core/nic.h:1: the layer core may not include the layer qp' \
    'src/queue.c:1: the layer src may not include the layer core' \
    'tests/unit/free.c:2: includes gone.h' 'odd/odd.c:1: belongs to no layer' '7 includes, 4 faults'; do
    grep -qF "$fault" "$work/found" || { echo "not found: $fault"; cat "$work/found"; exit 1; }
done

arrows "$root"
