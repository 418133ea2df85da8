/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a device starts and stops at any time, also under traffic, and leaves nothing behind; its
 * control calls exclude each other and the engine, and however many threads make them, the engine
 * still gets its turn.
 */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>

#include "../open_files.h"
#include "engine_rig.h"

/* ---- What is left behind ---- */

static uint32_t count_threads(void)
{
    uint32_t count = 0;
    DIR *directory = opendir("/proc/self/task");
    CHECK(directory, "no /proc/self/task");
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static uint32_t count_uar_maps(void)
{
    uint32_t count = 0;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps, "no /proc/self/maps");
    while (fgets(line, sizeof(line), maps))
        count += strstr(line, "softnic-uar") != NULL;
    fclose(maps);
    return count;
}

static void start_and_stop(void)
{
    struct nic_config config = {.poll = NIC_POLL_ADAPTIVE};
    uint32_t files = 0, threads = 0; /* after the first time */

    for (int i = 0; i < 500; i++) {
        struct rig rig;
        config.poll = i & 1 ? NIC_POLL_SPIN : NIC_POLL_ADAPTIVE;
        rig_start(&rig, &config);
        if (i % 10 == 0) {
            struct rig_queue queue;
            struct wqe wqe;
            rig_loop(&rig, &queue, rig_uar(&rig), 0, 4);
            rig_build(&queue, &wqe, 0, 64);
            rig_expect(&queue, rig_post(&queue, &wqe));
            if (i % 50 == 0)
                rig_sleep_ms(2); /* it may sleep when it is stopped */
            rig_destroy(&queue);
        }
        rig_stop(&rig);
        if (i == 0) {
            files = open_files();
            threads = count_threads();
        }
    }
    CHECK(open_files() == files, "%u files are open, %u after the first time", open_files(), files);
    CHECK(count_threads() == threads, "%u threads are left", count_threads() - threads);
    CHECK(count_uar_maps() == 0, "%u mappings of UAR pages are left", count_uar_maps());
}

/* ---- Under traffic ---- */

struct traffic {
    struct rig_queue *queue;
    uint32_t stop;
    uint64_t completed;
};

static void *post_on(void *argument)
{
    struct traffic *traffic = argument;
    struct rig_queue *queue = traffic->queue;
    struct wqe wqe;
    struct cqe cqe;

    rig_build(queue, &wqe, 0, 64);
    while (!__atomic_load_n(&traffic->stop, __ATOMIC_RELAXED)) {
        if (queue->posted - traffic->completed < 1ull << queue->depth_log2)
            rig_post(queue, &wqe);
        if (rig_try(&queue->send_cq, &cqe))
            __atomic_fetch_add(&traffic->completed, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void stop_under_traffic(void)
{
    struct nic_config config = {.poll = NIC_POLL_ADAPTIVE};

    for (uint32_t i = 0; i < 50; i++) {
        struct rig rig;
        struct rig_queue queue;
        struct traffic traffic = {.queue = &queue};
        pthread_t thread;

        rig_start(&rig, &config);
        rig_loop(&rig, &queue, rig_uar(&rig), 0, 6);
        CHECK(pthread_create(&thread, NULL, post_on, &traffic) == 0, "no thread");
        if (i % 2)
            rig_sleep_ms(i % 5);
        nic_stop(rig.host);
        uint64_t completed = __atomic_load_n(&traffic.completed, __ATOMIC_RELAXED);
        rig_sleep_ms(1);
        completed = __atomic_load_n(&traffic.completed, __ATOMIC_RELAXED) - completed;
        CHECK(completed <= 64, "%llu completions after the stop", (unsigned long long)completed);
        __atomic_store_n(&traffic.stop, 1, __ATOMIC_RELAXED);
        pthread_join(thread, NULL);
    }
}

/* ---- Control calls from many threads ---- */

static struct rig shared;
static uint64_t inside, calls;
static uint32_t enough;

static void *call(void *argument)
{
    (void)argument;
    while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {
        nic_hold(shared.host);
        uint64_t before = ++inside; /* plain: the device excludes others */
        calls++;
        CHECK(inside == before, "two threads hold the device");
        inside--;
        nic_release(shared.host);
    }
    return NULL;
}

static void hold_from_many(enum nic_poll poll, uint64_t seconds)
{
    struct nic_config config = {.poll = poll};
    struct rig_queue queue;
    struct wqe wqe;
    pthread_t threads[4];
    uint64_t served = 0;

    rig_start(&shared, &config);
    rig_loop(&shared, &queue, rig_uar(&shared), 0, 6);
    enough = 0;
    calls = 0;
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, call, NULL) == 0, "no thread");
    rig_build(&queue, &wqe, 0, 64);
    uint64_t end = rig_now_ns() + seconds * 1000000000ull;
    do {
        for (int i = 0; i < 10; i++, served++)
            rig_expect(&queue, rig_post(&queue, &wqe));
    } while (rig_now_ns() < end);
    __atomic_store_n(&enough, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("%llu writes beside %llu control calls from 4 threads in %llu s\n",
           (unsigned long long)served, (unsigned long long)calls, (unsigned long long)seconds);
    CHECK(calls > 0, "no control call came through");
    rig_destroy(&queue);
    rig_stop(&shared);
}

int main(void)
{
    start_and_stop();
    stop_under_traffic();
    hold_from_many(NIC_POLL_ADAPTIVE, 1);
    hold_from_many(NIC_POLL_SPIN, 1);
    return 0;
}
