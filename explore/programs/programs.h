/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The programs that the explorer proves, and their variants (config.variant). Included by the table
 * of results, the mutation test and the programs themselves.
 */
#ifndef EXPLORE_PROGRAMS_H
#define EXPLORE_PROGRAMS_H

#include "../program.h"

/* One thread owns the queue: a write, a fetch-and-add and a read in turn, on a ring of two blocks.
 */
extern const struct ex_program ex_one_owner;
enum ex_one_owner_variant {
    EX_OWNER,
    EX_OWNER_RELAXED_POLL, /* the CQ is polled with relaxed loads */
    EX_OWNER_NO_CREDIT,    /* does not wait for room in the ring */
    EX_OWNER_HOST_PAYLOAD, /* the payload lies in host memory, wherever the ring is */
    EX_OWNER_COLLAPSED,    /* one CQE for all completions */
    EX_OWNER_BATCH,        /* two WQEs a doorbell, the first unsignalled */
    EX_OWNER_HELD,         /* the queue's words are kept in registers: owner.h */
    EX_OWNER_HELD_COLLAPSED,
    EX_OWNER_TRY, /* the same without a claim: db_owner_try_publish() */
    EX_OWNER_TRY_COLLAPSED,
    EX_OWNER_TRY_NO_BLOCK, /* builds before the block in hand is free */
};

/* Several threads post to one queue, each waits for its own. */
extern const struct ex_program ex_shared;
enum ex_shared_variant {
    EX_SHARED_LOCK,
    EX_SHARED_TICKET,
    EX_SHARED_HANDOFF,
    EX_SHARED_TICKET_COLLAPSED,
    EX_SHARED_NO_PUBLICATION_ORDER, /* each rings for itself, in no order */
    EX_SHARED_TICKET_FLUSH,         /* the first thread waits for all, the others for nothing */
    EX_SHARED_HANDOFF_FLUSH,
};

/* Lanes of a warp claim and publish together. */
extern const struct ex_program ex_warp;
enum ex_warp_variant {
    EX_WARP,
    EX_WARP_FENCE_BEFORE_BARRIER, /* each publication is released by the leader, before the barrier
                                   */
    EX_WARP_AFTER_ONE,            /* lane 0 posts one by itself first */
    EX_WARP_OWNER,                /* the queue is the warp's own: owner.h */
    EX_WARP_OWNER_NO_BARRIER,     /* none between the leader's wait and what the lanes read */
};

/* A payload that another thread wrote. */
extern const struct ex_program ex_payload;
enum ex_payload_variant {
    EX_PAYLOAD_RELEASED,
    EX_PAYLOAD_RELAXED, /* the writer's flag is a relaxed store */
};

/* Two queues, and one wait for both. */
extern const struct ex_program ex_all_queues;

/* A WQE that the device refuses. */
extern const struct ex_program ex_error;

/* A put, then a put of a signal; the peer waits for the signal and reads what was put. */
extern const struct ex_program ex_signal;
enum ex_signal_variant {
    EX_SIGNAL_SAME_QUEUE,
    EX_SIGNAL_OTHER_QUEUE,
};

/* The doorbell is a word that a CPU thread forwards. */
extern const struct ex_program ex_forwarded;
enum ex_forwarded_variant {
    EX_FORWARDED,
    EX_FORWARDED_RELAXED,  /* the CPU thread reads the word with a relaxed load */
    EX_FORWARDED_NO_FENCE, /* it rings without a barrier */
};

/* An empty ring of one producer, with the words that its threads and its worker touch. */
struct db_ring;
struct db_descriptor;
struct db_ring_progress;
void ex_ring_add(struct ex_model *model, struct db_ring *ring, struct db_descriptor *slots,
                 uint32_t depth, struct db_ring_progress *progress);

/* Producers, a ring of two descriptors and the proxy's worker. */
extern const struct ex_program ex_proxy;
enum ex_proxy_variant {
    EX_PROXY_BASELINE,
    EX_PROXY_TUNED_VALUE,
    EX_PROXY_TUNED_PUT,      /* with a release of the payload */
    EX_PROXY_TUNED_PUT_BARE, /* without */
    EX_PROXY_SHARED_VALUE,
    EX_PROXY_SHARED_PUT,
    EX_PROXY_ONE_VALID_BIT, /* the worker looks at the first half's validity only */
};

/* The calls of device.h on a proxied queue. */
extern const struct ex_program ex_proxied;
enum ex_proxied_variant {
    EX_PROXIED_ONE,       /* one producer: a value, a put, a fetch-and-add, a put with immediate */
    EX_PROXIED_SHARED,    /* several: a put from memory and a value each */
    EX_PROXIED_BASELINE,  /* the same with all the steps */
    EX_PROXIED_FETCH_ADD, /* several: an operand and its operation each */
    EX_PROXIED_WARP,      /* a warp, behind a put by one lane of it */
};

#endif
