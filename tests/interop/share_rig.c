/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See share_rig.h.
 */
#include "share_rig.h"

#include <softnic.h>
#include <string.h>
#include <time.h>

static const char *const way_names[SHARE_WAYS] = {
    [SHARE_PRIVATE] = "private", [SHARE_LOCKED] = "locked", [SHARE_HANDOFF] = "hand-off",
    [SHARE_TICKET] = "ticket",   [SHARE_WARP] = "warp",     [SHARE_WARP_PART] = "part of a warp",
    [SHARE_BLOCK] = "block",
};

const char *share_way_name(enum share_way way)
{
    return way_names[way];
}

static void *take(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);
    CHECK(memory, "no memory");
    return memory;
}

/* ---- Queues ---- */

void share_set_create(struct share_set *set, const struct db_queue_attr *attr, uint32_t queues,
                      uint32_t threads)
{
    size_t lines = (size_t)threads * SHARE_LINE;

    *set = (struct share_set){.queues = queues, .watchdog_ns = SHARE_WATCHDOG_NS};
    QUEUE_OK(db_device_open(SOFTNIC_DEVICE_NAME, NULL, &set->device));
    set->a = take(queues, sizeof(*set->a));
    set->b = take(queues, sizeof(*set->b));
    set->ends = take(queues, sizeof(*set->ends));
    for (uint32_t i = 0; i < queues; i++) {
        struct queue_end *a = &set->a[i], *b = &set->b[i];
        queue_end_create(a, set->device, attr, 2 * lines);
        queue_end_create(b, set->device, attr, lines + SHARE_LINE);
        QUEUE_OK(db_queue_connect(a->queue, b->queue));
        set->ends[i] = (struct share_end){
            .qp = a->qp,
            .lkey = a->keys.lkey,
            .rkey = b->keys.rkey,
            .source = a->buffer,
            .got = a->buffer + lines,
            .target = b->buffer,
            .count = (uint64_t *)(void *)(b->buffer + lines),
        };
    }
}

void share_set_destroy(struct share_set *set)
{
    for (uint32_t i = 0; i < set->queues; i++) {
        queue_end_destroy(&set->a[i]);
        queue_end_destroy(&set->b[i]);
    }
    db_device_close(set->device);
    free(set->a);
    free(set->b);
    free(set->ends);
}

void share_set_reset(struct share_set *set)
{
    for (uint32_t i = 0; i < set->queues; i++) {
        QUEUE_OK(db_queue_reset(set->a[i].queue));
        QUEUE_OK(db_queue_reset(set->b[i].queue));
        QUEUE_OK(db_queue_connect(set->a[i].queue, set->b[i].queue));
        *set->ends[i].count = 0;
    }
}

void share_strict(uint32_t fetch_delay_ns, uint64_t seed)
{
    const struct nic_strict strict = {
        .enabled = 1, .poison = 1, .fetch_delay_ns = fetch_delay_ns, .random = seed};

    softnic_set_strict(&strict);
}

uint64_t share_wqes(void)
{
    struct nic_counters counters;

    softnic_read_counters(&counters);
    return counters.send_wqes;
}

/* ---- Grids ---- */

static struct db_gpu *gpu_of(uint32_t workers)
{
    static struct db_gpu *gpus[9];

    CHECK(workers < sizeof(gpus) / sizeof(gpus[0]), "%u workers", workers);
    if (!gpus[workers]) {
        const struct db_gpu_config config = {.workers = workers};
        CHECK(db_gpu_cpu_backend.open(&config, &gpus[workers]) == 0, "%s", db_gpu_error_text());
    }
    return gpus[workers];
}

static void describe(const struct share_set *set)
{
    for (uint32_t i = 0; i < set->queues; i++) {
        const struct db_qp *qp = set->ends[i].qp;
        fprintf(
            stderr,
            "queue %u: claimed %llu, published %llu, lock %llu; record %u; completed %llu, CQEs "
            "%llu, lock %llu, error %#llx\n",
            i, (unsigned long long)qp->post.claimed, (unsigned long long)qp->post.published >> 4,
            (unsigned long long)qp->post.lock, port_host32(qp->record->send),
            (unsigned long long)qp->done.completed, (unsigned long long)qp->done.consumed,
            (unsigned long long)qp->done.lock, (unsigned long long)qp->done.error);
    }
}

static uint64_t progress(const struct share_set *set)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < set->queues; i++)
        sum += port_ld64(&set->ends[i].qp->post.claimed, PORT_RELAXED, PORT_SYSTEM) +
               port_ld64(&set->ends[i].qp->done.completed, PORT_RELAXED, PORT_SYSTEM);
    return sum;
}

/* Blocks until the grid has ended or hangs. Naps get longer, so that short kernels cost little. */
static void watch(const struct share_set *set, struct db_gpu_grid *grid)
{
    uint64_t seen = 0, moved_ns = port_now_ns();
    struct timespec nap = {.tv_nsec = 20000};

    while (!db_gpu_cpu_backend.done(grid) && port_now_ns() - moved_ns < set->watchdog_ns) {
        uint64_t now = progress(set);
        if (now != seen)
            moved_ns = port_now_ns();
        seen = now;
        nanosleep(&nap, NULL);
        nap.tv_nsec += nap.tv_nsec < 2000000 ? nap.tv_nsec / 4 : 0;
    }
}

void share_launch(const struct share_set *set, uint32_t workers, const struct port_kernel *kernel,
                  struct db_gpu_shape shape, const void *args, const struct share_failure *failure)
{
    struct db_gpu *gpu = gpu_of(workers);
    struct db_gpu_grid *grid;

    CHECK(db_gpu_cpu_backend.launch(gpu, kernel, shape, args, &grid) == 0, "%s",
          db_gpu_error_text());
    watch(set, grid);
    int error = db_gpu_cpu_backend.wait(grid, port_now_ns());
    if (error || failure->count)
        describe(set);
    CHECK(failure->count == 0, "%u failures; the first: thread %u of %u x %u, step %llu: %s: %lld",
          failure->count, failure->thread, shape.ctas, shape.threads,
          (unsigned long long)failure->step, failure->what, (long long)failure->value);
    CHECK(error == 0, "%u x %u threads: %s", shape.ctas, shape.threads, db_gpu_error_text());
}

static uint64_t groups_of_warp(enum share_way way, uint32_t lanes, uint32_t depth)
{
    uint32_t size = depth < PORT_WARP_THREADS ? depth : PORT_WARP_THREADS;
    uint32_t groups = (lanes + size - 1) / size;

    if (way == SHARE_WARP_PART && groups < 3)
        groups = 3;
    return groups < lanes ? groups : lanes;
}

uint64_t share_groups(enum share_way way, struct db_gpu_shape shape, uint32_t depth)
{
    uint64_t groups = 0;

    if (way == SHARE_BLOCK)
        return shape.ctas;
    if (way != SHARE_WARP && way != SHARE_WARP_PART)
        return (uint64_t)shape.ctas * shape.threads;
    for (uint32_t first = 0; first < shape.threads; first += PORT_WARP_THREADS) {
        uint32_t lanes = shape.threads - first;
        groups += groups_of_warp(way, lanes < PORT_WARP_THREADS ? lanes : PORT_WARP_THREADS, depth);
    }
    return groups * shape.ctas;
}
