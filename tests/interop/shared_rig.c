/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See shared_rig.h.
 */
#include "shared_rig.h"

#include <softnic.h>
#include <string.h>
#include <time.h>

#define DEADLINE_NS 60000000000ull /* of a kernel */
#define RECEIVES    64u

#define BUFFER_BYTES (SHARED_WORDS_AT + 4096)

/* A proxy's places, and the offsets in them, differ between the two sides. */
#define LOCAL_FROM  4096u
#define REMOTE_FROM 8192u

/* ---- Queues ---- */

#define PROXIED(how, protocol_, depth_)                                                            \
    .attr = {.depth = (depth_), .protocol = (protocol_), .producers = SHARED_MAX_THREADS},         \
    .proxied = true, .proxy = {.post = (how)}

static const struct shared_kind kinds[] = {
    {"ring of CQEs", .attr = {.depth = 64}},
    {"collapsed", .attr = {.depth = 64, .collapsed = true}},
    {"no record", .attr = {.depth = 64, .without_record = true}},
    {"collapsed, no record", .attr = {.depth = 16, .collapsed = true, .without_record = true}},
    {"2 blocks", .attr = {.depth = 2}},
    {"4 blocks, collapsed", .attr = {.depth = 4, .collapsed = true}},
    {"16 blocks", .attr = {.depth = 16}},
    {"GPU order", .attr = {.depth = 64}, .gpu_order = true},
    {"exchanged", .attr = {.depth = 16}, .gpu_order = true, .exchanged = true},
    {"GPU order, no record", .attr = {.depth = 64, .without_record = true}, .gpu_order = true},
    {"verbs", PROXIED(DB_POST_VERBS, DB_PROTOCOL_BEST, 64)},
    {"verbs, 2 slots", PROXIED(DB_POST_VERBS, DB_PROTOCOL_BEST, 2)},
    {"verbs, baseline", PROXIED(DB_POST_VERBS, DB_PROTOCOL_BASELINE, 256)},
    {"verbs, baseline, 2 slots", PROXIED(DB_POST_VERBS, DB_PROTOCOL_BASELINE, 2)},
    {"WQEs", PROXIED(DB_POST_WQE, DB_PROTOCOL_BEST, 256)},
    {"WQEs, 16 slots", PROXIED(DB_POST_WQE, DB_PROTOCOL_BEST, 16)},
    {"WQEs, baseline", PROXIED(DB_POST_WQE, DB_PROTOCOL_BASELINE, 64)},
    {"WQEs, baseline, 4 slots", PROXIED(DB_POST_WQE, DB_PROTOCOL_BASELINE, 4)},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* A place of a proxy that is not the first, which lies `from` bytes into a buffer. */
static struct db_keys keys_from(struct shared_rig *rig, enum db_side side, struct db_keys region,
                                uint32_t from)
{
    struct db_keys keys;

    for (uint32_t place = 0; place <= from / 4096; place++) {
        struct db_keys part = region;
        part.iova += (uint64_t)place * 4096;
        part.bytes -= (size_t)place * 4096;
        QUEUE_OK(db_queue_keys(rig->a.queue, side, &part, &keys));
    }
    return keys;
}

void shared_rig_start(struct shared_rig *rig, const struct shared_kind *kind)
{
    const struct db_queue_attr peer = {.depth = 16, .recv_depth = RECEIVES};
    struct db_queue_attr attr = kind->attr;

    memset(rig, 0, sizeof(*rig));
    rig->kind = kind;
    QUEUE_OK(db_device_open(SOFTNIC_DEVICE_NAME, NULL, &rig->device));
    if (kind->proxied)
        QUEUE_OK(db_proxy_create(rig->device, &kind->proxy, &rig->proxy));
    attr.proxy = rig->proxy;
    queue_end_create(&rig->a, rig->device, &attr, LOCAL_FROM + BUFFER_BYTES);
    queue_end_create(&rig->b, rig->device, &peer, REMOTE_FROM + BUFFER_BYTES);
    QUEUE_OK(db_queue_connect(rig->a.queue, rig->b.queue));
    QUEUE_OK(db_queue_post_receives(rig->b.queue, RECEIVES));
    struct db_keys local = keys_from(rig, DB_SIDE_LOCAL, rig->a.keys, LOCAL_FROM);
    struct db_keys remote = keys_from(rig, DB_SIDE_REMOTE, rig->b.keys, REMOTE_FROM);
    if (kind->gpu_order)
        rig->a.qp->order = DB_ORDER_GPU;
    if (kind->exchanged)
        rig->a.qp->with_record = DB_RECORD_EXCHANGED;
    rig->args = (struct shared_args){
        .qp = rig->a.qp,
        .raddr = remote.iova,
        .laddr = local.iova,
        .rkey = remote.rkey,
        .lkey = local.lkey,
        .remote = rig->b.buffer + REMOTE_FROM,
        .local = rig->a.buffer + LOCAL_FROM,
        .proxied = kind->proxied,
        .depth = attr.depth,
        .addend = 0x80000000001 - kind->proxied,
        .posted = rig->posted,
        .count = rig->count,
        .failure = &rig->failure,
    };
}

void shared_rig_end(struct shared_rig *rig)
{
    QUEUE_OK(db_queue_check(rig->a.queue));
    CHECK(!rig->kind->attr.without_record || port_host32(rig->a.qp->record->send) == 0,
          "%s: a record was written", rig->kind->name);
    queue_end_destroy(&rig->a);
    db_proxy_destroy(rig->proxy);
    queue_end_destroy(&rig->b);
    db_device_close(rig->device);
}

/* ---- A run ---- */

static struct db_gpu *gpu;

const struct db_gpu_shape shared_shapes[] = {
    {.ctas = 1, .threads = 1},  {.ctas = 3, .threads = 11}, {.ctas = 64, .threads = 1},
    {.ctas = 1, .threads = 33}, {.ctas = 2, .threads = 32},
};

void shared_take_arrivals(struct shared_rig *rig)
{
    struct db_receive receive;
    int arrived;

    while ((arrived = db_queue_poll_receive(rig->b.queue, &receive)) == 1) {
        uint32_t what = receive.imm - SHARED_IMM_BASE;
        uint32_t thread = what / SHARED_MAX_STEPS;
        uint32_t step = what % SHARED_MAX_STEPS;
        CHECK(thread < SHARED_MAX_THREADS, "immediate %#x arrived, which nobody sent", receive.imm);
        CHECK(++rig->arrived[thread][step] == 1, "immediate %#x arrived twice", receive.imm);
        CHECK(receive.bytes == shared_imm_bytes(thread, step) && receive.qpn == rig->b.qp->qpn,
              "%u bytes with immediate %#x, for QP %#x", receive.bytes, receive.imm, receive.qpn);
        rig->arrivals++;
        QUEUE_OK(db_queue_post_receives(rig->b.queue, 1));
    }
    CHECK(arrived == 0, "%s", db_error_text());
}

void shared_launch(struct shared_rig *rig, const struct port_kernel *kernel,
                   struct db_gpu_shape shape)
{
    const struct timespec nap = {.tv_nsec = 50000};
    uint64_t deadline = port_now_ns() + DEADLINE_NS;
    struct db_gpu_grid *grid;

    CHECK(!gpu->backend->launch(gpu, kernel, shape, &rig->args, &grid), "%s", db_gpu_error_text());
    while (!gpu->backend->done(grid) && port_now_ns() < deadline) {
        shared_take_arrivals(rig);
        nanosleep(&nap, NULL);
    }
    int error = gpu->backend->wait(grid, port_now_ns());
    const struct share_failure *failure = &rig->failure;
    CHECK(failure->count == 0,
          "%s, %s, %u x %u threads: %u failures; the first: thread %u, step %llu: %s: %lld (%s)",
          kernel->name, rig->kind->name, shape.ctas, shape.threads, failure->count, failure->thread,
          (unsigned long long)failure->step, failure->what, (long long)failure->value,
          db_queue_check(rig->a.queue) ? db_error_text() : "the queue is well");
    CHECK(error == 0, "%s, %s, %u x %u threads: %s", kernel->name, rig->kind->name, shape.ctas,
          shape.threads, db_gpu_error_text());
}

static int by_index(const void *a, const void *b)
{
    uint64_t x = ((const struct shared_posted *)a)->index;
    uint64_t y = ((const struct shared_posted *)b)->index;

    return (x > y) - (x < y);
}

/* All that was posted in one row, in the order of the indices. */
static uint32_t gather(struct shared_rig *rig, uint32_t threads)
{
    uint32_t total = 0;

    for (uint32_t t = 0; t < threads; t++) {
        memmove(&rig->posted[total], &rig->posted[(size_t)t * rig->args.most],
                rig->count[t] * sizeof(rig->posted[0]));
        total += rig->count[t];
    }
    qsort(rig->posted, total, sizeof(rig->posted[0]), by_index);
    return total;
}

uint64_t shared_claimed(const struct shared_rig *rig)
{
    const struct db_qp *qp = rig->a.qp;

    return rig->kind->proxied ? qp->ring->many->reserved : qp->post.claimed;
}

/* Indices are all that was claimed, in each slot one operation; fetch-adds came in their order, and
 * found what those before them left. Returns how many operations there were. */
static uint32_t check_posted(struct shared_rig *rig, uint32_t threads)
{
    uint32_t total = gather(rig, threads);
    uint64_t sum = 0;

    for (uint32_t i = 0; i < total; i++) {
        const struct shared_posted *posted = &rig->posted[i];
        /* A proxied operation is named by its descriptor, which lies behind its operand. */
        uint64_t named = rig->slots + (rig->kind->proxied ? posted->slots - 1 : 0);
        CHECK(posted->index == named, "%s: operation %u has index %llu instead of %llu",
              rig->kind->name, i, (unsigned long long)posted->index, (unsigned long long)named);
        rig->slots += posted->slots;
        if (posted->kind != SHARED_FETCH_ADDED)
            continue;
        CHECK(posted->old == sum, "%s: the fetch-add at %llu found %#llx instead of %#llx",
              rig->kind->name, (unsigned long long)posted->index, (unsigned long long)posted->old,
              (unsigned long long)sum);
        sum += rig->args.addend;
    }
    CHECK(shared_claimed(rig) == rig->slots, "%s: %llu slots were claimed, and %llu used",
          rig->kind->name, (unsigned long long)shared_claimed(rig), (unsigned long long)rig->slots);
    uint64_t left = port_ld_plain64(rig->args.remote + SHARED_WORDS_AT);
    CHECK(left == sum, "%s: the counter is %#llx instead of %#llx", rig->kind->name,
          (unsigned long long)left, (unsigned long long)sum);
    return total;
}

void shared_run(struct shared_rig *rig, const struct port_kernel *kernel, struct db_gpu_shape shape,
                uint32_t steps)
{
    uint32_t threads = shape.ctas * shape.threads;
    uint64_t wqes = share_wqes();

    memset(rig->arrived, 0, sizeof(rig->arrived));
    memset(rig->args.remote + SHARED_WORDS_AT, 0, 8);
    rig->arrivals = 0;
    rig->args.steps = steps;
    rig->args.most = SHARED_MAX_POSTED / threads;
    shared_launch(rig, kernel, shape);
    uint32_t total = check_posted(rig, threads);
    wqes = share_wqes() - wqes;
    CHECK(wqes == total, "%s: %llu WQEs for %u operations", rig->kind->name,
          (unsigned long long)wqes, total);
}

/* ---- A program ---- */

struct shared_rig *shared_begin(int argc, char **argv)
{
    const struct db_gpu_config config = {.workers = 3};
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : port_now_ns() | 1;
    struct shared_rig *rig = malloc(sizeof(*rig));

    CHECK(rig, "no memory");
    CHECK(!db_gpu_cpu_backend.open(&config, &gpu), "%s", db_gpu_error_text());
    printf("seed %llu\n", (unsigned long long)seed);
    share_strict(1000, seed);
    return rig;
}

void shared_each_kind(struct shared_rig *rig,
                      void (*test)(struct shared_rig *rig, const struct shared_kind *kind))
{
    for (size_t i = 0; i < KINDS; i++) {
        uint64_t start = port_now_ns();
        test(rig, &kinds[i]);
        if (kinds[i].proxied)
            queue_expect_no_diagnostics_of_worker();
        else
            queue_expect_no_diagnostics();
        printf("%s: %.2f s\n", kinds[i].name, (double)(port_now_ns() - start) / 1e9);
        fflush(stdout);
    }
}

void shared_end(struct shared_rig *rig)
{
    gpu->backend->close(gpu);
    free(rig);
}
