/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast the software device is, through libmlx5's own posting and polling, beside the floors of
 * the machine, in one run: a cache line sent to the engine's core and back, and memcpy(). A
 * benchmark to be run by hand (target softnic_speed); nothing is asserted but that every byte
 * arrived.
 *
 * Usage: softnic_speed [PROGRAM_CPU ENGINE_CPU]. Times are of software on this CPU, not of a NIC.
 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../check.h"
#include "../interop/rc_pair.h"

enum { SAMPLES = 20000, CHAIN = 32, CHAINS_IN_FLIGHT = 3, CHAIN_POSTS = 20000, REPEATS = 5 };

static const size_t big = 1 << 20;

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    CHECK(pthread_setaffinity_np(pthread_self(), sizeof(set), &set) == 0, "no CPU %d", cpu);
}

struct latency {
    double p50, p99;
};

static struct latency summary(double *samples)
{
    qsort(samples, SAMPLES, sizeof(*samples), ascending);
    return (struct latency){samples[SAMPLES / 2], samples[SAMPLES * 99 / 100]};
}

/* ---- Floors ---- */

static struct {
    _Alignas(128) uint64_t there;
    _Alignas(128) uint64_t back;
    int cpu;
} line;

static void *echo(void *unused)
{
    pin(line.cpu);
    for (uint64_t i = 1; i <= SAMPLES; i++) {
        while (__atomic_load_n(&line.there, __ATOMIC_ACQUIRE) != i)
            ;
        __atomic_store_n(&line.back, i, __ATOMIC_RELEASE);
    }
    return unused;
}

static struct latency line_round_trip(int cpu, double *samples)
{
    pthread_t thread;
    line.there = line.back = 0;
    line.cpu = cpu;
    CHECK(pthread_create(&thread, NULL, echo, NULL) == 0, "no thread");
    for (uint64_t i = 1; i <= SAMPLES; i++) {
        double before = now_ns();
        __atomic_store_n(&line.there, i, __ATOMIC_RELEASE);
        while (__atomic_load_n(&line.back, __ATOMIC_ACQUIRE) != i)
            ;
        samples[i - 1] = now_ns() - before;
    }
    pthread_join(thread, NULL);
    return summary(samples);
}

static double copy_rate(uint8_t *to, const uint8_t *from)
{
    double before = now_ns();
    for (int i = 0; i < 200; i++) {
        memcpy(to, from, big);
        __asm__ volatile("" ::"r"(to) : "memory");
    }
    return 200 * (double)big / (now_ns() - before);
}

/* ---- The device ---- */

static struct latency write_latency(struct rc_pair *pair, unsigned int flags, double *samples)
{
    for (int i = 0; i < SAMPLES; i++) {
        double before = now_ns();
        rc_post(&pair->a, &pair->b, IBV_WR_RDMA_WRITE, (uint64_t)i, 0, 0, 8,
                flags | IBV_SEND_SIGNALED);
        struct ibv_wc wc;
        while (ibv_poll_cq(pair->a.send_cq, 1, &wc) == 0)
            ;
        samples[i] = now_ns() - before;
        CHECK(wc.status == IBV_WC_SUCCESS, "write: %s", ibv_wc_status_str(wc.status));
    }
    return summary(samples);
}

/* Million writes a second: CHAIN to a post, the last one signalled. */
static double chain_rate(struct rc_pair *pair)
{
    struct ibv_sge sge = {(uintptr_t)pair->a.buffer, 8, pair->a.mr->lkey};
    struct ibv_send_wr chain[CHAIN], *bad;
    int posted = 0, done = 0;

    for (int i = 0; i < CHAIN; i++)
        chain[i] = (struct ibv_send_wr){
            .next = i + 1 < CHAIN ? &chain[i + 1] : NULL,
            .sg_list = &sge,
            .num_sge = 1,
            .opcode = IBV_WR_RDMA_WRITE,
            .send_flags = i + 1 < CHAIN ? 0 : IBV_SEND_SIGNALED,
            .wr.rdma = {(uintptr_t)pair->b.buffer, pair->b.mr->rkey},
        };
    double before = now_ns();
    while (done < CHAIN_POSTS) {
        struct ibv_wc wc;
        if (posted < CHAIN_POSTS && posted - done < CHAINS_IN_FLIGHT) {
            CHECK(ibv_post_send(pair->a.qp, chain, &bad) == 0, "post failed");
            posted++;
        }
        int found = ibv_poll_cq(pair->a.send_cq, 1, &wc);
        CHECK(found == 0 || wc.status == IBV_WC_SUCCESS, "chain: %s", ibv_wc_status_str(wc.status));
        done += found;
    }
    return (double)CHAIN * CHAIN_POSTS / (now_ns() - before) * 1e3;
}

static double big_write_rate(struct rc_pair *pair)
{
    double before = now_ns();
    for (int i = 0; i < 200; i++) {
        rc_post(&pair->a, &pair->b, IBV_WR_RDMA_WRITE, 1, 0, 0, (uint32_t)big, IBV_SEND_SIGNALED);
        rc_expect(pair->a.send_cq, &pair->a, 1, IBV_WC_RDMA_WRITE);
    }
    double rate = 200 * (double)big / (now_ns() - before);
    CHECK(memcmp(pair->a.buffer, pair->b.buffer, big) == 0, "1 MiB arrived damaged");
    return rate;
}

int main(int argc, char **argv)
{
    int program_cpu = argc > 2 ? atoi(argv[1]) : 0, engine_cpu = argc > 2 ? atoi(argv[2]) : 1;
    double *samples = calloc(SAMPLES, sizeof(*samples));
    struct rc_options options = rc_defaults();
    struct rc_pair pair;

    CHECK(samples != NULL, "no memory");
    setenv("SOFTNIC", "on", 1);
    pin(engine_cpu); /* the engine's thread inherits it */
    struct ibv_context *context = rc_open();
    options.buffer_bytes = big;
    options.send_depth = 4 * CHAIN;
    options.inline_bytes = 64;
    rc_create(&pair, context, &options);
    rc_connect(&pair);
    pin(program_cpu);
    for (size_t i = 0; i < big; i++)
        pair.a.buffer[i] = (uint8_t)(i * 31 + 7);

    printf("software device, program on CPU %d, engine on CPU %d; these are not NIC figures\n",
           program_cpu, engine_cpu);
    printf("%-6s %22s %22s %22s %9s %14s %14s\n", "run", "line round trip ns", "8 B write+poll ns",
           "8 B inline ns", "ratio", "32/post M/s", "1 MiB GB/s");
    for (int run = 1; run <= REPEATS; run++) {
        rc_sleep_ms(20); /* until the engine sleeps and leaves its core to the echo */
        struct latency floor = line_round_trip(engine_cpu, samples);
        struct latency pointer = write_latency(&pair, 0, samples);
        struct latency inlined = write_latency(&pair, IBV_SEND_INLINE, samples);
        double rate = chain_rate(&pair), bytes = big_write_rate(&pair);
        double copy = copy_rate(pair.b.buffer, pair.a.buffer);
        printf(
            "%-6d %10.0f p99 %7.0f %10.0f p99 %7.0f %10.0f p99 %7.0f %8.2fx %14.1f %5.1f / %4.1f\n",
            run, floor.p50, floor.p99, pointer.p50, pointer.p99, inlined.p50, inlined.p99,
            pointer.p50 / floor.p50, rate, bytes, copy);
    }
    puts("ratio: 8 B write+poll over the line's round trip. GB/s: write / memcpy by the program.");
    rc_destroy(&pair);
    ibv_close_device(context);
    free(samples);
    return 0;
}
