/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What reaching the L2 costs, which posting stands on: a load, an atomic and a release on words of
 * GPU memory, by the half of the L2 that a word is in, and behind a doorbell; and whether an SM
 * sees a flag before the message that was stored ahead of it, with a load, an exchange or a release
 * between the two, and with nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "../cases.h"
#include "../l2.h"

#define MESSAGE_PAIRS   4u     /* of lines: of the message and of the flag, in either half */
#define MESSAGE_CHUNK   20000u /* in a launch */
#define MESSAGE_THREADS 1024u  /* the largest block: the more store, the later a store arrives */

struct state {
    struct transport transport;
    struct l2 l2;
    struct transport_block words; /* a struct words */
    struct bench_samples samples[L2_HALVES];
    uint64_t sampled[L2_HALVES];
};

/* Of the messages' kernel, a line each. */
struct words {
    struct {
        uint64_t value;
        uint8_t rest[BENCH_L2_LINE_BYTES - sizeof(uint64_t)];
    } answer, ended, stale;
    int32_t status[2];
};

static enum bench_status setup(struct bench *b)
{
    struct state *state = calloc(1, sizeof(*state));
    if (!state)
        return bench_fail(b, "no memory");
    b->state = state;
    enum bench_status status = transport_open_gpu(b, &state->transport);
    if (status != BENCH_PASS)
        return status;
    for (int half = 0; half < L2_HALVES; half++)
        if (bench_samples_init(&state->samples[half], 0))
            return bench_fail(b, "no memory for the samples");
    status = transport_block_alloc(b, &state->transport, sizeof(struct words), &state->words);
    return status == BENCH_PASS ? l2_open(b, &state->transport, &state->l2) : status;
}

static void teardown(struct bench *b)
{
    struct state *state = b->state;
    if (!state)
        return;
    l2_close(&state->l2);
    transport_block_free(&state->transport, &state->words);
    transport_close(&state->transport);
    for (int half = 0; half < L2_HALVES; half++)
        bench_samples_free(&state->samples[half]);
    free(state);
}

/* ---- One operation at a time ---- */

struct row {
    const char *what;
    enum bench_l2_way way;
    bool behind_doorbell;
};

static const struct row rows[] = {
    {"load", BENCH_L2_LOAD, false},
    {"store, load of it", BENCH_L2_STORE_LOAD, false},
    {"atomic", BENCH_L2_ATOMIC, false},
    {"atomic", BENCH_L2_ATOMIC, true},
    {"store, gpu release", BENCH_L2_RELEASE, false},
    {"store, gpu release", BENCH_L2_RELEASE, true},
    {"store, system release", BENCH_L2_RELEASE_SYSTEM, false},
    {"store, system release", BENCH_L2_RELEASE_SYSTEM, true},
};

/* One launch: samples of every line, or of as many as `count` asks for. */
static enum bench_status sample(struct bench *b, const struct row *row, uint64_t count)
{
    struct state *state = b->state;
    const struct l2_results *results = state->l2.results.host;
    double ns_per_tick;

    enum bench_status status = l2_time(b, &state->l2, row->way, row->behind_doorbell, &ns_per_tick);
    for (uint64_t i = 0; i < count && status == BENCH_PASS; i++) {
        uint64_t line = i % L2_LINES, number = i / L2_LINES;
        enum l2_half half = state->l2.half[line];
        double ticks = results->ticks[line * L2_SAMPLES + number];
        bench_samples_add(&state->samples[half], ticks * ns_per_tick);
        state->sampled[half]++;
    }
    return status;
}

static enum bench_status report(struct bench *b, const struct row *row, enum l2_half half)
{
    struct state *state = b->state;
    const struct bench_record record = {
        .system = "floor",
        .config = {{"what", row->what, 0},
                   {"before", row->behind_doorbell ? "a doorbell" : "nothing", 0},
                   {"half", l2_half_name(half), 0}},
        .metric = "latency",
        .unit = "us",
    };
    return bench_report(b, &record, &state->samples[half]);
}

static enum bench_status measure(struct bench *b, const struct row *row)
{
    struct state *state = b->state;
    enum bench_status status = BENCH_PASS;
    struct bench_pace pace;
    uint64_t n;

    for (int half = 0; half < L2_HALVES; half++) {
        bench_samples_clear(&state->samples[half]);
        state->sampled[half] = 0;
    }
    for (uint64_t r = 0; r < b->options->repetitions && status == BENCH_PASS; r++) {
        bench_pace_start(&pace, b, row->what);
        while (status == BENCH_PASS && (n = bench_pace_next(&pace, L2_LINES * L2_SAMPLES)) > 0)
            status = sample(b, row, n);
    }
    for (int half = 0; half < L2_HALVES && status == BENCH_PASS; half++)
        if (state->sampled[half])
            status = report(b, row, (enum l2_half)half);
    return status;
}

/* ---- Messages ---- */

struct message_row {
    const char *what;
    enum bench_l2_between between;
    bool must_hold;
};

static const struct message_row message_rows[] = {
    {"nothing", BENCH_L2_NOTHING, false},
    {"a load of the message", BENCH_L2_A_LOAD, false},
    {"the answer of an exchange", BENCH_L2_ANSWER, true},
    {"a release", BENCH_L2_A_FENCE, true},
};

/* The line that is number `number` among those of the half; any where there is none. */
static void *line_of(const struct l2 *l2, enum l2_half half, uint32_t number)
{
    uint32_t line = number;

    for (uint32_t i = 0, found = 0; i < L2_LINES; i++) {
        if (l2->half[i] == half && found++ == number) {
            line = i;
            break;
        }
    }
    return (uint8_t *)l2->lines.buffer.device + (size_t)line * L2_STRIDE_BYTES;
}

/* One launch: the message's line and the flag's in halves that `pair` says. */
static enum bench_status send(struct bench *b, enum bench_l2_between between, uint32_t pair,
                              uint32_t count, uint64_t *stale)
{
    static const uint8_t zeroes[BENCH_L2_LINE_BYTES];
    struct state *state = b->state;
    struct transport *t = &state->transport;
    struct words *words = state->words.host, *on_gpu = state->words.buffer.device;
    const struct bench_l2_messages_args args = {
        .message = line_of(&state->l2, pair & 1 ? L2_FAR : L2_NEAR, pair / 2),
        .flag = line_of(&state->l2, pair & 2 ? L2_FAR : L2_NEAR, 2 + pair / 2),
        .answer = &on_gpu->answer.value,
        .ended = (uint32_t *)(void *)&on_gpu->ended.value,
        .stale = &on_gpu->stale.value,
        .between = between,
        .count = count,
        .timeout_ns = b->options->timeout_ns,
        .status = on_gpu->status,
    };

    memset(words, 0, sizeof(*words));
    if (t->gpu->backend->copy(t->gpu, args.message, zeroes, sizeof(zeroes)) ||
        t->gpu->backend->copy(t->gpu, args.flag, zeroes, sizeof(zeroes)))
        return bench_fail(b, "%s", db_gpu_error_text());
    enum bench_status status = transport_block_store(b, t, &state->words);
    if (status == BENCH_PASS)
        status = transport_run(b, t, &bench_l2_messages, 2, MESSAGE_THREADS, &args);
    if (status == BENCH_PASS)
        status = transport_block_fetch(b, t, &state->words);
    if (status == BENCH_PASS && (words->status[0] || words->status[1]))
        return bench_fail(b, "a message was not answered within %g s; --timeout makes that longer",
                          (double)b->options->timeout_ns / 1e9);
    *stale += words->stale.value;
    return status;
}

static enum bench_status send_all(struct bench *b, const struct message_row *row)
{
    struct bench_record record = {
        .system = "floor",
        .config = {{"what", "a flag seen before its message", 0}, {"between", row->what, 0}},
        .metric = "stale",
        .unit = "%",
    };
    uint64_t stale = 0, sent = 0, n;
    enum bench_status status = BENCH_PASS;
    struct bench_pace pace;

    for (uint32_t pair = 0; pair < MESSAGE_PAIRS && status == BENCH_PASS; pair++) {
        bench_pace_start(&pace, b, "messages");
        while (status == BENCH_PASS && (n = bench_pace_next(&pace, MESSAGE_CHUNK)) > 0) {
            status = send(b, row->between, pair, (uint32_t)n, &stale);
            sent += n;
        }
    }
    record.iterations = sent;
    if (status == BENCH_PASS)
        status = bench_report_value(b, &record, 100.0 * (double)stale / (double)sent);
    if (status != BENCH_PASS)
        return status;
    if (row->must_hold && stale)
        return bench_fail(b,
                          "%llu of %llu flags were seen before their messages, with %s between: "
                          "this GPU does not keep what the library relies on",
                          (unsigned long long)stale, (unsigned long long)sent, row->what);
    if (row->between == BENCH_L2_NOTHING && !stale)
        return bench_warn(b, "no flag was seen before its message though nothing is between; so "
                             "the other rows prove nothing here");
    return BENCH_PASS;
}

static enum bench_status run(struct bench *b)
{
    enum bench_status status = BENCH_PASS;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && status == BENCH_PASS; i++)
        status = measure(b, &rows[i]);
    /* CPU threads that play a GPU keep stores in order. */
    bool played = strcmp(b->where.gpu_kind, "cpu") == 0;
    for (size_t i = 0; i < sizeof(message_rows) / sizeof(message_rows[0]) && !played; i++)
        if (status == BENCH_PASS)
            status = send_all(b, &message_rows[i]);
    return status;
}

const struct bench_case bench_case_l2 = {
    .name = "l2",
    .summary = "what posting stands on: a load, an atomic, a release, by the half of the L2; and "
               "stores out of order",
    .uses = BENCH_USE(GPU) | BENCH_USE(TIMEOUT),
    .setup = setup,
    .run = run,
    .teardown = teardown,
};
