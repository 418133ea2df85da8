/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inline against pointer payloads (Figure 3): (a) one put at a time of one thread, and (b) the rate
 * of 16 threads with a queue each and 16 puts to a doorbell, from 8 to 220 bytes. The sizes fill
 * whole 16-byte segments of the WQE. Both in the order that is safe where the ring lies; the
 * paper's latencies are of GPU scope, and so stand beside those of a ring in GPU memory alone.
 */
#include "../cases.h"
#include "../puts.h"
#include "../rates.h"

static const uint32_t sizes[] = {8, 12, 28, 44, 60, 76, 92, 108, 124, 156, 188, 220};

#define SIZES     (sizeof(sizes) / sizeof(sizes[0]))
#define MAX_BYTES 220

static enum bench_status latencies(struct bench *b)
{
    enum bench_status status = puts_setup(b, MAX_BYTES);
    const struct puts *puts = b->state;
    for (size_t i = 0; i < SIZES && status == BENCH_PASS; i++) {
        for (int inlined = 1; inlined >= 0 && status == BENCH_PASS; inlined--) {
            struct puts_variant variant = {
                .inlined = inlined, .order = puts->pair.order, .bytes = sizes[i]};
            if (i == 0 && variant.order == DB_ORDER_GPU)
                variant.complete_reference[0] = inlined ? "R042" : "R048";
            status = puts_measure(b, &variant);
        }
    }
    puts_teardown(b);
    b->state = NULL;
    return status;
}

static enum bench_status message_rates(struct bench *b)
{
    enum bench_status status = rates_setup(b);
    for (size_t i = 0; i < SIZES && status == BENCH_PASS; i++) {
        struct rates_variant variant = {BENCH_PRIVATE,  16,    1, 16, 16, sizes[i],
                                        DB_WITH_RECORD, {NULL}};
        if (i == 0)
            variant.reference[0] = "R216";
        status = rates_measure(b, b->state, &variant);
    }
    rates_teardown(b);
    b->state = NULL;
    return status;
}

static enum bench_status run(struct bench *b)
{
    enum bench_status status = latencies(b);
    return status == BENCH_PASS ? message_rates(b) : status;
}

const struct bench_case bench_case_inline = {
    .name = "inline",
    .paper = {"F3"},
    .summary = "inline against pointer payloads from 8 to 220 B: latency, and batched rate",
    .uses = PUTS_USES | RATES_USES,
    .iters = 4000,
    .repetitions = 3,
    .least_depth = 64,
    .depth_why = "16 WQEs of 4 blocks are posted at once",
    .run = run,
};
