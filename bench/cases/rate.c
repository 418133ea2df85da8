/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The message rate of 8-byte inline puts (Table 5): threads, queues, doorbell batching and the ways
 * of sharing a queue. Beside it libmlx5 on the same device with 1 and with 32 writes to a post.
 *
 * A figure of the paper stands beside a row that has its threads, CTAs, queues, batch and way of
 * sharing; its hand-off rings for 32 slots at a time and ours for all that are ready, so that one
 * stands alone. Where CPU threads play the GPU, the CTAs of a row are played by as many OS threads
 * as the machine can spare, which the record states (os_threads, cpus).
 */
#include "../cases.h"
#include "../peers/verbs.h"
#include "../rates.h"

static const struct rates_variant variants[] = {
    {BENCH_PRIVATE, 1, 1, 1, 1, 8, DB_WITH_RECORD, {"R201"}},
    {BENCH_PRIVATE, 1, 1, 8, 1, 8, DB_WITH_RECORD, {"R203"}},
    {BENCH_PRIVATE, 1, 1, 1, 16, 8, DB_WITH_RECORD, {"R204"}},
    {BENCH_PRIVATE, 1, 1, 1, 32, 8, DB_WITH_RECORD, {NULL}},
    {BENCH_LOCK, 1, 32, 1, 1, 8, DB_WITH_RECORD, {"R206"}},
    {BENCH_HANDOFF, 1, 256, 1, 1, 8, DB_WITH_RECORD, {NULL}},
    {BENCH_TICKET, 1, 256, 1, 1, 8, DB_WITH_RECORD, {NULL}},
    {BENCH_WARP_OWNER, 1, 32, 1, 32, 8, DB_WITH_RECORD, {"R210"}},
    {BENCH_WARP, 1, 256, 1, 32, 8, DB_WITH_RECORD, {"R212"}},
    {BENCH_PRIVATE, 16, 1, 16, 1, 8, DB_WITH_RECORD, {"R214"}},
    {BENCH_PRIVATE, 16, 1, 16, 16, 8, DB_WITH_RECORD, {"R216"}},
    {BENCH_PRIVATE, 1, 32, 32, 16, 8, DB_WITH_RECORD, {"R218"}},
    {BENCH_PRIVATE, 1, 64, 64, 16, 8, DB_WITH_RECORD, {"R220"}},
    {BENCH_PRIVATE, 64, 1, 64, 16, 8, DB_WITH_RECORD, {"R222"}},
    {BENCH_WARP, 16, 256, 16, 32, 8, DB_WITH_RECORD, {"R230", "R231"}},
};

static enum bench_status run(struct bench *b)
{
    struct rates *rates = b->state;
    enum bench_status status = BENCH_PASS;

    for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]) && status == BENCH_PASS; i++)
        status = rates_measure(b, rates, &variants[i]);
    if (status == BENCH_PASS)
        status = verbs_rate(b, &rates->transport.info, 8, 1);
    if (status == BENCH_PASS)
        status = verbs_rate(b, &rates->transport.info, 8, 32);
    return status;
}

const struct bench_case bench_case_rate = {
    .name = "rate",
    .paper = {"T5"},
    .summary = "messages a second: threads, queues, batches and ways to share; beside libmlx5",
    .uses = RATES_USES,
    .repetitions = 5,
    .least_depth = 32,
    .depth_why = "a warp posts 32 WQEs at once",
    .setup = rates_setup,
    .run = run,
    .teardown = rates_teardown,
};
