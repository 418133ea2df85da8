/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Printing a counterexample (trace.h): one line an operation, with its place in the source. Loads
 * of words that nobody else writes are left out.
 */
#include "trace.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "program.h"

const char *ex_value_text(enum ex_format format, uint64_t value, char *text, size_t bytes)
{
    switch (format) {
    case EX_NUMBER:
        snprintf(text, bytes, value < 4096 ? "%" PRIu64 : "0x%" PRIx64, value);
        break;
    case EX_BE32:
        snprintf(text, bytes, "%u", port_bswap32((uint32_t)value));
        break;
    case EX_PUBLISHED:
        snprintf(text, bytes, "%" PRIu64, value >> 4);
        break;
    case EX_WIRE:
        snprintf(text, bytes, "%08x %08x", port_bswap32((uint32_t)value),
                 port_bswap32((uint32_t)(value >> 32)));
        break;
    case EX_FLIPPED:
        snprintf(text, bytes, "0x%" PRIx64 " valid=%u", value >> 1, (unsigned)value & 1);
        break;
    }
    return text;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void print_head(struct ex_model *model, const char *who, const struct port_site *site)
{
    char place[40] = "";

    if (site)
        snprintf(place, sizeof(place), "%s:%u", base_name(site->file), site->line);
    fprintf(model->trace->to, "%4u  %-9s %-12s ", ++model->trace->line, who, place);
}

static const char *order_text(const struct port_op *op)
{
    if (op->acquire && op->release)
        return op->system ? " (acquire and release, system scope)"
                          : " (acquire and release, GPU scope)";
    if (op->acquire)
        return op->system ? " (acquire, system scope)" : " (acquire, GPU scope)";
    if (op->release)
        return op->system ? " (release, system scope)" : " (release, GPU scope)";
    return "";
}

static void print_access(struct ex_model *model, const struct ex_state *state, unsigned thread,
                         const struct ex_node *node, unsigned at, uint64_t value)
{
    FILE *to = model->trace->to;
    const struct ex_word *word = &model->words[node->word];
    char text[40], newest[40];
    unsigned last = ex_history_length(model, state->word[node->word]) - 1;
    bool store = ex_must_go(model, state, thread);

    ex_value_text(word->format, value, text, sizeof(text));
    switch (node->op.kind) {
    case PORT_OP_LOAD:
        fprintf(to, "loads %s = %s", word->name, text);
        break;
    case PORT_OP_STORE:
        fprintf(to, "stores %s = %s", word->name,
                ex_value_text(word->format, node->op.a, text, sizeof(text)));
        break;
    case PORT_OP_STORE16:
        fprintf(to, "stores 16 bytes at %s", word->name);
        break;
    default:
        fprintf(to, "%s %s: finds %s",
                node->op.kind == PORT_OP_ADD   ? "adds to"
                : node->op.kind == PORT_OP_CAS ? "compares and swaps"
                : node->op.kind == PORT_OP_MAX ? "raises"
                                               : "exchanges",
                word->name, text);
        break;
    }
    if (store ? at > last : at == last)
        return;
    ex_value_text(word->format, ex_store_at(model, state->word[node->word], last)->value, newest,
                  sizeof(newest));
    fprintf(to, store ? ", behind which %s is stored already" : ", an old value: %s is stored",
            newest);
}

void ex_trace_operation(struct ex_model *model, const struct ex_state *state, unsigned thread,
                        unsigned at, uint64_t value)
{
    const struct ex_node *node = ex_node(model, state->thread[thread].node);
    FILE *to = model->trace->to;
    char who[16];

    if (node->op.kind == PORT_OP_LOAD && !(model->written[node->word] & ~(1u << thread)))
        return;
    if (node->op.kind == PORT_OP_BROADCAST)
        return;
    snprintf(who, sizeof(who), "thread %u", thread);
    print_head(model, who, &node->op.site);
    if (node->op.kind == PORT_OP_FENCE)
        fprintf(to, "%s", node->op.acquire || node->op.release ? "fence" : "(no fence here)");
    else if (node->op.kind == PORT_OP_SYNCWARP)
        fprintf(to, "warp barrier");
    else if (node->op.kind == PORT_OP_DOORBELL)
        fprintf(to, "rings doorbell %u", port_bswap32((uint32_t)node->op.a) >> 8 & M5_INDEX_MASK);
    else
        print_access(model, state, thread, node, at, value);
    fprintf(to, "%s\n", node->op.kind == PORT_OP_SYNCWARP ? "" : order_text(&node->op));
}

void ex_trace_device(struct ex_model *model, unsigned queue, const char *format, ...)
{
    va_list arguments;

    print_head(model, model->queue_count > 1 && queue ? "device q1" : "device", NULL);
    va_start(arguments, format);
    vfprintf(model->trace->to, format, arguments);
    va_end(arguments);
    fputc('\n', model->trace->to);
}

void ex_trace_waiting(struct ex_model *model, const struct ex_state *state)
{
    unsigned threads = ex_thread_count(model);

    for (unsigned thread = 0; thread < threads; thread++) {
        const struct ex_node *node = ex_node(model, state->thread[thread].node);
        if (node->op.kind == PORT_OP_END)
            continue;
        fprintf(model->trace->to, "      thread %u waits in %s (%s:%u)\n", thread,
                node->op.site.function, base_name(node->op.site.file), node->op.site.line);
    }
}
