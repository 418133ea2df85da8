/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mutation test (teeth.h). The programs are the rows of the table whose cells are safe; a
 * mutant is tried on the cells that come to its operation, by the rules of machines first and then
 * by the letter of PTX, until one of them fails.
 */
#include "teeth.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "program.h"
#include "table.h"

/* A row that takes longer than this is not asked. */
#define MAX_STATES 120000u

/* One safe cell of the table. */
struct subject {
    const struct ex_row *row;
    unsigned cell;
    struct ex_sites sites; /* that it comes to */
};

struct mutant {
    struct ex_site site;
    enum ex_weakening weakening;
    const struct subject *caught_by;
    enum ex_rules rules;
    char fault[512];
};

struct test {
    struct subject *subjects;
    size_t subject_count;
    struct mutant *mutants;
    size_t mutant_count, next;
    pthread_mutex_t mutex;
    bool failed;
};

/* ---- Orders that nothing here can miss, and why they stay ---- */

struct reason {
    const char *function, *word;
    unsigned kind;
    enum ex_weakening weakening;
    const char *text;
};

static const struct reason reasons[] = {
    {"db_cq_drain", "cqe", PORT_OP_FENCE, EX_DELETE,
     "what completed is told before the error; no program here posts behind a failed WQE"},
    {"db_wait_index", "completed", PORT_OP_FENCE, EX_DELETE,
     "what completed is told before the error; no program here posts behind a failed WQE"},
    {"db_release", "ready", PORT_OP_FENCE, EX_GPU_SCOPE,
     "the release of the thread that rings is cumulative, and reaches the ring's memory"},
    {"db_acquire_release", "published", PORT_OP_FENCE, EX_NO_ACQUIRE,
     "for a turn that had come before it; here it is looked for behind it, and acquired"},
    {"db_claim_shared", "done.lock", PORT_OP_FENCE, EX_DELETE,
     "for room that there was before it; here it is looked for behind it, and acquired"},
    {"db_release", "cqe", PORT_OP_FENCE, EX_DELETE,
     "of a publication that was tried, and not made"},
    {"db_release", "cqe", PORT_OP_FENCE, EX_GPU_SCOPE,
     "of a publication that was tried, and not made"},
    {"db_qp_error", "error", PORT_OP_LOAD, EX_DELETE,
     "for callers, who may read what the error stands for; a cold path"},
    {"db_qp_error", "error", PORT_OP_LOAD, EX_GPU_SCOPE,
     "for callers, who may read what the error stands for; a cold path"},
    {"db_ring_publish_posted", "posted", PORT_OP_STORE, EX_GPU_SCOPE, "the CPU's, without scope"},
    {"db_ring_publish_completed", "completed", PORT_OP_STORE, EX_GPU_SCOPE,
     "the CPU's, without scope"},
    {"db_ring_peek", "slot", PORT_OP_LOAD, EX_GPU_SCOPE, "the CPU's, without scope"},
};

static const struct reason *find_reason(const struct mutant *mutant)
{
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        const struct reason *reason = &reasons[i];
        if (strcmp(reason->function, mutant->site.function) == 0 &&
            strcmp(reason->word, mutant->site.word) == 0 && reason->kind == mutant->site.kind &&
            reason->weakening == mutant->weakening)
            return reason;
    }
    return NULL;
}

/* ---- Subjects ---- */

static bool is_safe(const struct ex_row *row, unsigned cell)
{
    return !row->large && !row->mutation && row->expected[cell] == 's' &&
           (!row->by_the_letter || row->by_the_letter[cell] == 's');
}

static void add_subject(struct test *test, const struct ex_row *row, unsigned cell)
{
    struct subject subject = {.row = row, .cell = cell};
    struct ex_config config;
    struct ex_result result;

    if (!ex_row_config(row, cell, EX_MACHINE, &config))
        return;
    config.max_states = MAX_STATES;
    if (ex_search(row->program, &config, &result, NULL, &subject.sites) ||
        result.verdict != EX_SAFE) {
        ex_sites_free(&subject.sites);
        return;
    }
    test->subjects = ex_grow(test->subjects, test->subject_count + 1, sizeof(*test->subjects));
    test->subjects[test->subject_count++] = subject;
}

static void find_subjects(struct test *test)
{
    for (size_t i = 0; i < ex_row_count; i++) {
        for (unsigned cell = 0; cell < strlen(ex_rows[i].expected); cell++) {
            if (is_safe(&ex_rows[i], cell))
                add_subject(test, &ex_rows[i], cell);
        }
    }
}

/* ---- Mutants ---- */

/* Two places are the same operation when nothing but their line or their scope differs: the order
 * of a queue is one function, whatever its placement. */
static bool same_site(const struct ex_site *a, const struct ex_site *b)
{
    return a->kind == b->kind && a->acquire == b->acquire && a->release == b->release &&
           strcmp(a->function, b->function) == 0 && strcmp(a->word, b->word) == 0;
}

static void add_mutant(struct test *test, const struct ex_site *site, enum ex_weakening weakening)
{
    struct mutant mutant = {.site = *site, .weakening = weakening};

    for (size_t i = 0; i < test->mutant_count; i++) {
        if (test->mutants[i].weakening == weakening && same_site(&test->mutants[i].site, site))
            return;
    }
    test->mutants = ex_grow(test->mutants, test->mutant_count + 1, sizeof(*test->mutants));
    test->mutants[test->mutant_count++] = mutant;
}

static bool is_of_the_library(const struct ex_site *site)
{
    return strstr(site->file, "include/doorbell/") != NULL;
}

static void find_mutants(struct test *test)
{
    for (size_t i = 0; i < test->subject_count; i++) {
        const struct ex_sites *sites = &test->subjects[i].sites;
        for (size_t k = 0; k < sites->count; k++) {
            const struct ex_site *site = &sites->site[k];
            bool both = site->acquire && site->release && site->kind != PORT_OP_SYNCWARP;
            if (!is_of_the_library(site))
                continue;
            if (both) {
                add_mutant(test, site, EX_NO_ACQUIRE);
                add_mutant(test, site, EX_NO_RELEASE);
            } else {
                add_mutant(test, site, EX_DELETE);
                if (site->system && site->kind != PORT_OP_SYNCWARP)
                    add_mutant(test, site, EX_GPU_SCOPE);
            }
        }
    }
}

/* ---- Trying ---- */

static bool meets(const struct subject *subject, const struct mutant *mutant)
{
    for (size_t i = 0; i < subject->sites.count; i++) {
        const struct ex_site *site = &subject->sites.site[i];
        if (same_site(site, &mutant->site) && (mutant->weakening != EX_GPU_SCOPE || site->system))
            return true;
    }
    return false;
}

static bool try_mutant(struct test *test, struct mutant *mutant, enum ex_rules rules)
{
    const struct ex_mutation mutation = {
        .function = mutant->site.function,
        .word = mutant->site.word,
        .acquire = mutant->site.acquire && mutant->weakening != EX_NO_RELEASE,
        .weakening = mutant->weakening,
        .kind = (int)mutant->site.kind,
    };

    for (size_t i = 0; i < test->subject_count; i++) {
        const struct subject *subject = &test->subjects[i];
        struct ex_config config;
        struct ex_result result;
        if (!meets(subject, mutant) || !ex_row_config(subject->row, subject->cell, rules, &config))
            continue;
        config.max_states = 4 * (uint64_t)MAX_STATES;
        config.mutation = &mutation;
        if (ex_search(subject->row->program, &config, &result, NULL, NULL)) {
            test->failed = true;
            return false;
        }
        if (result.verdict == EX_COUNTEREXAMPLE) {
            mutant->caught_by = subject;
            mutant->rules = rules;
            memcpy(mutant->fault, result.fault, sizeof(mutant->fault));
            return true;
        }
    }
    return false;
}

static void *work(void *argument)
{
    struct test *test = argument;

    for (;;) {
        pthread_mutex_lock(&test->mutex);
        size_t number = test->next++;
        pthread_mutex_unlock(&test->mutex);
        if (number >= test->mutant_count)
            return NULL;
        if (!try_mutant(test, &test->mutants[number], EX_MACHINE))
            try_mutant(test, &test->mutants[number], EX_LETTER);
    }
}

/* ---- Printing ---- */

static const char *kind_text(const struct ex_site *site)
{
    switch (site->kind) {
    case PORT_OP_FENCE:
        return site->acquire ? "acquire fence at" : "release fence at";
    case PORT_OP_LOAD:
        return "acquire load of";
    case PORT_OP_STORE:
        return "release store of";
    case PORT_OP_SYNCWARP:
        return "warp barrier";
    default:
        return "ordered atomic on";
    }
}

static const char *const weakenings[] = {
    [EX_DELETE] = "no order",
    [EX_GPU_SCOPE] = "GPU scope",
    [EX_NO_ACQUIRE] = "no acquire",
    [EX_NO_RELEASE] = "no release",
};

/* Returns whether the mutant is accounted for. */
static bool print_mutant(const struct mutant *mutant, FILE *to)
{
    const struct reason *reason = find_reason(mutant);
    const struct ex_site *site = &mutant->site;
    bool barrier = site->kind == PORT_OP_SYNCWARP;

    fprintf(to, "%-22s %-18s %-14s %-11s ", site->function, kind_text(site),
            barrier ? "" : site->word, weakenings[mutant->weakening]);
    if (mutant->caught_by)
        fprintf(to, "%s in row %zu: %s%s\n",
                mutant->rules == EX_LETTER ? "by the letter" : "caught",
                (size_t)(mutant->caught_by->row - ex_rows), mutant->fault,
                reason ? "  (its reason is out of date)" : "");
    else
        fprintf(to, "kept: %s\n", reason ? reason->text : "NOT CAUGHT, and nothing says why");
    return (mutant->caught_by != NULL) != (reason != NULL);
}

int ex_teeth_run(unsigned jobs, FILE *to)
{
    struct test test = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[16];
    unsigned started = 0;
    int unexplained = 0;

    find_subjects(&test);
    find_mutants(&test);
    while (started + 1 < jobs && started < 16 &&
           pthread_create(&threads[started], NULL, work, &test) == 0)
        started++;
    work(&test);
    while (started > 0)
        pthread_join(threads[--started], NULL);
    for (size_t i = 0; i < test.mutant_count; i++)
        unexplained += !print_mutant(&test.mutants[i], to);
    fprintf(to, "%zu mutants on %zu programs, %d unexplained\n", test.mutant_count,
            test.subject_count, unexplained);
    for (size_t i = 0; i < test.subject_count; i++)
        ex_sites_free(&test.subjects[i].sites);
    free(test.subjects);
    free(test.mutants);
    return test.failed ? -ENOMEM : unexplained;
}
