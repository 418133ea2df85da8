/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The adapter's state for the process (process.h): whether the device is in use, its running core,
 * and fork. A forked child keeps none of the parent's device, since the engine's thread stays with
 * the parent: descriptors that it inherits are dead there, but it may open the device anew.
 */
#include "process.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "files.h"
#include "real.h"
#include "sysfs.h"
#include "verbs.h"

pthread_mutex_t soft_lock = PTHREAD_MUTEX_INITIALIZER;

static struct nic_host *host;
static unsigned users;
static bool has_run;
static bool leaving;

/* What earlier runs of the device left. */
static struct nic_counters past;
static struct nic_diag_entry past_log[NIC_DIAG_LOG];
static size_t past_logged;

enum decision { UNDECIDED, IN_USE, NOT_IN_USE };

static pthread_mutex_t decision_lock = PTHREAD_MUTEX_INITIALIZER;
static enum decision _Atomic decision;
static bool _Atomic looked_up;
static const char *reason = "";

/* True when the machine has an RDMA device of its own. */
static bool real_device_exists(void)
{
    DIR *directory = REAL(opendir)("/sys/class/infiniband_verbs");
    bool exists = false;

    if (directory == NULL)
        return false;
    for (struct dirent *entry; !exists && (entry = readdir(directory)) != NULL;)
        exists = strncmp(entry->d_name, "uverbs", 6) == 0;
    closedir(directory);
    return exists;
}

static enum decision decide(void)
{
    switch (soft_settings()->mode) {
    case SOFTNIC_ON:
        reason = "asked for; real RDMA devices are hidden";
        return IN_USE;
    case SOFTNIC_OFF:
        reason = "it is switched off (SOFTNIC=off)";
        return NOT_IN_USE;
    case SOFTNIC_AUTO:
        break;
    }
    if (real_device_exists()) {
        reason = "this machine has an RDMA device of its own in /sys/class/infiniband_verbs";
        return NOT_IN_USE;
    }
    reason = "this machine has no RDMA device";
    return IN_USE;
}

bool soft_in_use(void)
{
    if (decision == UNDECIDED) {
        pthread_mutex_lock(&decision_lock);
        if (decision == UNDECIDED)
            decision = decide();
        pthread_mutex_unlock(&decision_lock);
    }
    return decision == IN_USE;
}

int soft_choose(enum softnic_mode mode)
{
    struct soft_settings *settings = soft_settings();
    int error = 0;

    pthread_mutex_lock(&decision_lock);
    if (looked_up) {
        error = -EBUSY;
    } else {
        settings->mode = mode;
        decision = UNDECIDED;
    }
    pthread_mutex_unlock(&decision_lock);
    return error;
}

const char *soft_reason(void)
{
    soft_in_use();
    return reason;
}

void soft_paths_used(void)
{
    looked_up = true;
}

static void completion(void *owner)
{
    if (owner != NULL)
        soft_cq_completed(owner);
}

static void async_event(void *owner, enum nic_event event)
{
    if (owner == NULL || event < 0)
        return;
    if (event == NIC_EVENT_CQ_ERR)
        soft_cq_failed(owner);
    else
        soft_qp_event(owner, event);
}

/* Every process has a device of its own, and all have the same addresses: with the same QPNs and
 * keys a program of two processes would connect to itself. */
static uint64_t own_numbers(void)
{
    uint64_t numbers;

    if (getrandom(&numbers, sizeof(numbers), GRND_NONBLOCK) == (ssize_t)sizeof(numbers))
        return numbers;
    return ((uint64_t)getpid() << 32 | (uint32_t)getpid()) * UINT32_C(0x9e3779b1);
}

int soft_device_take(void)
{
    static const struct nic_callbacks callbacks = {completion, async_event};
    const struct soft_settings *settings = soft_settings();
    struct nic_config config = settings->config;
    int error;

    if (leaving)
        return soft_refuse(EIO, "the process is exiting");
    if (users == 0) {
        if (settings->wrong[0] != '\0') {
            fprintf(stderr, "softnic: %s\n", settings->wrong);
            return -EINVAL;
        }
        config.numbers = own_numbers();
        error = nic_start(&config, &callbacks, &host);
        if (error != 0)
            return soft_refuse(-error, "the device does not start: %s", strerror(-error));
        has_run = true;
    }
    users++;
    return 0;
}

static void stop(void)
{
    struct nic *nic = nic_hold(host);
    size_t fresh = nic->diag_logged;

    if (fresh > NIC_DIAG_LOG - past_logged)
        fresh = NIC_DIAG_LOG - past_logged;
    memcpy(past_log + past_logged, nic->diag_log, fresh * sizeof(past_log[0]));
    nic_release(host);
    soft_read_counters(&past);
    past_logged += fresh;
    nic_stop(host);
    host = NULL;
    users = 0;
}

void soft_device_drop(void)
{
    if (host != NULL && --users == 0)
        stop();
}

struct nic_host *soft_device(void)
{
    return host;
}

bool soft_device_has_run(void)
{
    return has_run;
}

void soft_read_counters(struct nic_counters *counters)
{
    struct nic_counters now = {0};

    if (host != NULL)
        nic_read_counters(host, &now);
    now.send_wqes += past.send_wqes;
    now.recv_wqes += past.recv_wqes;
    now.cqes += past.cqes;
    now.error_cqes += past.error_cqes;
    now.payload_bytes += past.payload_bytes;
    now.doorbells += past.doorbells;
    now.cq_arms += past.cq_arms;
    now.rnr_naks += past.rnr_naks;
    now.memory_faults += past.memory_faults;
    for (int kind = 0; kind < NIC_DIAG_COUNT; kind++)
        now.diag[kind] += past.diag[kind];
    *counters = now;
}

size_t soft_read_diagnostics(struct nic_diag_entry *entries, size_t capacity)
{
    size_t copied = past_logged < capacity ? past_logged : capacity;
    size_t all = past_logged;

    if (copied > 0)
        memcpy(entries, past_log, copied * sizeof(entries[0]));
    if (host != NULL) {
        const struct nic *nic = nic_hold(host);
        size_t more = nic->diag_logged < capacity - copied ? nic->diag_logged : capacity - copied;
        if (more > 0)
            memcpy(entries + copied, nic->diag_log, more * sizeof(entries[0]));
        all += nic->diag_logged;
        nic_release(host);
    }
    return all;
}

static void say(const char *format, va_list arguments)
{
    char line[300];

    vsnprintf(line, sizeof(line), format, arguments);
    fprintf(stderr, "softnic: %s\n", line);
}

void soft_debug(const char *format, ...)
{
    va_list arguments;

    if (!soft_settings()->debug)
        return;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

int soft_refuse(int error, const char *format, ...)
{
    va_list arguments;

    if (soft_settings()->debug) {
        va_start(arguments, format);
        say(format, arguments);
        va_end(arguments);
    }
    return -error;
}

static void before_fork(void)
{
    pthread_mutex_lock(&soft_lock);
    soft_files_lock();
    soft_sysfs_lock();
}

static void after_fork_in_parent(void)
{
    soft_sysfs_unlock();
    soft_files_unlock();
    pthread_mutex_unlock(&soft_lock);
}

static void after_fork_in_child(void)
{
    host = NULL;
    users = 0;
    has_run = false;
    memset(&past, 0, sizeof(past));
    past_logged = 0;
    soft_files_abandon();
    soft_sysfs_abandon();
    after_fork_in_parent();
}

__attribute__((constructor)) static void enter(void)
{
    soft_files_begin();
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* A program may exit with contexts open and its queues running. */
__attribute__((destructor)) static void leave(void)
{
    pthread_mutex_lock(&soft_lock);
    leaving = true;
    if (host != NULL)
        stop();
    soft_report_write();
    pthread_mutex_unlock(&soft_lock);
    soft_sysfs_remove();
}
