/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: every _shared call of device.h does what it says while 1 to 64 threads of a kernel use one
 * queue, each for itself, whatever the queue: posted to by the GPU or proxied, with any ring, CQ,
 * record or protocol. Operations of all threads are executed in the order of their indices, each
 * once, and those indices are all that was claimed; what the headers refuse is refused, and posts
 * nothing. Strict mode poisons each executed block, delays each fetch at random, and has nothing to
 * report.
 */
#include "shared_rig.h"

#define ARRIVAL_NS 20000000000ull /* of an immediate, once its put is complete */
#define INLINES    8u             /* of a step; on a proxied queue 2, all of which have 8 bytes */

static_assert(SHARE_SLOWER > 1 || SHARED_MAX_THREADS * (SHARED_STEPS / 7) * INLINES > DB_MAX_INLINE,
              "64 threads put every size inline");

/* ---- What a thread does at a step ---- */

PORT_FN bool ops_put(const struct shared_thread *t)
{
    const struct shared_args *a = t->args;
    struct shared_span s = shared_put_span(t, shared_bytes(t));
    uint64_t index = 0;
    int status =
        db_put_shared(t->qp, a->raddr + s.to, a->rkey, a->laddr + s.from, a->lkey, s.bytes, &index);
    return shared_complete(t, "db_put_shared", status, index, 1) &&
           shared_holds(t, a->remote + s.to, s.bytes, t->step, "bytes of db_put_shared");
}

PORT_FN bool ops_put_imm(const struct shared_thread *t)
{
    const struct shared_args *a = t->args;
    struct shared_span s = shared_put_span(t, shared_imm_bytes(t->id, t->step));
    uint64_t index = 0;
    int status =
        db_put_imm_shared(t->qp, a->raddr + s.to, a->rkey, a->laddr + s.from, a->lkey, s.bytes,
                          SHARED_IMM_BASE + t->id * SHARED_MAX_STEPS + t->step, &index);
    return shared_complete(t, "db_put_imm_shared", status, index, a->proxied ? 2 : 1) &&
           shared_holds(t, a->remote + s.to, s.bytes, t->step, "bytes of db_put_imm_shared");
}

/* Three in a row, waited for from the last to the first. */
PORT_FN bool ops_put_values(const struct shared_thread *t)
{
    const struct shared_args *a = t->args;
    uint64_t to = shared_remote_at(t) + SHARED_GUARD, index[3];
    shared_clear(a->remote + shared_remote_at(t));
    for (uint32_t i = 0; i < 3; i++) {
        int status = db_put_value_shared(t->qp, a->raddr + to + 8 * (uint64_t)i, a->rkey,
                                         share_pattern(t->id, t->step, i), &index[i]);
        if (!shared_note(t, "db_put_value_shared", status, index[i], 1))
            return false;
    }
    for (uint32_t i = 3; i-- > 0;)
        if (!shared_wait(t, "a value", index[i]))
            return false;
    return shared_holds(t, a->remote + to, 24, t->step, "bytes of db_put_value_shared");
}

/* The largest payload whose WQE the ring has room for. */
PORT_FN uint32_t ops_max_inline(const struct shared_args *args)
{
    return args->depth < DB_MAX_WQE_BLOCKS ? args->depth * M5_BLOCK_BYTES - 36 : DB_MAX_INLINE;
}

/* Sizes in turn, of which each thread has its own. */
PORT_FN bool ops_put_inline(struct shared_thread *t)
{
    const struct shared_args *a = t->args;
    uint32_t each = (a->steps + 6) / 7 * INLINES;
    for (uint32_t i = 0; i < (a->proxied ? 2 : INLINES); i++) {
        uint32_t size = (t->id * each + t->inlines++) % (ops_max_inline(a) + 1);
        struct shared_span s = shared_put_span(t, a->proxied ? 8 : size);
        uint64_t index = 0;
        int status = db_put_inline_shared(t->qp, a->raddr + s.to, a->rkey, a->local + s.from,
                                          s.bytes, &index);
        /* The source may be used again at once. */
        a->local[s.from] = SHARED_UNTOUCHED;
        if (!shared_complete(t, "db_put_inline_shared", status, index,
                             a->proxied ? 1 : db_inline_blocks(s.bytes)) ||
            !shared_holds(t, a->remote + s.to, s.bytes, t->step, "bytes of db_put_inline_shared"))
            return false;
    }
    return true;
}

PORT_FN bool ops_get(const struct shared_thread *t)
{
    const struct shared_args *a = t->args;
    struct shared_span s = shared_get_span(t, shared_bytes(t));
    uint64_t index = 0;
    int status =
        db_get_shared(t->qp, a->raddr + s.from, a->rkey, a->laddr + s.to, a->lkey, s.bytes, &index);
    return shared_complete(t, "db_get_shared", status, index, 1) &&
           shared_holds(t, a->local + s.to, s.bytes, SHARED_GETS_STEP + t->step,
                        "bytes of db_get_shared");
}

/* To the one counter of all. The host looks at what each found. */
PORT_FN bool ops_fetch_add(const struct shared_thread *t)
{
    const struct shared_args *a = t->args;
    uint64_t to = shared_local_at(t) + SHARED_GETS_AT + SHARED_GUARD + 8 * (t->step % 4), index = 0;
    shared_clear(a->local + shared_local_at(t) + SHARED_GETS_AT);
    int status = db_fetch_add_shared(t->qp, a->raddr + SHARED_WORDS_AT, a->rkey, a->laddr + to,
                                     a->lkey, a->addend, &index);
    if (!shared_complete(t, "db_fetch_add_shared", status, index, a->proxied ? 2 : 1))
        return false;
    struct shared_posted *posted = &a->posted[(size_t)t->id * a->most + a->count[t->id] - 1];
    posted->kind = SHARED_FETCH_ADDED;
    posted->old = port_ld_plain64(a->local + to);
    for (uint32_t i = 0; i < SHARED_GUARD; i++)
        if (a->local[to + 8 + i] != SHARED_UNTOUCHED || a->local[to - 1 - i] != SHARED_UNTOUCHED)
            return shared_fail(t, "bytes beside those of db_fetch_add_shared", i);
    return true;
}

/* ---- What is refused ---- */

PORT_FN bool ops_refuse_proxied(const struct shared_thread *t)
{
    const struct shared_args *a = t->args;
    struct db_qp *qp = t->qp;
    uint8_t payload[16] = {0};
    uint64_t index;
    for (uint32_t way = 0; way < SHARED_WRONG_WAYS; way++) {
        struct shared_wrong w = shared_wrong(a, way);
        if (!shared_refused(t, "a wrong db_put_shared",
                            db_put_shared(qp, w.raddr, w.rkey, w.laddr, w.lkey, w.bytes, &index)) ||
            !shared_refused(
                t, "a wrong db_put_imm_shared",
                db_put_imm_shared(qp, w.raddr, w.rkey, w.laddr, w.lkey, w.bytes, 1, &index)) ||
            !shared_refused(t, "a wrong db_get_shared",
                            db_get_shared(qp, w.raddr, w.rkey, w.laddr, w.lkey, w.bytes, &index)))
            return false;
        if (way < SHARED_WRONG_ADDRESSES &&
            !shared_refused(t, "a wrong db_fetch_add_shared",
                            db_fetch_add_shared(qp, w.raddr, w.rkey, w.laddr, w.lkey, 1, &index)))
            return false;
        if (way < 2 &&
            (!shared_refused(t, "a wrong db_put_value_shared",
                             db_put_value_shared(qp, w.raddr, w.rkey, 1, &index)) ||
             !shared_refused(t, "a wrong db_put_inline_shared",
                             db_put_inline_shared(qp, w.raddr, w.rkey, payload, 8, &index))))
            return false;
    }
    for (uint32_t bytes = 0; bytes <= 16; bytes++)
        if (bytes != 8 &&
            !shared_refused(t, "db_put_inline_shared of other than 8 bytes",
                            db_put_inline_shared(qp, a->raddr, a->rkey, payload, bytes, &index)))
            return false;
    return true;
}

PORT_FN bool ops_refuse(const struct shared_thread *t)
{
    const struct shared_args *a = t->args;
    const uint8_t *payload = a->local + shared_local_at(t);
    uint64_t index;
    if (!shared_refused(t, "db_put_inline_shared of too many bytes",
                        db_put_inline_shared(t->qp, a->raddr + shared_remote_at(t), a->rkey,
                                             payload, DB_MAX_INLINE + 1, &index)))
        return false;
    if (a->proxied)
        return ops_refuse_proxied(t);
    uint32_t over = ops_max_inline(a) + 1; /* the ring, or a WQE */
    return shared_refused(t, "db_put_inline_shared of more than the ring",
                          db_put_inline_shared(t->qp, a->raddr + shared_remote_at(t), a->rkey,
                                               payload, over, &index));
}

/* ---- Each thread for itself ---- */

PORT_FN bool ops_step(struct shared_thread *t)
{
    switch ((t->step + t->id) % 7) {
    case 0:
        return ops_put(t);
    case 1:
        return ops_put_values(t);
    case 2:
        return ops_put_inline(t);
    case 3:
        return ops_put_imm(t);
    case 4:
        return ops_get(t);
    case 5:
        return ops_fetch_add(t);
    default:
        return ops_refuse(t);
    }
}

/* Threads do different things at the same time. */
PORT_KERNEL(each_for_itself, struct shared_args, args)
{
    struct shared_thread t = shared_start(args);
    for (; t.step < args->steps; t.step++)
        if (!ops_step(&t))
            return;
}

/* Each immediate that the steps have sent has arrived, and no other. */
static void check_arrivals(struct shared_rig *rig, uint32_t threads)
{
    uint64_t deadline = port_now_ns() + ARRIVAL_NS;
    uint32_t sent = 0;

    for (uint32_t t = 0; t < threads; t++)
        for (uint32_t step = 0; step < rig->args.steps; step++)
            sent += (step + t) % 7 == 3;
    do
        shared_take_arrivals(rig);
    while (rig->arrivals < sent && port_now_ns() < deadline);
    CHECK(rig->arrivals == sent, "%s: %u of %u immediates arrived", rig->kind->name, rig->arrivals,
          sent);
}

static void each(struct shared_rig *rig, const struct shared_kind *kind)
{
    shared_rig_start(rig, kind);
    for (size_t i = 0; i < SHARED_SHAPES; i++) {
        uint32_t threads = shared_shapes[i].ctas * shared_shapes[i].threads;
        shared_run(rig, &each_for_itself, shared_shapes[i],
                   threads == 1 ? 3 * SHARED_STEPS : SHARED_STEPS);
        check_arrivals(rig, threads);
    }
    shared_rig_end(rig);
}

int main(int argc, char **argv)
{
    struct shared_rig *rig = shared_begin(argc, argv);

    shared_each_kind(rig, each);
    shared_end(rig);
    return 0;
}
