/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queues of one kind, GPU-submitted or proxied, for experiments that set the two side by side: the
 * same kernels use them through the same calls. Included by the cases of section 4.2.
 */
#ifndef BENCH_LANES_H
#define BENCH_LANES_H

#include "transport.h"

#define LANES_MAX 96u

/* What to make. Zero is the default of struct db_proxy_attr and struct db_queue_attr. */
struct lanes_attr {
    bool proxied;
    uint32_t count;
    uint32_t producers; /* of each lane */
    uint32_t depth;
    enum db_protocol protocol;
    struct db_proxy_attr proxy; /* where nothing is said here, the options decide */
    uint32_t last_own;   /* so many last lanes are of one producer, whatever the others are */
    uint32_t last_alone; /* so many, each with a worker of its own in addition */
};

struct lanes {
    struct transport *transport;
    const struct transport_memory *memory;
    struct lanes_attr attr;
    struct db_queue_attr queue_attr; /* of the last one made: they differ in who uses them */
    struct db_proxy *proxy;
    struct db_queue *queue[LANES_MAX];
    struct transport_pair pair[LANES_MAX]; /* GPU-submitted ones */
    struct db_qp *qp[LANES_MAX];           /* as kernels see them */
    uint32_t count;
    bool pinned;             /* the first worker is */
    enum db_memory progress; /* of proxied ones */
    struct db_keys local;    /* of the memory, as the lanes name it */
    struct db_keys remote;
};

#define LANES_USES                                                                                 \
    (BENCH_USES_TRANSPORT | BENCH_USE(POST) | BENCH_USE(IDLE) | BENCH_USE(PIN) |                   \
     BENCH_USE(IN_FLIGHT) | BENCH_USE(PROGRESS))

/* What a row says of the depth where some of its lanes are proxied. */
#define LANES_LEAST_DEPTH .least_depth = 2, .depth_why = "a ring of a proxied queue"

/* Makes lanes whose operations are on `memory`, which outlives them, both sides of them. Says what
 * went wrong; close them then as well. */
enum bench_status lanes_open(struct bench *b, struct transport *t, const struct lanes_attr *attr,
                             const struct transport_memory *memory, struct lanes *lanes);
void lanes_close(struct lanes *lanes);

/* BENCH_PASS for DB_OK; otherwise says what the device code met on a lane. */
enum bench_status lanes_check(struct bench *b, const struct lanes *lanes, int status);

/* "mini-proxy" or "mini-gda". */
const char *lanes_system(const struct lanes *lanes);

/* Adds what a record says of the lanes: workers, rings, batch, way of posting; or queues; and where
 * their parts and the payloads lie. Returns how many entries of `config` are in use then. */
size_t lanes_config(const struct lanes *lanes, struct bench_config *config, size_t used);

/* The clock of the CPU of a proxy's worker, of the slowest where there are several; 0 when one is
 * not pinned or its clock is not known. */
double lanes_worker_mhz(const struct lanes *lanes);

/* How many workers can have a core of their own beside the producers and the NIC: at least one. */
uint32_t lanes_workers(const struct transport *t, uint32_t wanted);

#endif
