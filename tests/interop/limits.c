/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: what exceeds a limit that the device reports is refused with a proper errno, thousands of
 * times without using anything up; objects in use cannot be taken away; as many objects as the
 * device reports can exist, and not one more.
 */
#include "../open_files.h"
#include "rc_pair.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { OFTEN = RC_SANITIZED ? 200 : 2000, REACHABLE = 20000 };

static void check_errno(const void *object, const char *what)
{
    CHECK(!object, "%s: was created", what);
    CHECK(errno == EINVAL || errno == ENOMEM, "%s: %s; EINVAL or ENOMEM expected", what,
          strerror(errno));
}

static void queue_pairs(struct rc_pair *pair, const struct ibv_device_attr *device)
{
    const struct {
        const char *what;
        struct ibv_qp_cap cap;
    } cases[] = {
        {"too many sends", {.max_send_wr = (uint32_t)device->max_qp_wr + 1, .max_send_sge = 1}},
        {"too many receives", {.max_recv_wr = (uint32_t)device->max_qp_wr + 1, .max_recv_sge = 1}},
        {"very many sends", {.max_send_wr = UINT32_MAX, .max_send_sge = 1}},
        {"very many receives", {.max_recv_wr = UINT32_MAX, .max_recv_sge = 1}},
        {"sends of many entries", {.max_send_wr = 1, .max_send_sge = 1000}},
        {"receives of many entries", {.max_recv_wr = 1, .max_recv_sge = 1000}},
        {"much inline data", {.max_send_wr = 1, .max_send_sge = 1, .max_inline_data = 2000}},
    };

    for (int i = 0; i < OFTEN; i++) {
        for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
            struct ibv_qp_init_attr attr = {.send_cq = pair->a.send_cq,
                                            .recv_cq = pair->a.recv_cq,
                                            .cap = cases[c].cap,
                                            .qp_type = IBV_QPT_RC};

            errno = 0;
            check_errno(ibv_create_qp(pair->pd, &attr), cases[c].what);
        }
    }
}

static void completion_queues(struct rc_pair *pair, const struct ibv_device_attr *device)
{
    for (int i = 0; i < OFTEN; i++) {
        errno = 0;
        check_errno(ibv_create_cq(pair->context, 0, NULL, NULL, 0), "a CQ of no entries");
        errno = 0;
        check_errno(ibv_create_cq(pair->context, 16, NULL, NULL, pair->context->num_comp_vectors),
                    "a CQ on a vector that is not there");
        errno = 0;
        check_errno(ibv_create_cq(pair->context, INT32_MAX, NULL, NULL, 0), "a CQ of 2^31 entries");
    }
    errno = 0;
    check_errno(ibv_create_cq(pair->context, device->max_cqe + 1, NULL, NULL, 0),
                "a CQ larger than max_cqe");
}

static void regions(struct rc_pair *pair)
{
    static uint8_t memory[8192];
    void *hole = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    for (int i = 0; i < OFTEN; i++) {
        errno = 0;
        check_errno(ibv_reg_mr(pair->pd, memory, sizeof(memory), IBV_ACCESS_REMOTE_WRITE),
                    "remote write without local write");
        errno = 0;
        check_errno(ibv_reg_mr(pair->pd, memory, sizeof(memory), IBV_ACCESS_REMOTE_ATOMIC),
                    "remote atomic without local write");
        errno = 0;
        check_errno(ibv_reg_mr(pair->pd, memory, UINT64_MAX - 4096, IBV_ACCESS_LOCAL_WRITE),
                    "a region that wraps round");
    }
    /* Memory that is not there, or may not be written, cannot be registered for writing. */
    munmap(hole, 8192);
    errno = 0;
    CHECK(!ibv_reg_mr(pair->pd, hole, 8192, IBV_ACCESS_LOCAL_WRITE) &&
              (errno == EFAULT || errno == ENOMEM || errno == EINVAL),
          "registering unmapped memory: %s", strerror(errno));
}

/* An object that others stand on is busy. */
static void busy(struct rc_pair *pair)
{
    CHECK(ibv_dealloc_pd(pair->pd) == EBUSY, "a domain in use was deallocated");
    CHECK(ibv_destroy_cq(pair->a.send_cq) == EBUSY, "a CQ in use was destroyed");
    CHECK(ibv_destroy_cq(pair->a.recv_cq) == EBUSY, "a CQ in use was destroyed");
}

/* One object of a kind; the kinds' limits are tried one after the other. */
enum kind { DOMAIN, REGION, COMPLETION_QUEUE, QUEUE_PAIR };

static void *make(struct rc_pair *pair, enum kind kind)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = pair->a.send_cq,
        .recv_cq = pair->a.recv_cq,
        .cap = {.max_send_wr = 1, .max_send_sge = 1, .max_recv_wr = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };

    switch (kind) {
    case DOMAIN:
        return ibv_alloc_pd(pair->context);
    case REGION:
        return ibv_reg_mr(pair->pd, pair->a.buffer, 4096, IBV_ACCESS_LOCAL_WRITE);
    case COMPLETION_QUEUE:
        return ibv_create_cq(pair->context, 1, NULL, NULL, 0);
    case QUEUE_PAIR:
        return ibv_create_qp(pair->pd, &attr);
    }
    return NULL;
}

static void unmake(void *object, enum kind kind)
{
    int err = kind == DOMAIN             ? ibv_dealloc_pd(object)
              : kind == REGION           ? ibv_dereg_mr(object)
              : kind == COMPLETION_QUEUE ? ibv_destroy_cq(object)
                                         : ibv_destroy_qp(object);

    CHECK(err == 0, "an object of kind %d could not be destroyed: %s", (int)kind, strerror(err));
}

/* Makes objects until it is refused, which must be at the limit, if that can be reached at all. */
static void as_many_as_reported(struct rc_pair *pair, enum kind kind, int limit, const char *what)
{
    static void *objects[REACHABLE];
    int most = limit <= REACHABLE && !RC_SANITIZED ? limit : 2000;

    for (int round = 0; round < 2; round++) {
        int n = 0;

        while (n < most && (objects[n] = make(pair, kind)))
            n++;
        /* A few exist already, of the pair and of the library. */
        CHECK(n == most || n >= limit - 16, "%d %s, then: %s; the device reports %d", n, what,
              strerror(errno), limit);
        if (most == limit) {
            errno = 0;
            check_errno(make(pair, kind), what);
        }
        while (n > 0)
            unmake(objects[--n], kind);
    }
}

int main(void)
{
    struct rc_options options = rc_defaults();
    struct ibv_device_attr device;
    unsigned int files;
    struct rc_pair pair;

    rc_start(&pair, &options);
    files = open_files();
    CHECK(ibv_query_device(pair.context, &device) == 0, "ibv_query_device failed");
    queue_pairs(&pair, &device);
    completion_queues(&pair, &device);
    regions(&pair);
    busy(&pair);
    as_many_as_reported(&pair, DOMAIN, device.max_pd, "protection domains");
    as_many_as_reported(&pair, REGION, device.max_mr, "memory regions");
    as_many_as_reported(&pair, COMPLETION_QUEUE, device.max_cq, "completion queues");
    as_many_as_reported(&pair, QUEUE_PAIR, device.max_qp, "queue pairs");
    CHECK(open_files() == files, "%u files are open, %u before", open_files(), files);
    rc_post(&pair.a, &pair.b, IBV_WR_RDMA_READ, 1, 0, 0, 8, IBV_SEND_SIGNALED);
    rc_expect(pair.a.send_cq, &pair.a, 1, IBV_WC_RDMA_READ);
    rc_destroy(&pair);
    return 0;
}
