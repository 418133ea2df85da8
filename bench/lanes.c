/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queues of one kind; see lanes.h.
 */
#include "lanes.h"

#include <string.h>

#define DEFAULT_DEPTH 256u

static uint32_t depth_of(const struct bench *b, const struct lanes_attr *attr)
{
    if (bench_given(b->options, BENCH_OPT_DEPTH))
        return (uint32_t)b->options->depth;
    return attr->depth ? attr->depth : DEFAULT_DEPTH;
}

static enum bench_status open_proxy(struct bench *b, struct lanes *lanes)
{
    const struct bench_options *options = b->options;
    struct db_proxy_attr *attr = &lanes->attr.proxy;

    if (bench_given(options, BENCH_OPT_POST))
        attr->post = (enum db_post)options->post;
    if (bench_given(options, BENCH_OPT_IDLE))
        attr->idle = (enum db_proxy_idle)options->idle;
    if (bench_given(options, BENCH_OPT_PIN))
        attr->pin = options->pin ? DB_PIN_NEAR_NIC : DB_PIN_NONE;
    if (bench_given(options, BENCH_OPT_IN_FLIGHT))
        attr->depth = (uint32_t)options->in_flight;
    attr->timeout_ns = options->timeout_ns;
    if (attr->workers == 0)
        attr->workers = 1;
    if (attr->batch == 0)
        attr->batch = 16;
    if (attr->depth == 0)
        attr->depth = 128;
    attr->workers += lanes->attr.last_alone;
    if (db_proxy_create(lanes->transport->device, attr, &lanes->proxy))
        return bench_fail(b, "%s", db_error_text());
    struct db_worker_info first;
    lanes->pinned = db_proxy_query(lanes->proxy, 1, &first) == 0 && first.cpu >= 0;
    lanes->progress = options->progress_memory == BENCH_MEMORY_GPU ? DB_MEMORY_GPU : DB_MEMORY_HOST;
    return BENCH_PASS;
}

/* The worker of a lane: the first ones take turns, the last lanes' are theirs alone. */
static uint32_t worker_of(const struct lanes *lanes, uint32_t i)
{
    uint32_t shared = lanes->attr.proxy.workers - lanes->attr.last_alone;
    uint32_t first_alone = lanes->attr.count - lanes->attr.last_alone;
    return i < first_alone ? 1 + i % shared : 1 + shared + (i - first_alone);
}

static enum bench_status open_proxied(struct bench *b, struct lanes *lanes, uint32_t i)
{
    lanes->queue_attr = (struct db_queue_attr){
        .depth = depth_of(b, &lanes->attr),
        .gpu = lanes->transport->gpu,
        .timeout_ns = b->options->timeout_ns,
        .proxy = lanes->proxy,
        .worker = worker_of(lanes, i),
        .producers = i < lanes->attr.count - lanes->attr.last_own ? lanes->attr.producers : 1,
        .protocol = lanes->attr.protocol,
        .progress = lanes->progress,
    };

    if (db_queue_create(lanes->transport->device, &lanes->queue_attr, &lanes->queue[i]) ||
        db_queue_connect(lanes->queue[i], lanes->queue[i]))
        return bench_fail(b, "%s", db_error_text());
    lanes->qp[i] = db_queue_device_view(lanes->queue[i]);
    return BENCH_PASS;
}

static enum bench_status open_own(struct bench *b, struct lanes *lanes, uint32_t i)
{
    lanes->queue_attr = transport_queue_attr(b, lanes->transport, depth_of(b, &lanes->attr));
    enum bench_status status =
        transport_connect(b, lanes->transport, &lanes->queue_attr, &lanes->pair[i]);

    lanes->queue[i] = lanes->pair[i].queue[0];
    lanes->qp[i] = lanes->pair[i].qp[0];
    return status;
}

enum bench_status lanes_open(struct bench *b, struct transport *t, const struct lanes_attr *attr,
                             const struct transport_memory *memory, struct lanes *lanes)
{
    enum bench_status status = BENCH_PASS;

    *lanes = (struct lanes){.transport = t, .memory = memory, .attr = *attr};
    if (attr->proxied)
        status = open_proxy(b, lanes);
    while (status == BENCH_PASS && lanes->count < attr->count) {
        uint32_t i = lanes->count++;
        status = attr->proxied ? open_proxied(b, lanes, i) : open_own(b, lanes, i);
    }
    if (status != BENCH_PASS)
        return status;
    if (db_queue_keys(lanes->queue[0], DB_SIDE_LOCAL, &memory->keys, &lanes->local) ||
        db_queue_keys(lanes->queue[0], DB_SIDE_REMOTE, &memory->keys, &lanes->remote))
        return bench_fail(b, "%s", db_error_text());
    return BENCH_PASS;
}

void lanes_close(struct lanes *lanes)
{
    for (uint32_t i = 0; i < lanes->count; i++) {
        if (lanes->attr.proxied)
            db_queue_destroy(lanes->queue[i]);
        else
            transport_disconnect(lanes->transport, &lanes->pair[i]);
    }
    db_proxy_destroy(lanes->proxy);
    *lanes = (struct lanes){0};
}

enum bench_status lanes_check(struct bench *b, const struct lanes *lanes, int status)
{
    if (status == DB_OK)
        return BENCH_PASS;
    for (uint32_t i = 0; i < lanes->count; i++)
        if (db_queue_check(lanes->queue[i]))
            return bench_fail(b, "%s", db_error_text());
    if (status == DB_ERROR_TIMEOUT)
        return bench_fail(b, "no completion within %g s; --timeout makes that longer",
                          (double)b->options->timeout_ns / 1e9);
    return bench_fail(b, "the kernel's queue call failed: %s", strerror(-status));
}

const char *lanes_system(const struct lanes *lanes)
{
    return lanes->attr.proxied ? "mini-proxy" : "mini-gda";
}

static const char *const idle_policy[] = {
    [DB_IDLE_SPIN] = "spin", [DB_IDLE_BACK_OFF] = "back off", [DB_IDLE_SLEEP] = "sleep"};

size_t lanes_config(const struct lanes *lanes, struct bench_config *config, size_t used)
{
    const struct lanes_attr *attr = &lanes->attr;

    if (!attr->proxied) {
        config[used++] = (struct bench_config){"queues", NULL, attr->count};
        used = transport_queue_places(&lanes->queue_attr, config, used);
        return transport_payload_place(lanes->memory, config, used);
    }
    config[used++] = (struct bench_config){"workers", NULL, attr->proxy.workers};
    config[used++] = (struct bench_config){"rings", NULL, attr->count};
    config[used++] = (struct bench_config){"batch", NULL, attr->proxy.batch};
    config[used++] = (struct bench_config){"in_flight", NULL, attr->proxy.depth};
    config[used++] = (struct bench_config){
        "posting", attr->proxy.post == DB_POST_WQE ? "own WQEs" : "ibv_post_send", 0};
    config[used++] = (struct bench_config){"idle", idle_policy[attr->proxy.idle], 0};
    config[used++] = (struct bench_config){"pinned", lanes->pinned ? "yes" : "no", 0};
    config[used++] = (struct bench_config){"progress", transport_place(lanes->progress), 0};
    return transport_payload_place(lanes->memory, config, used);
}

double lanes_worker_mhz(const struct lanes *lanes)
{
    double slowest = 0;

    for (uint32_t worker = 1; worker <= lanes->attr.proxy.workers; worker++) {
        struct db_worker_info info;
        if (db_proxy_query(lanes->proxy, worker, &info) || info.cpu < 0)
            return 0;
        double mhz = bench_cpu_mhz(info.cpu);
        if (worker == 1 || mhz < slowest)
            slowest = mhz;
    }
    return slowest;
}

uint32_t lanes_workers(const struct transport *t, uint32_t wanted)
{
    uint32_t cpus = bench_cpus_allowed();
    uint32_t others =
        (t->info.software ? 1u : 0u) + (strcmp(t->gpu->backend->kind, "cpu") ? 0u : 1u);
    uint32_t room = cpus > others ? cpus - others : 1;
    return wanted < room ? wanted : room;
}
