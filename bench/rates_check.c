/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a run of rates.c left what it should: every word that was put last, at the peer; or in a
 * detached ring, which no device reads, every byte of the last lap's WQEs.
 */
#include <stdlib.h>
#include <string.h>

#include "rates.h"
#include "ring_check.h"

enum bench_status rates_clear(struct bench *b, struct rates *rates)
{
    const struct db_gpu_buffer *buffer = &rates->targets.buffer;
    struct db_gpu *gpu = rates->transport.gpu;

    if (rates->detached)
        return BENCH_PASS;
    if (buffer->host) {
        memset(buffer->host, 0, buffer->bytes);
        return BENCH_PASS;
    }
    void *zeroes = calloc(1, buffer->bytes);
    int error = zeroes ? gpu->backend->copy(gpu, buffer->device, zeroes, buffer->bytes) : -1;
    free(zeroes);
    return error ? bench_fail(b, "the targets of the puts cannot be cleared") : BENCH_PASS;
}

/* ---- At the peer ---- */

static uint32_t queues_of(const struct rates_variant *variant, uint32_t thread)
{
    uint32_t threads = variant->ctas * variant->threads;
    return variant->sharing == BENCH_PRIVATE ? (variant->queues - thread + threads - 1) / threads
                                             : 1;
}

/* The values of a thread's words on its n-th queue. */
static void expect_words(const struct rates_variant *variant, uint32_t thread, uint32_t n,
                         uint64_t puts, uint64_t *words)
{
    uint32_t queues = queues_of(variant, thread);
    uint32_t batch = variant->sharing == BENCH_PRIVATE ? variant->batch : 1;
    memset(words, 0, RATES_WORDS_BYTES);
    for (uint64_t i = 0; i < puts; i++)
        if (i / batch % queues == n)
            words[i % BENCH_RATE_SLOTS] = i + 1;
}

static enum bench_status check_thread(struct bench *b, const uint8_t *memory,
                                      const struct rates_variant *variant, uint32_t thread,
                                      uint32_t n, uint64_t puts)
{
    uint32_t threads = variant->ctas * variant->threads;
    uint32_t q = variant->sharing == BENCH_PRIVATE ? thread + n * threads
                                                   : thread / variant->threads % variant->queues;
    size_t at = ((size_t)q * threads + thread) * RATES_WORDS_BYTES;
    uint64_t expected[BENCH_RATE_SLOTS], words[BENCH_RATE_SLOTS];

    expect_words(variant, thread, n, puts, expected);
    memcpy(words, memory + at, sizeof(words));
    for (uint32_t i = 0; i < BENCH_RATE_SLOTS; i++)
        if (words[i] != expected[i])
            return bench_fail(b, "queue %u, thread %u: word %u at offset %zu is %llu, %llu was put",
                              q, thread, i, at + i * sizeof(words[0]), (unsigned long long)words[i],
                              (unsigned long long)expected[i]);
    return BENCH_PASS;
}

/* Payloads that are no words are one pattern for all. */
static enum bench_status check_peer(struct bench *b, uint8_t *memory, size_t bytes,
                                    const struct rates_variant *variant, uint64_t puts,
                                    enum bench_valid *valid)
{
    uint32_t threads = variant->ctas * variant->threads;
    enum bench_status status = BENCH_PASS;

    if (bench_given(b->options, BENCH_OPT_INJECT))
        memory[b->options->flip_offset % bytes] ^= 1;
    for (uint32_t thread = 0; thread < threads && status == BENCH_PASS; thread++) {
        for (uint32_t n = 0; n < queues_of(variant, thread) && status == BENCH_PASS; n++) {
            size_t at = ((size_t)(thread + n * threads) * threads + thread) * RATES_WORDS_BYTES;
            if (variant->bytes == sizeof(uint64_t))
                status = check_thread(b, memory, variant, thread, n, puts);
            else
                status = bench_check_payload(b, valid, memory + at, variant->bytes, 0);
        }
    }
    return status;
}

/* ---- In a detached ring ---- */

/* The walk through a queue's WQEs, from the last one back. */
struct posted {
    const struct rates *rates;
    const struct rates_variant *variant;
    uint64_t *left;     /* [threads] puts of each that were not met yet */
    uint32_t q;         /* the queue */
    uint32_t neighbour; /* who posted the WQE behind this one */
};

static bool by_warps(const struct rates_variant *variant)
{
    return variant->sharing == BENCH_WARP || variant->sharing == BENCH_WARP_OWNER;
}

/* The thread that posted a WQE. Those of a shared queue come in any order, but for a warp's lanes:
 * where the WQE puts tells whose it is. One that puts to none of their words is compared with the
 * first one's. */
static uint32_t poster(const struct posted *posted, uint64_t number, const uint8_t *found)
{
    const struct rates_variant *variant = posted->variant;
    const struct rates_tables *tables = posted->rates->tables.host;
    uint32_t lane = by_warps(variant) ? number % PORT_WARP_THREADS : 0;
    struct m5_raddr_seg raddr;

    if (variant->sharing == BENCH_PRIVATE)
        return posted->q;
    if (by_warps(variant) && lane != PORT_WARP_THREADS - 1)
        return posted->neighbour - 1;
    memcpy(&raddr, found + sizeof(struct m5_ctrl_seg), sizeof(raddr));
    uint64_t thread = (port_host64(raddr.raddr) - tables->raddr[posted->q]) / RATES_WORDS_BYTES;
    bool right_queue = thread / variant->threads % variant->queues == posted->q;
    bool right_lane = !by_warps(variant) || thread % PORT_WARP_THREADS == lane;
    if (thread < (uint64_t)variant->ctas * variant->threads && right_queue && right_lane)
        return (uint32_t)thread;
    return posted->q * variant->threads + lane;
}

/* Whether a put asks for a completion: the last of a batch, or of a warp's; or each. */
static bool signalled(const struct rates_variant *variant, uint32_t thread, uint64_t i)
{
    if (variant->sharing == BENCH_PRIVATE)
        return i % variant->batch == variant->batch - 1;
    return !by_warps(variant) || thread % PORT_WARP_THREADS == PORT_WARP_THREADS - 1;
}

/* A thread's puts are in its order, so the last that is met is its last. */
static struct ring_put posted_put(void *context, uint64_t number, const uint8_t *found)
{
    struct posted *posted = context;
    const struct rates_tables *tables = posted->rates->tables.host;
    uint32_t thread = poster(posted, number, found), bytes = posted->variant->bytes;
    uint64_t i = --posted->left[thread];
    uint64_t slot = bytes == sizeof(uint64_t) ? i % BENCH_RATE_SLOTS : 0;

    posted->neighbour = thread;
    return (struct ring_put){
        .raddr = tables->raddr[posted->q] + thread * RATES_WORDS_BYTES + slot * sizeof(uint64_t),
        .rkey = tables->rkey[posted->q],
        .flags = signalled(posted->variant, thread, i) ? DB_SIGNALED : DB_UNSIGNALED,
        .bytes = bytes,
        .inlined = true,
        .payload = bytes == sizeof(uint64_t) ? NULL : tables->payload,
        .value = i + 1,
    };
}

/* Every queue of a detached run has threads of its own: a private one has one, and a shared one
 * those of its blocks. */
static enum bench_status check_rings(struct bench *b, struct rates *rates,
                                     const struct rates_variant *variant, uint64_t puts,
                                     enum bench_valid *valid)
{
    uint64_t threads = (uint64_t)variant->ctas * variant->threads;
    uint64_t *left = malloc(threads * sizeof(*left));
    struct posted posted = {.rates = rates, .variant = variant, .left = left};
    const struct ring_posts posts = {
        .count = puts * threads / variant->queues,
        .blocks = db_inline_blocks(variant->bytes),
        .put = posted_put,
        .context = &posted,
    };
    enum bench_status status = BENCH_PASS;

    if (!left)
        return bench_fail(b, "no memory for what the threads posted");
    for (uint64_t i = 0; i < threads; i++)
        left[i] = puts;
    for (; posted.q < variant->queues && status == BENCH_PASS; posted.q++)
        status = ring_check(b, rates->pair[posted.q].queue[0], &posts, valid);
    free(left);
    return status;
}

enum bench_status rates_check(struct bench *b, struct rates *rates,
                              const struct rates_variant *variant, uint64_t puts,
                              enum bench_valid *valid)
{
    const struct db_gpu_buffer *buffer = &rates->targets.buffer;
    struct db_gpu *gpu = rates->transport.gpu;
    enum bench_status status;

    if (!b->options->check)
        return BENCH_PASS;
    if (rates->detached)
        return check_rings(b, rates, variant, puts, valid);
    if (buffer->host) {
        status = check_peer(b, buffer->host, buffer->bytes, variant, puts, valid);
    } else {
        uint8_t *copied = malloc(buffer->bytes);
        if (!copied || gpu->backend->copy(gpu, copied, buffer->device, buffer->bytes))
            status = bench_fail(b, "the targets of the puts cannot be copied out");
        else
            status = check_peer(b, copied, buffer->bytes, variant, puts, valid);
        free(copied);
    }
    *valid = status == BENCH_PASS ? BENCH_VALID : BENCH_INVALID;
    return status;
}
