/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: an idle engine uses no CPU, a doorbell through any mapping wakes it, control calls do not
 * need it awake, and nothing that happens to the UAR pages meanwhile (unmapped, mapped again,
 * forked, a store interrupted by a signal) stops it. Without userfaultfd it still serves. A
 * spinning engine never sleeps.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <core/objects.h>

#include "engine_rig.h"

static struct rig rig;
static struct rig_queue queue;

/* ---- What the engine's thread costs ---- */

/* The number after `name` in /proc/self/task/TID/`file` of the thread called "softnic". */
static uint64_t engine_number(const char *file, const char *name)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    char path[512], line[256];
    uint64_t number = UINT64_MAX;

    CHECK(tasks, "/proc/self/task: %s", strerror(errno));
    while ((task = readdir(tasks))) {
        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
        FILE *stream = fopen(path, "r");
        if (!stream)
            continue;
        bool is_engine = fgets(line, sizeof(line), stream) && strcmp(line, "softnic\n") == 0;
        fclose(stream);
        if (!is_engine)
            continue;
        snprintf(path, sizeof(path), "/proc/self/task/%s/%s", task->d_name, file);
        stream = fopen(path, "r");
        while (stream && fgets(line, sizeof(line), stream))
            if (strncmp(line, name, strlen(name)) == 0) {
                number = strtoull(line + strlen(name), NULL, 10);
                break;
            }
        if (stream)
            fclose(stream);
    }
    closedir(tasks);
    return number;
}

static uint64_t cpu_ns(void)
{
    return engine_number("schedstat", "");
}

static uint64_t sleeps(void)
{
    return engine_number("status", "voluntary_ctxt_switches:");
}

/* Long enough for the engine to have gone to sleep. */
static void let_sleep(void)
{
    rig_sleep_ms(4);
}

static void start(enum nic_poll poll)
{
    struct nic_config config = {.poll = poll};
    rig_start(&rig, &config);
    rig_loop(&rig, &queue, rig_uar(&rig), 0, 6);
}

static void stop(void)
{
    rig_destroy(&queue);
    rig_stop(&rig);
}

static void serves(void)
{
    struct wqe wqe;
    rig_build(&queue, &wqe, 0, 64);
    rig_expect(&queue, rig_post(&queue, &wqe));
}

/* On how much CPU the engine runs in 600 ms without work, in nanoseconds. */
static uint64_t idle_cost(void)
{
    serves();
    rig_sleep_ms(50);
    uint64_t before = cpu_ns();
    rig_sleep_ms(600);
    return cpu_ns() - before;
}

static void idle(void)
{
    serves();
    if (cpu_ns() == UINT64_MAX)
        SKIP("/proc/self/task/TID/schedstat is not there");
    uint64_t cost = idle_cost();
    printf("idle: %llu ns of CPU in 600 ms\n", (unsigned long long)cost);
    CHECK(cost < 6000000, "an idle engine took %llu ns of CPU in 600 ms", (unsigned long long)cost);
}

/* ---- Waking ---- */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void wake_up(const char *how)
{
    enum { TRIES = 200 };
    uint64_t took[TRIES];
    struct wqe wqe;

    rig_build(&queue, &wqe, 0, 64);
    for (int i = 0; i < TRIES; i++) {
        let_sleep();
        uint64_t begin = rig_now_ns();
        rig_expect(&queue, rig_post(&queue, &wqe));
        took[i] = rig_now_ns() - begin;
    }
    qsort(took, TRIES, sizeof(took[0]), by_value);
    printf("%s: from doorbell to completion of an 8-byte write, median %.1f us, 99%% %.1f us\n",
           how, (double)took[TRIES / 2] / 1000, (double)took[TRIES * 99 / 100] / 1000);
    /* The aim is 100 us, which is printed; what is asserted is that something wakes it, on a
     * machine that may be shared with many. */
    CHECK(took[TRIES / 2] < 100000000, "the median is %llu ns",
          (unsigned long long)took[TRIES / 2]);
}

static void control_calls(void)
{
    for (int i = 0; i < 50; i++) {
        let_sleep();
        struct nic *nic = nic_hold(rig.host);
        uint32_t page;
        CHECK(nic_uar_alloc(nic, &page) == 0, "nic_uar_alloc failed");
        CHECK(nic_uar_free(nic, page) == 0, "nic_uar_free failed");
        nic_release(rig.host);
        struct nic_counters counters;
        nic_read_counters(rig.host, &counters);
        CHECK(counters.send_wqes > 0, "no WQE is counted");
        serves();
    }
}

/* The page's other register wakes it as well. */
static void without_record(void)
{
    struct rig_queue other;
    struct wqe wqe;

    rig_loop(&rig, &other, queue.page, RIG_NO_RECORD, 6);
    rig_build(&other, &wqe, 0, 64);
    for (int i = 0; i < 20; i++) {
        let_sleep();
        rig_expect(&other, rig_post(&other, &wqe));
    }
    rig_destroy(&other);
}

/* ---- What happens to UAR pages while it sleeps ---- */

static uint8_t *map_page(uint32_t page)
{
    uint8_t *at = mmap(NULL, M5_UAR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, nic_uar_fd(rig.host),
                       (off_t)page * M5_UAR_BYTES);
    CHECK(at != MAP_FAILED, "mmap of a UAR page: %s", strerror(errno));
    return at;
}

static void mapped_twice(void)
{
    uint64_t *first = queue.doorbell;
    for (int i = 0; i < 20; i++) {
        uint8_t *again = map_page(queue.page);
        let_sleep();
        queue.doorbell = (uint64_t *)(void *)(again + M5_UAR_SEND);
        serves(); /* through the new mapping */
        let_sleep();
        queue.doorbell = first;
        serves(); /* through the old one */
        let_sleep();
        munmap(again, M5_UAR_BYTES);
        serves();
    }
}

/* A page is handed out, mapped, unmapped in its sleep, and mapped again. */
static void unmapped_asleep(void)
{
    struct rig_queue other;
    rig_loop(&rig, &other, rig_uar(&rig), 0, 6);
    uint8_t *in_whole = rig.uar + (size_t)other.page * M5_UAR_BYTES;
    struct wqe wqe;

    rig_build(&other, &wqe, 0, 64);
    for (int i = 0; i < 10; i++) {
        let_sleep();
        munmap(in_whole, M5_UAR_BYTES);
        serves();
        let_sleep();
        void *back = mmap(in_whole, M5_UAR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                          nic_uar_fd(rig.host), (off_t)other.page * M5_UAR_BYTES);
        CHECK(back == in_whole, "mmap of a UAR page: %s", strerror(errno));
        rig_expect(&other, rig_post(&other, &wqe));
    }
    rig_destroy(&other);
    CHECK(nic_uar_free(nic_hold(rig.host), other.page) == 0, "nic_uar_free failed");
    nic_release(rig.host);
}

/* A child's copy of the pages is nobody's doorbell: its store must not wait for the engine. */
static void forked(void)
{
    let_sleep();
    pid_t child = fork();
    if (child == 0) {
        alarm(10);
        __atomic_store_n(queue.doorbell + 1, 1, __ATOMIC_RELEASE); /* no register */
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0,
          "the child ended with status 0x%x", status);
    serves();
}

/* ---- A thread that waits in its store ---- */

static sigjmp_buf escape;
static uint32_t storing, stored, escaped;

static void on_signal(int number)
{
    (void)number;
    siglongjmp(escape, 1);
}

static void *store(void *at)
{
    if (sigsetjmp(escape, 1) == 0) {
        __atomic_store_n(&storing, 1, __ATOMIC_RELEASE);
        __atomic_store_n((uint64_t *)at, 1, __ATOMIC_RELEASE);
        __atomic_store_n(&stored, 1, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n(&escaped, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* Starts a thread that stores to a page while the device is held, so that the store waits where the
 * engine protects pages. */
static pthread_t start_store(uint8_t *page)
{
    pthread_t thread;
    storing = stored = escaped = 0;
    let_sleep();
    nic_hold(rig.host);
    CHECK(pthread_create(&thread, NULL, store, page) == 0, "no thread");
    rig_wait32(&storing, 1, "the thread at its store");
    rig_sleep_ms(5);
    return thread;
}

__attribute__((unused)) static void interrupted(void)
{
    uint8_t *page = map_page(queue.page);
    struct sigaction action = {.sa_handler = on_signal}, before;
    sigaction(SIGUSR1, &action, &before);
    for (int i = 0; i < 20; i++) {
        pthread_t thread = start_store(page);
        if (!__atomic_load_n(&stored, __ATOMIC_ACQUIRE)) {
            pthread_kill(thread, SIGUSR1);
            rig_wait32(&escaped, 1, "the signal handler");
        }
        pthread_join(thread, NULL);
        nic_release(rig.host);
        serves();
    }
    sigaction(SIGUSR1, &before, NULL);
    munmap(page, M5_UAR_BYTES);
}

/* The page goes away under the store: it faults, as it would on hardware. */
__attribute__((unused)) static void unmapped_under_store(void)
{
    struct sigaction action = {.sa_handler = on_signal}, before;
    sigaction(SIGSEGV, &action, &before);
    for (int i = 0; i < 20; i++) {
        uint8_t *page = map_page(queue.page);
        pthread_t thread = start_store(page);
        bool waits = !__atomic_load_n(&stored, __ATOMIC_ACQUIRE);
        munmap(page, M5_UAR_BYTES);
        nic_release(rig.host);
        serves();
        if (waits)
            rig_wait32(&escaped, 1, "the fault of the store to the unmapped page");
        pthread_join(thread, NULL);
    }
    sigaction(SIGSEGV, &before, NULL);
}

/* ---- The engine's other ways ---- */

static void spinning(void)
{
    start(NIC_POLL_SPIN);
    serves();
    rig_sleep_ms(20);
    uint64_t before = sleeps(), cpu = cpu_ns();
    rig_sleep_ms(300);
    CHECK(sleeps() == before, "a spinning engine slept %llu times",
          (unsigned long long)(sleeps() - before));
    CHECK(cpu_ns() - cpu > 3000000, "a spinning engine took %llu ns of CPU in 300 ms",
          (unsigned long long)(cpu_ns() - cpu));
    serves();
    stop();
}

/* In a child where the system call userfaultfd() is refused. */
static void without_userfaultfd(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
            _exit(77);
        start(NIC_POLL_ADAPTIVE);
        wake_up("without userfaultfd");
        printf("idle without userfaultfd: %llu ns of CPU in 600 ms\n",
               (unsigned long long)idle_cost());
        control_calls();
        without_record();
        mapped_twice();
        unmapped_asleep();
        stop();
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child, "waitpid: %s", strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        printf("no seccomp filters here: without userfaultfd is not tried\n");
    else
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with status 0x%x",
              status);
}

int main(void)
{
    without_userfaultfd();
    start(NIC_POLL_ADAPTIVE);
    idle();
    wake_up("asleep");
    control_calls();
    without_record();
    mapped_twice();
    unmapped_asleep();
    forked();
#ifndef PORT_TSAN /* whose own code does the store, and must not be left by a signal */
    interrupted();
    unmapped_under_store();
#endif
    idle();
    stop();
    spinning();
    return 0;
}
