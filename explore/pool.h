/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pool of immutable byte strings, each kept once and named by a small number: views, messages and
 * histories of words are the same when their numbers are. Included by model.h. Numbers are given in
 * the order of first use, so that a search is the same each time it runs.
 */
#ifndef EXPLORE_POOL_H
#define EXPLORE_POOL_H

#include <stddef.h>
#include <stdint.h>

struct ex_pool {
    uint64_t *slots; /* open addressing: 32 bits of hash, then number + 1; or 0 */
    const void **strings;
    uint32_t *bytes;
    uint32_t count, capacity;
    char *chunk; /* where the next string goes; chunks never move */
    size_t chunk_left;
    void **chunks;
    uint32_t chunk_count;
};

/* Makes an empty pool. -ENOMEM. */
int ex_pool_open(struct ex_pool *pool);
void ex_pool_close(struct ex_pool *pool);

/* The number of a string of `bytes` bytes (a multiple of 4). Memory that is refused ends the
 * program: a search that went on would claim what it has not seen. */
uint32_t ex_intern(struct ex_pool *pool, const void *string, uint32_t bytes);

static inline const void *ex_string(const struct ex_pool *pool, uint32_t number)
{
    return pool->strings[number];
}

static inline uint32_t ex_string_bytes(const struct ex_pool *pool, uint32_t number)
{
    return pool->bytes[number];
}

/* A hash of `bytes` bytes (a multiple of 4), 64 bits of which are usable. */
static inline uint64_t ex_hash(const void *string, uint32_t bytes)
{
    const char *at = string;
    uint64_t one = 0x9e3779b97f4a7c15u ^ bytes, two = 0xc2b2ae3d27d4eb4fu, word[2] = {0, 0};
    uint32_t left = bytes;

    for (; left >= 16; left -= 16, at += 16) {
        __builtin_memcpy(word, at, 16);
        one = (one ^ word[0]) * 0xff51afd7ed558ccdu;
        two = (two ^ word[1]) * 0xc4ceb9fe1a85ec53u;
        one ^= one >> 29;
        two ^= two >> 31;
    }
    word[0] = word[1] = 0;
    __builtin_memcpy(word, at, left);
    one = (one ^ word[0]) * 0xff51afd7ed558ccdu;
    two = (two ^ word[1]) * 0xc4ceb9fe1a85ec53u;
    one ^= (one >> 32) + two * 0x9e3779b97f4a7c15u;
    one *= 0xff51afd7ed558ccdu;
    return one ^ one >> 33;
}

#endif
