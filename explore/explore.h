/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The weak-memory explorer's interface: programs, a configuration, and one search through every
 * schedule and every order in which the program's stores can become visible. Included by
 * `doorbell explore`, by the tests and by the explorer itself. docs/memory_order.md explains the
 * results.
 */
#ifndef EXPLORE_EXPLORE_H
#define EXPLORE_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum ex_place {
    EX_GPU_MEMORY,
    EX_HOST_MEMORY,
};

/* How the device learns that WQEs are its own. */
enum ex_device_model {
    EX_TRUSTS_DOORBELL, /* D: the doorbell alone */
    EX_READS_EARLY, /* E: the doorbell, and the record whenever it likes from the first one on */
    EX_READS_AT_DOORBELL, /* R: the record, once for each doorbell */
};

/* In which order doorbells reach the device. */
enum ex_delivery {
    EX_CAUSAL,     /* one that happens before another arrives before it: PTX's coherence */
    EX_PER_THREAD, /* only those of one thread, and those with a system-scope release between */
    EX_ANY_ORDER,  /* only those with a system-scope release between */
};

/* Whose rules. The letter is PTX's memory model. Machines keep three rules more: a store waits for
 * the loads that decided on it; what has reached memory is there for everybody who reads memory;
 * and an atomic on GPU memory has reached it when it answers. */
enum ex_rules {
    EX_MACHINE,
    EX_LETTER,
};

struct ex_config {
    enum ex_rules rules;
    unsigned order;     /* enum db_order */
    unsigned record;    /* enum db_record */
    enum ex_place ring; /* where rings, records and CQs lie */
    enum ex_device_model device;
    enum ex_delivery delivery;
    bool
        writes_reordered; /* the device's writes of payload and of CQEs reach memory in any order */
    bool torn;            /* a 16-byte store may be seen by halves */
    unsigned threads, messages; /* bounds of the program: messages of each thread */
    unsigned others;            /* messages of all but the first; 0: the same */
    unsigned depth;             /* blocks of the ring, a power of two; 0: the program's own */
    bool unwaited;              /* nobody waits for completions: the publication alone */
    bool unreduced;   /* states that are the same to everybody are kept apart: to test the search */
    unsigned variant; /* the program's own choice */
    const struct ex_mutation *mutation; /* NULL: none */
    uint64_t max_states;
};

/* ---- Ordering operations, and taking them away ---- */

enum ex_weakening {
    EX_DELETE,     /* no order: a fence does nothing, an access is relaxed */
    EX_GPU_SCOPE,  /* system scope becomes GPU scope */
    EX_NO_ACQUIRE, /* of an ordered atomic */
    EX_NO_RELEASE,
};

/* One operation of the source that asks for an order. A fence is told from its like by the word
 * that the next operation touches. */
struct ex_site {
    char function[32];
    char word[24];
    const char *file;
    unsigned line;
    unsigned kind; /* enum port_op_kind */
    bool acquire, release, system;
};

struct ex_sites {
    struct ex_site *site;
    size_t count;
};

/* Takes the order from one kind of operation, wherever it is met. */
struct ex_mutation {
    const char *function;
    const char *word; /* NULL: any */
    bool acquire;     /* the acquiring, or the releasing one of the function */
    enum ex_weakening weakening;
    int kind; /* enum port_op_kind, or -1: any */
};

/* ---- Searching ---- */

enum ex_verdict {
    EX_SAFE,           /* every reachable state was visited: no fault within the bounds */
    EX_COUNTEREXAMPLE, /* a fault, and the trace that leads to it */
    EX_STOPPED,        /* the bound on states was reached first: nothing is known */
};

struct ex_result {
    enum ex_verdict verdict;
    uint64_t states;
    uint64_t steps;    /* transitions taken */
    double seconds;    /* of one core */
    bool versions_cut; /* a word had more than EX_VERSIONS stores that somebody could still read */
    char fault[512];   /* the counterexample in a sentence */
};

/* More stores of one word than these are not kept apart: a reader that could still see an older one
 * is taken to have seen it. */
#define EX_VERSIONS 8

struct ex_program;

/* Searches. `trace`, when not NULL, gets the counterexample step by step; `sites`, when not NULL,
 * the ordering operations that were met. Returns 0, or -ENOMEM. */
int ex_search(const struct ex_program *program, const struct ex_config *config,
              struct ex_result *result, FILE *trace, struct ex_sites *sites);

void ex_sites_free(struct ex_sites *sites);

#endif
