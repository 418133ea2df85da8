/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search: breadth first, so that the first counterexample is a shortest one and the same each
 * time. A visited state is kept as 64 bits of its hash, with the step and the state it came from.
 *
 * A program that ends in some schedules can still hang in others. So when every state was visited,
 * the edges between them are walked backwards from the states in which all is done; one that is not
 * reached that way is a hang: nothing that anybody might do leads to the end.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "grow.h"
#include "program.h"
#include "trace.h"

struct visited {
    uint64_t *hashes; /* of each state, by number */
    uint32_t *parents;
    uint32_t *steps; /* that led here from the parent: step_number() */
    uint8_t *ends;   /* the end can be reached from here */
    uint32_t *slots; /* number + 1 */
    uint32_t count, capacity;
};

struct edge {
    uint32_t from, to;
};

/* States in full, of the level that is being searched and of the next one. */
struct level {
    uint32_t *states; /* each is its number, then the state */
    size_t count, capacity;
};

struct search {
    struct ex_model model;
    uint32_t state_words;
    struct visited visited;
    struct edge *edges;
    size_t edge_count, edge_capacity;
    struct level now, next;
    uint64_t taken;
};

/* ---- Visited states ---- */

static void visited_double(struct visited *v)
{
    v->capacity = v->capacity ? 2 * v->capacity : 1u << 14;
    v->hashes = ex_grow(v->hashes, v->capacity, sizeof(*v->hashes));
    v->parents = ex_grow(v->parents, v->capacity, sizeof(*v->parents));
    v->steps = ex_grow(v->steps, v->capacity, sizeof(*v->steps));
    v->ends = ex_grow(v->ends, v->capacity, sizeof(*v->ends));
    v->slots = ex_grow(v->slots, 2 * (size_t)v->capacity, sizeof(*v->slots));
    memset(v->slots, 0, 2 * (size_t)v->capacity * sizeof(*v->slots));
    for (uint32_t number = 0; number < v->count; number++) {
        uint32_t mask = 2 * v->capacity - 1, slot = (uint32_t)v->hashes[number] & mask;
        while (v->slots[slot])
            slot = (slot + 1) & mask;
        v->slots[slot] = number + 1;
    }
}

/* The number of a state; `*is_new` says whether it was not there. */
static uint32_t visit(struct visited *v, uint64_t hash, uint32_t parent, uint32_t step,
                      bool *is_new)
{
    if (v->count == v->capacity)
        visited_double(v);
    uint32_t mask = 2 * v->capacity - 1, slot = (uint32_t)hash & mask;

    for (; v->slots[slot]; slot = (slot + 1) & mask) {
        if (v->hashes[v->slots[slot] - 1] == hash) {
            *is_new = false;
            return v->slots[slot] - 1;
        }
    }
    uint32_t number = v->count++;
    v->slots[slot] = number + 1;
    v->hashes[number] = hash;
    v->parents[number] = parent;
    v->steps[number] = step;
    v->ends[number] = 0;
    *is_new = true;
    return number;
}

static void level_add(struct search *search, struct level *level, uint32_t number,
                      const struct ex_state *state)
{
    size_t words = search->state_words + 1;

    if (level->count == level->capacity) {
        level->capacity = level->capacity ? 2 * level->capacity : 256;
        level->states = ex_grow(level->states, level->capacity, words * sizeof(uint32_t));
    }
    uint32_t *to = level->states + level->count++ * words;
    *to = number;
    memcpy(to + 1, state, search->state_words * sizeof(uint32_t));
}

static void edge_add(struct search *search, uint32_t from, uint32_t to)
{
    if (search->edge_count == search->edge_capacity) {
        search->edge_capacity = search->edge_capacity ? 2 * search->edge_capacity : 1u << 14;
        search->edges = ex_grow(search->edges, search->edge_capacity, sizeof(*search->edges));
    }
    search->edges[search->edge_count++] = (struct edge){from, to};
}

/* ---- Steps ---- */

static bool is_end(const struct ex_model *model, const struct ex_state *state)
{
    unsigned threads = ex_thread_count(model);

    for (unsigned thread = 0; thread + model->program->daemons < threads; thread++) {
        if (!ex_thread_ended(model, state, thread))
            return false;
    }
    return ex_device_idle(model, state);
}

static bool finish(struct ex_model *model, const struct ex_state *state)
{
    const char *wrong = model->program->finish ? model->program->finish(model, state) : NULL;
    return !wrong || ex_fault(model, "%s", wrong);
}

/* What `agent` does: its choice `choice`, a thread that polls at poll `poll` of its iteration. */
static uint32_t step_number(unsigned agent, unsigned poll, unsigned choice)
{
    return agent << 24 | poll << 16 | choice;
}

static bool take_step(struct ex_model *model, struct ex_state *state, uint32_t step)
{
    unsigned agent = step >> 24, poll = step >> 16 & 0xff, choice = step & 0xffff;
    uint32_t polls[EX_POLLS];

    if (agent >= EX_DEVICE)
        return ex_device_choose(model, state, agent - EX_DEVICE, choice);
    if (poll > 0 && ex_polls(model, state, agent, polls) > poll)
        state->thread[agent].node = polls[poll];
    return ex_choose(model, state, agent, choice);
}

/* Enters a settled state. False when it is a fault. */
static bool enter(struct search *search, const struct ex_state *state, uint32_t parent,
                  uint32_t step)
{
    bool is_new;
    uint64_t hash = ex_hash(state, ex_state_bytes(&search->model));
    uint32_t number = visit(&search->visited, hash, parent, step, &is_new);

    if (!is_new) {
        edge_add(search, parent, number);
        return true;
    }
    level_add(search, &search->next, number, state);
    if (is_end(&search->model, state)) {
        search->visited.ends[number] = 1;
        return finish(&search->model, state);
    }
    return true;
}

/* The steps of one agent from choice `first` on. False when one is a fault: the step is then
 * `search->visited`'s last. */
static bool expand_choices(struct search *search, uint32_t number, const struct ex_state *state,
                           unsigned agent, unsigned poll, unsigned first, unsigned choices)
{
    for (unsigned choice = first; choice < choices; choice++) {
        struct ex_state next = *state;
        uint32_t step = step_number(agent, poll, choice);
        search->taken++;
        if (!take_step(&search->model, &next, step)) {
            bool is_new;
            visit(&search->visited, ~(uint64_t)search->taken, number, step, &is_new);
            return false;
        }
        ex_reduce(&search->model, &next, state);
        if (search->model.restart)
            return true;
        if (!enter(search, &next, number, step))
            return false;
    }
    return true;
}

/* A thread that polls may find something new at each poll; to find nothing, which is the first
 * choice, leads back to this state. */
static bool expand_thread(struct search *search, uint32_t number, const struct ex_state *state,
                          unsigned thread)
{
    struct ex_model *model = &search->model;
    struct ex_state at = *state;
    uint32_t polls[EX_POLLS];
    unsigned count = ex_polls(model, &at, thread, polls);

    if (count == 0)
        return expand_choices(search, number, state, thread, 0, 0,
                              ex_choices(model, state, thread));
    for (unsigned poll = 0; poll < count && !model->restart; poll++) {
        at.thread[thread].node = polls[poll];
        unsigned choices = ex_choices(model, &at, thread);
        if (!expand_choices(search, number, state, thread, poll, 1, choices))
            return false;
    }
    return true;
}

static bool expand(struct search *search, uint32_t number, const struct ex_state *state)
{
    struct ex_model *model = &search->model;
    unsigned threads = ex_thread_count(model);

    for (unsigned thread = 0; thread < threads; thread++) {
        if (ex_must_go(model, state, thread))
            return expand_thread(search, number, state, thread);
    }
    for (unsigned thread = 0; thread < threads && !model->restart; thread++) {
        if (!expand_thread(search, number, state, thread))
            return false;
    }
    for (unsigned q = 0; q < model->queue_count && !model->restart; q++) {
        if (!expand_choices(search, number, state, EX_DEVICE + q, 0, 0,
                            ex_device_choices(model, state, q)))
            return false;
    }
    return true;
}

/* ---- Hangs ---- */

/* A state from which no end can be reached, or UINT32_MAX. */
static uint32_t find_hang(struct search *search)
{
    struct visited *v = &search->visited;

    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = search->edge_count; i-- > 0;) {
            const struct edge *edge = &search->edges[i];
            if (v->ends[edge->to] && !v->ends[edge->from]) {
                v->ends[edge->from] = 1;
                changed = true;
            }
        }
        for (uint32_t number = v->count; number-- > 1;) {
            if (v->ends[number] && !v->ends[v->parents[number]]) {
                v->ends[v->parents[number]] = 1;
                changed = true;
            }
        }
    }
    for (uint32_t number = 0; number < v->count; number++) {
        if (!v->ends[number])
            return number;
    }
    return UINT32_MAX;
}

/* ---- Tracing ---- */

/* Repeats the steps to state `number`, which prints them. */
static void retrace(struct search *search, uint32_t number, bool is_hang, FILE *to)
{
    struct ex_model *model = &search->model;
    struct ex_trace trace = {.to = to};
    struct ex_state state;
    uint32_t length = 0;
    uint8_t who[EX_THREADS] = {0, 1, 2, 3, 4, 5}; /* is in each place of the states searched */

    for (uint32_t n = number; n != 0; n = search->visited.parents[n])
        length++;
    uint32_t *steps = ex_grow(NULL, length + 1, sizeof(*steps));
    memset(steps, 0, (length + 1) * sizeof(*steps));
    for (uint32_t n = number, i = length; n != 0; n = search->visited.parents[n])
        steps[--i] = search->visited.steps[n];
    char fault[sizeof(model->fault)];
    memcpy(fault, model->fault, sizeof(fault));
    model->fault[0] = '\0';
    model->trace = &trace;
    ex_model_start(model, &state);
    bool good = ex_settle(model, &state);
    for (uint32_t i = 0; i < length && good; i++) {
        unsigned agent = steps[i] >> 24;
        ex_reduce_followed(model, &state, who);
        if (agent < EX_DEVICE)
            steps[i] += (who[agent] - agent) << 24;
        good = take_step(model, &state, steps[i]);
    }
    if (is_hang)
        ex_trace_waiting(model, &state);
    model->trace = NULL;
    if (!model->fault[0]) /* else it is the same, with the numbers of the threads in the trace */
        memcpy(model->fault, fault, sizeof(fault));
    fprintf(to, "  => %s\n", model->fault);
    free(steps);
}

/* ---- The search ---- */

static void clear(struct search *search)
{
    search->visited.count = 0;
    if (search->visited.capacity)
        memset(search->visited.slots, 0,
               2 * (size_t)search->visited.capacity * sizeof(*search->visited.slots));
    search->edge_count = 0;
    search->now.count = search->next.count = 0;
    search->model.versions_cut = false;
    search->model.fault[0] = '\0';
}

/* From the start to the end, a fault, the bound, or a restart. */
static enum ex_verdict pass(struct search *search)
{
    struct ex_model *model = &search->model;
    struct ex_state state;

    clear(search);
    ex_model_start(model, &state);
    if (!ex_settle(model, &state))
        return EX_COUNTEREXAMPLE;
    ex_reduce(model, &state, NULL);
    if (!enter(search, &state, 0, 0))
        return EX_COUNTEREXAMPLE;
    while (search->next.count > 0 && !model->restart) {
        struct level done = search->now;
        search->now = search->next;
        search->next = done;
        search->next.count = 0;
        for (size_t i = 0; i < search->now.count && !model->restart; i++) {
            const uint32_t *from = search->now.states + i * (search->state_words + 1);
            memcpy(&state, from + 1, search->state_words * sizeof(uint32_t));
            if (!expand(search, *from, &state))
                return EX_COUNTEREXAMPLE;
            if (search->visited.count >= model->config.max_states)
                return EX_STOPPED;
        }
    }
    return EX_SAFE;
}

static void close_search(struct search *search)
{
    free(search->visited.hashes);
    free(search->visited.parents);
    free(search->visited.steps);
    free(search->visited.ends);
    free(search->visited.slots);
    free(search->edges);
    free(search->now.states);
    free(search->next.states);
    ex_model_close(&search->model);
    free(search);
}

/* Of this thread's own time: what others do on the machine does not count. */
static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int ex_search(const struct ex_program *program, const struct ex_config *config,
              struct ex_result *result, FILE *trace, struct ex_sites *sites)
{
    struct search *search = calloc(1, sizeof(*search));
    double start = seconds_now();
    uint32_t faulty = UINT32_MAX;

    if (!search)
        return -1;
    int rc = ex_model_open(&search->model, program, config);
    if (rc) {
        free(search);
        return rc;
    }
    search->model.sites = sites;
    search->state_words = ex_state_bytes(&search->model) / (uint32_t)sizeof(uint32_t);
    memset(result, 0, sizeof(*result));
    do {
        result->verdict = pass(search);
        result->states += search->visited.count;
    } while (search->model.restart);
    if (result->verdict == EX_COUNTEREXAMPLE)
        faulty = search->visited.count ? search->visited.count - 1 : 0;
    bool is_hang = result->verdict == EX_SAFE && (faulty = find_hang(search)) != UINT32_MAX;
    if (is_hang) {
        result->verdict = EX_COUNTEREXAMPLE;
        ex_fault(&search->model, "no schedule from here ends: what was posted is never completed");
    }
    if (result->verdict == EX_COUNTEREXAMPLE && trace)
        retrace(search, faulty, is_hang, trace);
    result->steps = search->taken;
    result->seconds = seconds_now() - start;
    result->versions_cut = search->model.versions_cut;
    memcpy(result->fault, search->model.fault, sizeof(result->fault));
    close_search(search);
    return 0;
}
