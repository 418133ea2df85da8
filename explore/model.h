/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the explorer's parts share: the words of memory and their histories, the threads, the
 * device, and the state that a search moves from. Included by the explorer's .c files. The rules
 * that it follows are docs/memory_order.md, "The model".
 *
 * A store is visible the moment it is made, to whoever may see it; what is weak is what a reader
 * must see. Each word has a history of stores, and a load may return any of them that is not older
 * than what the reader's view has of the word. So a store, or a fence, never needs to be tried
 * late: it only adds to what the others may read. A search branches at loads, atomics and the
 * device's steps alone.
 */
#ifndef EXPLORE_MODEL_H
#define EXPLORE_MODEL_H

#include <doorbell/impl/port.h>

#include "explore.h"
#include "view.h"

#define EX_THREADS  6
#define EX_QUEUES   2
#define EX_AGENTS   (EX_THREADS + EX_QUEUES)
#define EX_DEVICE   EX_THREADS /* agent EX_DEVICE + q is the device at work on queue q */
#define EX_NO_AGENT 0xff       /* who wrote what memory held at first */

/* ---- Memory ---- */

enum ex_format {
    EX_NUMBER,
    EX_BE32,      /* a record */
    EX_PUBLISHED, /* db_published_pack() */
    EX_WIRE,      /* bytes of a WQE or a CQE */
    EX_FLIPPED,   /* half of a descriptor: bit 0 is its validity */
};

/* A word: an address that operations name. Words that the device reaches by an address of a WQE
 * have a bus address; 0 for the others. */
struct ex_word {
    const void *address;
    uint64_t bus;
    uint64_t first; /* what it holds at first */
    char name[24];
    enum ex_format format;
    enum ex_place place;
    bool unread; /* nobody reads it, so that its stores change nothing */
};

/* One store in a word's history, or a doorbell on its way. */
struct ex_store {
    uint64_t value;
    uint32_t view;   /* what a GPU thread that acquires it sees */
    uint32_t beyond; /* what the CPU or the device sees: what has reached the memory it lies in */
    uint32_t floor; /* machine rules: what came before it, so that no later store may be in front */
    uint32_t after; /* of a doorbell: those that must arrive before it */
    uint8_t agent;
    uint8_t is_atomic; /* reads the store before it: nothing comes between */
    uint8_t queue;     /* of a doorbell */
    uint8_t unused[5];
};

#define EX_NO_STORES 0u /* the empty history */

/* ---- State ---- */

/*
 * The views of a thread. `seen` bounds what it may read. `beyond` is the part of it that is known
 * to have reached memory, where CPU and device see it. What a release fence covered is put into the
 * later relaxed stores; what relaxed loads found is acquired by a later acquire fence, from GPU
 * threads at either scope and from outside the GPU at system scope only.
 */
struct ex_thread_state {
    uint32_t node; /* where it is: ex_node */
    uint32_t seen, beyond;
    uint32_t released, released_beyond;
    uint32_t found, found_beyond, found_outside;
    uint32_t floor; /* machine rules: what loads found and what came before that */
};

/* The device's side of one queue. */
struct ex_queue_state {
    uint32_t seen;  /* what others told it: doorbells, records */
    uint32_t wrote; /* its own writes */
    uint32_t floor; /* as a thread's */
    uint16_t end;   /* WQEs below it are the device's */
    uint16_t next;  /* to fetch */
    uint16_t cqes;  /* written */
    uint8_t look;   /* model R: a doorbell came, and the record is to be read */
    uint8_t in_error;
};

struct ex_state {
    struct ex_thread_state thread[EX_THREADS];
    struct ex_queue_state queue[EX_QUEUES];
    uint32_t doorbells; /* a history: on their way */
    uint32_t unused;
    uint32_t word[EX_WORDS]; /* histories; only the program's words are kept */
};

/* ---- Threads as automata: thread.c ---- */

#define EX_NO_NODE UINT32_MAX
#define EX_NO_WORD 0xffu

/* A thread that has done all that led here, and now asks for `op`. */
struct ex_node {
    struct port_op op;
    uint32_t parent; /* EX_NO_NODE at the thread's start */
    uint32_t other;  /* a pause: where the thread goes on */
    uint32_t step;   /* the step's node that it is behind */
    uint64_t result; /* of the parent's operation */
    uint32_t depth;  /* operations before it */
    uint8_t thread;
    uint8_t word;       /* of op.address; of a store of 16 bytes the first of two */
    uint8_t queue;      /* of a doorbell */
    uint8_t lock_cycle; /* of a pause: the iteration only took this lock and put it back */
    uint8_t holds;      /* mask of the locks that the thread has taken */
};

struct ex_edge {
    uint64_t result;
    uint32_t from, to;
};

struct ex_threads {
    struct ex_node *nodes;
    uint32_t count, capacity;
    struct ex_edge *edges; /* open addressing; `to` is EX_NO_NODE where there is none */
    uint32_t edge_count, edge_capacity;
    uint64_t *log;
    uint32_t log_capacity;
};

/* ---- The model ---- */

struct ex_queue_words {
    const struct db_qp *qp;
    uint8_t ring; /* first of 8 words a block */
    uint8_t record_word;
    uint8_t cqe; /* first of two words a CQE: the error word, the last word */
    uint32_t depth, cqes;
};

struct ex_model {
    const struct ex_program *program;
    struct ex_config config;
    void *memory; /* the program's objects; constants are read, words are only addresses */

    struct ex_word words[EX_WORDS];
    unsigned word_count;
    struct ex_queue_words queues[EX_QUEUES];
    unsigned queue_count;
    const void *registers[EX_QUEUES]; /* doorbells of the queues */

    /* Which agents touch a word, and which write it, as far as was seen. Where a new one shows up,
     * what was searched so far may have been cut too short, and the search starts again. */
    uint8_t touched[EX_WORDS], written[EX_WORDS];
    bool restart;
    /* Locks, by word: 1 + number, or 0; and for each word those that were held whenever it was
     * written, as far as was seen. */
    uint8_t lock[EX_WORDS], guards[EX_WORDS];
    uint8_t lock_count, locks_broken; /* mask: somebody wrote who had not taken it */
    bool symmetric;     /* threads that are alike are told apart by where they are, not by number */
    uint32_t gpu_words; /* the view that has seen all of the words in GPU memory, no doorbells */
    uint32_t agent_mask[EX_AGENTS]; /* 255 where the agent does not touch the word */

    struct ex_views views;
    struct ex_pool stores, histories;
    struct ex_memo *memo;
    unsigned memo_log2;
    struct ex_threads threads;
    struct ex_sites *sites; /* ordering operations that were met; NULL when nobody asks */

    bool versions_cut; /* a word had more stores than the bound */
    char fault[512];   /* what is wrong, when something is */

    struct ex_trace *trace; /* NULL while searching */
};

int ex_model_open(struct ex_model *model, const struct ex_program *program,
                  const struct ex_config *config);
void ex_model_close(struct ex_model *model);

/* The state before the first step. */
void ex_model_start(struct ex_model *model, struct ex_state *state);

static inline uint32_t ex_state_bytes(const struct ex_model *model)
{
    return (uint32_t)(offsetof(struct ex_state, word) + model->word_count * sizeof(uint32_t));
}

/* Says what is wrong; the first fault is kept. Always returns false. */
bool ex_fault(struct ex_model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- Histories: history.c ---- */

static inline unsigned ex_history_length(const struct ex_model *model, uint32_t history)
{
    return ex_string_bytes(&model->histories, history) / (unsigned)sizeof(uint32_t);
}

static inline const struct ex_store *ex_store_at(const struct ex_model *model, uint32_t history,
                                                 unsigned at)
{
    const uint32_t *stores = ex_string(&model->histories, history);
    return ex_string(&model->stores, stores[at]);
}

int ex_memo_open(struct ex_model *model);

uint32_t ex_history_insert(struct ex_model *model, uint32_t history, unsigned at,
                           const struct ex_store *store);
/* Drops what nobody can read any more, and numbers the rest from 0. */
void ex_history_trim(struct ex_model *model, struct ex_state *state);
/* Makes room for a store in front of existing ones: all views count on from there. */
void ex_history_shift(struct ex_model *model, struct ex_state *state, unsigned word, unsigned at);
/* Takes back a lock that a thread took and put back for nothing, when nobody saw it. */
void ex_history_undo(struct ex_model *model, struct ex_state *state, unsigned thread,
                     unsigned word);
/* Threads change places: thread i is who was order[i]. */
void ex_history_rename(struct ex_model *model, struct ex_state *state, const uint8_t *order);
/* Takes a doorbell off its way. */
void ex_doorbell_remove(struct ex_model *model, struct ex_state *state, unsigned number);

/* ---- What operations do: memory.c ---- */

uint32_t ex_floor_after_read(struct ex_model *model, uint32_t floor, unsigned word, unsigned at,
                             const struct ex_store *store);
uint32_t ex_floor_of_store(struct ex_model *model, uint32_t floor, uint32_t handed_over);

void ex_touch(struct ex_model *model, unsigned agent, unsigned word, bool write);

/* Does the operation take a lock, if the word is one? */
static inline bool ex_takes_lock(const struct port_op *op)
{
    return op->kind == PORT_OP_CAS && op->a == 0 && op->b == 1;
}

/* A write is seen by an agent that holds `holds`; `keeps_rule` where it takes or gives back a lock
 * as one does. */
void ex_guard(struct ex_model *model, unsigned word, uint8_t holds, bool keeps_rule);
/* Loads store `at` of a word. Returns its value. */
uint64_t ex_load(struct ex_model *model, struct ex_state *state, unsigned thread, unsigned word,
                 unsigned at, const struct port_op *op);
/* Puts a store at number `at` of the word's history. */
void ex_store(struct ex_model *model, struct ex_state *state, unsigned thread, unsigned word,
              unsigned at, uint64_t value, const struct port_op *op);
/* The halves at numbers of their own. */
void ex_store16(struct ex_model *model, struct ex_state *state, unsigned thread, unsigned word,
                unsigned at, unsigned at_high, const struct port_op *op);
/* An atomic that reads store `at`. Returns what it read. */
uint64_t ex_atomic(struct ex_model *model, struct ex_state *state, unsigned thread, unsigned word,
                   unsigned at, const struct port_op *op);
/* May an atomic read store `at`: does its store, if any, fit behind it? */
bool ex_atomic_fits(const struct ex_model *model, uint32_t history, unsigned at,
                    const struct port_op *op);
void ex_fence(struct ex_model *model, struct ex_state *state, unsigned thread,
              const struct port_op *op);
void ex_ring(struct ex_model *model, struct ex_state *state, unsigned thread, unsigned queue,
             const struct port_op *op);

/* ---- thread.c ---- */

int ex_threads_open(struct ex_model *model);
void ex_threads_close(struct ex_model *model);
uint32_t ex_thread_first(struct ex_model *model, unsigned thread);
/* Where a thread at `node` is when its operation has returned `result`. */
uint32_t ex_thread_next(struct ex_model *model, uint32_t node, uint64_t result);

static inline const struct ex_node *ex_node(const struct ex_model *model, uint32_t node)
{
    return &model->threads.nodes[node];
}

/* ---- settle.c ---- */

/* Does everything that needs no choice. False when a fault was found. */
bool ex_settle(struct ex_model *model, struct ex_state *state);

/* A thread's next operation is one with a choice: how many there are, 0 for none. */
unsigned ex_choices(struct ex_model *model, const struct ex_state *state, unsigned thread);
/* Must this thread go next, since its choices exclude nobody else's? */
bool ex_must_go(struct ex_model *model, const struct ex_state *state, unsigned thread);
/* Takes choice `number`. */
bool ex_choose(struct ex_model *model, struct ex_state *state, unsigned thread, unsigned number);

static inline bool ex_thread_ended(const struct ex_model *model, const struct ex_state *state,
                                   unsigned thread)
{
    return ex_node(model, state->thread[thread].node)->op.kind == PORT_OP_END;
}

/* ---- reduce.c ---- */

#define EX_POLLS 32 /* of one iteration, at most */

/* Where the thread comes to by reading again what it has seen, until it is back where it is, with
 * nothing changed; its own place is the first. Returns how many, or 0: it does not come back. */
unsigned ex_polls(struct ex_model *model, struct ex_state *state, unsigned thread, uint32_t *polls);
/* Turns a state into the one that stands for all that are the same to everybody. `before`: the
 * state that it came from by one step, which was turned already; or NULL. */
void ex_reduce(struct ex_model *model, struct ex_state *state, const struct ex_state *before);
/* The same, but threads keep their places: who[i] follows which of them has place i in the state
 * that stands for all. */
void ex_reduce_followed(struct ex_model *model, struct ex_state *state, uint8_t *who);

/* ---- device.c ---- */

/* What the device's reads for a queue must see. */
uint32_t ex_device_view(struct ex_model *model, const struct ex_state *state, unsigned queue);

unsigned ex_device_choices(struct ex_model *model, const struct ex_state *state, unsigned queue);
bool ex_device_choose(struct ex_model *model, struct ex_state *state, unsigned queue,
                      unsigned number);
bool ex_device_idle(const struct ex_model *model, const struct ex_state *state);

#endif
