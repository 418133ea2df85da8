/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two RC queue pairs of one device connected to each other, with the memory, CQs and options that
 * the programs in tests/interop need. End `a` asks, end `b` answers. Everything goes through
 * libibverbs: what is here follows its manual pages and the InfiniBand rules, not the device.
 *
 * A function that cannot do what it says ends the program with a sentence; none waits for ever.
 */
#ifndef DOORBELL_TESTS_RC_PAIR_H
#define DOORBELL_TESTS_RC_PAIR_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../check.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RC_THREAD_SANITIZED 1
#elif __has_feature(address_sanitizer)
#define RC_SANITIZED 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define RC_THREAD_SANITIZED 1
#elif defined(__SANITIZE_ADDRESS__)
#define RC_SANITIZED 1
#endif
#ifndef RC_THREAD_SANITIZED
#define RC_THREAD_SANITIZED 0
#endif
/* Built with a sanitizer that makes everything several times slower. */
#ifndef RC_SANITIZED
#define RC_SANITIZED RC_THREAD_SANITIZED
#endif

enum {
    RC_PORT = 1,
    RC_GID_INDEX = 3, /* ::ffff:127.0.0.1 as RoCE v2 */
    RC_REMOTE_ALL = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
};

/* The longest that a completion which must come may take. */
#define RC_DEADLINE_NS (RC_SANITIZED ? 60000000000ull : 20000000000ull)

/* Start from rc_defaults() and change what the test is about. */
struct rc_options {
    uint32_t send_depth;    /* work requests of each queue */
    uint32_t recv_depth;    /* as many */
    uint32_t cq_depth;      /* entries of each CQ; 0: the queue's depth */
    uint32_t send_sge;      /* scatter/gather entries of one request */
    uint32_t recv_sge;      /* as many */
    uint32_t inline_bytes;  /* asked for */
    bool signal_all;        /* sq_sig_all */
    bool extended_cq;       /* ibv_create_cq_ex with the standard fields */
    bool channel;           /* the CQs report to pair->channel */
    uint64_t send_ops;      /* not 0: ibv_create_qp_ex with these IBV_QP_EX_WITH_ flags */
    unsigned int qp_access; /* what the QPs allow the peer */
    unsigned int mr_access; /* what the memory allows */
    size_t buffer_bytes;    /* of each end */
    uintptr_t buffers_at;   /* not 0: where to map a's buffer, with b's behind it */
    uint8_t timeout;        /* 4.096 us * 2^timeout; 0: none */
    uint8_t retry_count;    /* after the first try */
    uint8_t rnr_retry;      /* after the first try; 7: endless */
    uint8_t min_rnr_timer;  /* code of IBTA table "RNR NAK timer" */
};

struct rc_end {
    struct ibv_qp *qp;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_cq_ex *send_cq_ex, *recv_cq_ex; /* NULL unless extended */
    struct ibv_mr *mr;
    uint8_t *buffer; /* page aligned, zero at first */
    uint32_t send_psn;
    struct ibv_qp_cap cap; /* as granted */
};

struct rc_pair {
    struct rc_options options;
    struct ibv_context *context;
    bool owns_context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct rc_end a, b;
};

struct rc_options rc_defaults(void);

/* Opens the software device; fails when libibverbs does not list it. */
struct ibv_context *rc_open(void);

/* Makes both ends in the state RESET. `context` NULL: opens the device, and rc_destroy closes it.
 */
void rc_create(struct rc_pair *pair, struct ibv_context *context, const struct rc_options *options);
void rc_connect(struct rc_pair *pair);
/* rc_create and rc_connect with a context of its own. */
void rc_start(struct rc_pair *pair, const struct rc_options *options);
void rc_destroy(struct rc_pair *pair);

/* The single steps of rc_connect, for tests that stop half-way. */
void rc_to_init(const struct rc_pair *pair, struct rc_end *end);
void rc_to_rtr(const struct rc_pair *pair, struct rc_end *end, const struct rc_end *peer,
               uint32_t peer_qpn);
void rc_to_rts(const struct rc_pair *pair, struct rc_end *end);
void rc_to_state(struct rc_end *end, enum ibv_qp_state state); /* RESET or ERR */
enum ibv_qp_state rc_state(const struct rc_end *end);

/* Registers page-aligned memory in `pd`; freed with rc_memory_free. */
struct ibv_mr *rc_memory(struct ibv_pd *pd, size_t bytes, unsigned int access);
void rc_memory_free(struct ibv_mr *mr);

/* One request with one gather entry, from offset `local` of `from` to offset `remote` of `to`.
 * A request with immediate carries rc_immediate(wr_id). */
void rc_post(const struct rc_end *from, const struct rc_end *to, enum ibv_wr_opcode opcode,
             uint64_t wr_id, size_t local, size_t remote, size_t bytes, unsigned int flags);
/* 8 bytes at `remote` of `to`; the old value comes to `local` of `from`. */
void rc_post_atomic(const struct rc_end *from, const struct rc_end *to, enum ibv_wr_opcode opcode,
                    uint64_t wr_id, size_t local, size_t remote, uint64_t compare_add,
                    uint64_t swap);
void rc_post_chain(const struct rc_end *from, struct ibv_send_wr *first);
void rc_post_recv(const struct rc_end *end, uint64_t wr_id, size_t offset, size_t bytes);
struct ibv_sge rc_sge(const struct rc_end *end, size_t offset, size_t bytes);
uint32_t rc_immediate(uint64_t wr_id); /* network order */

/* The next completion of `cq`, whatever it is. */
struct ibv_wc rc_poll(struct ibv_cq *cq);
/* The next completion must be this one, with success. */
struct ibv_wc rc_expect(struct ibv_cq *cq, const struct rc_end *end, uint64_t wr_id,
                        enum ibv_wc_opcode opcode);
/* The next completion must be this one, with this error. */
void rc_expect_error(struct ibv_cq *cq, const struct rc_end *end, uint64_t wr_id,
                     enum ibv_wc_status status);
/* No completion may come within `milliseconds`. */
void rc_expect_none(struct ibv_cq *cq, unsigned int milliseconds);

/* A pattern that tells each byte's place: byte i of `bytes` is that of place `start` + i. */
void rc_fill(uint8_t *bytes, size_t n, uint64_t seed, size_t start);
void rc_verify(const uint8_t *bytes, size_t n, uint64_t seed, size_t start, const char *what);
void rc_verify_constant(const uint8_t *bytes, size_t n, uint8_t value, const char *what);

uint64_t rc_now_ns(void);
void rc_sleep_ms(unsigned int milliseconds);

#endif
