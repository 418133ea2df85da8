/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device, memory and queue pairs for experiments; see transport.h.
 */
#include "transport.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forwarder.h"

static enum bench_status open_device(struct bench *b, struct transport *t)
{
    const struct bench_options *options = b->options;
    struct db_device_options path = DB_DEVICE_OPTIONS;

    if (bench_given(options, BENCH_OPT_IB_PORT))
        path.port = (uint32_t)options->ib_port;
    if (bench_given(options, BENCH_OPT_GID_INDEX))
        path.gid_index = (int32_t)options->gid_index;
    if (db_device_open(options->device, &path, &t->device))
        return bench_fail(b, "%s", db_error_text());
    db_device_describe(t->device, &t->info);
    snprintf(b->where.nic, sizeof(b->where.nic), "%s", t->info.name);
    b->where.nic_software = t->info.software;
    return BENCH_PASS;
}

enum bench_status transport_open(struct bench *b, struct transport *t)
{
    enum bench_status status = open_device(b, t);
    if (status == BENCH_PASS && b->options->doorbell == BENCH_DOORBELL_CPU) {
        t->forwarder = forwarder_start();
        if (!t->forwarder)
            return bench_fail(b, "no thread to forward doorbells");
    }
    return status == BENCH_PASS ? transport_open_gpu(b, t) : status;
}

void transport_close(struct transport *t)
{
    forwarder_stop(t->forwarder);
    if (t->gpu)
        t->gpu->backend->close(t->gpu);
    db_device_close(t->device);
    *t = (struct transport){0};
}

/* ---- Memory ---- */

enum bench_status transport_alloc(struct bench *b, struct transport *t, size_t bytes,
                                  struct transport_memory *memory)
{
    enum db_gpu_memory kind =
        b->options->payload_memory == BENCH_MEMORY_GPU ? DB_GPU_MEMORY_GPU : DB_GPU_MEMORY_HOST;
    *memory = (struct transport_memory){0};
    if (t->gpu->backend->alloc(t->gpu, kind, bytes, &memory->buffer))
        return bench_fail(b, "%s", db_gpu_error_text());
    if (db_region_register_buffer(t->device, t->gpu, &memory->buffer, DB_ACCESS_ALL,
                                  &memory->region))
        return bench_fail(b, "%s", db_error_text());
    memory->keys = db_region_keys(memory->region);
    return BENCH_PASS;
}

void transport_free(struct transport *t, struct transport_memory *memory)
{
    db_region_destroy(memory->region);
    if (memory->buffer.device)
        t->gpu->backend->free(t->gpu, &memory->buffer);
    *memory = (struct transport_memory){0};
}

enum bench_status transport_block_alloc(struct bench *b, struct transport *t, size_t bytes,
                                        struct transport_block *block)
{
    *block = (struct transport_block){.host = calloc(1, bytes)};
    if (!block->host)
        return bench_fail(b, "no memory for the results");
    if (t->gpu->backend->alloc(t->gpu, DB_GPU_MEMORY_GPU, bytes, &block->buffer))
        return bench_fail(b, "%s", db_gpu_error_text());
    return BENCH_PASS;
}

void transport_block_free(struct transport *t, struct transport_block *block)
{
    if (block->buffer.device)
        t->gpu->backend->free(t->gpu, &block->buffer);
    free(block->host);
    *block = (struct transport_block){0};
}

static enum bench_status copy(struct bench *b, struct transport *t, void *to, const void *from,
                              size_t bytes)
{
    if (t->gpu->backend->copy(t->gpu, to, from, bytes))
        return bench_fail(b, "%s", db_gpu_error_text());
    return BENCH_PASS;
}

enum bench_status transport_block_store(struct bench *b, struct transport *t,
                                        const struct transport_block *block)
{
    return copy(b, t, block->buffer.device, block->host, block->buffer.bytes);
}

enum bench_status transport_block_fetch(struct bench *b, struct transport *t,
                                        const struct transport_block *block)
{
    return copy(b, t, block->host, block->buffer.device, block->buffer.bytes);
}

/* ---- Queues ---- */

static enum db_memory memory_of(uint64_t choice)
{
    return choice == BENCH_MEMORY_GPU ? DB_MEMORY_GPU : DB_MEMORY_HOST;
}

const char *transport_place(enum db_memory kind)
{
    return kind == DB_MEMORY_GPU ? "GPU memory" : "host memory";
}

const char *transport_record_name(enum db_record record)
{
    return record == DB_WITH_RECORD      ? "with"
           : record == DB_WITHOUT_RECORD ? "without"
                                         : "exchanged";
}

size_t transport_queue_places(const struct db_queue_attr *attr, struct bench_config *config,
                              size_t used)
{
    config[used++] = (struct bench_config){"ring", transport_place(attr->ring), 0};
    config[used++] = (struct bench_config){"cq", transport_place(attr->cq), 0};
    config[used++] = (struct bench_config){"record_memory", transport_place(attr->record), 0};
    return used;
}

size_t transport_payload_place(const struct transport_memory *memory, struct bench_config *config,
                               size_t used)
{
    bool gpu = memory->buffer.kind == DB_GPU_MEMORY_GPU;

    config[used++] = (struct bench_config){
        "payload_memory", transport_place(gpu ? DB_MEMORY_GPU : DB_MEMORY_HOST), 0};
    return used;
}

struct db_queue_attr transport_queue_attr(const struct bench *b, const struct transport *t,
                                          uint32_t depth)
{
    const struct bench_options *options = b->options;
    struct db_queue_attr attr = {
        .depth = depth,
        .gpu = t->gpu,
        .ring = memory_of(options->ring_memory),
        .cq = memory_of(options->cq_memory),
        .record = memory_of(options->record_memory),
        .forwarded = t->forwarder != NULL,
        .timeout_ns = options->timeout_ns,
    };
    if (bench_given(options, BENCH_OPT_DEPTH))
        attr.depth = (uint32_t)options->depth;
    return attr;
}

struct db_queue_attr transport_detached_attr(const struct bench *b, const struct transport *t,
                                             uint32_t depth)
{
    struct db_queue_attr attr = transport_queue_attr(b, t, depth);

    attr.collapsed = true;
    attr.cq = DB_MEMORY_GPU;
    if (!bench_given(b->options, BENCH_OPT_RING))
        attr.ring = DB_MEMORY_GPU;
    if (!bench_given(b->options, BENCH_OPT_RECORD))
        attr.record = DB_MEMORY_GPU;
    return attr;
}

/* Keeps a queue that was created, for kernels. */
static enum bench_status take(struct bench *b, struct transport *t, struct transport_pair *pair,
                              int i)
{
    struct db_queue_info info;

    pair->qp[i] = db_queue_device_view(pair->queue[i]);
    if (db_queue_query(pair->queue[i], &info))
        return bench_fail(b, "%s", db_error_text());
    pair->order = info.scope == DB_SCOPE_GPU ? DB_ORDER_GPU : DB_ORDER_SYSTEM;
    if (t->forwarder && forwarder_add(t->forwarder, pair->queue[i]))
        return bench_fail(b, "too many queues for a thread that forwards doorbells");
    return BENCH_PASS;
}

enum bench_status transport_connect(struct bench *b, struct transport *t,
                                    const struct db_queue_attr *attr, struct transport_pair *pair)
{
    *pair = (struct transport_pair){0};
    for (int i = 0; i < 2; i++) {
        if (db_queue_create(t->device, attr, &pair->queue[i]))
            return bench_fail(b, "%s", db_error_text());
        enum bench_status status = take(b, t, pair, i);
        if (status != BENCH_PASS)
            return status;
    }
    if (db_queue_connect(pair->queue[0], pair->queue[1]))
        return bench_fail(b, "%s", db_error_text());
    return BENCH_PASS;
}

enum bench_status transport_detach(struct bench *b, struct transport *t,
                                   const struct db_queue_attr *attr, struct transport_pair *pair)
{
    *pair = (struct transport_pair){0};
    if (db_queue_create_detached(attr, &pair->queue[0]))
        return bench_fail(b, "%s", db_error_text());
    return take(b, t, pair, 0);
}

void transport_disconnect(struct transport *t, struct transport_pair *pair)
{
    for (int i = 0; i < 2; i++) {
        if (t->forwarder)
            forwarder_remove(t->forwarder, pair->queue[i]);
        db_queue_destroy(pair->queue[i]);
    }
    *pair = (struct transport_pair){0};
}

enum bench_status transport_check(struct bench *b, const struct transport_pair *pair, int status)
{
    if (status == DB_OK)
        return BENCH_PASS;
    for (int i = 0; i < 2 && pair->queue[i]; i++)
        if (db_queue_check(pair->queue[i]))
            return bench_fail(b, "%s", db_error_text());
    if (status == DB_ERROR_TIMEOUT)
        return bench_fail(b, "no completion within %g s; --timeout makes that longer",
                          (double)b->options->timeout_ns / 1e9);
    return bench_fail(b, "the kernel's queue call failed: %s", strerror(-status));
}
