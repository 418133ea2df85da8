/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The floors of host memory; see floors.h.
 */
#include "floors.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "kernels/floor.h"

#define CHUNK       4096u
#define POLLERS_MAX 16u
#define LINES       (2 + POLLERS_MAX) /* to the CPU thread, back from it, and the pollers' own */
#define LINE_BYTES  (BENCH_FLOOR_LINE_WORDS * sizeof(uint64_t))

struct results {
    struct bench_interval ticks[CHUNK];
    struct bench_span span;
    uint64_t ended;
    int32_t status;
};

struct floors {
    struct transport *transport;
    struct transport_block results;
    struct db_gpu_buffer lines; /* of host memory */
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

static enum bench_status run_chunks(struct bench *b, struct floors *floors, enum bench_floor floor,
                                    uint32_t pollers)
{
    struct results *results = floors->results.host;
    struct results *on_gpu = floors->results.buffer.device;
    struct bench_floor_args args = {
        .there = floors->lines.device,
        .back = (uint64_t *)floors->lines.device + BENCH_FLOOR_LINE_WORDS,
        .ended = &on_gpu->ended,
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
        results->ended = 0;
        status = transport_block_store(b, floors->transport, &floors->results);
        if (status == BENCH_PASS)
            status = transport_run(b, floors->transport, &bench_floor, 1 + pollers, 1, &args);
        if (status == BENCH_PASS)
            status = transport_block_fetch(b, floors->transport, &floors->results);
        if (status == BENCH_PASS && results->status)
            status = bench_fail(
                b, "the CPU thread sent no flag back within %g s; --timeout makes that longer",
                (double)b->options->timeout_ns / 1e9);
        double ns_per_tick = transport_ns_per_tick(b, floors->transport, &results->span);
        for (uint64_t i = 0; i < n && status == BENCH_PASS; i++)
            bench_samples_add(&floors->samples,
                              (double)bench_interval_ticks(results->ticks[i]) * ns_per_tick);
        args.first += args.warmup + args.count;
    }
    floors->first = args.first;
    return status;
}

/* One floor, with `pollers` threads beside it. */
static enum bench_status measure(struct bench *b, struct floors *floors, enum bench_floor floor,
                                 uint32_t pollers)
{
    static const char *const what[] = {
        [BENCH_FLOOR_FLAG] = "flag to the CPU and back",
        [BENCH_FLOOR_READ] = "read",
        [BENCH_FLOOR_RELEASE_SYSTEM] = "store, system release, store",
        [BENCH_FLOOR_RELEASE_GPU] = "store, gpu release, store",
        [BENCH_FLOOR_STORE] = "store of 16 B",
    };
    bool round_trip = floor == BENCH_FLOOR_FLAG;
    struct bench_record record = {
        .system = "floor",
        .config = {{"what", what[floor], 0},
                   {"ring", "host memory", 0},
                   {"pollers", NULL, pollers}},
        .metric = round_trip ? "round_trip" : "issue",
        .unit = "us",
        .msg_bytes = 8,
    };
    struct echo echo = {.there = floors->lines.host,
                        .back = (uint64_t *)floors->lines.host + BENCH_FLOOR_LINE_WORDS};
    pthread_t thread;

    if (round_trip && pthread_create(&thread, NULL, echo_run, &echo))
        return bench_fail(b, "no thread to send a flag back");
    enum bench_status status = run_chunks(b, floors, floor, pollers);
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
    if (gpu->backend->alloc(gpu, DB_GPU_MEMORY_HOST, LINES * LINE_BYTES, &floors->lines))
        return bench_fail(b, "%s", db_gpu_error_text());
    return transport_block_alloc(b, transport, sizeof(struct results), &floors->results);
}

static void close_floors(struct floors *floors)
{
    struct db_gpu *gpu = floors->transport->gpu;

    transport_block_free(floors->transport, &floors->results);
    if (floors->lines.device)
        gpu->backend->free(gpu, &floors->lines);
    bench_samples_free(&floors->samples);
}

struct floors_row {
    enum bench_floor floor;
    uint32_t pollers;
};

static enum bench_status measure_all(struct bench *b, struct transport *transport,
                                     const struct floors_row *rows, size_t count)
{
    struct floors floors;

    enum bench_status status = open_floors(b, transport, &floors);
    for (size_t i = 0; i < count && status == BENCH_PASS; i++) {
        /* CPU threads that poll would only show how the kernel shares the CPUs out. */
        if (rows[i].pollers == 0 || strcmp(b->where.gpu_kind, "cpu") != 0)
            status = measure(b, &floors, rows[i].floor, rows[i].pollers);
    }
    close_floors(&floors);
    return status;
}

enum bench_status floors_round_trip(struct bench *b, struct transport *transport)
{
    static const struct floors_row rows[] = {{BENCH_FLOOR_FLAG, 0}};
    return measure_all(b, transport, rows, sizeof(rows) / sizeof(rows[0]));
}

enum bench_status floors_of_a_push(struct bench *b, struct transport *transport)
{
    static const struct floors_row rows[] = {
        {BENCH_FLOOR_STORE, 0},
        {BENCH_FLOOR_RELEASE_SYSTEM, 0},
        {BENCH_FLOOR_READ, 0},
        {BENCH_FLOOR_FLAG, 0},
    };
    return measure_all(b, transport, rows, sizeof(rows) / sizeof(rows[0]));
}

enum bench_status floors_of_a_release(struct bench *b, struct transport *transport)
{
    static const struct floors_row rows[] = {
        {BENCH_FLOOR_RELEASE_GPU, 0},    {BENCH_FLOOR_RELEASE_GPU, POLLERS_MAX},
        {BENCH_FLOOR_RELEASE_SYSTEM, 0}, {BENCH_FLOOR_RELEASE_SYSTEM, 1},
        {BENCH_FLOOR_RELEASE_SYSTEM, 4}, {BENCH_FLOOR_RELEASE_SYSTEM, POLLERS_MAX},
    };
    return measure_all(b, transport, rows, sizeof(rows) / sizeof(rows[0]));
}
