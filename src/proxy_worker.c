/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a proxy's worker does: takes descriptors from its rings in turn, posts up to a batch of them
 * with one doorbell, and tells the producers what was posted and what is complete.
 *
 * What must hold: a ring's `posted` never passes a descriptor that was not posted, each descriptor
 * is posted once and in order, and every way in which the thread can end tells the producers.
 */
#include <doorbell/impl/wqe.h>
#include <errno.h>
#include <time.h>

#include "proxy.h"

/* ---- Telling the producers ---- */

/* GPU memory is mapped write-combining: what was stored leaves now, not some time later. */
static void push_out(const struct db_proxy_ring *ring)
{
    if (!ring->gdr)
        return;
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

static void tell_error(struct db_proxy_ring *ring, uint64_t word)
{
    if (ring->failed)
        return;
    ring->failed = true;
    db_ring_publish_error(ring->progress, word);
    push_out(ring);
}

static void tell_error_to_all(struct db_worker *worker, uint64_t word)
{
    for (uint32_t left = worker->served; left; left &= left - 1)
        tell_error(worker->rings[__builtin_ctz(left)], word);
}

/*
 * The worker takes no more, and all rings get the reason: the state first, so that who has read the
 * reason from a ring (an acquire load, paired with the release in db_ring_publish_error) also finds
 * the worker as it is.
 */
static void leave(struct db_worker *worker, enum db_worker_state state, uint64_t word)
{
    __atomic_store_n(&worker->state, state, __ATOMIC_RELEASE);
    tell_error_to_all(worker, word);
}

/* ---- Completing ---- */

static uint32_t opcode_of(uint32_t op)
{
    switch (op) {
    case DB_RING_PUT_IMM:
        return M5_OP_WRITE_IMM;
    case DB_RING_GET:
        return M5_OP_READ;
    case DB_RING_FETCH_ADD:
        return M5_OP_ATOMIC_FA;
    default:
        return M5_OP_WRITE;
    }
}

static struct db_run *run_at(const struct db_worker *worker, uint64_t number)
{
    return &worker->run[number & (worker->pair.depth - 1)];
}

/* The index behind the descriptors of a run's requests but the last `left`. */
static uint64_t end_before(const struct db_run *run, uint32_t left)
{
    return run->end - left * (db_ring_op_has_operand(run->op) ? 2u : 1u);
}

/* The oldest `count` requests in flight are complete. */
static void tell_completed(struct db_worker *worker, uint64_t count)
{
    uint32_t touched = 0;

    while (count > 0) {
        struct db_run *run = run_at(worker, worker->oldest_run);
        uint32_t done = count < run->count ? (uint32_t)count : run->count;
        count -= done;
        run->count -= done;
        if (run->ring) {
            run->ring->completed = end_before(run, run->count);
            touched |= 1u << run->ring->number;
        }
        worker->oldest_run += run->count == 0;
    }
    for (; touched; touched &= touched - 1) {
        struct db_proxy_ring *ring = worker->rings[__builtin_ctz(touched)];
        db_ring_publish_completed(ring->progress, ring->completed);
        push_out(ring);
    }
}

/* Returns whether anything completed. */
static bool complete(struct db_worker *worker)
{
    struct db_pair *pair = &worker->pair;
    uint64_t before = pair->completed;

    if (before == pair->posted)
        return false;
    int error = pair->way->poll(pair);
    tell_completed(worker, pair->completed - before);
    if (error) {
        const struct db_run *run = run_at(worker, worker->oldest_run);
        leave(worker, DB_WORKER_FAILED,
              db_error_pack((uint32_t)end_before(run, run->count - 1) - 1, opcode_of(run->op),
                            pair->syndrome, pair->vendor_syndrome));
    }
    return pair->completed != before;
}

/* ---- Taking ---- */

/* Finds `bytes` at `offset` of a place. */
static bool look_up(const struct db_places *places, uint32_t place, uint64_t offset, uint64_t bytes,
                    uint64_t *address, uint32_t *key)
{
    /* Acquire: pairs with the release in db_proxy_keys(). */
    if (place >= __atomic_load_n(&places->count, __ATOMIC_ACQUIRE))
        return false;
    const struct db_place *at = &places->at[place];
    *address = at->iova + offset;
    *key = at->key;
    return bytes <= at->bytes && offset <= at->bytes - bytes;
}

/* Fills the request from its descriptor. Returns 0, or the syndrome of what is wrong with it. */
static uint32_t decode(const struct db_proxy *proxy, struct db_descriptor d, bool has_operand,
                       struct db_request *request)
{
    uint32_t op = db_descriptor_op(d);

    if (op < DB_RING_PUT || op > DB_RING_VALUE || db_ring_op_has_operand(op) != has_operand)
        return M5_SYN_LOCAL_QP_OP;
    request->op = (uint16_t)op;
    request->flags = 0;
    request->bytes = 8;
    if (op == DB_RING_VALUE) {
        request->operand = db_descriptor_operand(d);
    } else {
        request->flags = (uint16_t)db_descriptor_flags(d);
        request->bytes = db_descriptor_bytes(d);
        if (!look_up(&proxy->regions, db_descriptor_region(d), db_descriptor_region_offset(d),
                     request->bytes, &request->laddr, &request->lkey))
            return M5_SYN_LOCAL_PROTECTION;
    }
    return look_up(&proxy->windows, db_descriptor_window(d), db_descriptor_window_offset(d),
                   request->bytes, &request->raddr, &request->rkey)
               ? 0
               : M5_SYN_REMOTE_ACCESS;
}

/* How many descriptors ahead of the one that is taken a line of them is asked for: two lines, 2.7
 * ns a descriptor on an x86 VM with the producer on another core. */
#define AHEAD 8u

/* db_ring_peek(), which asks for the line ahead that starts with a descriptor: producers wrote it,
 * so it is in no cache of this core. */
static bool peek(const struct db_proxy_ring *ring, uint64_t index, struct db_descriptor *d)
{
    uint64_t ahead = index + AHEAD;

    if (!db_ring_peek(ring->slots, ring->depth, index, d))
        return false;
    if (ahead % (64 / sizeof(*d)) == 0)
        port_prefetch(ring->slots + db_ring_slot(ahead, ring->depth), false);
    return true;
}

/* From this request of a batch on: the blocks of those before are stored to too soon. (On an H200's
 * host asking for them, too, made batches of two 17 % slower.) */
#define ASK_FROM 4u

/* Asks for the block of the send ring that request `number` will be stored to: the device read it,
 * a lap ago. */
static void ask_for_block(const struct db_pair *pair, uint64_t number)
{
    if (pair->direct.sq)
        port_prefetch(db_block(&pair->direct, number), true);
}

/* Asks for the line that note_posted() will store to: producers poll it. (On an H200's host batches
 * of two to eight are 10 % faster, of sixteen as fast as without.) */
static void ask_for_progress(const struct db_proxy_ring *ring)
{
    port_prefetch(ring->progress, true);
}

/* Takes the next request of a ring, if it is there. A descriptor that cannot be carried out fails
 * its ring, and no other. */
static bool take(const struct db_worker *worker, struct db_proxy_ring *ring,
                 struct db_request *request)
{
    struct db_descriptor d;
    bool has_operand = false;
    uint64_t at = ring->next;

    if (ring->failed)
        return false;
    while (true) {
        if (!peek(ring, at, &d))
            return false;
        if (has_operand || db_descriptor_op(d) != DB_RING_OPERAND)
            break;
        request->operand = db_descriptor_operand(d);
        has_operand = true;
        at++;
    }
    uint32_t syndrome = decode(worker->proxy, d, has_operand, request);
    if (syndrome) {
        tell_error(ring, db_error_pack((uint32_t)at, opcode_of(db_descriptor_op(d)), syndrome, 0));
        return false;
    }
    ring->next = at + 1;
    request->ring = ring;
    request->end = at + 1;
    return true;
}

/* Takes requests of a ring until the batch holds `limit`. False: there was one too few. */
static bool take_until(struct db_worker *worker, uint32_t number, uint32_t limit)
{
    struct db_proxy_ring *ring = worker->rings[number];
    uint32_t first = worker->batch_count;

    for (; worker->batch_count < limit; worker->batch_count++) {
        if (!take(worker, ring, &worker->batch[worker->batch_count]))
            return false;
        if (worker->batch_count == first)
            ask_for_progress(ring);
        if (worker->batch_count >= ASK_FROM)
            ask_for_block(&worker->pair, worker->pair.posted + worker->batch_count);
    }
    return true;
}

/* How many rings that were empty are looked at first: each costs about 2 ns for the whole batch. */
#define RARE_LOOKS 4u

/* What is rare does not wait for what is plentiful: one request of a ring that was empty when it
 * was looked at last, and then the ring waits for its turn like others until it is empty again.
 * Returns the rings that still are. */
static uint32_t gather_rare(struct db_worker *worker, uint32_t limit)
{
    uint32_t none = 0;

    for (uint32_t i = 0; i < RARE_LOOKS && worker->batch_count < limit; i++) {
        uint32_t left = worker->empty & ~none, ahead = left & ~0u << worker->next_rare;
        if (!left)
            break;
        uint32_t number = (uint32_t)__builtin_ctz(ahead ? ahead : left);
        worker->next_rare = (number + 1) % DB_MAX_WORKER_QUEUES;
        if (take_until(worker, number, worker->batch_count + 1))
            worker->empty &= ~(1u << number);
        else
            none |= 1u << number;
    }
    return none;
}

/* Fills the empty batch with up to `limit` requests: first the rare ones, then from each ring in
 * its turn. The turn moves on behind a ring that was served, and at no other time, least of all
 * when the limit is 0: rings would be passed over for ever. */
static void gather(struct db_worker *worker, uint32_t limit)
{
    uint32_t mask = worker->next_ring ? ~0u << worker->next_ring : ~0u;

    worker->batch_first = 0;
    worker->batch_count = 0;
    uint32_t others = worker->served & ~gather_rare(worker, limit);
    if (worker->batch_count == limit)
        return;
    for (int half = 0; half < 2; half++, mask = ~mask) {
        for (uint32_t left = others & mask; left; left &= left - 1) {
            uint32_t number = (uint32_t)__builtin_ctz(left);
            if (take_until(worker, number, limit)) {
                worker->next_ring = (number + 1) % DB_MAX_WORKER_QUEUES;
                return;
            }
            worker->empty |= 1u << number;
        }
    }
}

/* ---- Posting ---- */

/* The first `count` requests of the batch were posted. */
static void note_posted(struct db_worker *worker, uint32_t count)
{
    const struct db_request *request = &worker->batch[worker->batch_first];
    struct db_pair *pair = &worker->pair;
    uint32_t touched = 0;

    for (uint32_t i = 0, first = 0; i < count; i++) {
        const struct db_request *next = i + 1 < count ? &request[i + 1] : NULL;
        if (next && next->ring == request[i].ring && next->op == request[i].op)
            continue;
        *run_at(worker, worker->next_run++) =
            (struct db_run){request[i].ring, request[i].end, i + 1 - first, request[i].op};
        request[i].ring->posted = request[i].end;
        touched |= 1u << request[i].ring->number;
        first = i + 1;
    }
    pair->posted += count;
    worker->batch_first += count;
    worker->batch_count -= count;
    for (; touched; touched &= touched - 1) {
        struct db_proxy_ring *ring = worker->rings[__builtin_ctz(touched)];
        db_ring_publish_posted(ring->progress, ring->posted);
        push_out(ring);
    }
    __atomic_store_n(&worker->posts, worker->posts + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&worker->requests, worker->requests + count, __ATOMIC_RELAXED);
}

/* Returns whether anything was posted. What the queue pair has no room for stays in the rings; what
 * it was too busy for stays in the batch. */
static bool submit(struct db_worker *worker)
{
    struct db_pair *pair = &worker->pair;
    uint32_t batch = worker->proxy->attr.batch;

    if (worker->batch_count == 0) {
        uint32_t room = pair->depth - (uint32_t)(pair->posted - pair->completed);
        gather(worker, room < batch ? room : batch);
    }
    if (worker->batch_count == 0)
        return false;
    int posted = pair->way->post(pair, &worker->batch[worker->batch_first], worker->batch_count);
    if (posted < 0) {
        leave(worker, DB_WORKER_FAILED, DB_RING_WORKER_LOST);
        return true;
    }
    if (posted > 0)
        note_posted(worker, (uint32_t)posted);
    return posted > 0;
}

bool db_worker_has_work(const struct db_worker *worker)
{
    return worker->state == DB_WORKER_RUNNING &&
           (worker->batch_count > 0 || worker->pair.completed != worker->pair.posted);
}

uint64_t db_worker_left(const struct db_worker *worker)
{
    uint64_t left = worker->pair.posted - worker->pair.completed + worker->batch_count;

    if (worker->state != DB_WORKER_LOST)
        return left;
    /* What nobody took: a thread that ends by itself has taken all. */
    for (uint32_t served = worker->served; served; served &= served - 1) {
        const struct db_proxy_ring *ring = worker->rings[__builtin_ctz(served)];
        struct db_descriptor d;
        for (uint64_t at = ring->next; at - ring->next < ring->depth; at++) {
            if (!db_ring_peek(ring->slots, ring->depth, at, &d))
                break;
            left += db_descriptor_op(d) != DB_RING_OPERAND;
        }
    }
    return left;
}

bool db_worker_step(struct db_worker *worker)
{
    if (worker->state != DB_WORKER_RUNNING)
        return false;
    bool completed = complete(worker);
    return (worker->state == DB_WORKER_RUNNING && submit(worker)) || completed;
}

/* ---- The thread ---- */

/* Stands still while somebody else has the rings. */
static void stand_still(struct db_worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    worker->holding = true;
    pthread_cond_broadcast(&worker->changed);
    while (__atomic_load_n(&worker->attention, __ATOMIC_RELAXED) & DB_ATTENTION_HOLD)
        pthread_cond_wait(&worker->changed, &worker->mutex);
    worker->holding = false;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->mutex);
}

static void end(struct db_worker *worker, enum db_worker_state state, uint64_t word)
{
    struct timespec used = {0};

    leave(worker, state, word);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    pthread_mutex_lock(&worker->mutex);
    worker->cpu_ns = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
    worker->ended = true;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->mutex);
}

/* The thread is being ended by something other than a stop. */
static void lost(void *argument)
{
    end(argument, DB_WORKER_LOST, DB_RING_WORKER_LOST);
}

/* Until everything that was pushed is posted and complete, or the proxy's deadline passes. */
static void drain(struct db_worker *worker)
{
    for (bool busy = true; busy || db_worker_has_work(worker);) {
        busy = db_worker_step(worker);
        if (!busy)
            db_worker_idle(worker);
        if (port_now_ns() > worker->proxy->stop_by_ns)
            return;
    }
}

static void serve(struct db_worker *worker)
{
    for (;;) {
        /* Acquire: pairs with the release of whoever wants attention. */
        uint32_t attention = __atomic_load_n(&worker->attention, __ATOMIC_ACQUIRE);
        if (attention & DB_ATTENTION_HOLD)
            stand_still(worker);
        else if (attention & DB_ATTENTION_STOP)
            return;
        else if (db_worker_step(worker))
            db_worker_busy(worker);
        else
            db_worker_idle(worker);
    }
}

void *db_worker_run(void *argument)
{
    struct db_worker *worker = argument;
    int before;

    /* Can be ended by others where it idles (proxy_idle.c), so never in the middle of a post. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    if (db_pin_thread(worker->cpu))
        __atomic_store_n(&worker->cpu, -1, __ATOMIC_RELAXED);
    pthread_cleanup_push(lost, worker);
    serve(worker);
    drain(worker);
    pthread_cleanup_pop(0);
    end(worker, worker->state == DB_WORKER_FAILED ? DB_WORKER_FAILED : DB_WORKER_STOPPED,
        DB_RING_STOPPED);
    return NULL;
}

/* ---- Other threads ---- */

void db_worker_hold(struct db_worker *worker)
{
    pthread_mutex_lock(&worker->holder);
    pthread_mutex_lock(&worker->mutex);
    __atomic_fetch_or(&worker->attention, DB_ATTENTION_HOLD, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&worker->changed);
    while (worker->started && !worker->holding && !worker->ended)
        pthread_cond_wait(&worker->changed, &worker->mutex);
    pthread_mutex_unlock(&worker->mutex);
}

void db_worker_let_go(struct db_worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    __atomic_fetch_and(&worker->attention, ~(uint32_t)DB_ATTENTION_HOLD, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&worker->changed);
    /* Until it has gone on: a hold that comes next must not take the old standstill for its own. */
    while (worker->holding)
        pthread_cond_wait(&worker->changed, &worker->mutex);
    pthread_mutex_unlock(&worker->mutex);
    pthread_mutex_unlock(&worker->holder);
}
