/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An 8-byte round trip on lanes of either kind, beside a background load: what the experiments
 * loaded, one-op, delay and warmth have in common.
 */
#ifndef BENCH_PROBES_H
#define BENCH_PROBES_H

#include "kernels/proxy.h"
#include "lanes.h"

#define PROBES_CTAS_MAX    64u
#define PROBES_THREADS_MAX 8u /* of a background CTA */

struct probes {
    struct transport *transport;
    struct transport_memory words;
    struct transport_block tables;
    struct bench_samples samples; /* nanoseconds */
    struct bench_samples late;    /* of the answers with a delay, */
    struct bench_samples added;   /* and how much longer than the one before each took */
    double carried;               /* M puts a second of the background */
};

/* One measurement. */
struct probe {
    bool proxied;
    bool shared; /* the probe's queue, with a background CTA */
    bool alone;  /* workers of its own for the probe, in addition */
    uint32_t ctas;
    uint32_t threads; /* of each */
    uint32_t workers; /* of a proxy */
    uint32_t rings;   /* the probe's two among them */
    uint32_t batch;
    enum db_proxy_idle idle;   /* where the options do not say */
    enum db_protocol protocol; /* of the background's rings and a shared probe's */
    uint64_t delay_ns;         /* of every other answer; 0: none */
    double pace;               /* puts a nanosecond of all the background; 0: as fast as they go */
    const char *reference[BENCH_REFERENCES_MAX];
};

/* Close it also when it failed. */
enum bench_status probes_open(struct bench *b, struct transport *t, struct probes *probes);
void probes_close(struct probes *probes);

/* The state of a case that makes nothing but round trips, and its setup() and teardown(). */
struct probes_state {
    struct transport transport;
    struct probes probes;
};
enum bench_status probes_setup(struct bench *b);
void probes_teardown(struct bench *b);

/* Measures as the options say, with 20 round trips before unless they say otherwise, and reports;
 * the results stay in `probes`. */
enum bench_status probes_run(struct bench *b, struct probes *probes, const struct probe *s);

/* Its first two steps: the lanes, which the caller closes, and the samples. */
enum bench_status probes_lanes(struct bench *b, struct probes *probes, const struct probe *s,
                               struct lanes *lanes);
enum bench_status probes_measure(struct bench *b, struct probes *probes, const struct lanes *lanes,
                                 const struct probe *s);

#endif
