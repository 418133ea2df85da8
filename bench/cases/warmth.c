/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much a worker's clock state moves a proxy's latency (the paper's Table 9): a put and a round
 * trip after an idle time, when the workers' cores have slowed down, and after a time of load, when
 * they run at their highest clock. mini-gda, whose thread is the GPU's, is the control. Each result
 * has how long the idle time or the load was and the clock that it left the workers' cores at.
 *
 * The paper idles for 45 s and loads for 20 s. Where CPU threads play the GPU both are 1 s, unless
 * the options say otherwise: the producer is then as cold as the worker, and nothing is learnt.
 */
#include <stdlib.h>
#include <string.h>

#include "../cases.h"
#include "../probes.h"
#include "../singles.h"

#define COLD_NS  45000000000u
#define WARM_NS  20000000000u
#define SHORT_NS 1000000000u

struct state {
    struct transport transport;
    struct singles singles;
    struct probes probes;
    uint64_t cold_ns, warm_ns;
};

/* What is measured, of one system, in one state. */
struct setting {
    bool round_trip; /* else single puts */
    bool warm;
    struct probe probe; /* of the round trips */
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
    status = singles_open(b, &state->transport, 8, &state->singles);
    return status == BENCH_PASS ? probes_open(b, &state->transport, &state->probes) : status;
}

static void teardown(struct bench *b)
{
    struct state *state = b->state;
    if (!state)
        return;
    probes_close(&state->probes);
    singles_close(&state->singles);
    transport_close(&state->transport);
    free(state);
}

static enum bench_status measure(struct bench *b, const struct lanes *lanes,
                                 const struct setting *setting)
{
    struct state *state = b->state;
    return setting->round_trip ? probes_measure(b, &state->probes, lanes, &setting->probe)
                               : singles_measure(b, &state->singles, lanes, SINGLES_ANY, 8);
}

/* Idles, or does what will be measured, for as long as the state asks. */
static enum bench_status prepare(struct bench *b, const struct lanes *lanes,
                                 const struct setting *setting)
{
    const struct state *state = b->state;
    uint64_t until = bench_monotonic_ns() + state->warm_ns;
    enum bench_status status = BENCH_PASS;

    if (!setting->warm)
        bench_sleep_ns(state->cold_ns);
    while (setting->warm && status == BENCH_PASS && bench_monotonic_ns() < until)
        status = measure(b, lanes, setting);
    return status;
}

static enum bench_status report(struct bench *b, const struct lanes *lanes,
                                const struct setting *setting, uint64_t ms, double mhz)
{
    struct state *state = b->state;
    static const char *const none[BENCH_REFERENCES_MAX];
    static const char *const cold[BENCH_REFERENCES_MAX] = {"R094"};
    struct bench_record record = {.system = lanes_system(lanes), .msg_bytes = 8};
    size_t used = 2;

    record.config[0] = (struct bench_config){"state", setting->warm ? "warm" : "cold", 0};
    record.config[1] = (struct bench_config){setting->warm ? "load_ms" : "idle_ms", NULL, ms};
    if (lanes->attr.proxied)
        record.config[used++] =
            (struct bench_config){"worker_mhz", mhz > 0 ? NULL : "unknown", (uint64_t)(mhz + 0.5)};
    lanes_config(lanes, record.config, used);
    if (!setting->round_trip)
        return singles_report(b, &state->singles, &record, none,
                              lanes->attr.proxied && !setting->warm ? cold : none);
    record.metric = "round_trip";
    record.unit = "us";
    record.valid = b->options->check ? BENCH_VALID : BENCH_UNCHECKED;
    if (lanes->attr.proxied)
        record.references[0] = setting->warm ? "R361" : "R360";
    return bench_report(b, &record, &state->probes.samples);
}

/* Cold, then warm, on lanes that are new. */
static enum bench_status run_both(struct bench *b, bool proxied, bool round_trip)
{
    struct state *state = b->state;
    /* A worker that naps while nothing is to do lets its core slow down. */
    const struct lanes_attr one = {
        .proxied = proxied, .count = 1, .proxy = {.idle = DB_IDLE_BACK_OFF}};
    struct setting setting = {
        .round_trip = round_trip,
        .probe = {.proxied = proxied,
                  .threads = 1,
                  .rings = 2,
                  .workers = lanes_workers(&state->transport, 2),
                  .batch = 1,
                  .idle = DB_IDLE_BACK_OFF},
    };
    struct lanes lanes;

    enum bench_status status =
        round_trip ? probes_lanes(b, &state->probes, &setting.probe, &lanes)
                   : lanes_open(b, &state->transport, &one, &state->singles.memory, &lanes);
    for (int warm = 0; warm < 2 && status == BENCH_PASS; warm++) {
        uint64_t began = bench_monotonic_ns();
        setting.warm = warm;
        status = prepare(b, &lanes, &setting);
        uint64_t ms = (bench_monotonic_ns() - began) / 1000000;
        double mhz = proxied ? lanes_worker_mhz(&lanes) : 0;
        if (status == BENCH_PASS)
            status = measure(b, &lanes, &setting);
        if (status == BENCH_PASS)
            status = report(b, &lanes, &setting, ms, mhz);
    }
    lanes_close(&lanes);
    return status;
}

static enum bench_status run(struct bench *b)
{
    enum bench_status status = BENCH_PASS;

    for (int proxied = 1; proxied >= 0 && status != BENCH_FAIL; proxied--)
        for (int round_trip = 0; round_trip < 2 && status != BENCH_FAIL; round_trip++)
            status = bench_worse(status, run_both(b, proxied, round_trip));
    return status;
}

const struct bench_case bench_case_warmth = {
    .name = "warmth",
    .paper = {"T9"},
    .summary =
        "a put and a round trip by a proxy whose workers are cold, and warm; beside mini-gda",
    .uses = LANES_USES | BENCH_USES_PAYLOAD | BENCH_USE(COLD) | BENCH_USE(WARM),
    .iters = 2000,
    LANES_LEAST_DEPTH,
    .setup = setup,
    .run = run,
    .teardown = teardown,
};
