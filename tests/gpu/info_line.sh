#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Claim: `doorbell info` says for each GPU how its memory would be registered, and why, in text and in
# JSON. Over the fake driver; what the module nvidia_peermem adds is for info_way.c.
set -eu

doorbell=${DOORBELL_BUILD:?names the build directory}/doorbell
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# expect SOFTNIC DMA-BUF WAY WHY: of both GPUs.
expect() {
    SOFTNIC=$1 FAKE_DRIVER_DMA_BUF=$2 "$doorbell" info >"$work/text" || [ $? -ne 2 ]
    SOFTNIC=$1 FAKE_DRIVER_DMA_BUF=$2 "$doorbell" info --json >"$work/json" || [ $? -ne 2 ]
    text=$(grep -A 1 "^  GPU memory would be registered by: $3\$" "$work/text" |
        grep -c "^    why: .*$4" || true)
    json=$(grep -c "\"memory_registered_by\": \"$3\"" "$work/json" || true)
    if [ "$text $json" != '2 2' ]; then
        echo "SOFTNIC=$1 FAKE_DRIVER_DMA_BUF=$2: '$3', because '$4': $text times, in JSON $json:" >&2
        cat "$work/text" "$work/json" >&2
        failures=$((failures + 1))
    fi
}

expect off 1 dma-buf 'the driver exports a dma-buf'
if [ -e /sys/module/nvidia_peermem ]; then
    expect off 0 'peer memory' 'module nvidia_peermem is loaded'
else
    expect off 0 none 'nvidia_peermem is not loaded'
fi
expect on 1 none 'engine runs on the CPU'
[ $failures -eq 0 ]
