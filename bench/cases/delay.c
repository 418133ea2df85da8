/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The timer check of the round trips (the paper's X17): a responder that answers 50 us later must
 * make them 50 us longer. Every other answer is late, and a sample is how much longer a round trip
 * with one took than the one before it, so that what else the machine does is in both.
 */
#include <math.h>

#include "../cases.h"
#include "../probes.h"

#define DELAY_NS       50000u
#define DELAY_FAULT_NS 1000.0

static enum bench_status check(struct bench *b, bool proxied)
{
    struct probes_state *state = b->state;
    const struct probe s = {
        .proxied = proxied,
        .threads = 1,
        .workers = 1,
        .rings = 3,
        .batch = 1,
        .delay_ns = DELAY_NS,
        .reference = {"R329", "R330", "R331", "R332"},
    };
    struct bench_stats added;
    enum bench_status status = probes_run(b, &state->probes, &s);

    if (status != BENCH_PASS)
        return status;
    if (bench_samples_stats(&state->probes.added, &added))
        return bench_fail(b, "no memory for the statistics");
    if (fabs(added.typical - DELAY_NS) > DELAY_FAULT_NS)
        return bench_degrade(b, "%s: a delay of %.0f us adds %.2f us to the round trip",
                             proxied ? "mini-proxy" : "mini-gda", DELAY_NS / 1e3,
                             added.typical / 1e3);
    return BENCH_PASS;
}

static enum bench_status run(struct bench *b)
{
    enum bench_status status = BENCH_PASS;

    for (int proxied = 0; proxied < 2 && status != BENCH_FAIL; proxied++)
        status = bench_worse(status, check(b, proxied));
    return status;
}

const struct bench_case bench_case_delay = {
    .name = "delay",
    .paper = {"X17"},
    .summary = "timer check: answers that come 50 us later must take 50 us longer",
    .uses = LANES_USES | BENCH_USE(CHECK) | BENCH_USE(INJECT),
    .iters = 1000,
    LANES_LEAST_DEPTH,
    .setup = probes_setup,
    .run = run,
    .teardown = probes_teardown,
};
