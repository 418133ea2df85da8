/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An 8-byte round trip beside bulk puts (the paper's Figure 6 and Table 11): the probe shares the
 * queue or ring of a background CTA, or has its own; idle, under all the load that there is, and
 * with the load of both systems paced alike. What the background carried meanwhile stands beside.
 */
#include <math.h>

#include "../cases.h"
#include "../probes.h"

#define RINGS         32u
#define WORKERS       4u
#define LEAST_RINGS   3u /* one of the load */
#define PROBE_WORKERS 2u

static struct probe setting_of(const struct bench *b, bool proxied)
{
    const struct bench_options *options = b->options;
    struct probes_state *state = b->state;
    struct probe s = {.proxied = proxied, .batch = 16, .rings = RINGS, .threads = 1};

    s.workers = lanes_workers(&state->transport, WORKERS);
    if (bench_given(options, BENCH_OPT_WORKERS))
        s.workers = (uint32_t)options->workers;
    if (bench_given(options, BENCH_OPT_RINGS))
        s.rings = (uint32_t)options->rings;
    if (bench_given(options, BENCH_OPT_POST_LIST))
        s.batch = (uint32_t)options->post_list;
    if (bench_given(options, BENCH_OPT_THREADS))
        s.threads = (uint32_t)options->threads_per_cta;
    return s;
}

/* What no row could be made of, before any is. */
static enum bench_status check(const struct bench *b)
{
    const struct bench_options *options = b->options;
    const struct probe s = setting_of(b, true);

    if ((bench_given(options, BENCH_OPT_CTAS) && options->ctas > PROBES_CTAS_MAX) ||
        (bench_given(options, BENCH_OPT_THREADS) && options->threads_per_cta > PROBES_THREADS_MAX))
        return bench_usage(b, "a load of at most %u CTAs of %u threads is possible",
                           PROBES_CTAS_MAX, PROBES_THREADS_MAX);
    if (s.workers + PROBE_WORKERS > DB_MAX_WORKERS)
        return bench_usage(b,
                           "--workers=%u: at most %u, since a row has %u more, which serve the "
                           "probe alone",
                           s.workers, DB_MAX_WORKERS - PROBE_WORKERS, PROBE_WORKERS);
    if (s.rings < LEAST_RINGS || s.rings > s.workers * DB_MAX_WORKER_QUEUES)
        return bench_usage(b,
                           "--rings=%u: with %u workers %u to %u are possible; two are the probe's",
                           s.rings, s.workers, LEAST_RINGS, s.workers * DB_MAX_WORKER_QUEUES);
    if (s.batch > DB_MAX_BATCH)
        return bench_usage(b, "a proxy posts 1 to %u requests with a doorbell", DB_MAX_BATCH);
    return BENCH_PASS;
}

/* Both arms at each load; the greatest rate that the reserved arm carried. */
static enum bench_status sweep(struct bench *b, bool proxied, double *greatest)
{
    struct probes_state *state = b->state;
    uint32_t most =
        bench_given(b->options, BENCH_OPT_CTAS) ? (uint32_t)b->options->ctas : PROBES_CTAS_MAX;
    struct probe s = setting_of(b, proxied);
    enum bench_status status = BENCH_PASS;

    for (uint32_t ctas = 0; ctas <= most && status != BENCH_FAIL;
         ctas = ctas == most ? most + 1
                : ctas       ? (ctas * 4 < most ? ctas * 4 : most)
                             : 1) {
        s.ctas = ctas;
        for (int shared = ctas > 0; shared >= 0 && status != BENCH_FAIL; shared--) {
            s.shared = shared;
            status = bench_worse(status, probes_run(b, &state->probes, &s));
        }
        *greatest = state->probes.carried;
    }
    if (proxied && status != BENCH_FAIL) {
        s.ctas = most;
        s.alone = true;
        status = bench_worse(status, probes_run(b, &state->probes, &s));
    }
    return status;
}

/* What chaining costs a probe of its own (X6). */
static enum bench_status batches(struct bench *b)
{
    struct probes_state *state = b->state;
    struct probe s = setting_of(b, true);
    enum bench_status status = BENCH_PASS;

    s.workers = 1;
    s.rings = 10; /* eight of the load */
    s.ctas = bench_given(b->options, BENCH_OPT_CTAS) ? (uint32_t)b->options->ctas : PROBES_CTAS_MAX;
    for (s.batch = 1; s.batch <= 16 && status != BENCH_FAIL; s.batch *= 16) {
        if (s.ctas == PROBES_CTAS_MAX) /* the paper's load */
            s.reference[0] = s.batch == 1 ? "R165" : "R164";
        status = bench_worse(status, probes_run(b, &state->probes, &s));
    }
    return status;
}

static enum bench_status run(struct bench *b)
{
    struct probes_state *state = b->state;
    const struct bench_options *options = b->options;
    double greatest[2] = {0};
    enum bench_status status = check(b);

    if (status != BENCH_PASS)
        return status;
    for (int proxied = 0; proxied < 2 && status != BENCH_FAIL; proxied++)
        status = bench_worse(status, sweep(b, proxied, &greatest[proxied]));
    /* Both at a rate that both can carry. */
    double pace = fmin(greatest[0], greatest[1]) / 2 * 1e-3;
    if (bench_given(options, BENCH_OPT_PACE))
        pace = (double)options->pace * 1e-9;
    for (int proxied = 0; proxied < 2 && status != BENCH_FAIL; proxied++) {
        struct probe s = setting_of(b, proxied);
        s.ctas = bench_given(options, BENCH_OPT_CTAS) ? (uint32_t)options->ctas : PROBES_CTAS_MAX;
        s.pace = pace;
        status = bench_worse(status, probes_run(b, &state->probes, &s));
    }
    return status == BENCH_FAIL ? status : bench_worse(status, batches(b));
}

const struct bench_case bench_case_loaded = {
    .name = "loaded",
    .paper = {"F6", "T11", "X6"},
    .summary = "a round trip under load: a shared queue or ring against a reserved one",
    .uses = LANES_USES | BENCH_USE(CHECK) | BENCH_USE(INJECT) | BENCH_USE(CTAS) |
            BENCH_USE(THREADS) | BENCH_USE(WORKERS) | BENCH_USE(RINGS) | BENCH_USE(POST_LIST) |
            BENCH_USE(PACE),
    .iters = 1000,
    LANES_LEAST_DEPTH,
    .setup = probes_setup,
    .run = run,
    .teardown = probes_teardown,
};
