/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's thread and its loop; see engine.h. All that it executes is in doorbell.h and below;
 * here is what needs an operating system: the thread, the lock, the clock, sleep and faults.
 */
#include "engine.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "doorbell.h"
#include "fault.h"
#include "idle.h"

/* How long an adaptive engine goes on looking after the last work: longer than the gaps of a
 * program that posts steadily, since a wake-up costs it some 10 us. */
#define NIC_SPIN_NS 500000u

/* Where a doorbell wakes the engine it looks for itself only this often: a program may have mapped
 * a page once more while it slept, and that mapping is not protected. */
#define NIC_DEEP_SLEEP_NS 1000000000u

/* The longest nap while receives of queue pairs in error are all that there may be. */
#define NIC_LONG_NAP_NS 10000000u

/* Empty rounds between two looks at the clock, each with one sched_yield(): on a machine with fewer
 * cores than spinning threads it lets the program run. */
#define NIC_ROUNDS_PER_YIELD 512

struct nic_host {
    struct nic nic;
    enum nic_poll poll;
    struct nic_callbacks callbacks;
    pthread_t thread;
    pthread_mutex_t lock; /* the engine holds it while it works */
    uint32_t asked;       /* control calls that came for the lock since the start, */
    uint32_t granted;     /* and those that got it; while they differ the engine steps aside */
    uint32_t asleep;
    uint32_t stop;
    int uar_fd;
    uint64_t busy_ns; /* when there was work last */
    uint64_t nap_ns;  /* of the last nap in which nothing but errors was watched */
    struct nic_idle idle;
    struct nic_guard guard;
};

/* The TSan build's model of fences needs one word per process; see port_cpu.h. */
#ifdef PORT_TSAN
uint32_t port_cpu_fence_word;
#endif

/* ---- Passing on what happened ---- */

static void deliver_cq_events(struct nic_host *host)
{
    struct nic *nic = &host->nic;
    while (nic->first_cq_event) {
        struct nic_cq *cq = &nic->cqs[nic->first_cq_event];
        uint32_t events = cq->events;
        nic->first_cq_event = cq->next_event;
        cq->events = 0;
        if (events & NIC_CQ_COMPLETION && host->callbacks.completion)
            host->callbacks.completion(cq->owner);
        if (events & NIC_CQ_FAILED && host->callbacks.async_event)
            host->callbacks.async_event(cq->owner, NIC_EVENT_CQ_ERR);
    }
}

static void deliver_qp_events(struct nic_host *host)
{
    struct nic *nic = &host->nic;
    while (nic->first_qp_event) {
        struct nic_qp *qp = &nic->qps[nic->first_qp_event];
        uint32_t events = qp->events;
        nic->first_qp_event = qp->next_event;
        qp->events = 0;
        for (int event = 0; events >> event; event++)
            if (events >> event & 1 && host->callbacks.async_event)
                host->callbacks.async_event(qp->owner, (enum nic_event)event);
    }
}

/* ---- The loop ---- */

/* Lets as many control calls have the device as wait for it now; those that come meanwhile have to
 * wait for another turn of the engine. */
static void step_aside(struct nic_host *host)
{
    uint32_t asked = __atomic_load_n(&host->asked, __ATOMIC_RELAXED);
    if (asked == __atomic_load_n(&host->granted, __ATOMIC_RELAXED))
        return;
    pthread_mutex_unlock(&host->lock);
    while ((int32_t)(asked - __atomic_load_n(&host->granted, __ATOMIC_RELAXED)) > 0)
        sched_yield();
    pthread_mutex_lock(&host->lock);
}

/* Sleeps with the lock free, so that control calls need not wake the engine to get it. False when
 * the time passed. */
static bool doze(struct nic_host *host, uint64_t ns)
{
    __atomic_store_n(&host->asleep, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&host->lock);
    bool woken = nic_idle_sleep(&host->idle, ns);
    pthread_mutex_lock(&host->lock);
    __atomic_store_n(&host->asleep, 0, __ATOMIC_RELAXED);
    return woken;
}

/* Queue pairs in error are looked at for receives that are to be flushed, which ring no doorbell;
 * of them nobody expects more than that it happens. */
static bool watches_errors_alone(const struct nic *nic)
{
    for (uint32_t qpn = nic->first_watched; qpn; qpn = nic->qps[qpn].next_watched)
        if (nic->qps[qpn].state != NIC_QP_ERR)
            return false;
    return true;
}

/* How long to sleep when a doorbell wakes, or when only the clock does; 0 = no limit. */
static uint64_t nap_ns(struct nic_host *host, bool doorbell_wakes)
{
    const struct nic *nic = &host->nic;
    if (nic->first_watched == 0 && nic->uar_used == 0)
        return 0;
    if (nic->first_watched == 0)
        return doorbell_wakes ? NIC_DEEP_SLEEP_NS : NIC_NAP_NS;
    if (!doorbell_wakes || !watches_errors_alone(nic))
        return NIC_NAP_NS;
    host->nap_ns = host->nap_ns < NIC_LONG_NAP_NS ? 2 * host->nap_ns : NIC_LONG_NAP_NS;
    return host->nap_ns;
}

/* One look while asleep. Whether there was anything that the loop must go on with. */
static bool look(struct nic *nic)
{
    return nic_round(nic) || nic->first_cq_event || nic->first_qp_event;
}

/* Nothing happened for a while. Pages are protected first and looked at after, so that a doorbell
 * falls into one of the two; they stay protected while only the time passes. */
static void go_to_sleep(struct nic_host *host)
{
    if (!nic_idle_protect(&host->idle, &host->nic)) {
        if (doze(host, nap_ns(host, false)))
            host->busy_ns = port_now_ns();
        return;
    }
    while (!look(&host->nic) && !doze(host, nap_ns(host, true)))
        ;
    nic_idle_unprotect(&host->idle);
    /* Whoever waits in a store needs time to go on, before the pages are protected again. */
    host->busy_ns = port_now_ns();
}

static void run(struct nic_host *host)
{
    struct nic *nic = &host->nic;
    uint32_t empty = 0;
    while (!host->stop) {
        bool worked = nic_round(nic);
        if (nic->first_cq_event)
            deliver_cq_events(host);
        if (nic->first_qp_event)
            deliver_qp_events(host);
        step_aside(host);
        if (worked) {
            empty = 0;
            host->busy_ns = 0;
            host->nap_ns = NIC_NAP_NS;
        } else if (++empty % NIC_ROUNDS_PER_YIELD == 0) {
            sched_yield();
            if (host->poll == NIC_POLL_SPIN)
                continue;
            uint64_t now = port_now_ns();
            if (host->busy_ns == 0)
                host->busy_ns = now;
            else if (now - host->busy_ns > NIC_SPIN_NS) {
                go_to_sleep(host);
                empty = NIC_ROUNDS_PER_YIELD - 1; /* after a nap one look is enough */
            }
        }
    }
}

static void *engine_main(void *argument)
{
    struct nic_host *host = argument;
    pthread_setname_np(pthread_self(), "softnic");
    prctl(PR_SET_TIMERSLACK, 1000ul);
    pthread_mutex_lock(&host->lock);
    host->guard.nic = &host->nic;
    bool faulted = sigsetjmp(host->guard.resume, 0);
    nic_guard_thread(&host->guard);
    if (faulted) {
        nic_idle_unprotect(&host->idle);
        nic_settle_fault(&host->nic, host->guard.address);
    }
    run(host);
    nic_guard_thread(NULL);
    pthread_mutex_unlock(&host->lock);
    return NULL;
}

/* ---- Control ---- */

struct nic *nic_hold(struct nic_host *host)
{
    __atomic_fetch_add(&host->asked, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&host->lock);
    __atomic_fetch_add(&host->granted, 1, __ATOMIC_RELAXED);
    return &host->nic;
}

void nic_release(struct nic_host *host)
{
    /* The call may have made work, or a page that the sleeper does not know of. */
    bool wake = __atomic_load_n(&host->asleep, __ATOMIC_RELAXED);
    host->busy_ns = 0;
    pthread_mutex_unlock(&host->lock);
    if (wake)
        nic_idle_wake(&host->idle);
}

int nic_uar_fd(const struct nic_host *host)
{
    return host->uar_fd;
}

void nic_read_counters(struct nic_host *host, struct nic_counters *counters)
{
    *counters = nic_hold(host)->counters;
    nic_release(host);
}

/* ---- Start and stop ---- */

/* A table whose pages cost nothing until they are used. */
static void *map_table(size_t bytes)
{
    void *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return table == MAP_FAILED ? NULL : table;
}

static const size_t qp_table_bytes = NIC_MAX_QPS * sizeof(struct nic_qp);
static const size_t cq_table_bytes = NIC_MAX_CQS * sizeof(struct nic_cq);
static const size_t mkey_table_bytes = NIC_MAX_MKEYS * sizeof(struct nic_mkey);
static const size_t uar_bytes = (size_t)NIC_UAR_PAGES * M5_UAR_BYTES;

static int open_uar(struct nic_host *host)
{
    host->uar_fd = memfd_create("softnic-uar", MFD_CLOEXEC);
    if (host->uar_fd < 0)
        return -errno;
    if (ftruncate(host->uar_fd, (off_t)uar_bytes))
        goto close_fd;
    void *uar = mmap(NULL, uar_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, host->uar_fd, 0);
    if (uar == MAP_FAILED)
        goto close_fd;
    host->nic.uar = uar;
    return 0;

close_fd:;
    int error = -errno;
    close(host->uar_fd);
    return error;
}

static void unmap_tables(struct nic *nic)
{
    if (nic->qps)
        munmap(nic->qps, qp_table_bytes);
    if (nic->cqs)
        munmap(nic->cqs, cq_table_bytes);
    if (nic->mkeys)
        munmap(nic->mkeys, mkey_table_bytes);
}

/* The engine takes no signal but those that its own accesses raise. */
static int start_thread(struct nic_host *host)
{
    sigset_t blocked, before;
    sigfillset(&blocked);
    sigdelset(&blocked, SIGSEGV);
    sigdelset(&blocked, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    int error = pthread_create(&host->thread, NULL, engine_main, host);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}

int nic_start(const struct nic_config *config, const struct nic_callbacks *callbacks,
              struct nic_host **result)
{
    int error = nic_catch_faults();
    if (error)
        return error;
    struct nic_host *host = calloc(1, sizeof(*host));
    if (!host)
        return -ENOMEM;
    struct nic *nic = &host->nic;
    host->poll = config->poll;
    host->nap_ns = NIC_NAP_NS;
    host->callbacks = *callbacks;
    nic->strict = config->strict;
    if (nic->strict.random == 0 &&
        getrandom(&nic->strict.random, sizeof(nic->strict.random), GRND_NONBLOCK) < 0)
        nic->strict.random = port_now_ns();
    if (nic->strict.random == 0)
        nic->strict.random = 1; /* the generator would stay at 0 */
    nic->next_mkey = NIC_FIRST_MKEY + (uint32_t)config->numbers % (NIC_MAX_MKEYS - NIC_FIRST_MKEY);
    nic->next_qpn =
        NIC_FIRST_QPN + (uint32_t)(config->numbers >> 32) % (NIC_MAX_QPS - NIC_FIRST_QPN);
    nic->next_cqn = NIC_FIRST_CQN;
    pthread_mutex_init(&host->lock, NULL);

    error = -ENOMEM;
    nic->qps = map_table(qp_table_bytes);
    nic->cqs = map_table(cq_table_bytes);
    nic->mkeys = map_table(mkey_table_bytes);
    if (!nic->qps || !nic->cqs || !nic->mkeys)
        goto free_tables;
    error = open_uar(host);
    if (error)
        goto free_tables;
    error = nic_idle_open(&host->idle, host->uar_fd, nic->uar);
    if (error)
        goto close_uar;
    error = start_thread(host);
    if (error)
        goto close_idle;
    *result = host;
    return 0;

close_idle:
    nic_idle_close(&host->idle);
close_uar:
    munmap(nic->uar, uar_bytes);
    close(host->uar_fd);
free_tables:
    unmap_tables(nic);
    pthread_mutex_destroy(&host->lock);
    free(host);
    return error;
}

void nic_stop(struct nic_host *host)
{
    nic_hold(host);
    host->stop = 1;
    pthread_mutex_unlock(&host->lock);
    nic_idle_wake(&host->idle);
    pthread_join(host->thread, NULL);
    nic_idle_close(&host->idle);
    munmap(host->nic.uar, uar_bytes);
    close(host->uar_fd);
    unmap_tables(&host->nic);
    pthread_mutex_destroy(&host->lock);
    free(host);
}
