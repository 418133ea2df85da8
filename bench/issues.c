/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting alone, timed; see issues.h.
 */
#include "issues.h"

#include "ring_check.h"

/* Queues of which one at least has all in one half; each is where it is by chance. */
#define QUEUES_TRIED 64u

enum bench_status issues_open(struct bench *b, struct issues *issues)
{
    *issues = (struct issues){0};
    enum bench_status status = transport_open_gpu(b, &issues->transport);
    if (status != BENCH_PASS)
        return status;
    issues->attr = transport_detached_attr(b, &issues->transport, ISSUES_DEEP);
    issues->attr.depth = ISSUES_DEEP; /* whatever --tx-depth says */
    status = transport_detach(b, &issues->transport, &issues->attr, &issues->pair);
    if (status != BENCH_PASS)
        return status;
    return transport_block_alloc(b, &issues->transport, sizeof(struct issues_results),
                                 &issues->results);
}

void issues_close(struct issues *issues)
{
    transport_block_free(&issues->transport, &issues->results);
    transport_disconnect(&issues->transport, &issues->pair);
    transport_close(&issues->transport);
}

/* ---- The halves of the L2 ---- */

enum bench_status issues_find(struct bench *b, struct issues *issues, struct l2 *l2,
                              struct issues_halves *halves)
{
    struct db_gpu *gpu = issues->transport.gpu;
    const struct db_queue_attr *attr = &issues->attr;
    struct db_qp *qp = issues->pair.qp[0], view;

    *halves = (struct issues_halves){L2_WHOLE, L2_WHOLE, L2_WHOLE};
    if (attr->record != DB_MEMORY_GPU)
        return BENCH_PASS;
    if (gpu->backend->copy(gpu, &view, qp, sizeof(view)))
        return bench_fail(b, "%s", db_gpu_error_text());
    enum bench_status status = l2_half_of(b, l2, &view.record->send.raw, &halves->record);
    if (status == BENCH_PASS && attr->ring == DB_MEMORY_GPU)
        status = l2_half_of_all(b, l2, view.sq, (size_t)view.depth * M5_BLOCK_BYTES, &halves->ring);
    if (status == BENCH_PASS)
        status = l2_half_of(b, l2, (uint32_t *)(void *)&qp->post.claimed, &halves->words);
    return status;
}

bool issues_are_in(const struct issues *issues, const struct issues_halves *halves,
                   enum l2_half wanted)
{
    const struct db_queue_attr *attr = &issues->attr;

    if (halves->record != wanted)
        return false;
    if (attr->depth == ISSUES_DEEP)
        return halves->words == wanted;
    return attr->ring != DB_MEMORY_GPU || halves->ring == wanted;
}

/* Where there are no halves, the depth is all that is asked. */
static bool fits(const struct issues *issues, const struct issues_halves *halves, uint32_t depth,
                 enum l2_half wanted)
{
    return issues->attr.depth == depth &&
           (halves->record == L2_WHOLE || issues_are_in(issues, halves, wanted));
}

enum bench_status issues_move(struct bench *b, struct issues *issues, struct l2 *l2, uint32_t depth,
                              enum l2_half wanted, struct issues_halves *halves)
{
    struct transport *t = &issues->transport;
    struct transport_pair left[QUEUES_TRIED]; /* kept meanwhile, or their memory came again */
    uint32_t count = 0;

    enum bench_status status = issues_find(b, issues, l2, halves);
    while (status == BENCH_PASS && !fits(issues, halves, depth, wanted) && count < QUEUES_TRIED) {
        /* A queue's parts are at fixed distances, and halves follow a pattern: behind a CQ of
         * another depth the record lies differently to the ring. */
        issues->attr.cq_depth = depth << count % 2;
        issues->attr.depth = depth;
        left[count++] = issues->pair;
        status = transport_detach(b, t, &issues->attr, &issues->pair);
        if (status == BENCH_PASS)
            status = issues_find(b, issues, l2, halves);
    }
    for (uint32_t i = 0; i < count; i++)
        transport_disconnect(t, &left[i]);
    return status;
}

/* ---- How much ---- */

uint32_t issues_chunk(const struct issues_variant *variant)
{
    return bench_issue_is_warp(variant->way) ? ISSUES_DEEP / PORT_WARP_THREADS / 2 : ISSUES_CHUNK;
}

uint32_t issues_warmup(const struct bench *b, const struct issues_variant *variant)
{
    uint64_t most = bench_issue_is_warp(variant->way) ? ISSUES_DEEP / PORT_WARP_THREADS / 2
                                                      : ISSUES_DEEP - ISSUES_CHUNK;
    return (uint32_t)(b->options->warmup_iters < most ? b->options->warmup_iters : most);
}

/* ---- What was posted ---- */

struct posted {
    const struct bench_issue_args *args;
    uint32_t threads;
};

/* Each thread of a warp builds one of 32 WQEs in a row. */
static struct ring_put posted_put(void *context, uint64_t number, const uint8_t *found)
{
    const struct posted *posted = context;
    const struct bench_issue_args *args = posted->args;

    (void)found;
    return (struct ring_put){
        .raddr = args->raddr,
        .rkey = args->rkey,
        .flags = DB_SIGNALED,
        .bytes = 8,
        .inlined = args->inlined || !bench_issue_is_owner((enum bench_issue_way)args->way),
        .value = number / posted->threads + 1,
        .laddr = args->laddr,
        .lkey = args->lkey,
    };
}

static enum bench_status check(struct bench *b, struct issues *issues,
                               const struct bench_issue_args *args, uint32_t threads,
                               enum bench_valid *valid)
{
    struct posted posted = {args, threads};
    const struct ring_posts posts = {
        .count = (uint64_t)(args->warmup + args->count) * threads,
        .blocks = 1,
        .put = posted_put,
        .context = &posted,
    };
    return ring_check(b, issues->pair.queue[0], &posts, valid);
}

/* ---- One launch ---- */

enum bench_status issues_run(struct bench *b, struct issues *issues,
                             const struct issues_variant *variant, uint32_t warmup, uint32_t count,
                             double *ns_per_tick, enum bench_valid *valid)
{
    struct transport *t = &issues->transport;
    const struct issues_results *results = issues->results.host;
    struct issues_results *on_gpu = issues->results.buffer.device;
    uint32_t threads = bench_issue_is_warp(variant->way) ? PORT_WARP_THREADS : 1;
    bool posts = variant->way >= BENCH_ISSUE_OWNER;
    /* Nobody follows the addresses of the puts. */
    struct bench_issue_args args = {
        .qp = issues->pair.qp[0],
        .raddr = 0x7f0000001000,
        .laddr = 0x7f0000002000,
        .rkey = 0x1234,
        .lkey = 0x5678,
        .way = variant->way,
        .order = variant->order,
        .record = variant->record,
        .inlined = variant->inlined,
        .warmup = warmup,
        .count = count,
        .pause_ticks = ISSUES_PAUSE_TICKS,
        .words = on_gpu->words,
        .ticks = on_gpu->ticks,
        .ns = on_gpu->ns,
        .span = &on_gpu->span,
        .status = &on_gpu->status,
    };

    if (db_queue_reset(issues->pair.queue[0]))
        return bench_fail(b, "%s", db_error_text());
    enum bench_status status = transport_run(b, t, &bench_issue, 1, threads, &args);
    if (status == BENCH_PASS)
        status = transport_block_fetch(b, t, &issues->results);
    if (status == BENCH_PASS)
        status = transport_check(b, &issues->pair, results->status);
    if (status != BENCH_PASS)
        return status;
    *ns_per_tick = transport_ns_per_tick(b, t, &results->span);
    if (posts && b->options->check)
        status = check(b, issues, &args, threads, valid);
    return status;
}
