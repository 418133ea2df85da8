/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: whatever a caller of libdoorbell gets wrong ends in the errno that doorbell.h states and
 * in a sentence that names the thing and what is allowed; the result is NULL, and what is right
 * works afterwards.
 */
#include <doorbell/doorbell.h>
#include <errno.h>
#include <softnic.h>
#include <string.h>
#include <sys/mman.h>

#include "../check.h"
#include "src/device.h"

/* The sentence must hold every one of the words, which "|" parts. */
static void expect_words(const char *what, const char *words)
{
    char copy[256], *rest = copy, *word;

    snprintf(copy, sizeof(copy), "%s", words);
    while ((word = strsep(&rest, "|")))
        CHECK(strstr(db_error_text(), word), "%s: '%s' is not in: %s", what, word, db_error_text());
}

/* ---- Devices ---- */

static void devices(void)
{
    static const struct {
        const char *what;
        const char *name;
        struct db_device_options options;
        const char *words;
    } rows[] = {
        {"unknown name", "mlx5_9", DB_DEVICE_OPTIONS, "mlx5_9|" SOFTNIC_DEVICE_NAME},
        {"empty name", "", DB_DEVICE_OPTIONS, "''|" SOFTNIC_DEVICE_NAME},
        {"port 2 of 1", NULL, {2, DB_ANY_GID}, SOFTNIC_DEVICE_NAME "|port 2|it has 1"},
        {"GID 77", SOFTNIC_DEVICE_NAME, {1, 77}, SOFTNIC_DEVICE_NAME "|77|port 1"},
        {"GID -2", NULL, {0, -2}, "-2"},
    };
    struct db_device *device = (struct db_device *)(void *)&device;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int error = db_device_open(rows[i].name, &rows[i].options, &device);
        CHECK(error == -ENODEV && !device, "%s: %d", rows[i].what, error);
        expect_words(rows[i].what, rows[i].words);
    }

    struct db_device_entry entry;
    size_t count;
    CHECK(db_device_list(&entry, 0, &count) == 0 && count == 1, "%zu devices", count);
    CHECK(db_device_list(&entry, 1, &count) == 0 && count == 1, "%zu devices", count);
    CHECK(strcmp(entry.name, SOFTNIC_DEVICE_NAME) == 0 && entry.software && entry.usable &&
              strstr(entry.reason, "GID 3"),
          "listed: %s: %s", entry.name, entry.reason);
}

/* ---- Regions ---- */

static void regions(struct db_device *device)
{
    static char page[4096] __attribute__((aligned(4096)));
    void *hole = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const struct {
        const char *what;
        enum db_memory kind;
        void *addr;
        size_t bytes;
        unsigned access;
        int error;
        const char *words;
    } rows[] = {
        {"GPU memory", DB_MEMORY_GPU, page, 4096, 0, -EOPNOTSUPP,
         "GPU|" SOFTNIC_DEVICE_NAME "|host"},
        {"unknown kind", (enum db_memory)9, page, 4096, 0, -EINVAL, "kind 9|host memory (0)"},
        {"no bytes", DB_MEMORY_HOST, page, 0, 0, -EINVAL, "0 bytes|1 is the least"},
        {"unknown access", DB_MEMORY_HOST, page, 4096, 0x10, -EINVAL, "0x10|DB_ACCESS_ALL"},
        {"write without local write", DB_MEMORY_HOST, page, 4096, DB_ACCESS_REMOTE_WRITE, -EINVAL,
         "DB_ACCESS_LOCAL_WRITE"},
        {"atomics without local write", DB_MEMORY_HOST, page, 4096, DB_ACCESS_REMOTE_ATOMIC,
         -EINVAL, "DB_ACCESS_LOCAL_WRITE"},
        {"not readable", DB_MEMORY_HOST, hole, 8192, DB_ACCESS_ALL, -EFAULT, "8192 bytes|mapped"},
    };
    struct db_region *region = (struct db_region *)(void *)&region;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int error = db_region_register(device, rows[i].kind, rows[i].addr, rows[i].bytes,
                                       rows[i].access, &region);
        CHECK(error == rows[i].error && !region, "%s: %d: %s", rows[i].what, error,
              db_error_text());
        expect_words(rows[i].what, rows[i].words);
    }
    CHECK(db_region_register(NULL, DB_MEMORY_HOST, page, 1, 0, &region) == -EINVAL, "no device");
    CHECK(db_region_register(device, DB_MEMORY_HOST, page, 1, 0, &region) == 0, "%s",
          db_error_text());
    db_region_destroy(region);
    munmap(hole, 8192);
}

/* ---- Queues ---- */

static void queues(struct db_device *device)
{
    static const struct {
        const char *what;
        struct db_queue_attr attr;
        int error;
        const char *words;
        bool detached_too; /* refused alike without a device */
    } rows[] = {
        {"depth 0", {.depth = 0}, -EINVAL, "depth 0|1 to 32768|power of two", true},
        {"depth 48", {.depth = 48}, -EINVAL, "depth 48|1 to 32768|power of two", true},
        {"depth 65536", {.depth = 65536}, -EINVAL, "depth 65536|1 to 32768", true},
        {"depth 2^31", {.depth = 1u << 31}, -EINVAL, "1 to 32768", true},
        {"collapsed depth 32768",
         {.depth = 32768, .collapsed = true},
         -EINVAL,
         "collapsed|1 to 16384",
         true},
        {"CQ smaller", {.depth = 64, .cq_depth = 32}, -EINVAL, "CQ depth 32|depth 64|64 to", true},
        {"CQ depth 96", {.depth = 64, .cq_depth = 96}, -EINVAL, "CQ depth 96|power of two", true},
        {"CQ too deep", {.depth = 64, .cq_depth = 1u << 23}, -EINVAL, "CQ depth 8388608", true},
        {"receive depth 5", {.depth = 64, .recv_depth = 5}, -EINVAL, "receive depth 5", true},
        {"receive depth 65536",
         {.depth = 64, .recv_depth = 65536},
         -EINVAL,
         "receive depth 65536",
         true},
        {"ring in GPU memory",
         {.depth = 64, .ring = DB_MEMORY_GPU},
         -EOPNOTSUPP,
         "send ring|GPU|host memory",
         true},
        {"CQ in GPU memory",
         {.depth = 64, .cq = DB_MEMORY_GPU},
         -EOPNOTSUPP,
         "completion ring|GPU|host memory",
         true},
        {"record in GPU memory",
         {.depth = 64, .record = DB_MEMORY_GPU},
         -EOPNOTSUPP,
         "record|GPU|host memory",
         true},
        {"unknown memory", {.depth = 64, .ring = (enum db_memory)3}, -EINVAL, "kind 3", true},
        {"GPU scope",
         {.depth = 64, .scope = DB_SCOPE_GPU},
         -EINVAL,
         "GPU scope|DB_SCOPE_SYSTEM",
         true},
        {"unknown scope", {.depth = 64, .scope = (enum db_scope)7}, -EINVAL, "scope 7", true},
        {"unknown register", {.depth = 64, .uar = (enum db_uar)7}, -EINVAL, "register 7", true},
        {"exchanged record in host memory",
         {.depth = 64, .exchange_record = true},
         -EINVAL,
         "exchanged record|GPU memory|exchange_record false",
         true},
        {"exchanged record and none",
         {.depth = 64, .exchange_record = true, .without_record = true},
         -EINVAL,
         "exchanged record needs a record",
         true},
    };
    struct db_queue *queue = (struct db_queue *)(void *)&queue;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int error = db_queue_create(device, &rows[i].attr, &queue);
        CHECK(error == rows[i].error && !queue, "%s: %d: %s", rows[i].what, error, db_error_text());
        expect_words(rows[i].what, rows[i].words);
        error = db_queue_create_detached(&rows[i].attr, &queue);
        CHECK(rows[i].detached_too ? error == rows[i].error && !queue : error == 0,
              "%s, detached: %d: %s", rows[i].what, error, db_error_text());
        db_queue_destroy(queue);
    }
    const struct db_queue_attr good = {.depth = 64};
    CHECK(db_queue_create(NULL, &good, &queue) == -EINVAL && !queue, "no device");
}

/* Of a device that reads a record from every queue, as most do. */
static void no_record(struct db_device *device)
{
    const struct db_queue_attr attr = {.depth = 64, .without_record = true};
    struct db_queue *queue = (struct db_queue *)(void *)&queue;

    CHECK(device->caps.without_record, "the software device offers no queues without a record");
    device->caps.without_record = false;
    int error = db_queue_create(device, &attr, &queue);
    CHECK(error == -EOPNOTSUPP && !queue, "%d: %s", error, db_error_text());
    expect_words("no record", SOFTNIC_DEVICE_NAME "|send_dbr_mode_no_dbr_ext|with a record");
    device->caps.without_record = true;
}

/* ---- Calls on the wrong queue, or at the wrong time ---- */

static void uses(struct db_device *device)
{
    const struct db_queue_attr attr = {.depth = 64};
    struct db_endpoint endpoint;
    struct db_receive receive;
    struct db_queue *queue, *other, *detached;

    CHECK(db_queue_create(device, &attr, &queue) == 0, "%s", db_error_text());
    CHECK(db_queue_create(device, &attr, &other) == 0, "%s", db_error_text());
    CHECK(db_queue_create_detached(&attr, &detached) == 0, "%s", db_error_text());

    CHECK(db_queue_endpoint(detached, &endpoint) == -EINVAL, "a detached queue has an endpoint");
    expect_words("detached endpoint", "detached");
    CHECK(db_queue_connect(queue, detached) == -EINVAL, "a detached queue was connected");
    CHECK(db_queue_connect(detached, queue) == -EINVAL, "a detached queue was connected");
    CHECK(db_queue_post_receives(queue, 1) == -EINVAL, "a receive was posted where none fit");
    expect_words("receives", "1 receives|recv_depth");
    CHECK(db_queue_poll_receive(queue, &receive) == -EINVAL, "arrivals without receives");
    expect_words("arrivals", "recv_depth");
    CHECK(db_detached_complete(queue, 1) == -EINVAL, "a device's queue was completed by hand");
    CHECK(db_detached_complete(detached, 1) == 0, "an empty queue completed something");

    CHECK(db_queue_endpoint(other, &endpoint) == 0, "%s", db_error_text());
    endpoint.mtu_bytes = 100;
    CHECK(db_queue_connect_remote(queue, &endpoint) == -EINVAL, "an MTU of 100 was taken");
    expect_words("MTU", "100|256 to 4096");
    endpoint.mtu_bytes = 4096;
    endpoint.gid[0] = 0x20; /* 2000::ffff:7f00:1, which is nobody */
    CHECK(db_queue_connect_remote(queue, &endpoint) == -EHOSTUNREACH, "%s", db_error_text());
    expect_words("GID", SOFTNIC_DEVICE_NAME "|GID");

    CHECK(db_queue_connect(queue, other) == 0, "after failures: %s", db_error_text());
    CHECK(db_queue_connect(queue, other) == -EINVAL, "connected twice");
    expect_words("connected twice", "connected|db_queue_reset()");
    db_queue_destroy(detached);
    db_queue_destroy(other);
    db_queue_destroy(queue);
}

int main(void)
{
    struct db_device *device;

    CHECK(db_error_text()[0] == '\0', "a sentence before the first failure: %s", db_error_text());
    devices();
    CHECK(db_device_open(NULL, NULL, &device) == 0, "%s", db_error_text());
    CHECK(strstr(db_device_choice(device), SOFTNIC_DEVICE_NAME) &&
              strstr(db_device_choice(device), "software"),
          "the choice: %s", db_device_choice(device));
    regions(device);
    queues(device);
    no_record(device);
    uses(device);
    db_device_close(device);
    db_device_close(NULL);
    db_region_destroy(NULL);
    db_queue_destroy(NULL);
    return 0;
}
