/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The GPU that CPU threads play (src/gpu_cpu.c): a grid of any shape completes with every thread in
 * its place, warp and block operations meet, threads keep their stacks and floating-point state to
 * themselves, and a kernel that waits for ever or misuses a warp ends with a sentence and leaves
 * the GPU usable.
 */
#include <errno.h>
#include <fenv.h>
#include <string.h>

#include "tests/check.h"
#include <doorbell/gpu.h>

#define SECOND_NS 1000000000u
#define PATIENCE  (60ull * SECOND_NS) /* sanitizers are slow */
#define FULL_WARP 0xffffffffu

#ifdef PORT_TSAN
__attribute__((weak)) uint32_t port_cpu_fence_word; /* the software device defines it otherwise */
#endif

static struct db_gpu *gpu;

static int run_until(const struct port_kernel *kernel, struct db_gpu_shape shape, const void *args,
                     uint64_t patience_ns)
{
    struct db_gpu_grid *grid;
    int error = gpu->backend->launch(gpu, kernel, shape, args, &grid);
    return error ? error : gpu->backend->wait(grid, port_now_ns() + patience_ns);
}

static void run_well(const struct port_kernel *kernel, struct db_gpu_shape shape, const void *args)
{
    int error = run_until(kernel, shape, args, PATIENCE);
    CHECK(!error, "%s: %d: %s", kernel->name, error, db_gpu_error_text());
}

static void run_badly(const struct port_kernel *kernel, struct db_gpu_shape shape, const void *args,
                      int want, const char *words)
{
    uint64_t start = port_now_ns();
    int error = run_until(kernel, shape, args, SECOND_NS / 5);
    CHECK(error == want, "%s: %d, wanted %d: %s", kernel->name, error, want, db_gpu_error_text());
    CHECK(port_now_ns() - start < PATIENCE, "%s outlived its deadline", kernel->name);
    CHECK(strstr(db_gpu_error_text(), kernel->name) && strstr(db_gpu_error_text(), words),
          "the sentence lacks \"%s\" or \"%s\": %s", kernel->name, words, db_gpu_error_text());
}

/* ---- Every thread runs once, in its place ---- */

struct census_args {
    uint32_t *seen;
    uint64_t *sum;
};

PORT_KERNEL(census, struct census_args, args)
{
    uint32_t id = port_block() * port_threads() + port_thread();
    port_add32(&args->seen[id], 1);
    for (int i = 0; i < 3; i++)
        port_pause();
    port_add64(args->sum, port_lane() + 1000 * (uint64_t)port_blocks());
}

static void every_thread_runs_once(uint32_t ctas, uint32_t threads)
{
    struct db_gpu_buffer seen, sum;
    CHECK(!gpu->backend->alloc(gpu, DB_GPU_MEMORY_GPU, 4ul * ctas * threads, &seen), "seen");
    CHECK(!gpu->backend->alloc(gpu, DB_GPU_MEMORY_HOST, 8, &sum), "sum");
    struct census_args args = {.seen = seen.device, .sum = sum.device};
    run_well(&census, (struct db_gpu_shape){.ctas = ctas, .threads = threads}, &args);
    uint64_t want = 0;
    for (uint32_t id = 0; id < ctas * threads; id++) {
        want += id % threads % 32 + 1000 * (uint64_t)ctas;
        CHECK(args.seen[id] == 1, "thread %u ran %u times", id, args.seen[id]);
    }
    CHECK(*args.sum == want, "%lu, wanted %lu", (unsigned long)*args.sum, (unsigned long)want);
    gpu->backend->free(gpu, &seen);
    gpu->backend->free(gpu, &sum);
}

/* ---- Warp and block operations ---- */

struct rounds_args {
    uint32_t rounds;
    uint32_t *error_count;
    uint64_t *words;
};

/* Halves of a warp meet separately, a different number of times; then all lanes, then lane 5 alone.
 */
PORT_KERNEL(warp_meets, struct rounds_args, args)
{
    unsigned lane = port_lane();
    uint32_t half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
    uint32_t rounds = lane < 16 ? args->rounds : args->rounds / 2;
    uint64_t *word = &args->words[port_block() * port_threads() + port_thread()];
    uint64_t *left = lane % 16 ? word - 1 : word + 15;
    for (uint32_t i = 0; i < rounds; i++) {
        unsigned source = (lane & 16) + i % 16;
        uint64_t got = port_broadcast64(half, (uint64_t)i << 32 | lane, source);
        if (got != ((uint64_t)i << 32 | source))
            port_add32(args->error_count, 1);
        *word = i; /* plain: syncwarp must order it */
        port_syncwarp(half);
        if (*left != i)
            port_add32(args->error_count, 1);
        port_syncwarp(half);
    }
    if (port_broadcast64(FULL_WARP, lane, 31) != 31)
        port_add32(args->error_count, 1);
    if (lane == 5 && port_broadcast64(1u << 5, 77, 5) != 77)
        port_add32(args->error_count, 1);
}

/* Threads pass values to their neighbours through shared memory; one returns in each round, and the
 * barrier is then for the others. */
PORT_KERNEL(block_meets, struct rounds_args, args)
{
    uint32_t *shared = (uint32_t *)port_shared();
    uint32_t me = port_thread();
    for (uint32_t i = 0; i < args->rounds; i++) {
        if (me == port_threads() - 1 - i)
            return;
        uint32_t living = port_threads() - 1 - i;
        shared[me] = i * 1000 + me;
        port_syncthreads();
        uint32_t next = (me + 1) % living;
        if (shared[next] != i * 1000 + next)
            port_add32(args->error_count, 1);
        port_syncthreads();
    }
}

static void warps_and_blocks_meet(void)
{
    uint32_t errors = 0;
    static uint64_t words[4 * 64];
    struct rounds_args args = {.rounds = 100, .error_count = &errors, .words = words};
    run_well(&warp_meets, (struct db_gpu_shape){.ctas = 4, .threads = 64}, &args);
    CHECK(!errors, "%u values did not reach their lane", errors);
    args.rounds = 20;
    run_well(&block_meets, (struct db_gpu_shape){.ctas = 3, .threads = 100, .shared_bytes = 400},
             &args);
    CHECK(!errors, "%u values did not pass the barrier", errors);
}

/* ---- CTAs wait for each other ---- */

struct ping_pong_args {
    uint64_t *ping;
    uint64_t *pong;
    uint64_t rounds;
};

PORT_KERNEL(ping_pong, struct ping_pong_args, args)
{
    uint64_t deadline = port_now_ns() + PATIENCE;
    for (uint64_t i = 1; i <= args->rounds; i++) {
        if (port_block() == 0) {
            port_st64(args->ping, i, PORT_RELEASE, PORT_GPU);
            if (port_wait_ge64(args->pong, i, PORT_GPU, deadline))
                return;
        } else {
            if (port_wait_ge64(args->ping, i, PORT_GPU, deadline))
                return;
            port_st64(args->pong, i, PORT_RELEASE, PORT_GPU);
        }
    }
}

static void ctas_wait_for_each_other(void)
{
    static uint64_t words[16];
    memset(words, 0, sizeof(words));
    struct ping_pong_args args = {.ping = &words[0], .pong = &words[8], .rounds = 2000};
    run_well(&ping_pong, (struct db_gpu_shape){.ctas = 2, .threads = 1}, &args);
    CHECK(words[0] == 2000 && words[8] == 2000, "%lu and %lu round trips", (unsigned long)words[0],
          (unsigned long)words[8]);
}

/* ---- Threads go on at the same pace, and keep what is theirs ---- */

struct pace_args {
    uint32_t rounds;
    uint32_t *finished;
    uint32_t *slowest; /* what the last thread had done when the first had finished */
};

/* One CTA, so one worker: turns are exact. */
PORT_KERNEL(pace, struct pace_args, args)
{
    for (uint32_t i = 0; i < args->rounds; i++) {
        if (port_ld32(args->finished, PORT_RELAXED, PORT_GPU)) {
            if (i < port_ld32(args->slowest, PORT_RELAXED, PORT_GPU))
                port_st32(args->slowest, i, PORT_RELAXED, PORT_GPU);
        }
        port_pause();
    }
    port_add32(args->finished, 1);
}

static void turns_are_fair(void)
{
    uint32_t finished = 0, slowest = 1000;
    struct pace_args args = {.rounds = 1000, .finished = &finished, .slowest = &slowest};
    run_well(&pace, (struct db_gpu_shape){.ctas = 1, .threads = 96}, &args);
    CHECK(slowest >= 999, "a thread had %u turns when another had 1000", slowest);
}

PORT_KERNEL(keeps_state, struct rounds_args, args)
{
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    uint32_t id = port_block() * port_threads() + port_thread();
    uint8_t canary[1000];
    double one = 1.0 + id, third = one / 3.0, sum = 0;
    memset(canary, (int)(id & 0xff), sizeof(canary));
    if (fegetround() != FE_TONEAREST)
        port_add32(args->error_count, 1);
    fesetround(modes[id % 4]);
    for (uint32_t i = 0; i < args->rounds; i++) {
        sum += third;
        port_pause();
        if (fegetround() != modes[id % 4])
            port_add32(args->error_count, 1);
    }
    for (uint32_t i = 0; i < sizeof(canary); i++) {
        if (canary[i] != (id & 0xff))
            port_add32(args->error_count, 1);
    }
    double want = one / 3.0 * args->rounds;
    if (sum < want * 0.999 || sum > want * 1.001)
        port_add32(args->error_count, 1);
    fesetround(FE_TONEAREST);
}

static void threads_keep_their_state(void)
{
    uint32_t errors = 0;
    struct rounds_args args = {.rounds = 50, .error_count = &errors};
    run_well(&keeps_state, (struct db_gpu_shape){.ctas = 5, .threads = 40}, &args);
    CHECK(!errors, "%u times a thread's state was another's", errors);
}

/* ---- What never ends, ends ---- */

struct stuck_args {
    uint64_t *word;
};

PORT_KERNEL(polls_for_ever, struct stuck_args, args)
{
    if (port_thread() == 0)
        port_wait_ge64(args->word, 1, PORT_GPU, PORT_NEVER);
}

PORT_KERNEL(lane_returns, struct stuck_args, args)
{
    (void)args;
    if (port_thread() == 3)
        return;
    port_syncwarp(FULL_WARP);
}

PORT_KERNEL(half_at_barrier, struct stuck_args, args)
{
    (void)args;
    if (port_thread() < 32)
        port_syncthreads();
    else
        port_syncwarp(port_thread() == 40 ? 1u << 8 | 1u << 9 : FULL_WARP);
}

PORT_KERNEL(lane_not_named, struct stuck_args, args)
{
    (void)args;
    port_syncwarp(1u << 0 | 1u << 1);
}

PORT_KERNEL(masks_differ, struct stuck_args, args)
{
    (void)args;
    port_syncwarp(port_lane() == 0 ? FULL_WARP : 0x7fffffffu);
}

/* CTA 0 waits in a barrier that one thread of it never reaches; the CTAs beside it poll. */
PORT_KERNEL(barrier_missed, struct stuck_args, args)
{
    if (port_block() == 0 && port_thread() > 0)
        port_syncthreads();
    else
        port_wait_ge64(args->word, 1, PORT_GPU, PORT_NEVER);
}

static void endless_kernels_end(void)
{
    uint64_t word = 0;
    struct stuck_args args = {.word = &word};
    struct db_gpu_shape warps = {.ctas = 2, .threads = 64};
    run_badly(&polls_for_ever, warps, &args, -ETIMEDOUT, "2 of 128 threads had not returned");
    run_badly(&lane_returns, warps, &args, -EDEADLK, "for lanes 0x00000008, which have returned");
    run_badly(&lane_returns, (struct db_gpu_shape){.ctas = 1, .threads = 2}, &args, -EDEADLK,
              "do not exist");
    run_badly(&half_at_barrier, warps, &args, -EDEADLK, "port_syncthreads() for 32 of 64 threads");
    run_badly(&lane_not_named, warps, &args, -EINVAL, "lane 2, used mask 0x00000003");
    run_badly(&masks_differ, warps, &args, -EINVAL, "mask 0xffffffff");
    run_badly(&barrier_missed, warps, &args, -ETIMEDOUT, "128 of 128 threads had not returned");
    every_thread_runs_once(4, 64);
}

/* ---- Grids in flight together, and a GPU closed under one ---- */

static void grids_overlap(void)
{
    static uint64_t words[16];
    memset(words, 0, sizeof(words));
    struct stuck_args waits = {.word = &words[0]};
    struct db_gpu_grid *grid;
    CHECK(!gpu->backend->launch(gpu, &polls_for_ever,
                                (struct db_gpu_shape){.ctas = 1, .threads = 1}, &waits, &grid),
          "%s", db_gpu_error_text());
    every_thread_runs_once(2, 32);
    CHECK(!gpu->backend->done(grid), "a kernel that waits for the host is done");
    port_st64(&words[0], 1, PORT_RELEASE, PORT_SYSTEM);
    int error = gpu->backend->wait(grid, port_now_ns() + PATIENCE);
    CHECK(!error, "%d: %s", error, db_gpu_error_text());
}

static void closing_ends_grids(void)
{
    static uint64_t word;
    struct stuck_args waits = {.word = &word};
    struct db_gpu *other;
    struct db_gpu_grid *grid;
    CHECK(!db_gpu_cpu_backend.open(&(struct db_gpu_config){.workers = 2}, &other), "open");
    CHECK(!other->backend->launch(other, &polls_for_ever,
                                  (struct db_gpu_shape){.ctas = 3, .threads = 7}, &waits, &grid),
          "%s", db_gpu_error_text());
    other->backend->close(other);
}

/* ---- What a user can get wrong ---- */

static void wrong_shapes_are_refused(void)
{
    uint64_t word = 1;
    struct stuck_args args = {.word = &word};
    static const struct {
        struct db_gpu_shape shape;
        const char *words;
    } wrong[] = {
        {{.ctas = 0, .threads = 1}, "is empty"},
        {{.ctas = 1, .threads = 0}, "is empty"},
        {{.ctas = 1, .threads = 1025}, "at most 1024"},
        {{.ctas = 1u << 31, .threads = 1024}, "at most 16384"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        run_badly(&polls_for_ever, wrong[i].shape, &args, -EINVAL, wrong[i].words);

    struct db_gpu *other;
    CHECK(db_gpu_cpu_backend.open(&(struct db_gpu_config){.index = 1}, &other) == -ENODEV, "cpu:1");
    CHECK(db_gpu_cpu_backend.open(&(struct db_gpu_config){.workers = 1000}, &other) == -EINVAL,
          "1000");
    struct db_gpu_buffer buffer;
    CHECK(gpu->backend->alloc(gpu, DB_GPU_MEMORY_GPU, 0, &buffer) == -EINVAL, "0 bytes");
    CHECK(gpu->backend->alloc(gpu, DB_GPU_MEMORY_GPU, SIZE_MAX / 2, &buffer) == -ENOMEM,
          "too much");
}

static void host_threads_are_alone(void)
{
    port_pause();
    CHECK(port_lane() == 0 && port_threads() == 1 && port_blocks() == 1, "place of a host thread");
    CHECK(port_broadcast64(1, 42, 0) == 42, "broadcast to itself");
    port_syncthreads();
}

static void properties_are_plausible(void)
{
    struct db_gpu_properties properties;
    CHECK(!gpu->backend->properties(gpu, &properties), "%s", db_gpu_error_text());
    CHECK(strncmp(properties.name, "CPU threads (", 13) == 0, "%s", properties.name);
    CHECK(properties.max_clock_hz > 10000000, "%lu Hz", (unsigned long)properties.max_clock_hz);
}

int main(void)
{
    /* One worker interleaves at pauses only; four, on any machine, at any instruction. */
    static const uint32_t workers[] = {1, 4};
    for (size_t i = 0; i < sizeof(workers) / sizeof(workers[0]); i++) {
        int error = db_gpu_cpu_backend.open(&(struct db_gpu_config){.workers = workers[i]}, &gpu);
        CHECK(!error, "%d: %s", error, db_gpu_error_text());
        every_thread_runs_once(32, 128);
        every_thread_runs_once(1, 1);
        every_thread_runs_once(7, 33);
        warps_and_blocks_meet();
        ctas_wait_for_each_other();
        turns_are_fair();
        threads_keep_their_state();
        endless_kernels_end();
        grids_overlap();
        wrong_shapes_are_refused();
        properties_are_plausible();
        gpu->backend->close(gpu);
    }
    closing_ends_grids();
    host_threads_are_alone();
    return 0;
}
