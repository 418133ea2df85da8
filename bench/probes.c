/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Round trips beside a load; see probes.h.
 */
#include "probes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOADS_MAX   (PROBES_CTAS_MAX * PROBES_THREADS_MAX)
#define CHUNK       1000u
#define WORD_STRIDE 128u
#define WARMUP      20u

/* One after the other, in a launch that is slow: the last round trip of the warm-up and the only
 * one that is timed; then a background thread's put and its flush. */
#define WAITS 4u

/* What the kernel uses in GPU memory. */
struct tables {
    struct db_qp *probe[2];
    struct db_qp *load[LANES_MAX];
    uint64_t ticks[CHUNK];
    uint64_t puts[LOADS_MAX];
    uint64_t start_ns, end_ns, last;
    struct bench_span span;
    uint32_t made;
    int32_t status[2 + LOADS_MAX];
    uint64_t stop __attribute__((aligned(128)));
};

enum bench_status probes_open(struct bench *b, struct transport *t, struct probes *probes)
{
    *probes = (struct probes){.transport = t};
    if (bench_samples_init(&probes->samples, bench_capacity(b)) ||
        bench_samples_init(&probes->late, bench_capacity(b)) ||
        bench_samples_init(&probes->added, bench_capacity(b)))
        return bench_fail(b, "no memory for the samples");
    enum bench_status status = transport_alloc(b, t, (2 + LOADS_MAX) * WORD_STRIDE, &probes->words);
    return status == BENCH_PASS
               ? transport_block_alloc(b, t, sizeof(struct tables), &probes->tables)
               : status;
}

void probes_close(struct probes *probes)
{
    if (!probes->transport)
        return;
    transport_block_free(probes->transport, &probes->tables);
    transport_free(probes->transport, &probes->words);
    bench_samples_free(&probes->samples);
    bench_samples_free(&probes->late);
    bench_samples_free(&probes->added);
    *probes = (struct probes){0};
}

enum bench_status probes_setup(struct bench *b)
{
    struct probes_state *state = calloc(1, sizeof(*state));
    if (!state)
        return bench_fail(b, "no memory");
    b->state = state;
    enum bench_status status = transport_open(b, &state->transport);
    return status == BENCH_PASS ? probes_open(b, &state->transport, &state->probes) : status;
}

void probes_teardown(struct bench *b)
{
    struct probes_state *state = b->state;
    if (!state)
        return;
    probes_close(&state->probes);
    transport_close(&state->transport);
    free(state);
}

/* ---- One setting ---- */

static uint32_t loads_of(const struct probe *s)
{
    uint32_t most = s->proxied ? s->rings - 2 : PROBES_CTAS_MAX;
    return s->ctas < most ? s->ctas : most;
}

/* The pool is the same whether the probe shares or not, and a proxy's under each load: lanes that
 * nobody uses stay empty. */
static struct lanes_attr attr_of(const struct probe *s)
{
    return (struct lanes_attr){
        .proxied = s->proxied,
        .count = s->proxied ? s->rings : loads_of(s) + 2,
        .producers = LOADS_MAX,
        .last_own = 2,
        .last_alone = s->alone ? 2 : 0,
        .protocol = s->protocol,
        .proxy = {.workers = s->workers, .batch = s->batch, .idle = s->idle},
    };
}

enum bench_status probes_lanes(struct bench *b, struct probes *probes, const struct probe *s,
                               struct lanes *lanes)
{
    struct lanes_attr attr = attr_of(s);
    return lanes_open(b, probes->transport, &attr, &probes->words, lanes);
}

/* Every word holds what was put there last: the probe's message, each background thread's count. */
static enum bench_status check(struct bench *b, struct probes *probes, const struct probe *s)
{
    const struct tables *tables = probes->tables.host;
    struct db_gpu *gpu = probes->transport->gpu;
    static uint8_t words[(2 + LOADS_MAX) * WORD_STRIDE];

    if (gpu->backend->copy(gpu, words, probes->words.buffer.device, sizeof(words)))
        return bench_fail(b, "%s", db_gpu_error_text());
    if (bench_given(b->options, BENCH_OPT_INJECT))
        words[b->options->flip_offset % ((2 + s->ctas * s->threads) * WORD_STRIDE)] ^= 1;
    for (uint32_t i = 0; i < 2 + s->ctas * s->threads; i++) {
        uint64_t expected = i < 2 ? tables->last : tables->puts[i - 2];
        uint8_t line[WORD_STRIDE] = {0};
        memcpy(line, &expected, sizeof(expected));
        for (uint32_t at = 0; at < WORD_STRIDE; at++)
            if (words[i * WORD_STRIDE + at] != line[at])
                return bench_fail(b, "%s %u: byte %u is %#x, %#x was put there last",
                                  i < 2 ? "probe" : "background thread", i < 2 ? i : i - 2,
                                  i * WORD_STRIDE + at, words[i * WORD_STRIDE + at], line[at]);
    }
    return BENCH_PASS;
}

/* How long a launch makes round trips: a latency that is high costs samples, and nothing fails for
 * it. */
static uint64_t budget_ns(const struct bench_options *options)
{
    uint64_t half = options->timeout_ns / 2;
    return options->duration_ns && options->duration_ns < half ? options->duration_ns : half;
}

static enum bench_status launch(struct bench *b, struct probes *probes, const struct lanes *lanes,
                                const struct probe *s, uint32_t warmup, uint32_t count)
{
    struct tables *tables = probes->tables.host, *on_gpu = probes->tables.buffer.device;
    uint32_t loads = loads_of(s), threads = s->ctas * s->threads;
    struct bench_loaded_args args = {
        .probe = on_gpu->probe,
        .probe_shared = s->shared,
        .raddr = lanes->remote.iova,
        .rkey = lanes->remote.rkey,
        .words = probes->words.buffer.device,
        .delay_ns = s->delay_ns,
        .timeout_ns = b->options->timeout_ns,
        .budget_ns = budget_ns(b->options),
        .warmup = warmup,
        .count = count,
        .load = on_gpu->load,
        .loads = loads ? loads : 1,
        .load_shared = s->shared || threads > loads,
        .pace_ns = s->pace > 0 ? (uint64_t)(threads / s->pace) : 0,
        .first_ns = s->pace > 0 ? (uint64_t)(1 / s->pace) : 0,
        .ticks = on_gpu->ticks,
        .made = &on_gpu->made,
        .last = &on_gpu->last,
        .puts = on_gpu->puts,
        .stop = &on_gpu->stop,
        .status = on_gpu->status,
        .start_ns = &on_gpu->start_ns,
        .end_ns = &on_gpu->end_ns,
        .span = &on_gpu->span,
    };

    memset(tables, 0, sizeof(*tables));
    memcpy(tables->load, lanes->qp, loads * sizeof(tables->load[0]));
    for (uint32_t side = 0; side < 2; side++)
        tables->probe[side] = lanes->qp[s->shared ? side % loads : lanes->count - 2 + side];
    enum bench_status status = transport_block_store(b, probes->transport, &probes->tables);
    if (status == BENCH_PASS)
        status = transport_run_within(b, probes->transport, &bench_loaded, 2 + s->ctas, s->threads,
                                      &args, args.budget_ns + WAITS * args.timeout_ns);
    if (status == BENCH_PASS)
        status = transport_block_fetch(b, probes->transport, &probes->tables);
    for (uint32_t i = 0; i < 2 + threads && status == BENCH_PASS; i++)
        status = lanes_check(b, lanes, tables->status[i]);
    return status == BENCH_PASS && b->options->check ? check(b, probes, s) : status;
}

/* The clean words of a run. */
static enum bench_status clear(struct bench *b, struct probes *probes)
{
    struct db_gpu *gpu = probes->transport->gpu;
    static const uint8_t zeroes[(2 + LOADS_MAX) * WORD_STRIDE];

    if (gpu->backend->copy(gpu, probes->words.buffer.device, zeroes, sizeof(zeroes)))
        return bench_fail(b, "%s", db_gpu_error_text());
    return BENCH_PASS;
}

/* Each answer without a delay, and the late one behind it. */
static void add_pairs(struct probes *probes, const struct tables *tables, double ns_per_tick)
{
    for (uint32_t i = 0; i + 1 < tables->made; i += 2) {
        double without = (double)tables->ticks[i] * ns_per_tick;
        double with = (double)tables->ticks[i + 1] * ns_per_tick;
        bench_samples_add(&probes->samples, without);
        bench_samples_add(&probes->late, with);
        bench_samples_add(&probes->added, fmax(with - without, 0));
    }
}

static void add(struct probes *probes, const struct tables *tables, double ns_per_tick)
{
    for (uint32_t i = 0; i < tables->made; i++)
        bench_samples_add(&probes->samples, (double)tables->ticks[i] * ns_per_tick);
}

/* Fills the samples, and probes->carried with M puts a second. */
enum bench_status probes_measure(struct bench *b, struct probes *probes, const struct lanes *lanes,
                                 const struct probe *s)
{
    const struct tables *tables = probes->tables.host;
    uint32_t given = (uint32_t)b->options->warmup_iters;
    uint32_t warmup = bench_given(b->options, BENCH_OPT_WARMUP) ? given : WARMUP;
    enum bench_status status = BENCH_PASS;
    uint32_t each = s->delay_ns ? 2 : 1; /* round trips of a sample */
    uint64_t n, puts = 0, ns = 0;
    struct bench_pace pace;

    bench_samples_clear(&probes->samples);
    bench_samples_clear(&probes->late);
    bench_samples_clear(&probes->added);
    for (uint64_t r = 0; r < b->options->repetitions && status == BENCH_PASS; r++) {
        bench_pace_start(&pace, b, "round trips under load");
        while (status == BENCH_PASS && (n = bench_pace_next(&pace, CHUNK / each)) > 0) {
            status = clear(b, probes);
            if (status == BENCH_PASS)
                status = launch(b, probes, lanes, s, warmup, (uint32_t)n * each);
            if (status != BENCH_PASS)
                break;
            double ns_per_tick = transport_ns_per_tick(b, probes->transport, &tables->span);
            (s->delay_ns ? add_pairs : add)(probes, tables, ns_per_tick);
            for (uint32_t i = 0; i < s->ctas * s->threads; i++)
                puts += tables->puts[i];
            ns += tables->end_ns - tables->start_ns;
        }
    }
    probes->carried = ns ? (double)puts * 1e3 / (double)ns : 0;
    return status;
}

static enum bench_status report(struct bench *b, struct probes *probes, const struct lanes *lanes,
                                const struct probe *s)
{
    struct bench_record record = {
        .system = lanes_system(lanes),
        .config = {{"queue",
                    s->shared  ? "shared"
                    : s->alone ? "reserved, with a worker"
                               : "reserved",
                    0},
                   {"background_ctas", NULL, s->ctas},
                   {"threads_per_cta", NULL, s->threads},
                   {"pace_k_msg_s", NULL, (uint64_t)(s->pace * 1e6 + 0.5)},
                   {"carried_k_msg_s", NULL, (uint64_t)(probes->carried * 1e3 + 0.5)}},
        .metric = "round_trip",
        .unit = "us",
        .msg_bytes = 8,
        .valid = b->options->check ? BENCH_VALID : BENCH_UNCHECKED,
    };

    size_t used = lanes_config(lanes, record.config, 5);
    if (s->proxied)
        record.config[used++] = (struct bench_config){
            "protocol", s->protocol == DB_PROTOCOL_BASELINE ? "baseline" : "tuned", 0};
    if (!s->delay_ns) {
        memcpy(record.references, s->reference, sizeof(record.references));
        return bench_report(b, &record, &probes->samples);
    }
    record.config[used] = (struct bench_config){"delay_us", NULL, 0};
    enum bench_status status = bench_report(b, &record, &probes->samples);
    record.config[used].number = s->delay_ns / 1000;
    status = bench_worse(status, bench_report(b, &record, &probes->late));
    record.metric = "added_delay";
    memcpy(record.references, s->reference, sizeof(record.references));
    return bench_worse(status, bench_report(b, &record, &probes->added));
}

enum bench_status probes_run(struct bench *b, struct probes *probes, const struct probe *s)
{
    struct lanes lanes;

    enum bench_status status = probes_lanes(b, probes, s, &lanes);
    if (status == BENCH_PASS)
        status = probes_measure(b, probes, &lanes, s);
    if (status == BENCH_PASS)
        status = report(b, probes, &lanes, s);
    lanes_close(&lanes);
    return status;
}
