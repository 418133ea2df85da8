/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The floors of host memory; see floors.h.
 */
#include "floors.h"

#include <pthread.h>
#include <sched.h>

#include "kernels/floor.h"

#define LINE_WORDS 16 /* of 128 bytes */
#define CHUNK      4096u

struct results {
    uint64_t ticks[CHUNK];
    struct bench_span span;
    int32_t status;
};

struct floors {
    struct transport *transport;
    struct transport_block results;
    struct db_gpu_buffer words; /* a line to the CPU, and one back */
    struct bench_samples samples;
    uint64_t first; /* counts so far: a word holds what the last floor left there */
};

/* ---- The CPU's part ---- */

struct echo {
    uint64_t *there;
    uint64_t *back;
    bool stop; /* atomic */
};

static void *echo_run(void *argument)
{
    struct echo *echo = argument;
    uint64_t seen = 0;

    for (uint32_t idle = 1; !__atomic_load_n(&echo->stop, __ATOMIC_RELAXED); idle++) {
        uint64_t now = __atomic_load_n(echo->there, __ATOMIC_ACQUIRE);
        if (now != seen) {
            seen = now;
            __atomic_store_n(echo->back, now, __ATOMIC_RELEASE);
        } else if (idle % 1000 == 0) {
            sched_yield();
        }
    }
    return NULL;
}

/* ---- Measuring ---- */

static enum bench_status run_chunks(struct bench *b, struct floors *floors, enum bench_floor floor)
{
    const struct results *results = floors->results.host;
    struct results *on_gpu = floors->results.buffer.device;
    struct bench_floor_args args = {
        .there = floors->words.device,
        .back = (uint64_t *)floors->words.device + LINE_WORDS,
        .floor = floor,
        .first = floors->first,
        .timeout_ns = b->options->timeout_ns,
        .warmup = (uint32_t)b->options->warmup_iters,
        .ticks = on_gpu->ticks,
        .span = &on_gpu->span,
        .status = &on_gpu->status,
    };
    enum bench_status status = BENCH_PASS;
    struct bench_pace pace;
    uint64_t n;

    bench_samples_clear(&floors->samples);
    bench_pace_start(&pace, b, "floor");
    while (status == BENCH_PASS && (n = bench_pace_next(&pace, CHUNK)) > 0) {
        args.count = (uint32_t)n;
        status = transport_run(b, floors->transport, &bench_floor, 1, 1, &args);
        if (status == BENCH_PASS)
            status = transport_block_fetch(b, floors->transport, &floors->results);
        if (status == BENCH_PASS && results->status)
            status = bench_fail(b, "the CPU thread sent no flag back within %.1f s",
                                (double)b->options->timeout_ns / 1e9);
        double ns_per_tick = transport_ns_per_tick(b, floors->transport, &results->span);
        for (uint64_t i = 0; i < n && status == BENCH_PASS; i++)
            bench_samples_add(&floors->samples, (double)results->ticks[i] * ns_per_tick);
        args.first += args.warmup + args.count;
    }
    floors->first = args.first;
    return status;
}

static enum bench_status measure(struct bench *b, struct floors *floors, enum bench_floor floor,
                                 const char *what)
{
    bool round_trip = floor == BENCH_FLOOR_FLAG;
    struct bench_record record = {
        .system = "floor",
        .config = {{"what", what, 0}, {"ring", "host memory", 0}},
        .metric = round_trip ? "round_trip" : "issue",
        .unit = "us",
        .msg_bytes = 8,
    };
    struct echo echo = {.there = floors->words.host,
                        .back = (uint64_t *)floors->words.host + LINE_WORDS};
    pthread_t thread;

    if (round_trip && pthread_create(&thread, NULL, echo_run, &echo))
        return bench_fail(b, "no thread to send a flag back");
    enum bench_status status = run_chunks(b, floors, floor);
    if (round_trip) {
        __atomic_store_n(&echo.stop, true, __ATOMIC_RELAXED);
        pthread_join(thread, NULL);
    }
    return status == BENCH_PASS ? bench_report(b, &record, &floors->samples) : status;
}

static enum bench_status open_floors(struct bench *b, struct transport *transport,
                                     struct floors *floors)
{
    struct db_gpu *gpu = transport->gpu;

    *floors = (struct floors){.transport = transport};
    if (bench_samples_init(&floors->samples, bench_capacity(b)))
        return bench_fail(b, "no memory for the samples");
    if (gpu->backend->alloc(gpu, DB_GPU_MEMORY_HOST, 2 * LINE_WORDS * sizeof(uint64_t),
                            &floors->words))
        return bench_fail(b, "%s", db_gpu_error_text());
    return transport_block_alloc(b, transport, sizeof(struct results), &floors->results);
}

static void close_floors(struct floors *floors)
{
    struct db_gpu *gpu = floors->transport->gpu;

    transport_block_free(floors->transport, &floors->results);
    if (floors->words.device)
        gpu->backend->free(gpu, &floors->words);
    bench_samples_free(&floors->samples);
}

enum bench_status floors_round_trip(struct bench *b, struct transport *transport)
{
    struct floors floors;

    enum bench_status status = open_floors(b, transport, &floors);
    if (status == BENCH_PASS)
        status = measure(b, &floors, BENCH_FLOOR_FLAG, "flag to the CPU and back");
    close_floors(&floors);
    return status;
}

enum bench_status floors_of_a_push(struct bench *b, struct transport *transport)
{
    static const char *const what[] = {
        [BENCH_FLOOR_FLAG] = "flag to the CPU and back",
        [BENCH_FLOOR_READ] = "read",
        [BENCH_FLOOR_RELEASE] = "store, release, store",
        [BENCH_FLOOR_STORE] = "store of 16 B",
    };
    struct floors floors;

    enum bench_status status = open_floors(b, transport, &floors);
    for (int i = BENCH_FLOOR_STORE; i >= BENCH_FLOOR_FLAG && status == BENCH_PASS; i--)
        status = measure(b, &floors, (enum bench_floor)i, what[i]);
    close_floors(&floors);
    return status;
}
