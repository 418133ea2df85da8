/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of `doorbell bench`: what they are called, what they may be, and the values that a
 * benchmark reads. Letters and names are perftest's where perftest has the option; the sweep
 * options are named as in nccl-tests. Included by bench.h; the command line is read by
 * tool/cmd_bench.c.
 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One for each row of the table in options.c. */
enum bench_option {
    /* read by the harness, so valid for every experiment */
    BENCH_OPT_ITERS,
    BENCH_OPT_DURATION,
    BENCH_OPT_WARMUP,
    BENCH_OPT_REPETITIONS,
    BENCH_OPT_HISTOGRAM,
    BENCH_OPT_UNSORTED,
    BENCH_OPT_JSON,
    BENCH_OPT_JSON_FILE,
    BENCH_OPT_LIST,
    BENCH_OPT_REFERENCE,
    BENCH_OPT_HARNESS_END,

    /* valid for the experiments whose row names them */
    BENCH_OPT_DEVICE = BENCH_OPT_HARNESS_END,
    BENCH_OPT_IB_PORT,
    BENCH_OPT_GID_INDEX,
    BENCH_OPT_MTU,
    BENCH_OPT_SL,
    BENCH_OPT_TCP_PORT,
    BENCH_OPT_SIZE,
    BENCH_OPT_ALL,
    BENCH_OPT_MIN_BYTES,
    BENCH_OPT_MAX_BYTES,
    BENCH_OPT_STEP_FACTOR,
    BENCH_OPT_QUEUES,
    BENCH_OPT_DEPTH,
    BENCH_OPT_POST_LIST,
    BENCH_OPT_INLINE,
    BENCH_OPT_CTAS,
    BENCH_OPT_THREADS,
    BENCH_OPT_SCOPE,
    BENCH_OPT_GPU,
    BENCH_OPT_RING,
    BENCH_OPT_CQ,
    BENCH_OPT_RECORD,
    BENCH_OPT_PAYLOAD,
    BENCH_OPT_DOORBELL,
    BENCH_OPT_WORKERS,
    BENCH_OPT_IN_FLIGHT,
    BENCH_OPT_RINGS,
    BENCH_OPT_POST,
    BENCH_OPT_IDLE,
    BENCH_OPT_PIN,
    BENCH_OPT_PROGRESS,
    BENCH_OPT_COLD,
    BENCH_OPT_WARM,
    BENCH_OPT_PACE,
    BENCH_OPT_TIMEOUT,
    BENCH_OPT_GBITS,
    BENCH_OPT_CHECK,
    BENCH_OPT_SEED,
    BENCH_OPT_INJECT,
    BENCH_OPT_VENDORS,
    BENCH_OPT_COUNT,
};

/* A set of options, for the `uses` of an experiment's row. */
#define BENCH_USE(option) (UINT64_C(1) << BENCH_OPT_##option)

#define BENCH_USES_LINK                                                                            \
    (BENCH_USE(DEVICE) | BENCH_USE(IB_PORT) | BENCH_USE(GID_INDEX) | BENCH_USE(MTU) | BENCH_USE(SL))
#define BENCH_USES_SIZES                                                                           \
    (BENCH_USE(SIZE) | BENCH_USE(ALL) | BENCH_USE(MIN_BYTES) | BENCH_USE(MAX_BYTES) |              \
     BENCH_USE(STEP_FACTOR))
#define BENCH_USES_PAYLOAD (BENCH_USE(CHECK) | BENCH_USE(SEED) | BENCH_USE(INJECT))
#define BENCH_USES_HARNESS (BENCH_USE(HARNESS_END) - 1)

enum bench_scope { BENCH_SCOPE_THREAD, BENCH_SCOPE_WARP, BENCH_SCOPE_BLOCK };
enum bench_memory { BENCH_MEMORY_HOST, BENCH_MEMORY_GPU };
enum bench_doorbell { BENCH_DOORBELL_GPU, BENCH_DOORBELL_CPU };
enum bench_gpu { BENCH_GPU_AUTO, BENCH_GPU_CPU, BENCH_GPU_CUDA };

/* Values as given, or the defaults that bench_options_init() sets; where that is 0, the experiment
 * chooses, and bench_given() tells a 0 that was asked for from none. */
struct bench_options {
    uint64_t given; /* a set of options, see BENCH_USE() */

    uint64_t iters;       /* samples in each repetition, when duration_ns is 0 */
    uint64_t duration_ns; /* length of each repetition; 0: count iterations instead */
    uint64_t warmup_iters;
    uint64_t repetitions;
    bool histogram;
    bool unsorted;
    bool json;
    const char *json_file; /* NULL or a path */
    bool list;
    bool reference;

    const char *device; /* NULL: the best one */
    uint64_t ib_port;
    uint64_t gid_index;
    uint64_t mtu_bytes;
    uint64_t service_level;
    uint64_t tcp_port;

    uint64_t size;
    bool all_sizes;
    uint64_t min_bytes;
    uint64_t max_bytes;
    uint64_t step_factor;

    uint64_t queues;
    uint64_t depth;     /* WQEs in the send ring */
    uint64_t post_list; /* WQEs per doorbell */
    uint64_t inline_bytes;

    uint64_t ctas;
    uint64_t threads_per_cta;
    uint64_t scope; /* enum bench_scope */
    enum bench_gpu gpu;
    uint64_t gpu_index;
    const char *gpu_text; /* as typed, NULL when it is not given */
    uint64_t ring_memory; /* enum bench_memory, each */
    uint64_t cq_memory;
    uint64_t record_memory;
    uint64_t payload_memory;
    uint64_t doorbell; /* enum bench_doorbell */

    uint64_t workers;   /* of a proxy */
    uint64_t in_flight; /* requests of each of its workers */
    uint64_t rings;
    uint64_t post; /* enum db_post */
    uint64_t idle; /* enum db_proxy_idle */
    bool pin;
    uint64_t progress_memory; /* enum bench_memory */
    uint64_t cold_ns;         /* idle time before a cold measurement */
    uint64_t warm_ns;         /* load before a warm one */
    uint64_t pace;            /* puts a second of all background threads together */

    uint64_t timeout_ns; /* deadline of every wait */

    bool report_gbits;
    bool check; /* payloads are compared after the run */
    uint64_t seed;
    uint64_t
        flip_offset; /* with BENCH_OPT_INJECT given: the byte to falsify of each payload or WQE */
    const char *vendors; /* with BENCH_OPT_VENDORS given: where their headers are, or NULL */
};

enum bench_option_kind {
    BENCH_KIND_FLAG,
    BENCH_KIND_NUMBER,
    BENCH_KIND_SIZE,    /* a number of bytes; K, M and G multiply by powers of 1024 */
    BENCH_KIND_SECONDS, /* decimals allowed, kept in nanoseconds */
    BENCH_KIND_CHOICE,  /* one of the words in `argument`, kept as its place; off|on is a bool */
    BENCH_KIND_TEXT,
    BENCH_KIND_OPTIONAL_TEXT, /* NULL when only the name is given */
    BENCH_KIND_GPU,
    BENCH_KIND_INJECT,
};

struct bench_option_row {
    char letter; /* 0 when it has only a name */
    enum bench_option_kind kind;
    const char *name;
    const char *argument; /* NULL when it takes none */
    const char *help;
    size_t offset; /* of its field in struct bench_options */
    uint64_t least;
    uint64_t most;
};

/* Indexed by enum bench_option. */
extern const struct bench_option_row bench_option_rows[BENCH_OPT_COUNT];

#define BENCH_ERROR_BYTES 256

void bench_options_init(struct bench_options *options);

/* Takes the text of one option (NULL for a flag); `text` must outlive the options. Returns true, or
 * false with a sentence in error[BENCH_ERROR_BYTES] that names the option and what is allowed. */
bool bench_options_set(struct bench_options *options, enum bench_option option, const char *text,
                       char *error);

/* Checks that the options agree with each other, whatever their order was. Returns as above. */
bool bench_options_agree(const struct bench_options *options, char *error);

static inline bool bench_given(const struct bench_options *options, enum bench_option option)
{
    return options->given >> option & 1;
}

/* The message sizes of a run: one, or a sweep. */
struct bench_sizes {
    uint64_t next;
    uint64_t last;
    uint64_t factor;
};

/* The sizes that the options ask for, or only `otherwise` when they ask for none. */
struct bench_sizes bench_sizes_of(const struct bench_options *options, uint64_t otherwise);

/* Takes the next size; false when there is none left. */
bool bench_sizes_next(struct bench_sizes *sizes, uint64_t *bytes);

#endif
