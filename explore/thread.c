/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads as automata. A thread is deterministic: where it is, is what its operations have
 * returned. The first time a search comes to a new place, the thread's function runs from its
 * start, fed with those results, up to the first operation that has none yet; that operation makes
 * a node. After that the search only follows edges.
 *
 * Two things make the automaton finite and small. A pause goes on where the iteration before it
 * began, since a failed iteration changes no local state (port.h). And a step (program.h) is one
 * node whichever way it was reached.
 */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "program.h"
#include "sites.h"

/* ---- Running a thread's function up to one operation ---- */

static _Thread_local struct replay {
    const uint64_t *log;
    uint32_t length, at;
    unsigned lane;
    struct port_op *op;
    jmp_buf stop;
} replay;

uint64_t port_explore(struct port_op op)
{
    if (replay.at < replay.length)
        return replay.log[replay.at++];
    *replay.op = op;
    longjmp(replay.stop, 1);
}

unsigned port_explore_lane(void)
{
    return replay.lane;
}

static void run(struct ex_model *model, unsigned thread, uint32_t length, struct port_op *op)
{
    replay.log = model->threads.log;
    replay.length = length;
    replay.at = 0;
    replay.lane = thread;
    replay.op = op;
    if (setjmp(replay.stop))
        return;
    model->program->run(&model->config, model->memory, thread);
    *op = (struct port_op){.site = PORT_SITE, .kind = PORT_OP_END};
}

/* Puts the results of the operations before `node` into the log. */
static void write_log(struct ex_threads *threads, uint32_t node, uint32_t extra)
{
    uint32_t depth = threads->nodes[node].depth;

    if (depth + extra > threads->log_capacity) {
        threads->log_capacity = 2 * (depth + extra);
        threads->log = ex_grow(threads->log, threads->log_capacity, sizeof(*threads->log));
    }
    for (uint32_t i = depth; i > 0; i--) {
        threads->log[i - 1] = threads->nodes[node].result;
        node = threads->nodes[node].parent;
    }
}

/* ---- Nodes ---- */

static void resolve_address(struct ex_model *model, struct ex_node *node)
{
    node->word = EX_NO_WORD;
    if (node->op.kind == PORT_OP_DOORBELL) {
        for (unsigned q = 0; q < model->queue_count; q++) {
            if (model->registers[q] == node->op.address)
                node->queue = (uint8_t)q;
        }
        if (node->queue < EX_QUEUES)
            return;
        /* A queue whose doorbell a CPU thread forwards: an ordinary word. */
        node->op.kind = PORT_OP_STORE;
    }
    if (!node->op.address)
        return;
    for (unsigned w = 0; w < model->word_count; w++) {
        if (model->words[w].address == node->op.address)
            node->word = (uint8_t)w;
    }
    if (node->word != EX_NO_WORD)
        return;
    fprintf(stderr, "explore: %s: %s:%u (%s) touches a word that the program did not declare\n",
            model->program->name, node->op.site.file, node->op.site.line, node->op.site.function);
    abort();
}

static uint32_t node_add(struct ex_model *model, const struct ex_node *made)
{
    struct ex_threads *threads = &model->threads;

    if (threads->count == threads->capacity) {
        threads->capacity *= 2;
        threads->nodes = ex_grow(threads->nodes, threads->capacity, sizeof(*threads->nodes));
    }
    uint32_t number = threads->count++;
    threads->nodes[number] = *made;
    if (made->op.kind == PORT_OP_STEP)
        threads->nodes[number].step = number;
    return number;
}

/* The word that names a fence: the one that the next operation touches. */
static unsigned fenced_word(struct ex_model *model, const struct ex_node *fence)
{
    struct ex_node next = {.queue = EX_QUEUES};

    model->threads.log[fence->depth] = 0;
    run(model, fence->thread, fence->depth + 1, &next.op);
    resolve_address(model, &next);
    return next.op.kind == PORT_OP_DOORBELL ? EX_NO_WORD : next.word;
}

/* ---- Locks ---- */

/* A word is a lock when somebody takes it like one. */
static void note_lock(struct ex_model *model, const struct ex_node *node)
{
    if (!ex_takes_lock(&node->op) || model->lock[node->word] || model->lock_count == 8 ||
        model->config.unreduced)
        return;
    model->lock[node->word] = ++model->lock_count;
    if (model->words[node->word].first != 0)
        model->locks_broken |= (uint8_t)(1u << (model->lock_count - 1));
    model->restart = true;
}

/* The locks that the thread has behind `node`'s operation. */
static uint8_t holds_after(const struct ex_model *model, const struct ex_node *node,
                           uint64_t result)
{
    unsigned lock = node->word == EX_NO_WORD ? 0 : model->lock[node->word];

    if (lock && ex_takes_lock(&node->op) && result == 0)
        return node->holds | (uint8_t)(1u << (lock - 1));
    if (lock && node->op.kind == PORT_OP_STORE)
        return node->holds & (uint8_t) ~(1u << (lock - 1));
    return node->holds;
}

/* The node behind `parent`'s operation when that has returned `result`. */
static uint32_t make_node(struct ex_model *model, unsigned thread, uint32_t parent, uint64_t result)
{
    struct ex_threads *threads = &model->threads;
    struct ex_node node = {
        .parent = parent,
        .other = EX_NO_NODE,
        .step = EX_NO_NODE,
        .result = result,
        .thread = (uint8_t)thread,
        .queue = EX_QUEUES,
        .lock_cycle = EX_NO_WORD,
    };

    if (parent != EX_NO_NODE) {
        node.depth = threads->nodes[parent].depth + 1;
        node.step = threads->nodes[parent].step;
        node.holds = holds_after(model, &threads->nodes[parent], result);
        write_log(threads, parent, 2);
        threads->log[node.depth - 1] = result;
    }
    run(model, thread, node.depth, &node.op);
    resolve_address(model, &node);
    if (node.word != EX_NO_WORD)
        note_lock(model, &node);
    if (node.op.is_ordering) {
        unsigned word = node.op.kind == PORT_OP_FENCE ? fenced_word(model, &node) : node.word;
        ex_site_met(model, &node.op, word);
        ex_site_weaken(model, &node.op, word);
    }
    return node_add(model, &node);
}

static bool same_operation(const struct port_op *a, const struct port_op *b)
{
    return a->kind == b->kind && a->address == b->address && a->site.line == b->site.line &&
           strcmp(a->site.file, b->site.file) == 0 && a->a == b->a && a->b == b->b;
}

/* What tells a loop from another one of the same function: where it pauses, and what it looked at
 * last. */
static bool same_loop(const struct ex_threads *threads, uint32_t a, uint32_t b)
{
    const struct ex_node *one = &threads->nodes[a], *two = &threads->nodes[b];

    return same_operation(&one->op, &two->op) && one->parent != EX_NO_NODE &&
           two->parent != EX_NO_NODE &&
           threads->nodes[one->parent].op.address == threads->nodes[two->parent].op.address;
}

static bool is_lock_cycle(const struct ex_node *taken, const struct ex_node *put_back,
                          uint64_t found)
{
    return taken->op.kind == PORT_OP_CAS && found == taken->op.a &&
           put_back->op.kind == PORT_OP_STORE && put_back->op.a == found &&
           put_back->word == taken->word;
}

/* The word that an iteration which failed took as a lock and put back, when it stored nothing else.
 * `begin` is in front of the iteration. EX_NO_WORD: none. */
static uint8_t find_lock_cycle(const struct ex_threads *threads, uint32_t pause, uint32_t begin)
{
    const struct ex_node *put_back = NULL;
    uint8_t word = EX_NO_WORD;
    uint64_t result, result_after = threads->nodes[pause].result;

    for (uint32_t node = threads->nodes[pause].parent; node != begin && node != EX_NO_NODE;
         node = threads->nodes[node].parent) {
        const struct ex_node *at = &threads->nodes[node];
        result = result_after;
        result_after = at->result;
        if (at->op.kind == PORT_OP_LOAD || at->op.kind == PORT_OP_FENCE ||
            (at->op.kind == PORT_OP_CAS && result != at->op.a))
            continue;
        if (at->op.kind == PORT_OP_STORE && !put_back)
            put_back = at;
        else if (word == EX_NO_WORD && put_back && is_lock_cycle(at, put_back, result))
            word = at->word;
        else
            return EX_NO_WORD;
    }
    return word;
}

/* Where a thread goes on behind the pause at `pause`: where the iteration began. When it asks for
 * something else there, the iteration did change local state, and the thread goes on from that. */
static uint32_t loop_start(struct ex_model *model, uint32_t pause)
{
    struct ex_threads *threads = &model->threads;
    uint32_t next = make_node(model, threads->nodes[pause].thread, pause, 0);
    uint32_t step = threads->nodes[pause].step, first = EX_NO_NODE, before = step;

    for (uint32_t node = threads->nodes[pause].parent; node != EX_NO_NODE && node != step;
         node = threads->nodes[node].parent) {
        first = node;
        if (threads->nodes[node].op.kind == PORT_OP_PAUSE && same_loop(threads, node, pause)) {
            first = threads->nodes[node].other;
            before = node;
            break;
        }
    }
    /* Without a pause before it, the loop may have begun right behind the step. */
    if (first == EX_NO_NODE || !same_operation(&threads->nodes[first].op, &threads->nodes[next].op))
        return next;
    threads->nodes[pause].lock_cycle = find_lock_cycle(threads, pause, before);
    return first;
}

/* ---- Edges ---- */

static struct ex_edge *find_edge(struct ex_threads *threads, uint32_t from, uint64_t result)
{
    uint64_t hash = (result + from) * 0x9e3779b97f4a7c15u ^ (uint64_t)from << 7;
    uint32_t mask = threads->edge_capacity - 1;
    uint32_t slot = (uint32_t)(hash >> 32) & mask;

    while (threads->edges[slot].to != EX_NO_NODE &&
           (threads->edges[slot].from != from || threads->edges[slot].result != result))
        slot = (slot + 1) & mask;
    return &threads->edges[slot];
}

static void edges_clear(struct ex_threads *threads)
{
    for (uint32_t i = 0; i < threads->edge_capacity; i++)
        threads->edges[i].to = EX_NO_NODE;
}

static void add_edge(struct ex_threads *threads, uint32_t from, uint64_t result, uint32_t to)
{
    if (2 * (threads->edge_count + 1) > threads->edge_capacity) {
        struct ex_edge *old = threads->edges;
        uint32_t old_capacity = threads->edge_capacity;
        threads->edge_capacity *= 2;
        threads->edges = ex_grow(NULL, threads->edge_capacity, sizeof(*threads->edges));
        edges_clear(threads);
        for (uint32_t i = 0; i < old_capacity; i++) {
            if (old[i].to != EX_NO_NODE)
                *find_edge(threads, old[i].from, old[i].result) = old[i];
        }
        free(old);
    }
    *find_edge(threads, from, result) = (struct ex_edge){result, from, to};
    threads->edge_count++;
}

/* The step of this thread that `step` repeats, or itself. */
static uint32_t first_step(const struct ex_threads *threads, uint32_t step)
{
    for (uint32_t node = 0; node < step; node++) {
        const struct ex_node *other = &threads->nodes[node];
        if (other->op.kind == PORT_OP_STEP && other->thread == threads->nodes[step].thread &&
            same_operation(&other->op, &threads->nodes[step].op))
            return node;
    }
    return step;
}

uint32_t ex_thread_next(struct ex_model *model, uint32_t node, uint64_t result)
{
    struct ex_threads *threads = &model->threads;
    const struct ex_edge *edge = find_edge(threads, node, result);

    if (edge->to != EX_NO_NODE)
        return edge->to;
    bool pause = threads->nodes[node].op.kind == PORT_OP_PAUSE;
    uint32_t next = pause ? loop_start(model, node)
                          : make_node(model, threads->nodes[node].thread, node, result);
    if (threads->nodes[next].op.kind == PORT_OP_STEP)
        next = first_step(threads, next);
    /* A place that is reached with other locks: none is relied on. */
    uint8_t differ = threads->nodes[next].holds ^ holds_after(model, &threads->nodes[node], result);
    if (differ & ~model->locks_broken) {
        model->locks_broken |= differ;
        model->restart = true;
    }
    if (pause)
        threads->nodes[node].other = next;
    add_edge(threads, node, result, next);
    return next;
}

uint32_t ex_thread_first(struct ex_model *model, unsigned thread)
{
    struct ex_threads *threads = &model->threads;

    if (model->symmetric)
        thread = 0;
    for (uint32_t node = 0; node < threads->count; node++) {
        if (threads->nodes[node].parent == EX_NO_NODE && threads->nodes[node].thread == thread)
            return node;
    }
    return make_node(model, thread, EX_NO_NODE, 0);
}

int ex_threads_open(struct ex_model *model)
{
    struct ex_threads *threads = &model->threads;

    threads->capacity = 256;
    threads->edge_capacity = 1024;
    threads->log_capacity = 256;
    threads->nodes = ex_grow(NULL, threads->capacity, sizeof(*threads->nodes));
    threads->edges = ex_grow(NULL, threads->edge_capacity, sizeof(*threads->edges));
    threads->log = ex_grow(NULL, threads->log_capacity, sizeof(*threads->log));
    edges_clear(threads);
    return 0;
}

void ex_threads_close(struct ex_model *model)
{
    free(model->threads.nodes);
    free(model->threads.edges);
    free(model->threads.log);
}
