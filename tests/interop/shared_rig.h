/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the programs shared_*.c start from: one queue of each kind with all that a kernel is given,
 * a run of a kernel over it, and the host's checks of what the kernel's threads have posted. A
 * header for kernels as well, as share_rig.h: it is compiled with the backend of the program that
 * includes it.
 */
#ifndef DOORBELL_TESTS_SHARED_RIG_H
#define DOORBELL_TESTS_SHARED_RIG_H

#include "share_rig.h"

#include <string.h>

#define SHARED_MAX_THREADS 64u
#define SHARED_MAX_POSTED  16384u /* in one run */
#define SHARED_MAX_STEPS   256u   /* an immediate's low 8 bits */
#define SHARED_STEPS       (14 / (SHARE_SLOWER > 1 ? 2 : 1))

/* Of each thread, on each side: what puts are copied from or to, then what gets are. */
#define SHARED_AREA     2048u
#define SHARED_GETS_AT  1024u
#define SHARED_GUARD    16u /* bytes that nobody touches, before and behind */
#define SHARED_WORDS_AT (SHARED_MAX_THREADS * SHARED_AREA)

#define SHARED_IMM_BASE    0xa5a50000u
#define SHARED_GETS_STEP   (1u << 20) /* sets apart what gets read from what puts write */
#define SHARED_UNTOUCHED   0xee
#define SHARED_FETCH_ADDED 1u /* shared_posted.kind */

/* One operation that was posted. */
struct shared_posted {
    uint64_t index;
    uint64_t old; /* what a fetch-add found */
    uint32_t slots;
    uint32_t kind;
};

struct shared_args {
    struct db_qp *qp;
    uint64_t raddr, laddr;
    uint32_t rkey, lkey;
    uint8_t *remote, *local; /* where these are, for the kernel */
    enum share_way way;      /* of the warps */
    uint32_t proxied;
    uint32_t depth;
    uint32_t steps;
    uint64_t addend;
    struct shared_posted *posted; /* [threads * most] */
    uint32_t *count;              /* [threads] */
    uint32_t most;
    struct share_failure *failure;
};

/* ---- What a thread does at a step ---- */

struct shared_thread {
    const struct shared_args *args;
    struct db_qp *qp;
    uint32_t id;
    uint32_t step;
    uint32_t inlines; /* so far */
};

/* A thread at its first step, which has posted nothing. */
PORT_FN struct shared_thread shared_start(const struct shared_args *args)
{
    struct shared_thread t;
    t.args = args;
    t.qp = args->qp;
    t.id = share_thread();
    t.step = 0;
    t.inlines = 0;
    args->count[t.id] = 0;
    return t;
}

PORT_FN uint64_t shared_local_at(const struct shared_thread *t)
{
    return (uint64_t)(SHARED_MAX_THREADS - 1 - t->id) * SHARED_AREA;
}

PORT_FN uint64_t shared_remote_at(const struct shared_thread *t)
{
    return (uint64_t)t->id * SHARED_AREA;
}

PORT_FN uint8_t shared_byte(uint32_t thread, uint64_t step, uint32_t at)
{
    return (uint8_t)(share_pattern(thread, step, at / 8) >> (at % 8 * 8));
}

PORT_FN void shared_fill(const struct shared_thread *t, uint8_t *to, uint32_t bytes, uint64_t step)
{
    for (uint32_t i = 0; i < bytes; i++)
        to[i] = shared_byte(t->id, step, i);
}

/* Half of an area, before an operation writes to it. */
PORT_FN void shared_clear(uint8_t *half)
{
    memset(half, SHARED_UNTOUCHED, SHARED_GETS_AT);
}

PORT_FN bool shared_fail(const struct shared_thread *t, const char *what, int64_t value)
{
    share_fail(t->args->failure, what, t->step, value);
    return false;
}

/* The bytes of a step, with their guards. */
PORT_FN bool shared_holds(const struct shared_thread *t, const uint8_t *at, uint32_t bytes,
                          uint64_t step, const char *what)
{
    for (uint32_t i = 0; i < bytes; i++)
        if (at[i] != shared_byte(t->id, step, i))
            return shared_fail(t, what, i);
    for (uint32_t i = 0; i < SHARED_GUARD; i++)
        if (at[bytes + i] != SHARED_UNTOUCHED || at[-1 - (int)i] != SHARED_UNTOUCHED)
            return shared_fail(t, what, -1 - (int64_t)i);
    return true;
}

/* Notes what a call posted, if it did. */
PORT_FN bool shared_note(const struct shared_thread *t, const char *what, int status,
                         uint64_t index, uint32_t slots)
{
    uint32_t count = t->args->count[t->id];
    if (status)
        return shared_fail(t, what, status);
    if (count == t->args->most)
        return shared_fail(t, "more operations than there is room for", count);
    struct shared_posted *posted = &t->args->posted[(size_t)t->id * t->args->most + count];
    posted->index = index;
    posted->slots = slots;
    posted->kind = 0;
    t->args->count[t->id] = count + 1;
    return true;
}

PORT_FN bool shared_wait(const struct shared_thread *t, const char *what, uint64_t index)
{
    int status = db_wait_shared(t->qp, index);
    return status ? shared_fail(t, what, status) : true;
}

PORT_FN bool shared_complete(const struct shared_thread *t, const char *what, int status,
                             uint64_t index, uint32_t slots)
{
    return shared_note(t, what, status, index, slots) && shared_wait(t, what, index);
}

PORT_FN bool shared_refused(const struct shared_thread *t, const char *what, int status)
{
    return status == DB_ERROR_INVALID ? true : shared_fail(t, what, status);
}

PORT_FN uint32_t shared_imm_bytes(uint32_t thread, uint32_t step)
{
    return 1 + (thread * 7 + step * 13) % 200;
}

/* Where an operation's two ends are, and how long it is. */
struct shared_span {
    uint64_t from, to; /* in the areas */
    uint32_t bytes;
};

PORT_FN struct shared_span shared_put_span(const struct shared_thread *t, uint32_t bytes)
{
    struct shared_span span;
    span.from = shared_local_at(t) + (t->id + t->step) % 7;
    span.to = shared_remote_at(t) + SHARED_GUARD + (t->id * 3 + t->step) % 9;
    span.bytes = bytes;
    shared_fill(t, t->args->local + span.from, bytes, t->step);
    shared_clear(t->args->remote + shared_remote_at(t));
    return span;
}

PORT_FN struct shared_span shared_get_span(const struct shared_thread *t, uint32_t bytes)
{
    struct shared_span span;
    span.from = shared_remote_at(t) + SHARED_GETS_AT + (t->id + t->step) % 7;
    span.to = shared_local_at(t) + SHARED_GETS_AT + SHARED_GUARD + (t->id * 3 + t->step) % 9;
    span.bytes = bytes;
    shared_fill(t, t->args->remote + span.from, bytes, SHARED_GETS_STEP + t->step);
    shared_clear(t->args->local + shared_local_at(t) + SHARED_GETS_AT);
    return span;
}

PORT_FN uint32_t shared_bytes(const struct shared_thread *t)
{
    return 1 + (t->id * 37 + t->step * 101) % 600;
}

/* ---- What is refused ---- */

/* Arguments of which one names what no descriptor can. */
struct shared_wrong {
    uint64_t raddr, laddr;
    uint32_t rkey, lkey, bytes;
};

#define SHARED_WRONG_ADDRESSES 4u /* the first ways; the others are wrong sizes */
#define SHARED_WRONG_WAYS      6u

PORT_FN struct shared_wrong shared_wrong(const struct shared_args *args, uint32_t way)
{
    struct shared_wrong w;
    w.raddr = way == 0 ? DB_RING_OFFSETS : args->raddr;
    w.rkey = way == 1 ? DB_RING_PLACES : args->rkey;
    w.laddr = way == 2 ? DB_RING_OFFSETS : args->laddr;
    w.lkey = way == 3 ? DB_RING_PLACES : args->lkey;
    w.bytes = way == 4 ? 0 : way == 5 ? (1u << 31) + 1 : 8;
    return w;
}

/* ---- Queues ---- */

struct shared_kind {
    const char *name;
    struct db_queue_attr attr;
    bool proxied;
    struct db_proxy_attr proxy;
    /* What no queue in host memory asks for by itself. */
    bool gpu_order, exchanged;
};

/* One queue with all that a kernel is given, and the queue of its peer. */
struct shared_rig {
    const struct shared_kind *kind;
    struct db_device *device;
    struct db_proxy *proxy;
    struct queue_end a, b;
    struct shared_args args;
    struct share_failure failure;
    uint64_t slots;                                        /* that all runs so far have posted */
    uint8_t arrived[SHARED_MAX_THREADS][SHARED_MAX_STEPS]; /* immediates, in this run */
    uint32_t arrivals;
    uint32_t count[SHARED_MAX_THREADS];
    struct shared_posted posted[SHARED_MAX_POSTED];
};

/* Opens the GPU, which the CPU plays, and turns strict mode on, with the seed that argv[1] may
 * name. Ended by shared_end(). */
struct shared_rig *shared_begin(int argc, char **argv);
void shared_end(struct shared_rig *rig);

/* Runs a test with each kind of queue, of which strict mode then has nothing to report. */
void shared_each_kind(struct shared_rig *rig,
                      void (*test)(struct shared_rig *rig, const struct shared_kind *kind));

/* Makes both queues, and checks the first one at its end. */
void shared_rig_start(struct shared_rig *rig, const struct shared_kind *kind);
void shared_rig_end(struct shared_rig *rig);

/* ---- A run ---- */

#define SHARED_SHAPES 5u

/* 1 to 64 threads. */
extern const struct db_gpu_shape shared_shapes[SHARED_SHAPES];

/* Runs a kernel to its end, which must come in time and without a failure. */
void shared_launch(struct shared_rig *rig, const struct port_kernel *kernel,
                   struct db_gpu_shape shape);

/* The same with `steps` of each thread. Then indices are all that was claimed, in each slot one
 * operation; fetch-adds came in their order; the device has executed each operation once. */
void shared_run(struct shared_rig *rig, const struct port_kernel *kernel, struct db_gpu_shape shape,
                uint32_t steps);

/* Takes what arrives, each immediate once, and posts receives again. */
void shared_take_arrivals(struct shared_rig *rig);

/* Slots of the queue, since it was made. */
uint64_t shared_claimed(const struct shared_rig *rig);

#endif
