/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Litmus programs with known answers (litmus.h). What PTX says is worked out from the axioms of the
 * PTX ISA, chapter "Memory Consistency Model"; the shapes carry the names that the literature gives
 * them. docs/memory_order.md, "Litmus programs", says where the explorer's model differs and why.
 */
#include "litmus.h"

#include <string.h>

#include "program.h"

enum {
    MAX_THREADS = 4,
    REGISTERS = 4,
};

struct memory {
    uint64_t x, y, z;        /* in host memory */
    uint64_t g;              /* in GPU memory */
    uint64_t reg[REGISTERS]; /* what loads found, each stored by one thread */
};

struct litmus {
    const char *name;
    const char *text;
    unsigned threads, cpu_threads;
    void (*run[MAX_THREADS])(struct memory *m);
    /* The outcome: values of x, y and the registers; ANY where they do not matter. */
    uint64_t x, y, reg[REGISTERS];
    char ptx, letter, machine; /* 'a' allowed, 'f' forbidden */
};

#define ANY UINT64_MAX

/* ---- Operations, short ---- */

#define ST(word, value)  port_st64(&m->word, value, PORT_RELAXED, PORT_GPU)
#define STR(word, value) port_st64(&m->word, value, PORT_RELEASE, PORT_GPU)
#define STS(word, value) port_st64(&m->word, value, PORT_RELEASE, PORT_SYSTEM)
#define LD(r, word)      ST(reg[r], port_ld64(&m->word, PORT_RELAXED, PORT_GPU))
#define LDA(r, word)     ST(reg[r], port_ld64(&m->word, PORT_ACQUIRE, PORT_GPU))
#define LDS(r, word)     ST(reg[r], port_ld64(&m->word, PORT_ACQUIRE, PORT_SYSTEM))
#define REL              port_fence(PORT_RELEASE, PORT_GPU)
#define ACQ              port_fence(PORT_ACQUIRE, PORT_GPU)

#define THREAD(name, ...)                                                                          \
    static void name(struct memory *m)                                                             \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }

THREAD(x1_y1, ST(x, 1); ST(y, 1))
THREAD(x1_yr1, ST(x, 1); STR(y, 1))
THREAD(x1_ys1, ST(x, 1); STS(y, 1))
THREAD(x1_rel_y1, ST(x, 1); REL; ST(y, 1))
THREAD(y_x, LD(0, y); LD(1, x))
THREAD(ya_x, LDA(0, y); LD(1, x))
THREAD(ys_x, LDS(0, y); LD(1, x))
THREAD(y_acq_x, LD(0, y); ACQ; LD(1, x))
THREAD(add_y, port_add64(&m->y, 1))
THREAD(store_y2, ST(y, 2))

THREAD(x1_ld_y, ST(x, 1); LD(0, y))
THREAD(y1_ld_x, ST(y, 1); LD(1, x))
THREAD(xr1_lda_y, STR(x, 1); LDA(0, y))
THREAD(yr1_lda_x, STR(y, 1); LDA(1, x))

THREAD(ld_x_y1, LD(0, x); ST(y, 1))
THREAD(ld_y_x1, LD(1, y); ST(x, 1))
THREAD(lda_x_yr1, LDA(0, x); STR(y, 1))
THREAD(lda_y_xr1, LDA(1, y); STR(x, 1))

THREAD(x1, ST(x, 1))
THREAD(y1, ST(y, 1))
THREAD(x2, ST(x, 2))
THREAD(xr1, STR(x, 1))
THREAD(yr1, STR(y, 1))
THREAD(ld_xy, LD(0, x); LD(1, y))
THREAD(ld_yx, LD(2, y); LD(3, x))
THREAD(lda_xy, LDA(0, x); LDA(1, y))
THREAD(lda_yx, LDA(2, y); LDA(3, x))

THREAD(ld_xx, LD(0, x); LD(1, x))
THREAD(x1_x2, ST(x, 1); ST(x, 2))
THREAD(x1_ld_x, ST(x, 1); LD(0, x))
THREAD(ld_x_x1, LD(0, x); ST(x, 1))
THREAD(x1_y2, ST(x, 1); ST(y, 2))
THREAD(y1_x2, ST(y, 1); ST(x, 2))

THREAD(wrc_relaxed, LD(0, x); ST(y, 1))
THREAD(wrc_release, LD(0, x); STR(y, 1))
THREAD(wrc_both, LDA(0, x); STR(y, 1))
THREAD(wrc_read, LDA(1, y); LD(2, x))

THREAD(x2_yr1, ST(x, 2); STR(y, 1))
THREAD(x2_y1, ST(x, 2); ST(y, 1))
THREAD(lda_y_x1, LDA(0, y); ST(x, 1))
THREAD(ld_y_then_x1, LD(0, y); ST(x, 1))
THREAD(isa2_middle, LDA(0, y); STR(z, 1))
THREAD(isa2_end, LDA(1, z); LD(2, x))

THREAD(add_x, port_add64(&m->x, 1))
THREAD(add_g_y1, port_add64(&m->g, 1); ST(y, 1))
THREAD(add_x_y1, port_add64(&m->x, 1); ST(y, 1))
THREAD(ys_g, LDS(0, y); LD(1, g))

/* ---- The table ---- */

static const struct litmus table[] = {
    {"MP", "relaxed", 2, 0, {x1_y1, y_x}, ANY, ANY, {1, 0, ANY, ANY}, 'a', 'a', 'a'},
    {"MP",
     "release store, relaxed load",
     2,
     0,
     {x1_yr1, y_x},
     ANY,
     ANY,
     {1, 0, ANY, ANY},
     'a',
     'a',
     'a'},
    {"MP",
     "relaxed store, acquire load",
     2,
     0,
     {x1_y1, ya_x},
     ANY,
     ANY,
     {1, 0, ANY, ANY},
     'a',
     'a',
     'a'},
    {"MP",
     "release store, acquire load",
     2,
     0,
     {x1_yr1, ya_x},
     ANY,
     ANY,
     {1, 0, ANY, ANY},
     'f',
     'f',
     'f'},
    {"MP", "fences", 2, 0, {x1_rel_y1, y_acq_x}, ANY, ANY, {1, 0, ANY, ANY}, 'f', 'f', 'f'},
    {"MP",
     "an atomic between",
     3,
     0,
     {x1_yr1, ya_x, add_y},
     ANY,
     ANY,
     {2, 0, ANY, ANY},
     'f',
     'f',
     'f'},
    {"MP",
     "a store of another thread between",
     3,
     0,
     {x1_yr1, ya_x, store_y2},
     ANY,
     ANY,
     {2, 0, ANY, ANY},
     'a',
     'a',
     'a'},
    {"MP",
     "GPU to CPU, GPU scope, host memory",
     2,
     1,
     {x1_yr1, ys_x},
     ANY,
     ANY,
     {1, 0, ANY, ANY},
     'a',
     'a',
     'a'},
    {"MP",
     "GPU to CPU, system scope",
     2,
     1,
     {x1_ys1, ys_x},
     ANY,
     ANY,
     {1, 0, ANY, ANY},
     'f',
     'f',
     'f'},
    {"MP",
     "GPU to CPU, an atomic on GPU memory",
     2,
     1,
     {add_g_y1, ys_g},
     ANY,
     ANY,
     {1, 0, ANY, ANY},
     'a',
     'a',
     'f'},
    {"MP",
     "GPU to CPU, an atomic on host memory",
     2,
     1,
     {add_x_y1, ys_x},
     ANY,
     ANY,
     {1, 0, ANY, ANY},
     'a',
     'a',
     'a'},
    {"SB", "relaxed", 2, 0, {x1_ld_y, y1_ld_x}, ANY, ANY, {0, 0, ANY, ANY}, 'a', 'a', 'a'},
    {"SB",
     "release and acquire",
     2,
     0,
     {xr1_lda_y, yr1_lda_x},
     ANY,
     ANY,
     {0, 0, ANY, ANY},
     'a',
     'a',
     'a'},
    {"LB", "relaxed", 2, 0, {ld_x_y1, ld_y_x1}, ANY, ANY, {1, 1, ANY, ANY}, 'a', 'f', 'f'},
    {"LB",
     "release and acquire",
     2,
     0,
     {lda_x_yr1, lda_y_xr1},
     ANY,
     ANY,
     {1, 1, ANY, ANY},
     'f',
     'f',
     'f'},
    {"IRIW", "relaxed", 4, 0, {x1, y1, ld_xy, ld_yx}, ANY, ANY, {1, 0, 1, 0}, 'a', 'a', 'a'},
    {"IRIW",
     "release and acquire",
     4,
     0,
     {xr1, yr1, lda_xy, lda_yx},
     ANY,
     ANY,
     {1, 0, 1, 0},
     'a',
     'a',
     'a'},
    {"CoRR", "relaxed", 2, 0, {x1, ld_xx}, ANY, ANY, {1, 0, ANY, ANY}, 'f', 'f', 'f'},
    {"CoWW", "relaxed", 1, 0, {x1_x2}, 1, ANY, {ANY, ANY, ANY, ANY}, 'f', 'f', 'f'},
    {"CoWR", "relaxed", 2, 0, {x1_ld_x, x2}, 1, ANY, {0, ANY, ANY, ANY}, 'f', 'f', 'f'},
    {"CoRW", "relaxed", 2, 0, {ld_x_x1, x2}, 2, ANY, {2, ANY, ANY, ANY}, 'f', 'f', 'f'},
    {"2+2W", "relaxed", 2, 0, {x1_y2, y1_x2}, 1, 1, {ANY, ANY, ANY, ANY}, 'a', 'a', 'a'},
    {"WRC",
     "relaxed in the middle",
     3,
     0,
     {x1, wrc_relaxed, wrc_read},
     ANY,
     ANY,
     {1, 1, 0, ANY},
     'a',
     'a',
     'a'},
    {"WRC",
     "release in the middle",
     3,
     0,
     {xr1, wrc_release, wrc_read},
     ANY,
     ANY,
     {1, 1, 0, ANY},
     'f',
     'f',
     'f'},
    {"WRC",
     "acquire and release in the middle",
     3,
     0,
     {xr1, wrc_both, wrc_read},
     ANY,
     ANY,
     {1, 1, 0, ANY},
     'f',
     'f',
     'f'},
    {"S", "relaxed", 2, 0, {x2_y1, ld_y_then_x1}, 2, ANY, {1, ANY, ANY, ANY}, 'a', 'a', 'a'},
    {"S",
     "release, relaxed load",
     2,
     0,
     {x2_yr1, ld_y_then_x1},
     2,
     ANY,
     {1, ANY, ANY, ANY},
     'a',
     'a',
     'f'},
    {"S",
     "release and acquire",
     2,
     0,
     {x2_yr1, lda_y_x1},
     2,
     ANY,
     {1, ANY, ANY, ANY},
     'f',
     'f',
     'f'},
    {"ISA2",
     "release and acquire",
     3,
     0,
     {x1_yr1, isa2_middle, isa2_end},
     ANY,
     ANY,
     {1, 1, 0, ANY},
     'f',
     'f',
     'f'},
    {"ADD",
     "two atomics, one lost",
     2,
     0,
     {add_x, add_x},
     1,
     ANY,
     {ANY, ANY, ANY, ANY},
     'f',
     'f',
     'f'},
};

/* ---- As a program ---- */

static void set_up(struct ex_model *model, void *object)
{
    struct memory *m = object;

    ex_word_add(model, &m->x, EX_HOST_MEMORY, EX_NUMBER, 0, "x");
    ex_word_add(model, &m->y, EX_HOST_MEMORY, EX_NUMBER, 0, "y");
    ex_word_add(model, &m->z, EX_HOST_MEMORY, EX_NUMBER, 0, "z");
    ex_word_add(model, &m->g, EX_GPU_MEMORY, EX_NUMBER, 0, "g");
    for (unsigned r = 0; r < REGISTERS; r++)
        ex_word_add(model, &m->reg[r], EX_GPU_MEMORY, EX_NUMBER, 0, "r%u", r);
}

static void run(const struct ex_config *config, void *object, unsigned thread)
{
    table[config->variant].run[thread](object);
}

static bool is(const struct ex_model *model, const struct ex_state *state, const uint64_t *word,
               uint64_t wanted)
{
    return wanted == ANY || ex_final(model, state, word) == wanted;
}

static const char *finish(struct ex_model *model, const struct ex_state *state)
{
    const struct litmus *litmus = &table[model->config.variant];
    const struct memory *m = model->memory;
    bool seen = is(model, state, &m->x, litmus->x) && is(model, state, &m->y, litmus->y);

    for (unsigned r = 0; r < REGISTERS; r++)
        seen = seen && is(model, state, &m->reg[r], litmus->reg[r]);
    return seen ? "the outcome was seen" : NULL;
}

static int search(unsigned number, enum ex_rules rules, char *verdict)
{
    const struct ex_program program = {
        .name = table[number].name,
        .memory_bytes = sizeof(struct memory),
        .set_up = set_up,
        .run = run,
        .cpu_threads = table[number].cpu_threads,
        .finish = finish,
    };
    const struct ex_config config = {
        .rules = rules,
        .threads = table[number].threads,
        .variant = number,
        .max_states = 1000000,
    };
    struct ex_result result;
    int rc = ex_search(&program, &config, &result, NULL, NULL);

    *verdict = result.verdict == EX_SAFE ? 'f' : result.verdict == EX_COUNTEREXAMPLE ? 'a' : '?';
    return rc;
}

static const char *word_of(char verdict)
{
    return verdict == 'a' ? "allowed" : verdict == 'f' ? "forbidden" : "stopped";
}

int ex_litmus_run(FILE *to)
{
    int unexpected = 0;

    fprintf(to, "%-6s %-36s %-10s %-16s %s\n", "shape", "with", "PTX", "the letter here",
            "machines here");
    for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const struct litmus *litmus = &table[i];
        char letter, machine;
        int rc = search(i, EX_LETTER, &letter);
        rc = rc ? rc : search(i, EX_MACHINE, &machine);
        if (rc)
            return rc;
        bool wrong = letter != litmus->letter || machine != litmus->machine;
        unexpected += wrong;
        fprintf(to, "%-6s %-36s %-10s %-16s %s%s\n", litmus->name, litmus->text,
                word_of(litmus->ptx), word_of(letter), word_of(machine),
                wrong ? "   NOT EXPECTED" : "");
    }
    return unexpected;
}
