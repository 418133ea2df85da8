/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The halves of a GPU's L2; see l2.h.
 */
#include "l2.h"

#include <stdlib.h>
#include <string.h>

#define WARMUP 8u

/* Of the SM's clock, behind a doorbell and before what is timed: half a microsecond, as long as a
 * system-scope release takes on an H200. What a doorbell leaves behind stays for longer. */
#define PAUSE_TICKS 1000u

/* What an atomic on a word of the far half takes longer, at least, as a share of the near half's
 * time; and how many of the lines are in either, at least. On an H200 they are 0.56 and half. */
#define LEAST_GAP   0.125
#define LEAST_LINES (L2_LINES / 8)

const char *l2_half_name(enum l2_half half)
{
    return half == L2_NEAR ? "near" : half == L2_FAR ? "far" : "whole";
}

/* ---- Timing ---- */

static enum bench_status time_lines(struct bench *b, struct l2 *l2, struct bench_l2_args args,
                                    double *ns_per_tick)
{
    struct l2_results *on_gpu = l2->results.buffer.device;
    const struct l2_results *results = l2->results.host;

    args.warmup = WARMUP;
    args.count = L2_SAMPLES;
    args.pause_ticks = PAUSE_TICKS;
    args.ticks = on_gpu->ticks;
    args.span = &on_gpu->span;
    enum bench_status status = transport_run(b, l2->transport, &bench_l2, 1, 1, &args);
    if (status == BENCH_PASS)
        status = transport_block_fetch(b, l2->transport, &l2->results);
    if (status == BENCH_PASS)
        *ns_per_tick = transport_ns_per_tick(b, l2->transport, &results->span);
    return status;
}

enum bench_status l2_time(struct bench *b, struct l2 *l2, enum bench_l2_way way,
                          bool behind_doorbell, double *ns_per_tick)
{
    const struct bench_l2_args args = {
        .lines = l2->lines.buffer.device,
        .stride = L2_STRIDE_BYTES,
        .line_count = L2_LINES,
        .way = way,
        .doorbell = behind_doorbell ? l2->doorbell.device : NULL,
    };
    return time_lines(b, l2, args, ns_per_tick);
}

/* ---- Halves ---- */

static int by_value(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

static uint32_t median(const uint32_t *ticks)
{
    uint32_t sorted[L2_SAMPLES];

    memcpy(sorted, ticks, sizeof(sorted));
    qsort(sorted, L2_SAMPLES, sizeof(sorted[0]), by_value);
    return sorted[L2_SAMPLES / 2];
}

/* The middle of the widest gap between lines; 0 where it does not part them in two. */
static uint32_t find_cut(const uint32_t *line_ticks)
{
    uint32_t sorted[L2_LINES], widest = 0, at = 0;

    memcpy(sorted, line_ticks, sizeof(sorted));
    qsort(sorted, L2_LINES, sizeof(sorted[0]), by_value);
    for (uint32_t i = LEAST_LINES; i <= L2_LINES - LEAST_LINES; i++) {
        if (sorted[i] - sorted[i - 1] > widest) {
            widest = sorted[i] - sorted[i - 1];
            at = i;
        }
    }
    if (at == 0 || widest < LEAST_GAP * sorted[at - 1])
        return 0;
    return sorted[at - 1] + widest / 2;
}

static enum l2_half half_of(const struct l2 *l2, uint32_t ticks)
{
    return l2->cut_ticks == 0 ? L2_WHOLE : ticks < l2->cut_ticks ? L2_NEAR : L2_FAR;
}

enum bench_status l2_half_of_all(struct bench *b, struct l2 *l2, uint8_t *start, size_t bytes,
                                 enum l2_half *half)
{
    bool all = bytes <= L2_LINES * BENCH_L2_LINE_BYTES;
    size_t stride = all ? BENCH_L2_LINE_BYTES : L2_STRIDE_BYTES;
    size_t lines = (bytes + stride - 1) / stride;
    const struct bench_l2_args args = {
        .lines = start,
        .stride = stride,
        .line_count = (uint32_t)(lines < L2_LINES ? lines : L2_LINES),
        .way = BENCH_L2_ATOMIC,
    };
    const uint32_t *ticks = ((const struct l2_results *)l2->results.host)->ticks;
    enum bench_status status = BENCH_PASS;
    double ns_per_tick;

    *half = L2_WHOLE;
    if (l2->cut_ticks == 0)
        return BENCH_PASS;
    status = time_lines(b, l2, args, &ns_per_tick);
    if (status != BENCH_PASS)
        return status;
    *half = half_of(l2, median(ticks));
    for (uint32_t line = 1; line < args.line_count; line++)
        if (half_of(l2, median(&ticks[line * L2_SAMPLES])) != *half)
            *half = L2_WHOLE;
    return BENCH_PASS;
}

enum bench_status l2_half_of(struct bench *b, struct l2 *l2, uint32_t *word, enum l2_half *half)
{
    return l2_half_of_all(b, l2, (uint8_t *)word, sizeof(*word), half);
}

enum bench_status l2_find_page(struct bench *b, struct l2 *l2, const struct transport_block *pages,
                               size_t page_bytes, enum l2_half half, uint8_t **page)
{
    uint8_t *start = pages->buffer.device;
    enum bench_status status = BENCH_PASS;
    enum l2_half found;

    *page = NULL;
    for (size_t at = -(uintptr_t)start % page_bytes;
         at + page_bytes <= pages->buffer.bytes && !*page; at += page_bytes) {
        status = l2_half_of(b, l2, (uint32_t *)(void *)(start + at), &found);
        if (status != BENCH_PASS)
            return status;
        if (found == half)
            *page = start + at;
    }
    return status;
}

/* The median of each line's atomics. */
static enum bench_status time_atomics(struct bench *b, struct l2 *l2, uint32_t *line_ticks)
{
    const struct l2_results *results = l2->results.host;
    double ns_per_tick;

    enum bench_status status = l2_time(b, l2, BENCH_L2_ATOMIC, false, &ns_per_tick);
    for (uint32_t line = 0; line < L2_LINES; line++)
        line_ticks[line] = median(&results->ticks[line * L2_SAMPLES]);
    return status;
}

/* What parts the lines once may be chance; what parts them in the same way twice is not. */
static enum bench_status find_halves(struct bench *b, struct l2 *l2)
{
    uint32_t first[L2_LINES], second[L2_LINES];

    if (strcmp(b->where.gpu_kind, "cpu") == 0)
        return BENCH_PASS;
    enum bench_status status = time_atomics(b, l2, first);
    if (status == BENCH_PASS)
        status = time_atomics(b, l2, second);
    if (status != BENCH_PASS)
        return status;
    l2->cut_ticks = find_cut(first);
    for (uint32_t line = 0; line < L2_LINES; line++)
        if (half_of(l2, first[line]) != half_of(l2, second[line]))
            l2->cut_ticks = 0;
    for (uint32_t line = 0; line < L2_LINES; line++)
        l2->half[line] = half_of(l2, first[line]);
    return BENCH_PASS;
}

/* ---- Opening ---- */

enum bench_status l2_open(struct bench *b, struct transport *t, struct l2 *l2)
{
    const struct db_gpu_backend *backend = t->gpu->backend;

    *l2 = (struct l2){.transport = t};
    enum bench_status status = transport_block_alloc(b, t, sizeof(struct l2_results), &l2->results);
    if (status == BENCH_PASS)
        status = transport_block_alloc(b, t, L2_LINES * L2_STRIDE_BYTES, &l2->lines);
    if (status == BENCH_PASS)
        status = transport_block_store(b, t, &l2->lines);
    if (status != BENCH_PASS)
        return status;
    if (backend->alloc(t->gpu, DB_GPU_MEMORY_HOST, sizeof(uint64_t), &l2->doorbell))
        return bench_fail(b, "%s", db_gpu_error_text());
    return find_halves(b, l2);
}

void l2_close(struct l2 *l2)
{
    if (!l2->transport)
        return;
    const struct db_gpu_backend *backend = l2->transport->gpu->backend;
    if (l2->doorbell.device)
        backend->free(l2->transport->gpu, &l2->doorbell);
    transport_block_free(l2->transport, &l2->lines);
    transport_block_free(l2->transport, &l2->results);
}
