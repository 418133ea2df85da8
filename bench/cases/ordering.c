/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each order of the WQE, record and doorbell stores costs (Table 4): system-scope releases,
 * GPU-scope releases, and none; in GPU memory also an exchange of the record in place of the second
 * release; and no record at all, where the device offers that. The unordered variant is for
 * measuring only: that no payload was damaged in a run does not make it safe. Beside them a release
 * alone, and how much longer it takes while other threads of the GPU poll host memory.
 */
#include "../cases.h"
#include "../floors.h"
#include "../puts.h"

#define BYTES 8

static enum bench_status setup(struct bench *b)
{
    return puts_setup(b, BYTES);
}

static const struct puts_variant variants[] = {
    {true, DB_ORDER_SYSTEM, DB_WITH_RECORD, BYTES, {"R114"}, {NULL}},
    {true, DB_ORDER_GPU, DB_WITH_RECORD, BYTES, {"R115"}, {NULL}},
    {true, DB_ORDER_NONE_UNSAFE, DB_WITH_RECORD, BYTES, {"R117"}, {"R118"}},
};

/* Where ring and record are in GPU memory. */
static const struct puts_variant exchanged = {
    .inlined = true, .order = DB_ORDER_GPU, .record = DB_RECORD_EXCHANGED, .bytes = BYTES};

/* One release, and the doorbell. The queue is another: whether its record is read, the device is
 * told when it is made. */
static enum bench_status without_record(struct bench *b)
{
    struct puts *puts = b->state;
    const struct puts_variant variant = {
        .inlined = true, .order = puts->pair.order, .record = DB_WITHOUT_RECORD, .bytes = BYTES};

    puts->attr.without_record = true;
    enum bench_status status = puts_reconnect(b);
    return status == BENCH_PASS ? puts_measure(b, &variant) : status;
}

static enum bench_status run(struct bench *b)
{
    struct puts *puts = b->state;

    enum bench_status status =
        puts_measure_all(b, variants, sizeof(variants) / sizeof(variants[0]));
    if (status != BENCH_FAIL && puts->pair.order == DB_ORDER_GPU)
        status = bench_worse(status, puts_measure(b, &exchanged));
    if (status != BENCH_FAIL && puts->transport.info.without_record)
        status = bench_worse(status, without_record(b));
    if (status != BENCH_FAIL)
        status = bench_worse(status, floors_of_a_release(b, &puts->transport));
    return status;
}

const struct bench_case bench_case_ordering = {
    .name = "ordering",
    .paper = {"T4"},
    .summary = "what ordering the WQE, record and doorbell stores costs: system, gpu, none",
    .uses = PUTS_USES,
    .setup = setup,
    .run = run,
    .teardown = puts_teardown,
};
