/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much a worker's clock state moves a proxy's latency (the paper's Table 9): put + completion
 * after an idle time, when the workers' cores have slowed down, and after a time of load, when they
 * run at their highest clock. mini-gda, whose thread is the GPU's, is the control. The clock of the
 * CPU that asks is in each record.
 *
 * The paper idles for 45 s and loads for 20 s. Where CPU threads play the GPU both are 1 s, unless
 * the options say otherwise: the producer is then as cold as the worker, and nothing is learnt.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../cases.h"
#include "../singles.h"

#define COLD_NS  45000000000u
#define WARM_NS  20000000000u
#define SHORT_NS 1000000000u

struct state {
    struct transport transport;
    struct singles singles;
    uint64_t cold_ns, warm_ns;
};

static enum bench_status setup(struct bench *b)
{
    const struct bench_options *options = b->options;
    struct state *state = calloc(1, sizeof(*state));
    if (!state)
        return bench_fail(b, "no memory");
    b->state = state;
    enum bench_status status = transport_open(b, &state->transport);
    if (status != BENCH_PASS)
        return status;
    bool played = strcmp(state->transport.gpu->backend->kind, "cpu") == 0;
    state->cold_ns = played ? SHORT_NS : COLD_NS;
    state->warm_ns = played ? SHORT_NS : WARM_NS;
    if (bench_given(options, BENCH_OPT_COLD))
        state->cold_ns = options->cold_ns;
    if (bench_given(options, BENCH_OPT_WARM))
        state->warm_ns = options->warm_ns;
    return singles_open(b, &state->transport, 8, &state->singles);
}

static void teardown(struct bench *b)
{
    struct state *state = b->state;
    if (!state)
        return;
    singles_close(&state->singles);
    transport_close(&state->transport);
    free(state);
}

static enum bench_status idle(uint64_t ns)
{
    struct timespec left = {.tv_sec = (time_t)(ns / 1000000000u),
                            .tv_nsec = (long)(ns % 1000000000u)};
    while (nanosleep(&left, &left))
        continue;
    return BENCH_PASS;
}

/* Puts until the time is over. */
static enum bench_status load(struct bench *b, const struct lanes *lanes, uint64_t ns)
{
    struct state *state = b->state;
    uint64_t until = bench_monotonic_ns() + ns;
    enum bench_status status = BENCH_PASS;

    while (status == BENCH_PASS && bench_monotonic_ns() < until)
        status = singles_measure(b, &state->singles, lanes, SINGLES_ANY, 8);
    return status;
}

static enum bench_status measure(struct bench *b, const struct lanes *lanes, bool warm)
{
    struct state *state = b->state;
    uint64_t ns = warm ? state->warm_ns : state->cold_ns;
    static const char *const none[BENCH_REFERENCES_MAX];
    static const char *const cold[BENCH_REFERENCES_MAX] = {"R094"};

    enum bench_status status = warm ? load(b, lanes, ns) : idle(ns);
    if (status == BENCH_PASS)
        status = singles_measure(b, &state->singles, lanes, SINGLES_ANY, 8);
    if (status != BENCH_PASS)
        return status;
    struct bench_record record = {.system = lanes_system(lanes), .msg_bytes = 8};
    record.config[0] = (struct bench_config){"state", warm ? "warm" : "cold", 0};
    record.config[1] = (struct bench_config){warm ? "load_ms" : "idle_ms", NULL, ns / 1000000};
    lanes_config(lanes, record.config, 2);
    return singles_report(b, &state->singles, &record, none,
                          lanes->attr.proxied && !warm ? cold : none);
}

static enum bench_status run(struct bench *b)
{
    struct state *state = b->state;
    enum bench_status status = BENCH_PASS;

    for (int proxied = 1; proxied >= 0 && status != BENCH_FAIL; proxied--) {
        /* A worker that naps while nothing is to do lets its core slow down. */
        const struct lanes_attr attr = {
            .proxied = proxied, .count = 1, .proxy = {.idle = DB_IDLE_BACK_OFF}};
        struct lanes lanes;
        enum bench_status row =
            lanes_open(b, &state->transport, &attr, &state->singles.memory, &lanes);
        for (int warm = 0; warm < 2 && row == BENCH_PASS; warm++)
            row = measure(b, &lanes, warm);
        lanes_close(&lanes);
        status = bench_worse(status, row);
    }
    return status;
}

const struct bench_case bench_case_warmth = {
    .name = "warmth",
    .paper = {"T9"},
    .summary = "put + completion of a proxy whose workers are cold, and warm; beside mini-gda",
    .uses = LANES_USES | BENCH_USES_PAYLOAD | BENCH_USE(COLD) | BENCH_USE(WARM),
    .iters = 2000,
    LANES_LEAST_DEPTH,
    .setup = setup,
    .run = run,
    .teardown = teardown,
};
