/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device core with its engine, and queue pairs made by the core's control calls, without
 * libibverbs: for the programs strict_*.c and engine_*.c, which do with them what no library would.
 * Every part of a queue (rings, records, CQs) has pages of its own, so that it can be taken away.
 */
#ifndef DOORBELL_TESTS_ENGINE_RIG_H
#define DOORBELL_TESTS_ENGINE_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include <core/engine.h>

#include "../check.h"
#include "../wqe_bytes.h"

#define RIG_PAYLOAD_BYTES (1u << 20)
#define RIG_PATIENCE_NS   20000000000ull /* for what must happen */
#define RIG_NO_RECORD     4              /* a register: of a queue pair without a send record */

struct rig {
    struct nic_host *host;
    uint32_t pdn;
    uint32_t key; /* of the payload, all rights, addresses as the program's */
    uint8_t *payload;
    uint8_t *uar; /* the program's mapping of all UAR pages */
    /* Counted by the engine's callbacks; read with __atomic_load_n(). */
    uint32_t completion_events;
    uint32_t async_events[8]; /* by enum nic_event */
};

struct rig_cq {
    uint32_t cqn;
    uint32_t depth_log2;
    uint8_t *ring;
    struct m5_cq_record *record;
    uint64_t polled;
};

struct rig_queue {
    struct rig *rig;
    uint32_t qpn;
    uint32_t page; /* UAR page */
    uint64_t *doorbell;
    bool without_record;
    uint32_t depth_log2; /* of the send ring, in blocks */
    uint32_t recv_depth_log2;
    uint8_t *sq, *rq;
    struct m5_qp_record *record;
    struct rig_cq send_cq, recv_cq;
    uint64_t posted, recvs;
};

void rig_start(struct rig *rig, const struct nic_config *config);
void rig_stop(struct rig *rig);

uint32_t rig_uar(struct rig *rig);

/* Makes a queue pair with receive WQEs of 64 bytes; `reg` is one of the page's four registers, or
 * RIG_NO_RECORD. CQs are as deep as the rings. */
void rig_create(struct rig *rig, struct rig_queue *queue, uint32_t page, uint32_t reg,
                uint32_t depth_log2);
/* To RTS, with each other (or with itself), all rights, retry settings as given. */
void rig_connect_with(struct rig_queue *a, struct rig_queue *b, uint32_t retries,
                      uint32_t ack_timeout);
void rig_connect(struct rig_queue *a, struct rig_queue *b);
/* Makes one, connected to itself. */
void rig_loop(struct rig *rig, struct rig_queue *queue, uint32_t page, uint32_t reg,
              uint32_t depth_log2);
void rig_destroy(struct rig_queue *queue);
uint32_t rig_state(const struct rig_queue *queue);

/* The device as if it had executed `index` blocks and the program had posted them; before the first
 * post only. */
void rig_start_at(struct rig_queue *queue, uint64_t index);

/* ---- Posting, in its three steps ---- */

/* A signalled write of 8 bytes within the payload: from byte `from` to byte `to`. */
void rig_build(const struct rig_queue *queue, struct wqe *wqe, size_t from, size_t to);
/* Into the ring at posted; returns the index. */
uint64_t rig_put(struct rig_queue *queue, struct wqe *wqe);
void rig_record(const struct rig_queue *queue, uint64_t index);
void rig_ring(const struct rig_queue *queue, uint64_t index);
/* All of them; without a record two, and the doorbell names the next free block. */
uint64_t rig_post(struct rig_queue *queue, struct wqe *wqe);
void rig_post_recv(struct rig_queue *queue, void *address, uint32_t bytes);

/* ---- What comes of it ---- */

bool rig_try(struct rig_cq *cq, struct cqe *cqe);
struct cqe rig_poll(struct rig_cq *cq);
void rig_expect(struct rig_queue *queue, uint64_t index);
void rig_expect_error(struct rig_queue *queue, uint64_t index, uint32_t syndrome);
void rig_expect_none(struct rig_cq *cq, uint32_t milliseconds);

/* How often a diagnostic was given; the total. */
uint64_t rig_diags(struct rig *rig, enum nic_diag kind);
uint64_t rig_all_diags(struct rig *rig);
/* Waits until there is one of that kind, which must name this queue and index; forgets it. Any
 * other kind is a failure. */
void rig_expect_diag(struct rig_queue *queue, enum nic_diag kind, uint64_t index);
/* The same, with the offending word. */
void rig_expect_diag_of(struct rig_queue *queue, enum nic_diag kind, uint64_t index,
                        uint32_t detail);
/* After all suspicions have run out there must be none. */
void rig_expect_clean(struct rig *rig);

uint64_t rig_now_ns(void);
void rig_sleep_ms(uint32_t milliseconds);
/* Waits for a word to become `value`. */
void rig_wait32(const uint32_t *word, uint32_t value, const char *what);

#endif
