/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pattern of payload.h: byte i is byte i % 8 of a 64-bit word that mixes seed, message index
 * and i / 8, the lowest byte first on every machine.
 */
#include "payload.h"

/* The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): each input bit reaches all
 * output bits, so neighbouring words and messages share no bytes but by chance. */
static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

static uint64_t pattern_word(uint64_t seed, uint64_t index, size_t word)
{
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);

    return mix(mix(seed + golden * (index + 1)) + golden * (word + 1));
}

void bench_payload_fill(void *memory, size_t bytes, uint64_t seed, uint64_t index)
{
    uint8_t *byte = memory;
    uint64_t word = 0;

    for (size_t i = 0; i < bytes; i++) {
        if (i % 8 == 0)
            word = pattern_word(seed, index, i / 8);
        byte[i] = (uint8_t)(word >> (i % 8 * 8));
    }
}

bool bench_payload_matches(const void *memory, size_t bytes, uint64_t seed, uint64_t index,
                           struct bench_mismatch *mismatch)
{
    const uint8_t *byte = memory;
    uint64_t word = 0;

    for (size_t i = 0; i < bytes; i++) {
        if (i % 8 == 0)
            word = pattern_word(seed, index, i / 8);
        uint8_t expected = (uint8_t)(word >> (i % 8 * 8));
        if (byte[i] != expected) {
            *mismatch = (struct bench_mismatch){i, expected, byte[i]};
            return false;
        }
    }
    return true;
}
