/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two queues of libdoorbell on the software device, each with a registered buffer: what the
 * programs queue_*.c in tests/interop start from. End `a` asks, end `b` answers.
 *
 * A function that cannot do what it says ends the program with the library's sentence.
 */
#ifndef DOORBELL_TESTS_QUEUE_ENDS_H
#define DOORBELL_TESTS_QUEUE_ENDS_H

#include <doorbell/device.h>
#include <doorbell/doorbell.h>

#include "../check.h"

struct queue_end {
    struct db_queue *queue;
    struct db_qp *qp;
    struct db_region *region;
    struct db_keys keys;
    uint8_t *buffer; /* page aligned, zero at first */
};

struct queue_ends {
    struct db_device *device;
    struct queue_end a, b;
    size_t bytes; /* of each buffer */
};

/* Checks that a call of the library succeeded. */
#define QUEUE_OK(call) CHECK((call) == 0, "%s", db_error_text())

/* Opens the device and makes both ends, not connected. */
void queue_ends_create(struct queue_ends *ends, const struct db_queue_attr *attr, size_t bytes);
/* The same, and connects them. */
void queue_ends_start(struct queue_ends *ends, const struct db_queue_attr *attr, size_t bytes);
void queue_ends_destroy(struct queue_ends *ends);

/* One end by itself, on an open device. */
void queue_end_create(struct queue_end *end, struct db_device *device,
                      const struct db_queue_attr *attr, size_t bytes);
void queue_end_destroy(struct queue_end *end);

/* Waits for the next arrival. */
struct db_receive queue_end_receive(const struct queue_end *end);

/* Waits until the queue's WQE `index` has completed. */
void queue_wait(struct db_queue *queue, uint64_t index);

/* A pattern that tells one seed, and one place, from the next. */
void queue_fill(uint8_t *bytes, size_t n, uint64_t seed);
/* The pattern's `n` bytes, and behind them a byte that nobody has touched (0xee before). */
void queue_verify(const uint8_t *bytes, size_t n, uint64_t seed, const char *what);

/* Turns strict mode on. With `poison` executed blocks are overwritten, so that nobody can read them
 * afterwards. */
void queue_strict(bool poison);

/* Ends the program when strict mode found fault with anything since the process started, and when
 * it could not have: it is off, or the device executed nothing. */
void queue_expect_no_diagnostics(void);

/* The same but for a doorbell that was late: a worker that the scheduler takes its core from
 * between record and doorbell, for the 100 ms that strict mode waits, has done nothing wrong. */
void queue_expect_no_diagnostics_of_worker(void);

#endif
