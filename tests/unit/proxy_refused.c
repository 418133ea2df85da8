/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a proxy or a proxied queue that cannot be is refused with a sentence that names the fault
 * and what to do instead; the tuned protocol for two producers of one ring among them, and a shared
 * call of device code on a ring that was made for one.
 */
#include <doorbell/device.h>
#include <doorbell/doorbell.h>
#include <errno.h>
#include <string.h>

#include "../check.h"

static struct db_device *device;

#define REFUSED(call, error, words)                                                                \
    do {                                                                                           \
        int got_ = (call);                                                                         \
        CHECK(got_ == (error), "%d, wanted %d: %s", got_, (error), db_error_text());               \
        CHECK(strstr(db_error_text(), words), "no \"%s\" in: %s", words, db_error_text());         \
    } while (0)

static void proxies(void)
{
    static const struct {
        struct db_proxy_attr attr;
        const char *words;
    } wrong[] = {
        {{.workers = 9}, "has 1 to 8"},
        {{.batch = 17}, "1 to 16 are possible"},
        {{.depth = 8}, "it is 16 to"},
        {{.depth = 48}, "a power of two"},
        {{.post = (enum db_post)7}, "way of posting 7"},
        {{.idle = (enum db_proxy_idle)7}, "idle policy 7"},
        {{.pin = (enum db_proxy_pin)7}, "way of pinning 7"},
    };
    struct db_proxy *proxy;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        REFUSED(db_proxy_create(device, &wrong[i].attr, &proxy), -EINVAL, wrong[i].words);
        CHECK(!proxy, "a handle of nothing");
    }
    REFUSED(db_proxy_create(NULL, &wrong[0].attr, &proxy), -EINVAL, "open device");
}

static void queues(struct db_proxy *proxy)
{
    const struct {
        struct db_queue_attr attr;
        const char *words;
    } wrong[] = {
        {{.depth = 64, .producers = 2, .protocol = DB_PROTOCOL_TUNED},
         "the tuned protocol is for one producer"},
        {{.depth = 1}, "2 to 65536"},
        {{.depth = 0}, "2 to 65536"},
        {{.depth = 48}, "a power of two"},
        {{.depth = 131072}, "2 to 65536"},
        {{.depth = 64, .worker = 3}, "no worker 3; it has 1 to 2"},
        {{.depth = 64, .recv_depth = 4}, "no CQ, no receives"},
        {{.depth = 64, .without_record = true}, "no record of its own"},
        {{.depth = 64, .exchange_record = true}, "exchange_record 0"},
        {{.depth = 64, .protocol = (enum db_protocol)5}, "protocol 5"},
        {{.depth = 64, .progress = DB_MEMORY_GPU}, "needs a GPU"},
        {{.depth = 64, .progress = (enum db_memory)5}, "memory of kind 5"},
    };
    struct db_queue *queue;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct db_queue_attr attr = wrong[i].attr;
        attr.proxy = proxy;
        REFUSED(db_queue_create(device, &attr, &queue), -EINVAL, wrong[i].words);
        CHECK(!queue, "a handle of nothing");
    }
}

static void another_device(struct db_proxy *proxy)
{
    struct db_queue_attr attr = {.depth = 64, .proxy = proxy};
    struct db_device *other;
    struct db_queue *queue;

    CHECK(!db_device_open(NULL, NULL, &other), "%s", db_error_text());
    REFUSED(db_queue_create(other, &attr, &queue), -EINVAL, "another device");
    db_device_close(other);
}

static void full_proxy(struct db_proxy *proxy)
{
    struct db_queue_attr attr = {.depth = 2, .proxy = proxy, .worker = 1};
    struct db_keys region = {.bytes = 8}, keys;
    struct db_queue *queues_made[32], *queue;

    for (int i = 0; i < 32; i++)
        CHECK(!db_queue_create(device, &attr, &queues_made[i]), "%s", db_error_text());
    REFUSED(db_queue_create(device, &attr, &queue), -ENOSPC, "serves 32 queues already");
    for (uint32_t i = 0; i < 32; i++) {
        region.iova = i;
        CHECK(!db_queue_keys(queues_made[0], DB_SIDE_LOCAL, &region, &keys), "%s", db_error_text());
        CHECK(keys.lkey == i && keys.iova == 0, "place %u", keys.lkey);
    }
    region.iova = 7;
    CHECK(!db_queue_keys(queues_made[1], DB_SIDE_LOCAL, &region, &keys) && keys.lkey == 7,
          "a known region got place %u", keys.lkey);
    region.iova = 99;
    REFUSED(db_queue_keys(queues_made[0], DB_SIDE_LOCAL, &region, &keys), -ENOSPC,
            "at most 32 local regions");
    region.bytes = (1ull << 40) + 1;
    REFUSED(db_queue_keys(queues_made[0], DB_SIDE_REMOTE, &region, &keys), -EINVAL, "in parts");
    REFUSED(db_queue_reset(queues_made[0]), -EOPNOTSUPP, "shares its worker's queue pair");
    for (int i = 0; i < 32; i++)
        db_queue_destroy(queues_made[i]);
}

static void shared_calls(struct db_proxy *proxy)
{
    struct db_queue_attr attr = {.depth = 2, .proxy = proxy};
    struct db_queue *queue;
    uint64_t index;

    CHECK(!db_queue_create(device, &attr, &queue), "%s", db_error_text());
    struct db_qp *qp = db_queue_device_view(queue);
    CHECK(db_put_shared(qp, 0, 0, 0, 0, 8, &index) == DB_ERROR_INVALID, "db_put_shared");
    CHECK(db_put_value_shared(qp, 0, 0, 1, &index) == DB_ERROR_INVALID, "db_put_value_shared");
    CHECK(db_flush(qp) == DB_OK, "an empty ring is not flushed");
    db_queue_destroy(queue);
}

int main(void)
{
    const struct db_proxy_attr attr = {.workers = 2, .idle = DB_IDLE_SLEEP};
    struct db_worker_info info;
    struct db_proxy *proxy;

    CHECK(!db_device_open(NULL, NULL, &device), "%s", db_error_text());
    proxies();
    CHECK(!db_proxy_create(device, &attr, &proxy), "%s", db_error_text());
    queues(proxy);
    another_device(proxy);
    full_proxy(proxy);
    shared_calls(proxy);
    REFUSED(db_proxy_query(proxy, 3, &info), -EINVAL, "no worker 3");
    REFUSED(db_proxy_query(proxy, 0, &info), -EINVAL, "no worker 0");
    db_proxy_destroy(proxy);
    db_proxy_destroy(NULL);
    db_device_close(device);
    printf("each refusal has its sentence\n");
    return 0;
}
