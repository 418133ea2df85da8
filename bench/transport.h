/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an experiment over a NIC needs: a device, a GPU, memory that both reach, and queue pairs
 * whose two ends are in this process. Included by the cases; made from the options of the command
 * line. bench/gpu.c opens the GPU, bench/transport.c the rest.
 */
#ifndef BENCH_TRANSPORT_H
#define BENCH_TRANSPORT_H

#include <doorbell/device.h>
#include <doorbell/doorbell.h>
#include <doorbell/gpu.h>

#include "bench.h"
#include "kernels/span.h"

#define BENCH_USES_GPU (BENCH_USE(GPU) | BENCH_USE(DEPTH) | BENCH_USE(TIMEOUT))
#define BENCH_USES_TRANSPORT                                                                       \
    (BENCH_USE(DEVICE) | BENCH_USE(IB_PORT) | BENCH_USE(GID_INDEX) | BENCH_USE(RING) |             \
     BENCH_USE(CQ) | BENCH_USE(RECORD) | BENCH_USE(PAYLOAD) | BENCH_USE(DOORBELL) |                \
     BENCH_USES_GPU)

struct forwarder;

struct transport {
    struct db_device *device; /* NULL: detached queues alone */
    struct db_device_info info;
    struct db_gpu *gpu;
    struct db_gpu_properties gpu_properties;
    double ns_per_tick;          /* of port_clock() in a kernel, when the GPU was opened */
    struct forwarder *forwarder; /* rings for kernels, with --doorbell=cpu */
};

/* Opens the device and the GPU that the options name, or the GPU alone, and fills in b->where. Says
 * what went wrong and returns the status for it; close it then as well. */
enum bench_status transport_open(struct bench *b, struct transport *t);
enum bench_status transport_open_gpu(struct bench *b, struct transport *t);
void transport_close(struct transport *t);

/* The nanoseconds of a tick during a kernel's span, which becomes the SM clock of b->where and is
 * compared with the one at the opening (b->sm_clock); that one when the span is too short for the
 * GPU's timer. */
double transport_ns_per_tick(struct bench *b, const struct transport *t,
                             const struct bench_span *span);

/* The same behind kernels that are timed by the GPU's timer alone: reads the clock in a kernel of
 * its own, on a GPU. */
enum bench_status transport_read_clock(struct bench *b, const struct transport *t);

/* ---- Memory ---- */

/* Memory that kernels and the device reach, registered. */
struct transport_memory {
    struct db_gpu_buffer buffer;
    struct db_region *region;
    struct db_keys keys;
};

/* Payload memory, where the options place it. */
enum bench_status transport_alloc(struct bench *b, struct transport *t, size_t bytes,
                                  struct transport_memory *memory);
void transport_free(struct transport *t, struct transport_memory *memory);

/* Arguments and results of kernels: GPU memory, so that no store to it delays what is measured, and
 * a copy for the host. */
struct transport_block {
    struct db_gpu_buffer buffer; /* the kernel's: buffer.device */
    void *host;
};

enum bench_status transport_block_alloc(struct bench *b, struct transport *t, size_t bytes,
                                        struct transport_block *block);
void transport_block_free(struct transport *t, struct transport_block *block);

/* Copy the host's block to the GPU, and back. */
enum bench_status transport_block_store(struct bench *b, struct transport *t,
                                        const struct transport_block *block);
enum bench_status transport_block_fetch(struct bench *b, struct transport *t,
                                        const struct transport_block *block);

/* ---- Queues ---- */

/* A connected pair: what is put on queue[0] is written by queue[1]'s side, and back. */
struct transport_pair {
    struct db_queue *queue[2];
    struct db_qp *qp[2]; /* as kernels see them */
    enum db_order order; /* that is safe */
};

enum bench_status transport_connect(struct bench *b, struct transport *t,
                                    const struct db_queue_attr *attr, struct transport_pair *pair);

/* The same without a device or a peer: queue[0] alone. */
enum bench_status transport_detach(struct bench *b, struct transport *t,
                                   const struct db_queue_attr *attr, struct transport_pair *pair);
void transport_disconnect(struct transport *t, struct transport_pair *pair);

/* The attributes that the options ask for; `depth` where they leave it open. */
struct db_queue_attr transport_queue_attr(const struct bench *b, const struct transport *t,
                                          uint32_t depth);

/* The same of a detached queue: with a collapsed CQ, which is in GPU memory, and so are the ring
 * and the record unless the options place them. */
struct db_queue_attr transport_detached_attr(const struct bench *b, const struct transport *t,
                                             uint32_t depth);

/* The words of a record for where a part lies. */
const char *transport_place(enum db_memory kind);
/* The same for whether there is a record, and how it is written. */
const char *transport_record_name(enum db_record record);

/* Adds where a queue's ring, CQ and record lie, or where payloads do, to what a record says. Each
 * returns how many entries of `config` are in use then. */
size_t transport_queue_places(const struct db_queue_attr *attr, struct bench_config *config,
                              size_t used);
size_t transport_payload_place(const struct transport_memory *memory, struct bench_config *config,
                               size_t used);

/* How many OS threads play `ctas` CTAs where CPU threads play the GPU; 0 on a GPU. */
uint32_t transport_os_threads(const struct transport *t, uint32_t ctas);

/* Runs a kernel to its end: within `ns`, or twice the timeout of the options. */
enum bench_status transport_run_within(struct bench *b, struct transport *t,
                                       const struct port_kernel *kernel, uint32_t ctas,
                                       uint32_t threads, const void *args, uint64_t ns);
enum bench_status transport_run(struct bench *b, struct transport *t,
                                const struct port_kernel *kernel, uint32_t ctas, uint32_t threads,
                                const void *args);

/* BENCH_PASS for DB_OK; otherwise says what the device code of `pair` met. */
enum bench_status transport_check(struct bench *b, const struct transport_pair *pair, int status);

#endif
