/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of options and the check that they agree. How the text of one option becomes a value is
 * in option_values.c; which options an experiment uses is in its row.
 */
#include "options.h"

#include "samples.h"

#include <stdio.h>
#include <string.h>

#define BYTES_MAX   (UINT64_C(1) << 31) /* the longest message of an RC queue pair */
#define FIELD(name) offsetof(struct bench_options, name)

const struct bench_option_row bench_option_rows[BENCH_OPT_COUNT] = {
    [BENCH_OPT_ITERS] = {'n', BENCH_KIND_NUMBER, "iters", "N", "Samples in each repetition (10000)",
                         FIELD(iters), 1, BENCH_SAMPLES_MAX},
    [BENCH_OPT_DURATION] = {'D', BENCH_KIND_SECONDS, "duration", "SECONDS",
                            "Run each repetition this long instead; percentiles within 0.2%",
                            FIELD(duration_ns), 1000000, 86400000000000},
    [BENCH_OPT_WARMUP] = {0, BENCH_KIND_NUMBER, "warmup_iters", "N",
                          "Operations before the samples (1000)", FIELD(warmup_iters), 0,
                          UINT32_MAX},
    [BENCH_OPT_REPETITIONS] =
        {0, BENCH_KIND_NUMBER, "repetitions", "N",
         "Repeat each measurement; latencies are pooled, a rate is one sample", FIELD(repetitions),
         1, 1000000},
    [BENCH_OPT_HISTOGRAM] = {'H', BENCH_KIND_FLAG, "report-histogram", NULL,
                             "Print the histogram of each result", FIELD(histogram), 0, 0},
    [BENCH_OPT_UNSORTED] = {'U', BENCH_KIND_FLAG, "report-unsorted", NULL,
                            "Print the samples of each result in the order they were taken",
                            FIELD(unsorted), 0, 0},
    [BENCH_OPT_JSON] = {0, BENCH_KIND_FLAG, "out_json", NULL,
                        "Print one JSON document instead of tables", FIELD(json), 0, 0},
    [BENCH_OPT_JSON_FILE] = {0, BENCH_KIND_TEXT, "out_json_file", "FILE",
                             "Write the JSON document to FILE as well", FIELD(json_file), 0, 0},
    [BENCH_OPT_LIST] = {0, BENCH_KIND_FLAG, "list", NULL, "List the experiments", FIELD(list), 0,
                        0},
    [BENCH_OPT_REFERENCE] = {0, BENCH_KIND_FLAG, "reference", NULL,
                             "Print the paper's figures, all or those of the named experiments",
                             FIELD(reference), 0, 0},

    [BENCH_OPT_DEVICE] = {'d', BENCH_KIND_TEXT, "ib-dev", "NAME", "RDMA device (the best one)",
                          FIELD(device), 0, 0},
    [BENCH_OPT_IB_PORT] = {'i', BENCH_KIND_NUMBER, "ib-port", "N",
                           "Port of the device (any that is active)", FIELD(ib_port), 1, 255},
    [BENCH_OPT_GID_INDEX] = {'x', BENCH_KIND_NUMBER, "gid-index", "N",
                             "GID of the port (the best one)", FIELD(gid_index), 0, 65535},
    [BENCH_OPT_MTU] = {'m', BENCH_KIND_SIZE, "mtu", "BYTES",
                       "Path MTU: 256, 512, 1024, 2048 or 4096 (the port's)", FIELD(mtu_bytes), 256,
                       4096},
    [BENCH_OPT_SL] = {'S', BENCH_KIND_NUMBER, "sl", "N", "Service level (0)", FIELD(service_level),
                      0, 15},
    [BENCH_OPT_TCP_PORT] = {'p', BENCH_KIND_NUMBER, "port", "N",
                            "TCP port for the exchange of addresses (18515)", FIELD(tcp_port), 1,
                            65535},
    [BENCH_OPT_SIZE] = {'s', BENCH_KIND_SIZE, "size", "BYTES",
                        "Message size; sizes take K, M and G", FIELD(size), 1, BYTES_MAX},
    [BENCH_OPT_ALL] = {'a', BENCH_KIND_FLAG, "all", NULL,
                       "Message sizes from 2 B to 8 MiB in powers of two", FIELD(all_sizes), 0, 0},
    [BENCH_OPT_MIN_BYTES] = {0, BENCH_KIND_SIZE, "minbytes", "BYTES",
                             "First message size of a sweep (8)", FIELD(min_bytes), 1, BYTES_MAX},
    [BENCH_OPT_MAX_BYTES] = {0, BENCH_KIND_SIZE, "maxbytes", "BYTES",
                             "Last message size of a sweep (64K)", FIELD(max_bytes), 1, BYTES_MAX},
    [BENCH_OPT_STEP_FACTOR] = {0, BENCH_KIND_NUMBER, "stepfactor", "N",
                               "Factor between the sizes of a sweep (2)", FIELD(step_factor), 2,
                               BYTES_MAX},
    [BENCH_OPT_QUEUES] = {'q', BENCH_KIND_NUMBER, "qp", "N", "Queue pairs", FIELD(queues), 1,
                          65536},
    [BENCH_OPT_DEPTH] = {'t', BENCH_KIND_NUMBER, "tx-depth", "N",
                         "WQEs in a send ring, a power of two", FIELD(depth), 1, 32768},
    [BENCH_OPT_POST_LIST] = {'l', BENCH_KIND_NUMBER, "post-list", "N", "WQEs per doorbell",
                             FIELD(post_list), 1, 32768},
    [BENCH_OPT_INLINE] = {'I', BENCH_KIND_SIZE, "inline-size", "BYTES",
                          "Longest payload that is put into the WQE", FIELD(inline_bytes), 0, 1024},
    [BENCH_OPT_CTAS] = {0, BENCH_KIND_NUMBER, "ctas", "N", "CTAs of the kernel", FIELD(ctas), 1,
                        65535},
    [BENCH_OPT_THREADS] = {0, BENCH_KIND_NUMBER, "threads_per_cta", "N", "Threads of a CTA",
                           FIELD(threads_per_cta), 1, 1024},
    [BENCH_OPT_SCOPE] = {0, BENCH_KIND_CHOICE, "scope", "thread|warp|block",
                         "Threads that post together", FIELD(scope), 0, 0},
    [BENCH_OPT_GPU] = {0, BENCH_KIND_GPU, "gpu", "cpu|cuda|cuda:N",
                       "Threads of the CPU, of the first GPU, or of GPU N", FIELD(gpu), 0, 255},
    [BENCH_OPT_RING] = {0, BENCH_KIND_CHOICE, "ring-memory", "host|gpu", "Memory of send rings",
                        FIELD(ring_memory), 0, 0},
    [BENCH_OPT_CQ] = {0, BENCH_KIND_CHOICE, "cq-memory", "host|gpu", "Memory of completion rings",
                      FIELD(cq_memory), 0, 0},
    [BENCH_OPT_RECORD] = {0, BENCH_KIND_CHOICE, "record-memory", "host|gpu",
                          "Memory of doorbell records", FIELD(record_memory), 0, 0},
    [BENCH_OPT_PAYLOAD] = {0, BENCH_KIND_CHOICE, "payload-memory", "host|gpu", "Memory of payloads",
                           FIELD(payload_memory), 0, 0},
    [BENCH_OPT_DOORBELL] = {0, BENCH_KIND_CHOICE, "doorbell", "gpu|cpu",
                            "Who rings: the posting thread, or a CPU thread for it",
                            FIELD(doorbell), 0, 0},
    [BENCH_OPT_WORKERS] = {0, BENCH_KIND_NUMBER, "workers", "N", "CPU threads of a proxy",
                           FIELD(workers), 1, 8},
    [BENCH_OPT_IN_FLIGHT] = {0, BENCH_KIND_NUMBER, "in-flight", "N",
                             "Requests of a proxy's worker in flight, a power of two (128)",
                             FIELD(in_flight), 1, 32768},
    [BENCH_OPT_RINGS] = {0, BENCH_KIND_NUMBER, "rings", "N", "Rings of a proxy", FIELD(rings), 1,
                         64},
    [BENCH_OPT_POST] = {0, BENCH_KIND_CHOICE, "post", "verbs|wqe",
                        "How a proxy posts: ibv_post_send(), or WQEs of its own", FIELD(post), 0,
                        0},
    [BENCH_OPT_IDLE] = {0, BENCH_KIND_CHOICE, "idle", "spin|back-off|sleep",
                        "What a proxy does while its rings are empty", FIELD(idle), 0, 0},
    [BENCH_OPT_PIN] = {0, BENCH_KIND_CHOICE, "pin", "off|on",
                       "Pin a proxy's threads near the NIC (on)", FIELD(pin), 0, 0},
    [BENCH_OPT_PROGRESS] = {0, BENCH_KIND_CHOICE, "progress-memory", "host|gpu",
                            "Memory of a proxy's progress; gpu needs GDRCopy",
                            FIELD(progress_memory), 0, 0},
    [BENCH_OPT_COLD] = {0, BENCH_KIND_SECONDS, "cold", "SECONDS",
                        "Idle time before a cold measurement (45; 1 with --gpu=cpu)",
                        FIELD(cold_ns), 0, 86400000000000},
    [BENCH_OPT_WARM] = {0, BENCH_KIND_SECONDS, "warm", "SECONDS",
                        "Load before a warm measurement (20; 1 with --gpu=cpu)", FIELD(warm_ns), 0,
                        86400000000000},
    [BENCH_OPT_PACE] = {0, BENCH_KIND_NUMBER, "pace", "N",
                        "Puts a second of the paced background load (half of what both carry)",
                        FIELD(pace), 1, 10000000000},
    [BENCH_OPT_TIMEOUT] = {0, BENCH_KIND_SECONDS, "timeout", "SECONDS",
                           "Deadline of every wait (10)", FIELD(timeout_ns), 1000, 86400000000000},
    [BENCH_OPT_GBITS] = {0, BENCH_KIND_FLAG, "report_gbits", NULL,
                         "Goodput in Gb/s instead of GB/s", FIELD(report_gbits), 0, 0},
    [BENCH_OPT_CHECK] = {0, BENCH_KIND_CHOICE, "check", "off|on",
                         "Compare every payload after the run (on)", FIELD(check), 0, 0},
    [BENCH_OPT_SEED] = {0, BENCH_KIND_NUMBER, "seed", "N",
                        "Seed of payloads and of random choices (1)", FIELD(seed), 0, UINT64_MAX},
    [BENCH_OPT_INJECT] =
        {0, BENCH_KIND_INJECT, "inject", "flip=OFFSET",
         "Falsify this byte of each payload or WQE: the check must fail and name it",
         FIELD(flip_offset), 0, BYTES_MAX - 1},
    [BENCH_OPT_VENDORS] =
        {0, BENCH_KIND_OPTIONAL_TEXT, "vendors", "PATH[:PATH]",
         "Time DOCA GPUNetIO, NCCL GIN and NVSHMEM too; their headers are found, or are in PATH",
         FIELD(vendors), 0, 0},
};

void bench_options_init(struct bench_options *options)
{
    memset(options, 0, sizeof(*options));
    options->warmup_iters = 1000;
    options->ib_port = 1;
    options->tcp_port = 18515;
    options->step_factor = 2;
    options->timeout_ns = UINT64_C(10000000000);
    options->check = true;
    options->seed = 1;
}

static bool refuse(char *error, const char *sentence)
{
    snprintf(error, BENCH_ERROR_BYTES, "%s", sentence);
    return false;
}

static bool sizes_agree(const struct bench_options *options, char *error)
{
    bool sweep = bench_given(options, BENCH_OPT_MIN_BYTES) ||
                 bench_given(options, BENCH_OPT_MAX_BYTES) ||
                 bench_given(options, BENCH_OPT_STEP_FACTOR);

    if (options->size + options->all_sizes > 0 && sweep)
        return refuse(error, "--size and --all exclude --minbytes, --maxbytes and --stepfactor");
    if (options->size && options->all_sizes)
        return refuse(error, "--size and --all exclude each other");

    struct bench_sizes sizes = bench_sizes_of(options, 8);
    if (sizes.next > sizes.last) {
        snprintf(error, BENCH_ERROR_BYTES, "--minbytes=%llu is above --maxbytes=%llu",
                 (unsigned long long)sizes.next, (unsigned long long)sizes.last);
        return false;
    }
    return true;
}

bool bench_options_agree(const struct bench_options *options, char *error)
{
    if (bench_given(options, BENCH_OPT_ITERS) && bench_given(options, BENCH_OPT_DURATION))
        return refuse(error, "--iters and --duration exclude each other");
    if (options->unsorted && options->duration_ns)
        return refuse(error, "--report-unsorted needs --iters: with --duration only a histogram of "
                             "the samples is kept");
    if (!options->duration_ns && options->iters > BENCH_SAMPLES_MAX / (options->repetitions + 1)) {
        snprintf(error, BENCH_ERROR_BYTES,
                 "--iters=%llu with --repetitions=%llu: at most %llu samples are kept; --duration "
                 "has no such limit",
                 (unsigned long long)options->iters, (unsigned long long)options->repetitions,
                 (unsigned long long)BENCH_SAMPLES_MAX);
        return false;
    }
    if (options->mtu_bytes & (options->mtu_bytes - 1))
        return refuse(error, "--mtu: 256, 512, 1024, 2048 or 4096 is needed");
    if (options->depth & (options->depth - 1)) {
        snprintf(error, BENCH_ERROR_BYTES, "--tx-depth=%llu: a power of two is needed",
                 (unsigned long long)options->depth);
        return false;
    }
    if (options->in_flight & (options->in_flight - 1)) {
        snprintf(error, BENCH_ERROR_BYTES, "--in-flight=%llu: a power of two is needed",
                 (unsigned long long)options->in_flight);
        return false;
    }
    if (bench_given(options, BENCH_OPT_INJECT) && !options->check)
        return refuse(error, "--inject needs --check=on: nothing would notice the falsified byte");
    return sizes_agree(options, error);
}

struct bench_sizes bench_sizes_of(const struct bench_options *options, uint64_t otherwise)
{
    if (options->size)
        return (struct bench_sizes){options->size, options->size, 2};
    if (options->all_sizes)
        return (struct bench_sizes){2, UINT64_C(8) << 20, 2};
    if (!options->min_bytes && !options->max_bytes)
        return (struct bench_sizes){otherwise, otherwise, 2};
    return (struct bench_sizes){options->min_bytes ? options->min_bytes : 8,
                                options->max_bytes ? options->max_bytes : UINT64_C(64) << 10,
                                options->step_factor};
}

bool bench_sizes_next(struct bench_sizes *sizes, uint64_t *bytes)
{
    if (sizes->next > sizes->last)
        return false;
    *bytes = sizes->next;
    sizes->next *= sizes->factor;
    return true;
}
