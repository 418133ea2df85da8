/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See queue_ends.h.
 */
#include "queue_ends.h"

#include <adapter/process.h>
#include <string.h>

#define RECEIVE_NS 20000000000ull

void queue_end_create(struct queue_end *end, struct db_device *device,
                      const struct db_queue_attr *attr, size_t bytes)
{
    size_t pages = (bytes + 4095) / 4096 * 4096;

    end->buffer = aligned_alloc(4096, pages);
    CHECK(end->buffer, "no memory");
    memset(end->buffer, 0, pages);
    QUEUE_OK(db_region_register(device, DB_MEMORY_HOST, end->buffer, bytes, DB_ACCESS_ALL,
                                &end->region));
    end->keys = db_region_keys(end->region);
    QUEUE_OK(db_queue_create(device, attr, &end->queue));
    end->qp = db_queue_device_view(end->queue);
}

void queue_end_destroy(struct queue_end *end)
{
    db_queue_destroy(end->queue);
    db_region_destroy(end->region);
    free(end->buffer);
}

void queue_ends_create(struct queue_ends *ends, const struct db_queue_attr *attr, size_t bytes)
{
    QUEUE_OK(db_device_open(SOFTNIC_DEVICE_NAME, NULL, &ends->device));
    ends->bytes = bytes;
    queue_end_create(&ends->a, ends->device, attr, bytes);
    queue_end_create(&ends->b, ends->device, attr, bytes);
}

void queue_ends_start(struct queue_ends *ends, const struct db_queue_attr *attr, size_t bytes)
{
    queue_ends_create(ends, attr, bytes);
    QUEUE_OK(db_queue_connect(ends->a.queue, ends->b.queue));
}

void queue_ends_destroy(struct queue_ends *ends)
{
    queue_end_destroy(&ends->a);
    queue_end_destroy(&ends->b);
    db_device_close(ends->device);
}

struct db_receive queue_end_receive(const struct queue_end *end)
{
    uint64_t deadline = port_now_ns() + RECEIVE_NS;
    struct db_receive receive;
    int arrived;

    while ((arrived = db_queue_poll_receive(end->queue, &receive)) == 0) {
        CHECK(port_now_ns() < deadline, "no arrival in %llu s", RECEIVE_NS / 1000000000ull);
        port_pause();
    }
    CHECK(arrived == 1, "%s", db_error_text());
    return receive;
}

void queue_wait(struct db_queue *queue, uint64_t index)
{
    int status = db_wait(db_queue_device_view(queue), index);
    CHECK(status == DB_OK, "db_wait(%llu) = %d: %s", (unsigned long long)index, status,
          db_queue_check(queue) ? db_error_text() : "no error");
}

static uint8_t pattern(uint64_t seed, size_t at)
{
    return (uint8_t)((seed * 0x9e3779b97f4a7c15ull >> 32) + at * 167 + (at >> 8));
}

void queue_fill(uint8_t *bytes, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = pattern(seed, i);
}

void queue_verify(const uint8_t *bytes, size_t n, uint64_t seed, const char *what)
{
    for (size_t i = 0; i < n; i++)
        CHECK(bytes[i] == pattern(seed, i), "%s of %zu bytes: byte %zu is %#x", what, n, i,
              bytes[i]);
    CHECK(bytes[n] == 0xee, "%s of %zu bytes: byte %zu was touched", what, n, n);
}

void queue_strict(bool poison)
{
    const struct nic_strict strict = {.enabled = 1, .poison = poison, .random = 1};

    softnic_set_strict(&strict);
}

static void expect_no_diagnostics_but(uint32_t allowed)
{
    struct nic_counters counters;

    CHECK(soft_settings()->config.strict.enabled, "strict mode is off and counts nothing");
    softnic_read_counters(&counters);
    CHECK(counters.send_wqes > 0, "the device executed nothing");
    for (uint32_t kind = 0; kind < NIC_DIAG_COUNT; kind++)
        CHECK(kind == allowed || counters.diag[kind] == 0, "strict mode counted %llu of kind %u",
              (unsigned long long)counters.diag[kind], kind);
}

void queue_expect_no_diagnostics(void)
{
    expect_no_diagnostics_but(NIC_DIAG_COUNT);
}

void queue_expect_no_diagnostics_of_worker(void)
{
    expect_no_diagnostics_but(NIC_DIAG_UNRUNG);
}
