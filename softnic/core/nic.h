/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The software device's state: flat tables of fixed size that the execution path (execute.h,
 * mkey.h, cqe.h) walks without system calls, locks or allocation, so that a CPU thread, a resident
 * GPU kernel or the explorer can be the engine.
 *
 * Included by every file of softnic/core. Who may touch what: the engine while it runs; a control
 * call (objects.h) while it holds the device (nic_hold()), which stops the engine between two
 * turns.
 */
#ifndef SOFTNIC_CORE_NIC_H
#define SOFTNIC_CORE_NIC_H

#include <doorbell/impl/m5_format.h>

#define NIC_UAR_PAGES  1024
#define NIC_FIRST_UAR  0x100 /* UAR page ids start here, so that nobody can assume 0 */
#define NIC_MAX_QPS    (1u << 16)
#define NIC_MAX_CQS    (1u << 16)
#define NIC_MAX_MKEYS  (1u << 18)
#define NIC_FIRST_QPN  0x40 /* 0 and 1 are special QPs on hardware */
#define NIC_FIRST_CQN  0x1
#define NIC_FIRST_MKEY 0x2 /* so that no key equals M5_LKEY_END */
#define NIC_MAX_PDS    4096
#define NIC_MAX_DEPTH  32768

#define NIC_MAX_CQ_DEPTH_LOG2 22

#define NIC_MAX_SQ_BYTES  1024 /* largest send WQE: 16 blocks */
#define NIC_MAX_RQ_BYTES  512
#define NIC_MAX_SGE       30
#define NIC_MAX_INLINE    512
#define NIC_MAX_MESSAGE   (1u << 31)
#define NIC_MAX_RD_ATOMIC 16

enum nic_access { /* the values of ibv_access_flags */
                  NIC_LOCAL_WRITE = 1u << 0,
                  NIC_REMOTE_WRITE = 1u << 1,
                  NIC_REMOTE_READ = 1u << 2,
                  NIC_REMOTE_ATOMIC = 1u << 3,
};

struct nic_mkey {
    uint32_t key;    /* slot << 8 | variant; 0 = free slot */
    uint8_t variant; /* of the last key in this slot: a key that was destroyed is not soon reused */
    uint32_t pdn;
    uint32_t access;
    uint64_t start; /* first address in the key's own space: the iova, or 0 when zero-based */
    uint64_t bytes;
    uint64_t host; /* address in this process of `start` */
};

enum nic_cq_flags {
    NIC_CQ_COLLAPSED = 1u << 0,      /* every CQE goes to slot 0 */
    NIC_CQ_IGNORE_OVERRUN = 1u << 1, /* no consumer check */
};

struct nic_cq {
    uint32_t cqn; /* 0 = free */
    uint32_t flags;
    uint8_t *ring;
    struct m5_cq_record *record;
    uint32_t depth_log2;
    uint32_t cqe_bytes; /* 64 or 128 */
    uint64_t produced;
    uint64_t consumed;  /* as last read from the record: at most what software has consumed */
    uint64_t solicited; /* count of CQEs up to and with the last solicited or error one */
    uint32_t uar_page;
    uint32_t next_on_uar; /* next CQ on the same UAR page, 0 = last */
    uint32_t armed;       /* enum nic_cq_armed */
    uint32_t last_arm;    /* the record's arm word that was acted on */
    uint32_t failed;      /* overrun, or its memory is gone: it takes no more CQEs */
    uint32_t events;      /* enum nic_cq_event bits for the engine's loop to pass on */
    uint32_t next_event;  /* list of CQs with events, 0 = last */
    uint32_t users;       /* QPs that complete to it, each direction counted */
    void *owner;          /* what the adapter wants back with an event */
};

enum nic_cq_event {
    NIC_CQ_COMPLETION = 1u << 0,
    NIC_CQ_FAILED = 1u << 1,
};

enum nic_cq_armed {
    NIC_CQ_NOT_ARMED,
    NIC_CQ_ARMED_ANY,
    NIC_CQ_ARMED_SOLICITED,
};

/* The device puts this into a new CQ's record, so that the first arm word (0) is a change: no
 * program writes it, since bits 31:30 of an arm word are 0. */
#define NIC_NEVER_ARMED UINT32_MAX

enum nic_qp_state { /* the values of ibv_qp_state */
                    NIC_QP_RESET,
                    NIC_QP_INIT,
                    NIC_QP_RTR,
                    NIC_QP_RTS,
                    NIC_QP_SQD,
                    NIC_QP_SQE,
                    NIC_QP_ERR,
};

/* Why a send queue waits, with a timer, instead of executing its next WQE. */
enum nic_stall {
    NIC_RUNNING,
    NIC_STALL_RNR,     /* the peer has no receive WQE */
    NIC_STALL_NO_PEER, /* the peer does not answer: not there, or not ready to receive */
};

/* An affiliated asynchronous event; the values of ibv_event_type. */
enum nic_event {
    NIC_EVENT_NONE = -1,
    NIC_EVENT_CQ_ERR = 0,
    NIC_EVENT_QP_FATAL = 1,
    NIC_EVENT_QP_REQ_ERR = 2,
    NIC_EVENT_QP_ACCESS_ERR = 3,
    NIC_EVENT_SQ_DRAINED = 5,
};

struct nic_qp {
    uint32_t qpn; /* 0 = free */
    uint32_t state;
    uint32_t pdn;
    uint32_t send_cqn;
    uint32_t recv_cqn;
    uint32_t user_index;
    uint32_t uar_page;
    uint32_t next_on_uar; /* next QP on the same UAR page, 0 = last */
    struct m5_qp_record *record;
    void *owner;

    uint8_t *sq;             /* NULL = no send queue */
    uint32_t sq_depth_log2;  /* in blocks */
    uint32_t without_record; /* of sends: what the doorbell names is what is published */
    uint64_t sq_done;        /* blocks executed since reset */

    uint8_t *rq; /* NULL = no receive queue */
    uint32_t rq_depth_log2;
    uint32_t rq_stride_log2; /* bytes of a receive WQE */
    uint64_t rq_done;        /* receive WQEs consumed since reset */

    uint32_t remote_qpn;
    uint32_t access;        /* what peers may do through this QP: enum nic_access */
    uint32_t min_rnr_timer; /* IB encoding, for peers that find no receive WQE here */
    uint32_t rnr_retry;     /* 7 = for ever */
    uint32_t retry_count;
    uint32_t ack_timeout; /* 4.096 us << it; 0 = for ever */

    /* Kept for queries alone: between QPs of one process they have no effect. */
    uint32_t mtu;
    uint32_t send_psn; /* the first */
    uint32_t recv_psn;
    uint32_t rd_atomic_out_log2;
    uint32_t rd_atomic_in_log2;
    uint32_t atomic_mode;

    uint32_t stall;        /* enum nic_stall */
    uint32_t retries_left; /* of the stall */
    uint64_t stall_until_ns;
    uint32_t events;     /* 1 << enum nic_event, for the engine's loop to pass on */
    uint32_t next_event; /* list of QPs with events, 0 = last */
    uint32_t watched;    /* on the watch list: the engine looks at it without a doorbell */
    uint32_t next_watched;
    uint32_t recheck;    /* serve it once without a doorbell: it left a state that held it back */
    uint32_t unfinished; /* more was published than one turn executes: the next goes on */

    uint32_t suspicion;      /* enum nic_suspicion */
    uint64_t suspect_since;  /* ns */
    uint32_t doorbell_index; /* index that the last doorbell named */
    uint32_t last_wqe_index; /* first block of the last WQE executed, 16 bits */
    uint32_t rings_next;     /* its doorbells name the next free block, not the last WQE's first */
    uint32_t given;          /* the number was given out once; stays when the QP is gone */
};

/* Something that only time can tell from a race: it becomes a diagnostic when it lasts. */
enum nic_suspicion {
    NIC_NO_SUSPICION,
    NIC_SUSPECT_STALE,  /* rung, but the record, or the doorbell without one, names nothing new */
    NIC_SUSPECT_UNRUNG, /* executed beyond what a doorbell named */
    NIC_SUSPECT_LOST,   /* merging: the record moved, its doorbell has not been seen */
};

/* What strict mode reports: hardware would punish it, or undefined behaviour would hide it. */
enum nic_diag {
    NIC_DIAG_RECORD_HALF,    /* send index written into the receive half of the record */
    NIC_DIAG_RECORD_ORDER,   /* index in the record in the wrong byte order */
    NIC_DIAG_RECORD_RANGE,   /* record further ahead than the ring is deep */
    NIC_DIAG_RECORD_STALE,   /* doorbell rung, record never moved */
    NIC_DIAG_UNRUNG,         /* record moved, doorbell never rung: executed before its doorbell */
    NIC_DIAG_DOORBELL_LOST,  /* merging: a doorbell was overwritten in its register */
    NIC_DIAG_DOORBELL_QPN,   /* doorbell names a QP that does not exist or is bound elsewhere */
    NIC_DIAG_DOORBELL_PLACE, /* rung at the other kind of register than its QP has */
    NIC_DIAG_DOORBELL_RANGE, /* without a record: the doorbell went back, or beyond the ring */
    NIC_DIAG_INDEX_LEAK,     /* index leaked out of its 16 bits into opmod */
    NIC_DIAG_INDEX_MISMATCH, /* the WQE at index i says another index */
    NIC_DIAG_QPN_MISMATCH,   /* the WQE says another QPN */
    NIC_DIAG_RESERVED_BITS,  /* a reserved field that must be zero is not */
    NIC_DIAG_POISON_FETCHED, /* fetched a slot that had not been written since it last ran */
    NIC_DIAG_NO_SUCH_PEER,   /* nobody answers: this device never gave the remote QPN out */
    NIC_DIAG_COUNT,
};

struct nic_diag_entry {
    uint32_t kind;
    uint32_t qpn;
    uint32_t index;  /* of the WQE's first block, 16 bits */
    uint32_t detail; /* the offending word as the device reads it, big-endian; or what else tells:
                      * poison's segment, the peer's QPN */
};

#define NIC_DIAG_LOG 1024

/* How long a suspicion may last: longer than a preempted thread usually takes from its record to
 * its doorbell, short enough for a test. */
#define NIC_SUSPICION_NS 100000000u

/* How doorbells are taken. SCAN: any doorbell on a UAR page also looks at the records of the other
 * QPs there, so doorbells that merged in a register are not lost. MERGE: a doorbell serves the QP
 * that it names alone, as a device whose register merges stores would. */
enum nic_doorbell_mode {
    NIC_DOORBELL_SCAN,
    NIC_DOORBELL_MERGE,
};

struct nic_strict {
    uint32_t enabled;
    uint32_t doorbell_mode;
    uint32_t poison;         /* overwrite each executed block before its CQE */
    uint32_t early;          /* look at send records without waiting for a doorbell */
    uint32_t fetch_delay_ns; /* a fetch waits a random time up to this; 0 = at once */
    uint64_t random;         /* state of the generator; seeded */
};

struct nic_counters {
    uint64_t send_wqes;
    uint64_t recv_wqes;
    uint64_t cqes;
    uint64_t error_cqes;
    uint64_t payload_bytes;
    uint64_t doorbells;
    uint64_t cq_arms;
    uint64_t rnr_naks;
    uint64_t memory_faults; /* accesses to registered memory that is no longer mapped */
    uint64_t diag[NIC_DIAG_COUNT];
};

/* What the engine is about to touch, so that a fault tells what failed. */
enum nic_touch {
    NIC_TOUCH_NOTHING,
    NIC_TOUCH_SEND_RING, /* or the send half of the record */
    NIC_TOUCH_RECV_RING, /* of the peer, or the receive half of its record */
    NIC_TOUCH_PAYLOAD,   /* the requester's ranges and the responder's memory */
    NIC_TOUCH_MESSAGE,   /* the requester's ranges and the peer's receive buffers */
    NIC_TOUCH_CQ,
};

/* A range of this process's memory, already checked against a key. */
struct nic_range {
    uint8_t *at;
    uint32_t bytes;
};

/* One decoded send WQE. */
struct nic_work {
    uint8_t wqe[NIC_MAX_SQ_BYTES] __attribute__((aligned(64))); /* the device's own copy */
    uint32_t opcode;
    uint32_t opmod;
    uint32_t index; /* first block, 16 bits */
    uint32_t blocks;
    uint32_t segments;
    uint32_t flags; /* enum m5_ctrl_flags */
    uint32_t imm;
    uint64_t raddr;
    uint32_t rkey;
    uint32_t payload_bytes;
    uint32_t ranges;                     /* how many of `range` are used */
    struct nic_range range[NIC_MAX_SGE]; /* local payload: source, or destination of a read */
};

struct nic {
    struct nic_qp *qps;     /* [NIC_MAX_QPS], by QPN */
    struct nic_cq *cqs;     /* [NIC_MAX_CQS], by CQN */
    struct nic_mkey *mkeys; /* [NIC_MAX_MKEYS], by key >> 8 */
    uint8_t *uar;           /* [NIC_UAR_PAGES * M5_UAR_BYTES], shared with the programs */
    uint32_t uar_used;      /* pages 0 .. uar_used - 1 are looked at */
    uint8_t uar_handed[NIC_UAR_PAGES];
    uint8_t pd_used[NIC_MAX_PDS];
    uint32_t pd_users[NIC_MAX_PDS]; /* memory keys and QPs */
    uint32_t next_mkey;             /* where the search for a free one starts */
    uint32_t next_qpn;
    uint32_t next_cqn;
    uint32_t first_on_uar[NIC_UAR_PAGES]; /* QPN of the first QP bound to the page, 0 = none */
    uint32_t recordless[NIC_UAR_PAGES];   /* QPN of the one without a record, 0 = none */

    struct nic_strict strict;
    struct nic_counters counters;
    struct nic_diag_entry diag_log[NIC_DIAG_LOG]; /* the first NIC_DIAG_LOG entries */
    uint32_t diag_logged;

    uint32_t first_cq_on_uar[NIC_UAR_PAGES];
    uint32_t first_watched;  /* QPN, 0 = none */
    uint32_t rest_watched;   /* those not yet looked at in this round */
    uint32_t first_cq_event; /* CQN, 0 = none */
    uint32_t first_qp_event; /* QPN, 0 = none */
    uint64_t now_ns;         /* the loop's clock, read when something is watched */

    /* Volatile: read after a signal handler left an access by siglongjmp(). */
    uint32_t volatile touching;     /* enum nic_touch */
    uint32_t volatile touching_id;  /* QPN of the requester at work, 0 = none */
    uint32_t volatile touching_cqn; /* with NIC_TOUCH_CQ */
    struct nic_work work;           /* the send WQE at work */
};

/* Where a block lies that is `ahead` blocks behind the next one to execute. */
PORT_FN uint8_t *nic_sq_block(const struct nic_qp *qp, uint32_t ahead)
{
    uint64_t mask = (1ull << qp->sq_depth_log2) - 1;
    return qp->sq + ((qp->sq_done + ahead) & mask) * M5_BLOCK_BYTES;
}

#endif
