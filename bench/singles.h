/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Single puts on lanes of either kind, timed and checked: issue and put + completion. Included by
 * the cases of section 4.2.
 */
#ifndef BENCH_SINGLES_H
#define BENCH_SINGLES_H

#include "kernels/proxy.h"
#include "lanes.h"

#define SINGLES_CHUNK 1000u

/* Not a set of steps: the calls that lanes of both kinds take. */
#define SINGLES_ANY UINT32_MAX

struct singles {
    struct transport *transport;
    struct transport_memory memory; /* sources, then targets, max_bytes each */
    struct transport_block results;
    uint8_t *copy; /* of the memory */
    size_t max_bytes;
    struct bench_samples issue;
    struct bench_samples complete;
    uint64_t pushes;  /* of the samples and their warm-up, */
    uint64_t atomics; /* and how many on that lane reserved with one; 0 with SINGLES_ANY */
    bool asks_gpu;    /* struct singles_row */
    enum bench_valid valid;
    uint64_t round; /* of payload patterns, so that none is taken for an earlier one */
};

/* For puts of up to `max_bytes`. Close it also when it failed. */
enum bench_status singles_open(struct bench *b, struct transport *t, size_t max_bytes,
                               struct singles *singles);
void singles_close(struct singles *singles);

/* Times puts of `bytes` on lane 0 as the options say, into emptied samples; `steps` is a set of
 * enum db_ring_step (8 bytes only), or SINGLES_ANY. */
enum bench_status singles_measure(struct bench *b, struct singles *singles,
                                  const struct lanes *lanes, uint32_t steps, size_t bytes);

/* Reports both samples; `record` has the config and the system. */
enum bench_status singles_report(struct bench *b, struct singles *singles,
                                 struct bench_record *record, const char *const *issue_references,
                                 const char *const *complete_references);

/* One protocol's push, on lanes made for it; NULL: mini-gda's db_put(). */
struct singles_row {
    const char *name;
    uint32_t steps; /* set of enum db_ring_step */
    /* The push, by the baseline, asks for room in GPU memory, where a worker with GDRCopy would
     * tell its progress and here nobody does: what the read costs there. */
    bool asks_gpu;
    const char *issue[BENCH_REFERENCES_MAX];
    const char *complete[BENCH_REFERENCES_MAX];
};

enum bench_status singles_row(struct bench *b, struct singles *singles,
                              const struct singles_row *row);

#endif
