/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A send queue and its completion queue as the threads that post to it see them. Host code fills it
 * at set-up (src/queue.c); sq.h posts, cq.h completes.
 *
 * Indices are 64-bit counts of 64-byte blocks that never wrap; the slot of an index is its low
 * bits, and the device sees its low 16. A WQE is named by the index of its first block.
 */
#ifndef DOORBELL_IMPL_QP_H
#define DOORBELL_IMPL_QP_H

#include "m5_format.h"

/* What a device function returns: 0 or one of these, which are Linux's negative errno values. */
enum db_status {
    DB_OK = 0,
    DB_ERROR_IO = -5,        /* the queue pair is in error: db_qp_error() says why */
    DB_ERROR_INVALID = -22,  /* more blocks at once than the ring has, or than a WQE may take */
    DB_ERROR_TIMEOUT = -110, /* the deadline passed; the queue is as it was */
    DB_ERROR_BROKEN = -131,  /* a thread gave up on blocks it had claimed: the queue is unusable */
};

/*
 * How the stores to the ring, the record and the doorbell are ordered. The scope must reach the
 * memory that holds the ring and the record: GPU scope for GPU memory, system scope for host
 * memory. Without any order the device may fetch a WQE before it was written; that is for measuring
 * only.
 */
enum db_order {
    DB_ORDER_NONE_UNSAFE,
    DB_ORDER_GPU,
    DB_ORDER_SYSTEM,
};

/*
 * Whether the device reads a doorbell record (ConnectX-7 and older always do), and how a thread
 * writes it: by a store, with a release before the doorbell; or by an atomic exchange, for whose
 * answer the doorbell waits. The exchange takes a record in GPU memory, and DB_ORDER_GPU. On an
 * H200 a post takes 0.42 us by it instead of 0.50 where ring and record are in the poster's half of
 * the L2, and 0.53 instead of 0.56 where they are in the other. It is safe on machines, not by the
 * letter of PTX (docs/memory_order.md).
 */
enum db_record {
    DB_WITH_RECORD,
    DB_WITHOUT_RECORD,
    DB_RECORD_EXCHANGED,
};

/* Depths in blocks. Half the 16-bit index space, and a quarter where completions are told by one
 * CQE that any thread may see late. */
#define DB_MAX_DEPTH           32768u
#define DB_MAX_COLLAPSED_DEPTH 16384u

/* The largest WQE. */
#define DB_MAX_WQE_BLOCKS 16u

/* First error of a queue, as one word; 0 = none. Fields by db_error_*(). */
#define DB_ERROR_VALID (1ull << 63)

struct db_ring;

struct db_qp {
    /* Constants, set before the kernel that posts: a compiler may look them up at its start. */
    struct db_ring *ring; /* a proxied queue's, of which only qpn and done.error matter besides.
                             NULL: GPU threads post by themselves */
    uint8_t *sq;
    struct m5_qp_record *record;
    void *doorbell; /* 8-byte register, or an ordinary word that a CPU thread forwards */
    uint8_t *cq;
    struct m5_cq_record *cq_record;
    uint32_t *slot_ready; /* one word a block: hand-off of slots built by many threads; see sq.h */
    uint64_t timeout_ns;  /* of every wait on this queue */
    uint32_t qpn;         /* this and the next three: see struct db_qp_form */
    uint32_t depth;       /* blocks, a power of two */
    uint32_t order;       /* enum db_order that is safe where the ring and the record lie */
    uint32_t with_record; /* enum db_record that device and memory ask for */
    uint32_t cq_depth;
    uint32_t cq_collapsed; /* one CQE that is overwritten, instead of a ring */

    /* Words that change. Those of posting and those of completing lie on lines of their own, so
     * that a poller does not slow a poster down. */
    struct {
        uint64_t claimed;   /* blocks handed out to threads */
        uint64_t published; /* see db_published() */
        uint64_t lock;      /* 0 = free; hand-off: how many threads came since it was taken */
    } post __attribute__((aligned(128)));
    struct {
        uint64_t completed; /* every WQE whose first block is below this is complete */
        uint64_t consumed;  /* CQEs taken from the ring */
        uint64_t lock;
        uint64_t error; /* first error, DB_ERROR_VALID set; or DB_QP_BROKEN */
    } done __attribute__((aligned(128)));
};

/* Value of done.error when no CQE is to blame. */
#define DB_QP_BROKEN 1ull

/* The first error CQE of a queue. */
struct db_error {
    uint32_t qpn;
    uint32_t index;    /* low 16 bits of the failed WQE's index */
    uint32_t opcode;   /* enum m5_opcode */
    uint32_t syndrome; /* enum m5_syndrome */
    uint32_t vendor_syndrome;
};

PORT_FN uint64_t db_error_pack(uint32_t index, uint32_t opcode, uint32_t syndrome, uint32_t vendor)
{
    return DB_ERROR_VALID | (uint64_t)(opcode & 0xff) << 32 | (uint64_t)(index & 0xffff) << 16 |
           (vendor & 0xff) << 8 | (syndrome & 0xff);
}

/* The constants that every call goes by, as they lie in a queue. One load fetches them: a compiler
 * that is given four fetches those late that it needs late, which is behind the WQE. */
struct db_qp_form {
    uint32_t qpn;
    uint32_t depth;
    uint32_t order;
    uint32_t with_record;
} __attribute__((aligned(16), may_alias));
static_assert(offsetof(struct db_qp, qpn) % 16 == 0 &&
                  offsetof(struct db_qp, with_record) - offsetof(struct db_qp, qpn) ==
                      offsetof(struct db_qp_form, with_record),
              "a queue's constants lie as in struct db_qp_form");

/*
 * A queue's constants for the registers of the calling thread; its words that change are left out.
 * Whoever reads them from the queue itself behind an atomic or an acquire fetches them from the L2
 * again, on an H200 0.16 us each time.
 */
PORT_FN struct db_qp db_qp_constants(const struct db_qp *qp)
{
    struct db_qp here;
    here.ring = port_constant(qp->ring);
    here.sq = port_constant(qp->sq);
    here.record = port_constant(qp->record);
    here.doorbell = port_constant(qp->doorbell);
    here.cq = port_constant(qp->cq);
    here.cq_record = port_constant(qp->cq_record);
    here.slot_ready = port_constant(qp->slot_ready);
    here.timeout_ns = port_constant(qp->timeout_ns);
    struct db_qp_form form =
        port_constant(*(const struct db_qp_form *)(const void *)((const uint8_t *)qp +
                                                                 offsetof(struct db_qp, qpn)));
    here.qpn = form.qpn;
    here.depth = form.depth;
    here.order = form.order;
    here.with_record = form.with_record;
    here.cq_depth = qp->cq_depth;
    here.cq_collapsed = qp->cq_collapsed;
    return here;
}

/* What was published last, in one word so that both parts are of the same moment. */
struct db_published {
    uint64_t end;  /* blocks published to the device */
    uint64_t last; /* first block of the last WQE; meaningless when end is 0 */
};

PORT_FN uint64_t db_published_pack(uint64_t last, uint64_t end)
{
    return end << 4 | (end - last - 1);
}

PORT_FN struct db_published db_published_unpack(uint64_t word)
{
    struct db_published published = {word >> 4, (word >> 4) - (word & 15) - 1};
    return published;
}

PORT_FN struct db_published db_published(const struct db_qp *qp, enum port_order order)
{
    return db_published_unpack(port_ld64(&qp->post.published, order, PORT_GPU));
}

/* Why the queue is in error. Returns DB_OK when it is not, DB_ERROR_IO with `error` filled, or
 * DB_ERROR_BROKEN. Never blocks. */
PORT_FN int db_qp_error(const struct db_qp *qp, struct db_error *error)
{
    uint64_t word = port_ld64(&qp->done.error, PORT_ACQUIRE, PORT_SYSTEM);
    if (word == 0)
        return DB_OK;
    if (word == DB_QP_BROKEN)
        return DB_ERROR_BROKEN;
    error->qpn = qp->qpn;
    error->opcode = (uint32_t)(word >> 32) & 0xff;
    error->index = (uint32_t)(word >> 16) & 0xffff;
    error->vendor_syndrome = (uint32_t)(word >> 8) & 0xff;
    error->syndrome = (uint32_t)word & 0xff;
    return DB_ERROR_IO;
}

/* Records the first error of the queue; later ones are its consequences. */
PORT_FN void db_qp_fail(struct db_qp *qp, uint64_t word)
{
    port_cas64(&qp->done.error, 0, word);
}

PORT_FN int db_qp_status(const struct db_qp *qp)
{
    uint64_t word = port_ld64(&qp->done.error, PORT_RELAXED, PORT_SYSTEM);
    return word == 0 ? DB_OK : word == DB_QP_BROKEN ? DB_ERROR_BROKEN : DB_ERROR_IO;
}

#endif
