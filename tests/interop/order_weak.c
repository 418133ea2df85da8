/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See order_weak.h, and port_weak.h for what is modelled.
 *
 * A store waits in the buffer of its thread; behind a warp's barrier in that of the warp, and
 * behind a block's in that of the block, since a release of any of their threads lets it out then.
 * All threads of a block run on one CPU thread, so nothing here is shared between CPU threads.
 */
#include <sched.h>
#include <string.h>

#include <doorbell/impl/port_kernel.h>
#define PORT_WEAK_MODEL
#include <doorbell/impl/port_weak.h>

#include "../check.h"
#include "order_weak.h"

#define BUFFER_STORES 512
#define MAX_RANGES    64

/* Between two stores that a release lets out, the device gets time to look: now and then a few
 * rounds of it, and rarely the time to come onto a core that others use too. */
#define GAP_ONE_IN      8
#define GAP_NS          2000
#define LONG_GAP_ONE_IN 512
#define LONG_GAP_NS     100000

/* A store leaves by itself at one in 16 operations, and at every second pause. */
#define STEP_ONE_IN  16
#define PAUSE_ONE_IN 2

struct waiting {
    void *word;
    uint64_t value;
    uint64_t until_ns; /* held; 0: not */
    uint32_t bytes;
    enum port_scope scope; /* that reaches it */
};

struct buffer {
    uint32_t count;
    struct waiting stores[BUFFER_STORES]; /* oldest first */
};

struct range {
    uint8_t *start;
    size_t bytes;
    enum port_scope scope;
    uint32_t one_in;
    uint64_t hold_ns;
};

static struct buffer of_thread[ORDER_MAX_THREADS], of_warp[ORDER_MAX_THREADS],
    of_block[ORDER_MAX_THREADS];
static uint64_t random_state[ORDER_MAX_THREADS];
static struct range ranges[MAX_RANGES];
static uint32_t range_count;

void (*order_weak_loaded)(const void *word);

/* The buffers that a thread's releases let out. */
enum {
    OF_THREAD,
    OF_WARP,
    OF_BLOCK,
};

struct self {
    uint32_t id;
    struct buffer *buffers[3];
};

static struct self find_self(void)
{
    const struct port_cpu_place *place = port_cpu_place();
    uint32_t id = place->block * place->threads + place->thread;
    uint32_t warps = (place->threads + PORT_WARP_THREADS - 1) / PORT_WARP_THREADS;

    CHECK(id < ORDER_MAX_THREADS, "thread %u of at most %d", id, ORDER_MAX_THREADS);
    return (struct self){
        .id = id,
        .buffers = {&of_thread[id],
                    &of_warp[place->block * warps + place->thread / PORT_WARP_THREADS],
                    &of_block[place->block]},
    };
}

static uint32_t random_below(uint32_t id, uint32_t bound)
{
    uint64_t x = random_state[id];

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    random_state[id] = x;
    return (uint32_t)((x * 0x2545f4914f6cdd1dull >> 32) * bound >> 32);
}

/* ---- Stores ---- */

static void let_out(struct buffer *buffer, uint32_t at)
{
    const struct waiting *store = &buffer->stores[at];

    if (store->bytes == 4)
        port_st32(store->word, (uint32_t)store->value, PORT_RELAXED, PORT_SYSTEM);
    else
        port_st64(store->word, store->value, PORT_RELAXED, PORT_SYSTEM);
    memmove(&buffer->stores[at], &buffer->stores[at + 1],
            (--buffer->count - at) * sizeof(buffer->stores[0]));
}

/* The oldest store to the word of `buffers[*which]`'s store `at`: what a barrier handed over is
 * older than what is the thread's own. */
static uint32_t oldest_to(const struct self *self, int *which, uint32_t at)
{
    const void *word = self->buffers[*which]->stores[at].word;

    for (int b = OF_BLOCK; b > OF_THREAD; b--) {
        for (uint32_t i = 0; i < self->buffers[b]->count; i++) {
            if (self->buffers[b]->stores[i].word == word) {
                *which = b;
                return i;
            }
        }
    }
    uint32_t i = 0;
    while (self->buffers[OF_THREAD]->stores[i].word != word)
        i++;
    *which = OF_THREAD;
    return i;
}

/* Lets out one store of a buffer, any. */
static void drip(const struct self *self, int which, bool held_too)
{
    if (self->buffers[which]->count == 0)
        return;
    uint32_t at = oldest_to(self, &which, random_below(self->id, self->buffers[which]->count));
    uint64_t until_ns = self->buffers[which]->stores[at].until_ns;
    if (held_too || until_ns == 0 || port_now_ns() > until_ns)
        let_out(self->buffers[which], at);
}

static void step(const struct self *self, uint32_t one_in)
{
    for (int which = OF_THREAD; which <= OF_BLOCK; which++)
        if (self->buffers[which]->count && random_below(self->id, one_in) == 0)
            drip(self, which, false);
}

static void append(const struct self *self, int which, const struct waiting *store)
{
    struct buffer *buffer = self->buffers[which];

    while (buffer->count == BUFFER_STORES)
        drip(self, which, true);
    buffer->stores[buffer->count++] = *store;
}

void port_weak_store(void *word, uint64_t value, uint32_t bytes)
{
    struct self self = find_self();
    struct waiting store = {.word = word, .value = value, .bytes = bytes, .scope = PORT_GPU};

    for (uint32_t i = 0; i < range_count; i++) {
        const struct range *range = &ranges[i];
        if ((size_t)((uint8_t *)word - range->start) >= range->bytes)
            continue;
        store.scope = range->scope;
        if (range->one_in && random_below(self.id, range->one_in) == 0)
            store.until_ns = port_now_ns() + range->hold_ns;
    }
    step(&self, STEP_ONE_IN);
    append(&self, OF_THREAD, &store);
}

/* The thread's own last store, or what is in memory. */
uint64_t port_weak_load(const void *word, uint32_t bytes)
{
    struct self self = find_self();
    uint64_t value;

    step(&self, STEP_ONE_IN);
    for (int b = OF_THREAD; b <= OF_BLOCK; b++)
        for (uint32_t i = self.buffers[b]->count; i-- > 0;)
            if (self.buffers[b]->stores[i].word == word)
                return self.buffers[b]->stores[i].value;
    if (bytes == 4)
        value = port_ld32(word, PORT_ACQUIRE, PORT_SYSTEM);
    else
        value = port_ld64(word, PORT_ACQUIRE, PORT_SYSTEM);
    if (order_weak_loaded)
        order_weak_loaded(word);
    return value;
}

/* ---- Releases ---- */

static void gap(uint32_t id)
{
    bool is_long = random_below(id, LONG_GAP_ONE_IN) == 0;

    if (!is_long && random_below(id, GAP_ONE_IN) != 0)
        return;
    uint64_t until = port_now_ns() + random_below(id, is_long ? LONG_GAP_NS : GAP_NS);
    do {
        if (is_long)
            sched_yield();
    } while (port_now_ns() < until);
}

/* The number of stores that a release reaches, and one of them by chance. */
static uint32_t reached(const struct self *self, enum port_scope scope, int *which, uint32_t *at)
{
    uint32_t n = 0;

    for (int b = OF_THREAD; b <= OF_BLOCK; b++) {
        for (uint32_t i = 0; i < self->buffers[b]->count; i++) {
            if (scope != PORT_SYSTEM && self->buffers[b]->stores[i].scope != PORT_GPU)
                continue;
            if (random_below(self->id, ++n) == 0) {
                *which = b;
                *at = i;
            }
        }
    }
    return n;
}

/* In any order, with time between. */
void port_weak_release(enum port_scope scope)
{
    struct self self = find_self();
    int which = OF_THREAD;
    uint32_t at = 0;

    while (reached(&self, scope, &which, &at)) {
        at = oldest_to(&self, &which, at);
        let_out(self.buffers[which], at);
        gap(self.id);
    }
}

void port_weak_catch_up(const void *word)
{
    struct self self = find_self();

    step(&self, STEP_ONE_IN);
    for (int b = OF_BLOCK; b >= OF_THREAD; b--)
        for (uint32_t i = 0; i < self.buffers[b]->count;)
            if (self.buffers[b]->stores[i].word == word)
                let_out(self.buffers[b], i);
            else
                i++;
}

void port_weak_pause(void)
{
    struct self self = find_self();

    step(&self, PAUSE_ONE_IN);
    port_pause();
}

/* ---- Barriers ---- */

static void hand_over(const struct self *self, int from, int to)
{
    struct buffer *buffer = self->buffers[from];

    for (uint32_t i = 0; i < buffer->count; i++)
        append(self, to, &buffer->stores[i]);
    buffer->count = 0;
}

/* Twice: all are at the barrier before anything is handed over, and nobody leaves it before all is.
 */
void port_weak_syncwarp(uint32_t mask)
{
    struct self self = find_self();

    port_cpu_syncwarp(mask);
    hand_over(&self, OF_THREAD, OF_WARP);
    port_cpu_syncwarp(mask);
}

void port_weak_syncthreads(void)
{
    struct self self = find_self();

    port_cpu_syncthreads();
    hand_over(&self, OF_WARP, OF_BLOCK);
    hand_over(&self, OF_THREAD, OF_BLOCK);
    port_cpu_syncthreads();
}

/* ---- For tests ---- */

void order_weak_begin(uint64_t seed)
{
    for (uint32_t id = 0; id < ORDER_MAX_THREADS; id++) {
        CHECK(of_thread[id].count + of_warp[id].count + of_block[id].count == 0,
              "stores of an earlier run wait still");
        random_state[id] = (seed + id) * 0x9e3779b97f4a7c15ull | 1;
    }
    range_count = 0;
}

void order_weak_range(void *start, size_t bytes, enum port_scope scope, uint32_t one_in,
                      uint64_t hold_ns)
{
    CHECK(range_count < MAX_RANGES, "%u ranges", range_count);
    ranges[range_count++] = (struct range){
        .start = start, .bytes = bytes, .scope = scope, .one_in = one_in, .hold_ns = hold_ns};
}

void order_weak_leave(void)
{
    port_weak_release(PORT_SYSTEM);
}
