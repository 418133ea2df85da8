/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a source that says which kind of queue it uses leaves the compiler no branch between them:
 * the question is a constant, and the other kind's members are not looked at.
 */
#define DB_QUEUES DB_QUEUES_GPU

#include <doorbell/device.h>
#include <doorbell/doorbell.h>

#include "../check.h"

static struct db_ring *const nowhere = (struct db_ring *)8;

int main(void)
{
    const struct db_queue_attr attr = {.depth = 4};
    struct db_queue *queue;
    uint64_t index;

    CHECK(!db_queue_create_detached(&attr, &queue), "%s", db_error_text());
    struct db_qp *qp = db_queue_device_view(queue);
    CHECK(qp->ring == NULL, "a detached queue has a ring");
    qp->ring = nowhere; /* whoever asks for it would use it */
    const bool proxied = db_is_proxied(qp);
    CHECK(!proxied, "the question is not answered by the source");
#ifdef __OPTIMIZE__
    CHECK(__builtin_constant_p(proxied), "the answer is no constant");
#endif
    CHECK(db_put_value(qp, 0, 0, 1, &index) == DB_OK && index == 0, "the put went elsewhere");
    CHECK(db_put_shared(qp, 0, 0, 0, 0, 8, &index) == DB_OK && index == 1, "the shared put too");
    CHECK(db_detached_complete(queue, 2) == 2, "%s", db_error_text());
    CHECK(db_wait(qp, 0) == DB_OK && db_flush(qp) == DB_OK, "the waits too");
    db_queue_destroy(queue);
    printf("no branch\n");
    return 0;
}
