/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many messages a second a proxy carries (the paper's Figure 7 and Table 10): workers T, rings
 * R and requests to a post B, by both ways of posting; beside it mini-gda on as many queues, and
 * what libmlx5 does with the same chains when nobody hands it requests.
 *
 * Workers beyond the cores that the machine can spare are left out, unless they are asked for: they
 * would measure the scheduler.
 */
#include <stdlib.h>
#include <string.h>

#include "../cases.h"
#include "../floods.h"
#include "../peers/verbs.h"

#define RINGS_MAX 64u

#define BATCHES 2u /* of rows that libmlx5 stands beside */

/* What libmlx5 does with chains of one length, in all of its runs. */
struct chains {
    uint32_t batch; /* 0: unused */
    struct bench_samples rate;
    enum bench_valid valid;
};

struct state {
    struct transport transport;
    struct floods floods;
    struct bench_samples rate;
    struct bench_samples libmlx5; /* beside the row that was measured last */
    struct chains chains[BATCHES];
};

struct row {
    uint32_t workers, rings, batch;
    enum db_post post;
    bool beside_libmlx5;
    const char *reference[BENCH_REFERENCES_MAX];
};

static const struct row rows[] = {
    {1, 32, 1, DB_POST_VERBS, true, {NULL}},     {1, 32, 2, DB_POST_VERBS, false, {NULL}},
    {1, 32, 4, DB_POST_VERBS, false, {NULL}},    {1, 32, 8, DB_POST_VERBS, false, {NULL}},
    {1, 32, 16, DB_POST_VERBS, true, {NULL}},    {1, 1, 16, DB_POST_VERBS, false, {NULL}},
    {1, 8, 16, DB_POST_VERBS, false, {NULL}},    {2, 32, 16, DB_POST_VERBS, false, {NULL}},
    {4, 32, 16, DB_POST_VERBS, false, {NULL}},   {8, 32, 1, DB_POST_VERBS, false, {NULL}},
    {8, 32, 16, DB_POST_VERBS, false, {"R176"}}, {1, 32, 1, DB_POST_WQE, true, {NULL}},
    {1, 32, 16, DB_POST_WQE, true, {NULL}},      {4, 32, 16, DB_POST_WQE, false, {NULL}},
    {8, 32, 16, DB_POST_WQE, false, {"R176"}},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static enum bench_status setup(struct bench *b)
{
    struct state *state = calloc(1, sizeof(*state));
    if (!state)
        return bench_fail(b, "no memory");
    b->state = state;
    int error = bench_samples_init(&state->rate, b->options->repetitions);
    error = error ? error : bench_samples_init(&state->libmlx5, VERBS_RATE_RUNS);
    for (size_t i = 0; i < BATCHES && !error; i++)
        error = bench_samples_init(&state->chains[i].rate, ROWS * VERBS_RATE_RUNS);
    if (error)
        return bench_fail(b, "no memory for the samples");
    enum bench_status status = transport_open(b, &state->transport);
    return status == BENCH_PASS
               ? floods_open(b, &state->transport, RINGS_MAX * FLOOD_SLOTS * 8, &state->floods)
               : status;
}

static void teardown(struct bench *b)
{
    struct state *state = b->state;
    if (!state)
        return;
    floods_close(&state->floods);
    transport_close(&state->transport);
    bench_samples_free(&state->rate);
    bench_samples_free(&state->libmlx5);
    for (size_t i = 0; i < BATCHES; i++)
        bench_samples_free(&state->chains[i].rate);
    free(state);
}

static struct chains *chains_of(struct state *state, uint32_t batch)
{
    struct chains *chains = state->chains;

    while (chains->batch && chains->batch != batch)
        chains++;
    chains->batch = batch;
    return chains;
}

/* The rate that was measured last over that of libmlx5's chains of the same length, now. */
static enum bench_status report_over_libmlx5(struct bench *b, struct bench_record record,
                                             uint32_t batch)
{
    struct state *state = b->state;
    struct chains *chains = chains_of(state, batch);
    struct bench_stats ours, theirs;

    bench_samples_clear(&state->libmlx5);
    enum bench_status status =
        verbs_rate_measure(b, &state->transport.info, 8, batch, &state->libmlx5, &chains->valid);
    if (status != BENCH_PASS)
        return status;
    for (uint64_t i = 0; i < state->libmlx5.count; i++)
        bench_samples_add(&chains->rate, state->libmlx5.value[i]);
    if (bench_samples_stats(&state->rate, &ours) || bench_samples_stats(&state->libmlx5, &theirs))
        return bench_fail(b, "no memory for the statistics");
    memset(record.references, 0, sizeof(record.references));
    record.metric = "over_libmlx5";
    record.unit = "x";
    return bench_report_value(b, &record, ours.typical / theirs.typical);
}

static enum bench_status measure(struct bench *b, const struct lanes_attr *attr,
                                 const char *const *references, bool beside_libmlx5)
{
    struct state *state = b->state;
    const struct flood flood = {.bytes = 8, .by_value = true};
    enum bench_valid valid = BENCH_UNCHECKED;
    struct lanes lanes;
    uint64_t puts = 0;

    enum bench_status status =
        lanes_open(b, &state->transport, attr, &state->floods.memory, &lanes);
    if (status == BENCH_PASS)
        status = floods_measure(b, &state->floods, &lanes, &flood, &state->rate, &puts, &valid);
    if (status != BENCH_PASS && valid != BENCH_INVALID) {
        lanes_close(&lanes);
        return status; /* nothing was measured to its end */
    }
    struct bench_record record = {.system = lanes_system(&lanes),
                                  .metric = "rate",
                                  .unit = "M msg/s",
                                  .msg_bytes = 8,
                                  .iterations = puts,
                                  .valid = valid};
    record.config[0] = (struct bench_config){"payload", "value", 0};
    record.config[1] = (struct bench_config){"threads", NULL, attr->count};
    lanes_config(&lanes, record.config, 2);
    for (size_t i = 0; references && i < BENCH_REFERENCES_MAX; i++)
        record.references[i] = references[i];
    status = bench_worse(status, bench_report(b, &record, &state->rate));
    lanes_close(&lanes); /* its workers poll */
    if (status == BENCH_PASS && beside_libmlx5)
        status = report_over_libmlx5(b, record, attr->proxy.batch);
    return status;
}

/* A row as the options change it. The paper's figure is of the row as it stands. */
static struct row row_of(const struct bench *b, size_t i)
{
    const struct bench_options *options = b->options;
    struct row row = rows[i];

    if (bench_given(options, BENCH_OPT_WORKERS))
        row.workers = (uint32_t)options->workers;
    if (bench_given(options, BENCH_OPT_RINGS))
        row.rings = (uint32_t)options->rings;
    if (bench_given(options, BENCH_OPT_POST_LIST))
        row.batch = (uint32_t)options->post_list;
    if (bench_given(options, BENCH_OPT_POST))
        row.post = (enum db_post)options->post;
    if (row.workers != rows[i].workers || row.rings != rows[i].rings || row.batch != rows[i].batch)
        row.reference[0] = NULL;
    return row;
}

/* Is it, with these options, as one before it? */
static bool repeats(const struct bench *b, size_t i)
{
    const struct row row = row_of(b, i);

    for (size_t k = 0; k < i; k++) {
        const struct row before = row_of(b, k);
        if (before.workers == row.workers && before.rings == row.rings &&
            before.batch == row.batch && before.post == row.post)
            return true;
    }
    return false;
}

static enum bench_status run_rows(struct bench *b)
{
    struct state *state = b->state;
    bool chosen = bench_given(b->options, BENCH_OPT_WORKERS);
    uint32_t most = chosen ? UINT32_MAX : lanes_workers(&state->transport, DB_MAX_WORKERS);
    uint32_t few = 0, many = 0; /* workers of rows that are left out */
    enum bench_status status = BENCH_PASS;

    for (size_t i = 0; i < ROWS && status != BENCH_FAIL; i++) {
        const struct row row = row_of(b, i);
        const struct lanes_attr attr = {
            .proxied = true,
            .count = row.rings,
            .proxy = {.workers = row.workers, .batch = row.batch, .post = row.post},
        };
        if (row.workers > most)
            many = many == 0 || row.workers < many ? row.workers : many;
        else if (row.rings > row.workers * DB_MAX_WORKER_QUEUES)
            few = row.workers > few ? row.workers : few;
        else if (!repeats(b, i))
            status = bench_worse(status, measure(b, &attr, row.reference, row.beside_libmlx5));
    }
    if (many)
        bench_warn(b,
                   "rows of %u and more workers are left out, since they would wait for a core of "
                   "this machine; --workers=%u makes one nevertheless",
                   many, many);
    if (few)
        bench_warn(b, "rows of %u and fewer workers are left out: a worker serves %u rings", few,
                   DB_MAX_WORKER_QUEUES);
    return status;
}

static enum bench_status run(struct bench *b)
{
    struct state *state = b->state;
    const struct bench_options *options = b->options;
    const struct lanes_attr own = {.count = 32};

    if (bench_given(options, BENCH_OPT_POST_LIST) && options->post_list > DB_MAX_BATCH)
        return bench_usage(b, "a proxy posts 1 to %u requests with a doorbell", DB_MAX_BATCH);
    if (bench_given(options, BENCH_OPT_WORKERS) &&
        options->rings > options->workers * DB_MAX_WORKER_QUEUES)
        return bench_usage(b, "--rings=%llu with --workers=%llu: a worker serves at most %u",
                           (unsigned long long)options->rings, (unsigned long long)options->workers,
                           DB_MAX_WORKER_QUEUES);
    enum bench_status status = run_rows(b);
    if (status != BENCH_FAIL)
        status = bench_worse(status, measure(b, &own, NULL, false));
    for (uint32_t batch = 1; batch <= 16 && !state->libmlx5.count && status != BENCH_FAIL;
         batch *= 16)
        status = bench_worse(status, verbs_rate(b, &state->transport.info, 8, batch));
    for (size_t i = 0; i < BATCHES && status != BENCH_FAIL && state->chains[i].batch; i++)
        status =
            bench_worse(status, verbs_rate_report(b, 8, state->chains[i].batch,
                                                  &state->chains[i].rate, state->chains[i].valid));
    return status;
}

const struct bench_case bench_case_proxy_rate = {
    .name = "proxy-rate",
    .paper = {"F7", "T10"},
    .summary = "messages a second of a proxy: workers, rings, batches; beside mini-gda and libmlx5",
    .uses = LANES_USES | BENCH_USE(CHECK) | BENCH_USE(SEED) | BENCH_USE(INJECT) |
            BENCH_USE(WORKERS) | BENCH_USE(RINGS) | BENCH_USE(POST_LIST),
    .repetitions = 3,
    LANES_LEAST_DEPTH,
    .setup = setup,
    .run = run,
    .teardown = teardown,
};
