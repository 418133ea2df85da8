/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a worker does while its rings are empty: polls on, naps for longer and longer, or sleeps
 * until a host thread wakes it (doorbell.h, enum db_proxy_idle).
 *
 * A GPU thread cannot call the kernel, so nothing that it stores ends a nap or a sleep: both are
 * bounded by attr.sleep_ns, which is then the longest that a first descriptor lies in its ring.
 */
#include <errno.h>
#include <sched.h>
#include <time.h>

#include "proxy.h"

#define FIRST_NAP_NS 1000u

/* How long a worker that was woken waits for what it was woken for. */
#define EXPECTING_NS 1000000000u

/* Polls between two looks at the clock, which is also where the thread may be ended. */
#define ROUNDS_PER_LOOK 64

/* Polls between two yields, where threads are more than cores: a worker that keeps its core makes
 * the producer, or the software device, wait for the scheduler's slice of milliseconds. */
#define ROUNDS_PER_YIELD 16

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static struct timespec time_of(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
                             .tv_nsec = (long)(ns % 1000000000u)};
}

void db_worker_busy(struct db_worker *worker)
{
    worker->idle_rounds = 0;
    worker->idle_since_ns = 0;
    worker->awake_until_ns = 0;
    worker->nap_ns = 0;
}

static void nap(struct db_worker *worker)
{
    uint64_t longest = worker->proxy->attr.sleep_ns;
    struct timespec length;

    worker->nap_ns = worker->nap_ns ? worker->nap_ns * 2 : FIRST_NAP_NS;
    if (worker->nap_ns > longest)
        worker->nap_ns = longest;
    length = time_of(worker->nap_ns);
    nanosleep(&length, NULL);
}

static void sleep_until_woken(struct db_worker *worker)
{
    struct timespec until = time_of(port_now_ns() + worker->proxy->attr.sleep_ns);
    int error = 0;

    pthread_mutex_lock(&worker->mutex);
    while (!worker->woken && error == 0 &&
           __atomic_load_n(&worker->attention, __ATOMIC_RELAXED) == 0)
        error = pthread_cond_timedwait(&worker->changed, &worker->mutex, &until);
    if (worker->woken)
        worker->awake_until_ns = port_now_ns() + EXPECTING_NS;
    worker->woken = false;
    pthread_mutex_unlock(&worker->mutex);
}

/* The one place where a thread that something else wants to end does end. */
static void may_end(void)
{
    int before;

    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    pthread_testcancel();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
}

void db_worker_idle(struct db_worker *worker)
{
    const struct db_proxy_attr *attr = &worker->proxy->attr;

    worker->idle_rounds++;
    if (worker->crowded && worker->idle_rounds % ROUNDS_PER_YIELD == 0)
        sched_yield();
    else
        relax();
    if (worker->idle_rounds % ROUNDS_PER_LOOK)
        return;
    may_end();
    if (attr->idle == DB_IDLE_SPIN || db_worker_has_work(worker))
        return;
    uint64_t now = port_now_ns();
    if (worker->idle_since_ns == 0)
        worker->idle_since_ns = now;
    if (now - worker->idle_since_ns < attr->spin_ns || now < worker->awake_until_ns)
        return;
    if (attr->idle == DB_IDLE_BACK_OFF)
        nap(worker);
    else
        sleep_until_woken(worker);
    worker->idle_rounds = ROUNDS_PER_LOOK - 1; /* one round, then the next nap */
}

void db_worker_wake(struct db_worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    worker->woken = true;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->mutex);
}
