/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: every _warp call of device.h does what it says while 1 to 64 threads of a kernel use one
 * queue, whole warps or parts of them together, whatever the queue: posted to by the GPU or
 * proxied, with any ring, CQ, record or protocol. Operations of all lanes are executed in the order
 * of their indices, each once, and those indices are all that was claimed; no call rings more than
 * one doorbell. What the headers refuse, of one lane or of all, is refused, and posts nothing: so
 * is every _warp and every _shared call on a ring of one producer, who goes on as before. Strict
 * mode poisons each executed block, delays each fetch at random, and has nothing to report.
 */
#include "shared_rig.h"

#include <softnic.h>
#include <string.h>

/* ---- What a warp does at a step ---- */

PORT_FN bool warps_put(const struct shared_thread *t, uint32_t mask)
{
    const struct shared_args *a = t->args;
    struct shared_span s = shared_put_span(t, shared_bytes(t));
    uint64_t index = 0;
    int status = db_put_warp(t->qp, mask, a->raddr + s.to, a->rkey, a->laddr + s.from, a->lkey,
                             s.bytes, &index);
    return shared_complete(t, "db_put_warp", status, index, 1) &&
           shared_holds(t, a->remote + s.to, s.bytes, t->step, "bytes of db_put_warp");
}

PORT_FN bool warps_put_value(const struct shared_thread *t, uint32_t mask)
{
    const struct shared_args *a = t->args;
    uint64_t to = shared_remote_at(t) + SHARED_GUARD + 8 * (t->step % 5), index = 0;
    shared_clear(a->remote + shared_remote_at(t));
    int status = db_put_value_warp(t->qp, mask, a->raddr + to, a->rkey,
                                   share_pattern(t->id, t->step, 0), &index);
    return shared_complete(t, "db_put_value_warp", status, index, 1) &&
           shared_holds(t, a->remote + to, 8, t->step, "bytes of db_put_value_warp");
}

PORT_FN bool warps_get(const struct shared_thread *t, uint32_t mask)
{
    const struct shared_args *a = t->args;
    struct shared_span s = shared_get_span(t, shared_bytes(t));
    uint64_t index = 0;
    int status = db_get_warp(t->qp, mask, a->raddr + s.from, a->rkey, a->laddr + s.to, a->lkey,
                             s.bytes, &index);
    return shared_complete(t, "db_get_warp", status, index, 1) &&
           shared_holds(t, a->local + s.to, s.bytes, SHARED_GETS_STEP + t->step,
                        "bytes of db_get_warp");
}

/* All lanes write to one word, which then holds the value of the lane whose index is the highest:
 * so each index is that of the lane's own operation. */
PORT_FN bool warps_last_wins(const struct shared_thread *t, uint32_t mask, uint32_t call)
{
    const struct shared_args *a = t->args;
    uint64_t word =
        SHARED_WORDS_AT + 8 + 8 * (uint64_t)(t->id - port_lane() + port_first_lane(mask));
    uint64_t value = share_pattern(t->id, t->step, 0), index = 0;
    uint8_t *own = call == 2 ? a->remote + shared_remote_at(t) : a->local + shared_local_at(t);
    const uint8_t *target = (call == 2 ? a->local : a->remote) + word;
    int status;
    memcpy(own, &value, sizeof(value));
    if (call == 0)
        status = db_put_value_warp(t->qp, mask, a->raddr + word, a->rkey, value, &index);
    else if (call == 1)
        status = db_put_warp(t->qp, mask, a->raddr + word, a->rkey, a->laddr + shared_local_at(t),
                             a->lkey, 8, &index);
    else
        status = db_get_warp(t->qp, mask, a->raddr + shared_remote_at(t), a->rkey, a->laddr + word,
                             a->lkey, 8, &index);
    if (!shared_complete(t, "a warp's call to one word", status, index, 1))
        return false;
    bool highest = true;
    for (uint32_t left = mask; left; left &= left - 1)
        if (port_broadcast64(mask, index, port_first_lane(left)) > index)
            highest = false;
    if (highest && port_ld_plain64(target) != value)
        return shared_fail(t, "the lane of the highest index did not write last: call", call);
    port_syncwarp(mask);
    return true;
}

/* ---- What is refused ---- */

PORT_FN int warps_call(const struct shared_thread *t, uint32_t mask, uint32_t call,
                       const struct shared_wrong *w)
{
    uint64_t index;
    if (call == 0)
        return db_put_value_warp(t->qp, mask, w->raddr, w->rkey, 1, &index);
    if (call == 1)
        return db_put_warp(t->qp, mask, w->raddr, w->rkey, w->laddr, w->lkey, w->bytes, &index);
    return db_get_warp(t->qp, mask, w->raddr, w->rkey, w->laddr, w->lkey, w->bytes, &index);
}

/* One lane of the mask is wrong, each in its turn, and all are refused. */
PORT_FN bool warps_refuse_lane(const struct shared_thread *t, uint32_t mask)
{
    const struct shared_wrong right = shared_wrong(t->args, SHARED_WRONG_WAYS);
    uint32_t wrong_lane = mask;
    for (uint32_t skip = t->step % port_count_lanes(mask); skip > 0; skip--)
        wrong_lane &= wrong_lane - 1;
    for (uint32_t call = 0; call < 3; call++) {
        for (uint32_t way = 0; way < (call == 0 ? 2 : SHARED_WRONG_WAYS); way++) {
            const struct shared_wrong wrong = shared_wrong(t->args, way);
            bool own = port_lane() == port_first_lane(wrong_lane);
            int status = warps_call(t, mask, call, own ? &wrong : &right);
            if (!shared_refused(t, "a warp's call of which one lane is wrong", status))
                return false;
        }
    }
    return true;
}

/* All lanes of the warp, which are more than the ring has room for. */
PORT_FN bool warps_refuse_crowd(const struct shared_thread *t, uint32_t lanes)
{
    const struct shared_wrong right = shared_wrong(t->args, SHARED_WRONG_WAYS);
    for (uint32_t call = 0; call < 3; call++)
        if (!shared_refused(t, "a warp's call of more lanes than the ring",
                            warps_call(t, lanes, call, &right)))
            return false;
    return true;
}

/* ---- Warps ---- */

/* Each step is one call that posts. */
PORT_KERNEL(warps, struct shared_args, args)
{
    struct shared_thread t = shared_start(args);
    uint32_t mask = share_mask(args->way, args->depth);
    uint32_t lanes = share_mask(SHARE_WARP, PORT_WARP_THREADS);
    for (; t.step < args->steps; t.step++) {
        uint32_t call = (t.step + port_block()) % 6;
        bool good = call < 3    ? warps_last_wins(&t, mask, call)
                    : call == 3 ? warps_put(&t, mask)
                    : call == 4 ? warps_put_value(&t, mask)
                                : warps_get(&t, mask);
        if (!good || (args->proxied && !warps_refuse_lane(&t, mask)) ||
            (port_count_lanes(lanes) > args->depth && !warps_refuse_crowd(&t, lanes)))
            return;
    }
}

static uint64_t doorbells(void)
{
    struct nic_counters counters;

    softnic_read_counters(&counters);
    return counters.doorbells;
}

static void together(struct shared_rig *rig, const struct shared_kind *kind)
{
    shared_rig_start(rig, kind);
    for (size_t i = 0; i < SHARED_SHAPES; i++) {
        for (int way = SHARE_WARP; way <= SHARE_WARP_PART; way++) {
            uint64_t before = doorbells();
            rig->args.way = (enum share_way)way;
            shared_run(rig, &warps, shared_shapes[i], SHARED_STEPS - SHARED_STEPS % 6);
            uint64_t rung = doorbells() - before;
            uint64_t calls = rig->args.steps *
                             share_groups((enum share_way)way, shared_shapes[i], kind->attr.depth);
            CHECK(kind->proxied || rung <= calls, "%s: %llu doorbells for %llu calls of warps",
                  kind->name, (unsigned long long)rung, (unsigned long long)calls);
        }
    }
    shared_rig_end(rig);
}

/* ---- A ring of one producer ---- */

/* Every call, on a queue that was made for one producer. */
PORT_KERNEL(on_a_lone_ring, struct shared_args, args)
{
    const struct shared_thread t = shared_start(args);
    const struct shared_wrong w = shared_wrong(args, SHARED_WRONG_WAYS);
    uint32_t lanes = share_mask(SHARE_WARP, PORT_WARP_THREADS);
    struct db_qp *qp = args->qp;
    uint64_t payload = 1, index;
    bool refused =
        shared_refused(&t, "db_put_shared",
                       db_put_shared(qp, w.raddr, w.rkey, w.laddr, w.lkey, w.bytes, &index)) &&
        shared_refused(&t, "db_put_value_shared",
                       db_put_value_shared(qp, w.raddr, w.rkey, 1, &index)) &&
        shared_refused(&t, "db_put_inline_shared",
                       db_put_inline_shared(qp, w.raddr, w.rkey, &payload, 8, &index)) &&
        shared_refused(
            &t, "db_put_imm_shared",
            db_put_imm_shared(qp, w.raddr, w.rkey, w.laddr, w.lkey, w.bytes, 1, &index)) &&
        shared_refused(&t, "db_get_shared",
                       db_get_shared(qp, w.raddr, w.rkey, w.laddr, w.lkey, w.bytes, &index)) &&
        shared_refused(&t, "db_fetch_add_shared",
                       db_fetch_add_shared(qp, w.raddr, w.rkey, w.laddr, w.lkey, 1, &index));
    for (uint32_t call = 0; call < 3 && refused; call++)
        refused = shared_refused(&t, "a warp's call", warps_call(&t, lanes, call, &w));
}

/* Nothing is posted to a ring of one producer, who goes on as before. */
static void alone(struct shared_rig *rig, enum db_post post)
{
    const struct shared_kind kind = {.name = "one producer",
                                     .attr = {.depth = 64, .producers = 1},
                                     .proxied = true,
                                     .proxy = {.post = post}};
    uint64_t index;

    shared_rig_start(rig, &kind);
    shared_launch(rig, &on_a_lone_ring, (struct db_gpu_shape){.ctas = 2, .threads = 32});
    CHECK(shared_claimed(rig) == 0 && rig->a.qp->ring->own.next == 0, "a shared call took a slot");
    memset(rig->args.local, 0x5a, 8);
    QUEUE_OK(db_put(rig->args.qp, rig->args.raddr, rig->args.rkey, rig->args.laddr, rig->args.lkey,
                    8, &index));
    queue_wait(rig->a.queue, index);
    CHECK(index == 0 && memcmp(rig->args.remote, rig->args.local, 8) == 0, "a put at %llu is lost",
          (unsigned long long)index);
    shared_rig_end(rig);
}

int main(int argc, char **argv)
{
    struct shared_rig *rig = shared_begin(argc, argv);

    shared_each_kind(rig, together);
    alone(rig, DB_POST_VERBS);
    alone(rig, DB_POST_WQE);
    queue_expect_no_diagnostics_of_worker();
    shared_end(rig);
    return 0;
}
