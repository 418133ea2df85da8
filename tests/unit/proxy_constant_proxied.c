/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a source that uses proxied queues alone leaves the compiler no branch either: the question
 * is a constant, and a call stores its descriptor without a look at the queue's own ring.
 */
#define DB_QUEUES DB_QUEUES_PROXY

#include <doorbell/device.h>

#include "../check.h"

#ifdef PORT_TSAN
__attribute__((weak)) uint32_t port_cpu_fence_word; /* the software device defines it otherwise */
#endif

#define DEPTH 4u

int main(void)
{
    static _Alignas(64) uint8_t slots[DEPTH * sizeof(struct db_descriptor)];
    static struct db_ring_progress progress;
    static struct db_ring ring = {
        .slots = slots, .progress = &progress, .timeout_ns = 1000000000, .depth = DEPTH};
    static struct db_qp qp = {.ring = &ring, .sq = (uint8_t *)8}; /* whoever builds there is lost */
    struct db_descriptor d;
    uint64_t index;

    db_ring_clear(&ring, &progress, 0);
    const bool proxied = db_is_proxied(&qp);
    CHECK(proxied, "the question is not answered by the source");
#ifdef __OPTIMIZE__
    CHECK(__builtin_constant_p(proxied), "the answer is no constant");
#endif
    CHECK(db_put(&qp, 64, 2, 128, 3, 24, &index) == DB_OK && index == 0, "the put");
    CHECK(db_ring_peek(slots, DEPTH, 0, &d), "no descriptor");
    CHECK(db_descriptor_op(d) == DB_RING_PUT && db_descriptor_window(d) == 2 &&
              db_descriptor_window_offset(d) == 64 && db_descriptor_region(d) == 3 &&
              db_descriptor_region_offset(d) == 128 && db_descriptor_bytes(d) == 24,
          "not the put's");
    CHECK(db_put_value(&qp, 0, 0, 7, &index) == DB_OK && db_ring_peek(slots, DEPTH, 1, &d) &&
              db_descriptor_op(d) == DB_RING_VALUE,
          "the value's");
    db_ring_publish_posted(&progress, 2);
    db_ring_publish_completed(&progress, 2);
    CHECK(db_wait(&qp, 1) == DB_OK && db_flush(&qp) == DB_OK, "the waits");
    printf("no branch\n");
    return 0;
}
