/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strings kept once (pool.h): a hash table of numbers over chunks that never move.
 */
#include "pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"

#define CHUNK_BYTES    ((size_t)1 << 18)
#define FIRST_CAPACITY 1024u

int ex_pool_open(struct ex_pool *pool)
{
    memset(pool, 0, sizeof(*pool));
    pool->capacity = FIRST_CAPACITY;
    pool->slots = calloc(2 * (size_t)pool->capacity, sizeof(*pool->slots));
    pool->strings = calloc(pool->capacity, sizeof(*pool->strings));
    pool->bytes = calloc(pool->capacity, sizeof(*pool->bytes));
    if (pool->slots && pool->strings && pool->bytes)
        return 0;
    ex_pool_close(pool);
    return -ENOMEM;
}

void ex_pool_close(struct ex_pool *pool)
{
    for (uint32_t i = 0; i < pool->chunk_count; i++)
        free(pool->chunks[i]);
    free(pool->chunks);
    free(pool->slots);
    free((void *)pool->strings);
    free(pool->bytes);
    memset(pool, 0, sizeof(*pool));
}

static uint32_t slot_number(uint64_t slot)
{
    return (uint32_t)slot - 1;
}

static void pool_double(struct ex_pool *pool)
{
    uint64_t *old = pool->slots;
    uint32_t old_slots = 2 * pool->capacity, mask = 4 * pool->capacity - 1;

    pool->capacity *= 2;
    pool->strings = ex_grow((void *)pool->strings, pool->capacity, sizeof(*pool->strings));
    pool->bytes = ex_grow(pool->bytes, pool->capacity, sizeof(*pool->bytes));
    pool->slots = ex_grow(NULL, 2 * (size_t)pool->capacity, sizeof(*pool->slots));
    memset(pool->slots, 0, 2 * (size_t)pool->capacity * sizeof(*pool->slots));
    for (uint32_t i = 0; i < old_slots; i++) {
        uint32_t slot = (uint32_t)(old[i] >> 32) & mask;
        while (old[i] && pool->slots[slot])
            slot = (slot + 1) & mask;
        if (old[i])
            pool->slots[slot] = old[i];
    }
    free(old);
}

static void *chunk_take(struct ex_pool *pool, size_t bytes)
{
    size_t whole = (bytes + 15) & ~(size_t)15;

    if (pool->chunk_left < whole) {
        size_t size = whole > CHUNK_BYTES ? whole : CHUNK_BYTES;
        pool->chunks = ex_grow((void *)pool->chunks, pool->chunk_count + 1, sizeof(*pool->chunks));
        pool->chunk = ex_grow(NULL, size, 1);
        pool->chunks[pool->chunk_count++] = pool->chunk;
        pool->chunk_left = size;
    }
    void *place = pool->chunk;
    pool->chunk += whole;
    pool->chunk_left -= whole;
    return place;
}

uint32_t ex_intern(struct ex_pool *pool, const void *string, uint32_t bytes)
{
    uint32_t hash = (uint32_t)ex_hash(string, bytes);
    uint32_t mask = 2 * pool->capacity - 1;
    uint32_t slot = hash & mask;

    for (; pool->slots[slot]; slot = (slot + 1) & mask) {
        uint32_t number = slot_number(pool->slots[slot]);
        if (pool->slots[slot] >> 32 == hash && pool->bytes[number] == bytes &&
            memcmp(pool->strings[number], string, bytes) == 0)
            return number;
    }
    uint32_t number = pool->count++;
    pool->slots[slot] = (uint64_t)hash << 32 | (number + 1);
    pool->bytes[number] = bytes;
    pool->strings[number] = memcpy(chunk_take(pool, bytes + 1), string, bytes);
    if (pool->count == pool->capacity)
        pool_double(pool);
    return number;
}
