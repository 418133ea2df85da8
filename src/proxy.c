/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proxies: creation, stop and end; doorbell.h. Their parts are in the files that proxy.h names.
 */
#include "proxy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device.h"
#include "error.h"

/* Long enough for eight of the largest batches, short enough that what is behind them does not wait
 * for long: four workers and a device, all of them saturated, on an H200's host gave a ring of its
 * own a round trip of 51 us, with 256 in flight 106, with 64 46; the rates of 64 were lower. */
#define DEFAULT_DEPTH 128u

#define DEFAULT_SPIN_NS  50000u
#define DEFAULT_NAP_NS   50000u   /* longest nap while backing off */
#define DEFAULT_SLEEP_NS 1000000u /* longest sleep nobody ends */

/* ---- Attributes ---- */

static int check_numbers(const struct db_device *device, const struct db_proxy_attr *attr)
{
    uint32_t most =
        device->caps.max_depth < DB_PROXY_MAX_DEPTH ? device->caps.max_depth : DB_PROXY_MAX_DEPTH;

    if (attr->workers > DB_MAX_WORKERS)
        return db_fail(-EINVAL, "%u workers: a proxy has 1 to %u", attr->workers, DB_MAX_WORKERS);
    if (attr->batch > DB_MAX_BATCH)
        return db_fail(-EINVAL, "batches of %u requests: 1 to %u are possible", attr->batch,
                       DB_MAX_BATCH);
    if (attr->depth < attr->batch || attr->depth > most || (attr->depth & (attr->depth - 1)))
        return db_fail(-EINVAL,
                       "depth %u cannot be: for batches of %u on %s it is %u to %u, a power of two",
                       attr->depth, attr->batch, device->path.name, attr->batch, most);
    return 0;
}

static int check_choices(const struct db_proxy_attr *attr)
{
    if (attr->post > DB_POST_WQE)
        return db_fail(-EINVAL, "way of posting %d is not known; 0 to %d are", (int)attr->post,
                       (int)DB_POST_WQE);
    if (attr->idle > DB_IDLE_SLEEP)
        return db_fail(-EINVAL, "idle policy %d is not known; 0 to %d are", (int)attr->idle,
                       (int)DB_IDLE_SLEEP);
    if (attr->pin > DB_PIN_NONE)
        return db_fail(-EINVAL, "way of pinning %d is not known; 0 to %d are", (int)attr->pin,
                       (int)DB_PIN_NONE);
    return 0;
}

static int check(const struct db_device *device, const struct db_proxy_attr *attr,
                 struct db_proxy_attr *full)
{
    *full = *attr;
    if (full->workers == 0)
        full->workers = 1;
    if (full->batch == 0)
        full->batch = DB_MAX_BATCH;
    if (full->depth == 0)
        full->depth = DEFAULT_DEPTH;
    if (full->spin_ns == 0)
        full->spin_ns = DEFAULT_SPIN_NS;
    if (full->sleep_ns == 0)
        full->sleep_ns = full->idle == DB_IDLE_SLEEP ? DEFAULT_SLEEP_NS : DEFAULT_NAP_NS;
    if (full->timeout_ns == 0)
        full->timeout_ns = DB_TIMEOUT_NS;
    int error = check_numbers(device, full);
    return error ? error : check_choices(full);
}

/* ---- Workers ---- */

static int prepare(struct db_proxy *proxy, uint32_t number)
{
    struct db_worker *worker = &proxy->workers[number - 1];
    pthread_condattr_t monotonic;

    worker->proxy = proxy;
    worker->number = number;
    worker->cpu = -1;
    pthread_mutex_init(&worker->holder, NULL);
    pthread_mutex_init(&worker->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&worker->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    proxy->worker_count++;
    worker->run = calloc(proxy->attr.depth, sizeof(*worker->run));
    if (!worker->run)
        return db_fail(-ENOMEM, "no memory for a proxy's worker");
    return db_pair_create(proxy->device, proxy->way, proxy->attr.depth, &worker->pair);
}

static void dismantle(struct db_worker *worker)
{
    db_pair_destroy(&worker->pair);
    free(worker->run);
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->mutex);
    pthread_mutex_destroy(&worker->holder);
}

static int start(struct db_worker *worker)
{
    worker->crowded = db_proxy_is_crowded(worker->proxy);
    int error = pthread_create(&worker->thread, NULL, db_worker_run, worker);
    if (error)
        return db_fail(-error, "cannot start worker %u of a proxy: %s", worker->number,
                       strerror(error));
    worker->started = true;
    return 0;
}

static void join(struct db_worker *worker)
{
    if (!worker->started)
        return;
    pthread_join(worker->thread, NULL);
    worker->started = false;
}

/* ---- Proxies ---- */

static void free_proxy(struct db_proxy *proxy)
{
    struct db_device *device = proxy->device;

    for (uint32_t i = 0; i < proxy->worker_count; i++)
        dismantle(&proxy->workers[i]);
    pthread_mutex_destroy(&proxy->mutex);
    free(proxy);
    db_device_release(device);
}

int db_proxy_create(struct db_device *device, const struct db_proxy_attr *attr,
                    struct db_proxy **proxy)
{
    struct db_proxy_attr full;

    *proxy = NULL;
    if (!device)
        return db_fail(-EINVAL, "a proxy needs an open device");
    int error = check(device, attr, &full);
    if (error)
        return error;
    struct db_proxy *made = calloc(1, sizeof(*made));
    if (!made)
        return db_fail(-ENOMEM, "no memory for a proxy");
    made->references = 1;
    made->device = device;
    made->attr = full;
    made->way = full.post == DB_POST_WQE ? &db_post_wqe : &db_post_verbs;
    pthread_mutex_init(&made->mutex, NULL);
    db_device_hold(device);
    for (uint32_t i = 1; i <= full.workers && !error; i++)
        error = prepare(made, i);
    if (error)
        goto failed;
    db_proxy_choose_cpus(made);
    for (uint32_t i = 0; i < made->worker_count && !error; i++)
        error = start(&made->workers[i]);
    if (error)
        goto failed;
    *proxy = made;
    return 0;

failed:
    db_proxy_stop(made);
    free_proxy(made);
    return error;
}

int db_proxy_stop(struct db_proxy *proxy)
{
    uint64_t lost = 0;

    pthread_mutex_lock(&proxy->mutex);
    proxy->stop_by_ns = port_now_ns() + proxy->attr.timeout_ns;
    for (uint32_t i = 0; i < proxy->worker_count; i++) {
        /* Release: stop_by_ns. */
        __atomic_fetch_or(&proxy->workers[i].attention, DB_ATTENTION_STOP, __ATOMIC_RELEASE);
        db_worker_wake(&proxy->workers[i]);
    }
    for (uint32_t i = 0; i < proxy->worker_count; i++) {
        join(&proxy->workers[i]);
        lost += db_worker_left(&proxy->workers[i]);
    }
    pthread_mutex_unlock(&proxy->mutex);
    return lost ? db_fail(-EIO,
                          "%llu requests of the proxy's workers were not complete when it was "
                          "stopped; the threads that wait for them were told",
                          (unsigned long long)lost)
                : 0;
}

void db_proxy_destroy(struct db_proxy *proxy)
{
    if (!proxy)
        return;
    db_proxy_stop(proxy);
    db_proxy_release(proxy);
}

void db_proxy_wake(struct db_proxy *proxy)
{
    for (uint32_t i = 0; i < proxy->worker_count; i++)
        db_worker_wake(&proxy->workers[i]);
}

void db_proxy_hold(struct db_proxy *proxy)
{
    __atomic_fetch_add(&proxy->references, 1, __ATOMIC_RELAXED);
}

void db_proxy_release(struct db_proxy *proxy)
{
    /* Release: what this user did to the proxy. Acquire: what the others did, before it goes. */
    if (__atomic_sub_fetch(&proxy->references, 1, __ATOMIC_ACQ_REL) == 0)
        free_proxy(proxy);
}

/* ---- What the workers do ---- */

static uint64_t cpu_ns_of(struct db_worker *worker)
{
    struct timespec used;
    clockid_t clock;

    pthread_mutex_lock(&worker->mutex);
    uint64_t ns = worker->cpu_ns;
    if (!worker->ended && pthread_getcpuclockid(worker->thread, &clock) == 0 &&
        clock_gettime(clock, &used) == 0)
        ns = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
    pthread_mutex_unlock(&worker->mutex);
    return ns;
}

int db_proxy_query(struct db_proxy *proxy, uint32_t worker, struct db_worker_info *info)
{
    if (worker == 0 || worker > proxy->worker_count)
        return db_fail(-EINVAL, "the proxy has no worker %u; it has 1 to %u", worker,
                       proxy->worker_count);
    struct db_worker *asked = &proxy->workers[worker - 1];
    *info = (struct db_worker_info){
        .running = __atomic_load_n(&asked->state, __ATOMIC_ACQUIRE) == DB_WORKER_RUNNING,
        .cpu = __atomic_load_n(&asked->cpu, __ATOMIC_RELAXED),
        .qpn = asked->pair.qp->qp_num,
        .posts = __atomic_load_n(&asked->posts, __ATOMIC_RELAXED),
        .requests = __atomic_load_n(&asked->requests, __ATOMIC_RELAXED),
        .cpu_ns = cpu_ns_of(asked),
    };
    return 0;
}
