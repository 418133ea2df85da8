/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim (case C23): whatever a worker does while its rings are empty, a push after an idle time is
 * carried out, at the latest when the nap or the sleep ends, or at once when the host wakes the
 * worker; a worker that sleeps takes next to no CPU time; and pinning is as asked for.
 */
#include "proxy_ends.h"

#include <sched.h>
#include <time.h>

#define SLEEP_NS 200000000ull
#define IDLE_NS  300000000ull

static void idle_for(uint64_t ns)
{
    nanosleep(&(struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
                                 .tv_nsec = (long)(ns % 1000000000u)},
              NULL);
}

static uint64_t push_and_wait(struct proxy_ends *ends, bool wake)
{
    uint64_t index, began = port_now_ns();

    if (wake)
        db_proxy_wake(ends->proxy);
    QUEUE_OK(db_put_value(ends->qp, 0, ends->remote.rkey, 1, &index));
    QUEUE_OK(db_wait(ends->qp, index));
    return port_now_ns() - began;
}

/* The CPU time that the worker takes of an idle time, in thousandths. */
static uint64_t share(struct proxy_ends *ends)
{
    struct db_worker_info before, after;

    QUEUE_OK(db_proxy_query(ends->proxy, 1, &before));
    uint64_t began = port_now_ns();
    idle_for(IDLE_NS);
    QUEUE_OK(db_proxy_query(ends->proxy, 1, &after));
    return (after.cpu_ns - before.cpu_ns) * 1000 / (port_now_ns() - began);
}

static void run(const char *name, enum db_proxy_idle idle, uint64_t sleep_ns, uint64_t most_share)
{
    const struct db_proxy_attr proxy = {.idle = idle, .sleep_ns = sleep_ns, .pin = DB_PIN_NONE};
    const struct db_queue_attr attr = {.depth = 4};
    struct db_worker_info info;
    struct proxy_ends ends;

    proxy_ends_start(&ends, &proxy, &attr, 4096);
    uint64_t idle_share = share(&ends), asleep = push_and_wait(&ends, false);
    idle_for(IDLE_NS);
    uint64_t woken = push_and_wait(&ends, true);
    printf("%s: %llu/1000 of a core, %llu us after an idle time, %llu us when woken\n", name,
           (unsigned long long)idle_share, (unsigned long long)asleep / 1000,
           (unsigned long long)woken / 1000);
    CHECK(idle_share <= most_share, "%s takes %llu/1000 of a core", name,
          (unsigned long long)idle_share);
    if (idle == DB_IDLE_SLEEP)
        CHECK(woken < sleep_ns / 2, "%s: a woken worker slept on for %llu ns", name,
              (unsigned long long)woken);
    QUEUE_OK(db_proxy_query(ends.proxy, 1, &info));
    CHECK(info.cpu == -1 && info.requests == 2 && info.posts == 2 && info.running,
          "CPU %d, %llu requests in %llu posts", info.cpu, (unsigned long long)info.requests,
          (unsigned long long)info.posts);
    proxy_ends_destroy(&ends);
}

static void pinned(void)
{
    struct db_proxy_attr proxy = {.pin = DB_PIN_CPUS, .idle = DB_IDLE_SLEEP};
    const struct db_queue_attr attr = {.depth = 4};
    struct db_worker_info info;
    struct proxy_ends ends;
    cpu_set_t usable;
    uint32_t cpu = 0;

    CHECK(!sched_getaffinity(0, sizeof(usable), &usable), "no affinity");
    while (!CPU_ISSET(cpu, &usable))
        cpu++;
    proxy.cpus[0] = cpu;
    proxy_ends_start(&ends, &proxy, &attr, 4096);
    push_and_wait(&ends, true);
    QUEUE_OK(db_proxy_query(ends.proxy, 1, &info));
    CHECK(info.cpu == (int)cpu, "pinned to %d instead of %u", info.cpu, cpu);
    proxy_ends_destroy(&ends);
    /* A CPU that there is not: the worker runs where it may. */
    proxy.cpus[0] = CPU_SETSIZE - 1;
    proxy_ends_start(&ends, &proxy, &attr, 4096);
    push_and_wait(&ends, true);
    QUEUE_OK(db_proxy_query(ends.proxy, 1, &info));
    CHECK(info.cpu == -1, "pinned to %d", info.cpu);
    proxy_ends_destroy(&ends);
}

int main(void)
{
    queue_strict(true);
    run("spin", DB_IDLE_SPIN, 0, 1100);
    run("back off", DB_IDLE_BACK_OFF, 1000000, 300);
    run("sleep", DB_IDLE_SLEEP, SLEEP_NS, 100);
    pinned();
    queue_expect_no_diagnostics_of_worker();
    return 0;
}
