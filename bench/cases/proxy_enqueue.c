/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What handing a request to a proxy costs the GPU thread, and each step of it (the paper's X4):
 * from the baseline, which reserves with an atomic, reads the worker's progress and releases at
 * system scope, one step after the other is left out, down to one store of 16 bytes; and the
 * baseline again with the word that it reads in GPU memory, where a worker can tell its progress
 * only by GDRCopy, so that nobody does here. Beside it mini-gda's put, and the floors that they
 * stand on: what a push is made of, a flag's round trip to a CPU thread, and a cache line sent to
 * another core and back.
 */
#include <stdlib.h>

#include "../cases.h"
#include "../floors.h"
#include "../peers/line.h"
#include "../singles.h"

struct state {
    struct transport transport;
    struct singles singles;
};

static const struct singles_row rows[] = {
    {"baseline", DB_RING_BASELINE, false, {"R087", "R090", "R137"}, {"R088", "R091"}},
    {"baseline, room in GPU memory", DB_RING_BASELINE, true, {NULL}, {NULL}},
    {"without the atomic", DB_RING_READ | DB_RING_RELEASE, false, {NULL}, {NULL}},
    {"without the atomic and the read", DB_RING_RELEASE, false, {NULL}, {NULL}},
    {"tuned", DB_RING_TUNED, false, {"R093", "R096", "R138"}, {"R094", "R097"}},
    {"tuned, payload released", DB_RING_PAYLOAD, false, {NULL}, {NULL}},
    {"many producers", DB_RING_SHARED, false, {NULL}, {NULL}},
    {"many producers, payload released", DB_RING_SHARED | DB_RING_PAYLOAD, false, {NULL}, {NULL}},
};

static enum bench_status setup(struct bench *b)
{
    struct state *state = calloc(1, sizeof(*state));
    if (!state)
        return bench_fail(b, "no memory");
    b->state = state;
    enum bench_status status = transport_open(b, &state->transport);
    return status == BENCH_PASS ? singles_open(b, &state->transport, 8, &state->singles) : status;
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

static enum bench_status run(struct bench *b)
{
    struct state *state = b->state;
    enum bench_status status = BENCH_PASS;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && status != BENCH_FAIL; i++)
        status = bench_worse(status, singles_row(b, &state->singles, &rows[i]));
    if (status != BENCH_FAIL)
        status = bench_worse(status, singles_row(b, &state->singles, NULL));
    if (status != BENCH_FAIL)
        status = bench_worse(status, floors_of_a_push(b, &state->transport));
    if (status != BENCH_FAIL)
        status = bench_worse(status, line_round_trip(b));
    return status;
}

const struct bench_case bench_case_proxy_enqueue = {
    .name = "proxy-enqueue",
    .paper = {"X4"},
    .summary = "what each step of handing a request to a proxy costs, from baseline to tuned",
    .uses = LANES_USES | BENCH_USES_PAYLOAD,
    LANES_LEAST_DEPTH,
    .setup = setup,
    .run = run,
    .teardown = teardown,
};
