/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a queue; see queue.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "error.h"
#include "queue.h"

/* Rings start on pages, as the device's translation of a umem wants them. */
#define PAGE_BYTES 4096

/* Two lines, so that a prefetched neighbour is shared with nobody either. */
#define LINE_BYTES 128

static size_t take(size_t *at, size_t bytes, size_t alignment)
{
    size_t start = (*at + alignment - 1) / alignment * alignment;

    *at = start + bytes;
    return start;
}

static struct db_layout lay_out(const struct db_queue_attr *attr)
{
    size_t recv_bytes = (size_t)attr->recv_depth * DB_RECV_WQE_BYTES;
    size_t at = 0;
    struct db_layout layout = {.recv_ring = take(&at, recv_bytes, PAGE_BYTES)};

    /* Right behind, without a gap: a receive ring is whole blocks. */
    layout.ring = take(&at, (size_t)attr->depth * M5_BLOCK_BYTES, M5_BLOCK_BYTES);
    layout.cq = take(&at, attr->cq_depth * sizeof(struct m5_cqe), PAGE_BYTES);
    layout.recv_cq = take(&at, attr->recv_depth * sizeof(struct m5_cqe), PAGE_BYTES);
    layout.record = take(&at, LINE_BYTES, PAGE_BYTES);
    layout.cq_record = take(&at, LINE_BYTES, LINE_BYTES);
    layout.recv_cq_record = take(&at, LINE_BYTES, LINE_BYTES);
    layout.doorbell = take(&at, LINE_BYTES, LINE_BYTES);
    layout.bytes = take(&at, 0, PAGE_BYTES);
    return layout;
}

static void clear_receives(struct db_queue *queue)
{
    struct m5_data_seg *receives =
        (struct m5_data_seg *)(void *)(queue->memory + queue->layout.recv_ring);

    for (uint32_t i = 0; i < queue->attr.recv_depth; i++)
        receives[i] = (struct m5_data_seg){.lkey = port_be32(M5_LKEY_END)};
}

/* Empties a ring of CQEs, of which `count` were consumed; returns how many the device has written.
 */
static uint64_t clear_cq(uint8_t *ring, uint32_t depth, uint64_t count)
{
    while (db_cqe_is_new(ring + (count & (depth - 1)) * sizeof(struct m5_cqe), count, depth))
        count++;
    memset(ring, 0xff, depth * sizeof(struct m5_cqe));
    return count;
}

int db_queue_memory_clear(struct db_queue *queue)
{
    const struct db_queue_attr *attr = &queue->attr;
    uint8_t *memory = queue->memory;
    struct db_qp *qp = queue->qp;

    int error = db_queue_gpu_fetch(queue);
    if (error)
        return error;

    uint64_t consumed = attr->collapsed ? 0 : clear_cq(qp->cq, attr->cq_depth, qp->done.consumed);
    if (attr->collapsed)
        memset(qp->cq, 0xff, sizeof(struct m5_cqe));
    if (attr->recv_depth)
        queue->recv_consumed =
            clear_cq(memory + queue->layout.recv_cq, attr->recv_depth, queue->recv_consumed);
    queue->recv_posted = 0;
    queue->recv_taken = 0;
    queue->executed = 0;

    memset(qp->sq, 0, (size_t)attr->depth * M5_BLOCK_BYTES);
    memset(qp->slot_ready, 0, attr->depth * sizeof(*qp->slot_ready));
    memset(&qp->post, 0, sizeof(qp->post));
    memset(&qp->done, 0, sizeof(qp->done));
    qp->done.consumed = consumed;

    *qp->record = (struct m5_qp_record){{0}, {0}};
    port_st32(&qp->cq_record->consumer.raw, port_bswap32((uint32_t)consumed & 0xffffffu),
              PORT_RELEASE, PORT_SYSTEM);
    if (attr->recv_depth)
        port_st32(&db_queue_recv_cq_record(queue)->consumer.raw,
                  port_bswap32((uint32_t)queue->recv_consumed & 0xffffffu), PORT_RELEASE,
                  PORT_SYSTEM);
    *(uint64_t *)(void *)(memory + queue->layout.doorbell) = 0;
    queue->forwarded = 0;
    return db_queue_gpu_store(queue);
}

/* The view's constants but for what the device's objects decide: doorbell and QPN. */
static void fill_view(struct db_queue *queue)
{
    const struct db_queue_attr *attr = &queue->attr;
    uint8_t *memory = queue->memory;
    struct db_qp *qp = queue->qp;

    qp->sq = memory + queue->layout.ring;
    qp->record = db_queue_record(queue);
    qp->doorbell = memory + queue->layout.doorbell;
    qp->cq = memory + queue->layout.cq;
    qp->cq_record = (struct m5_cq_record *)(void *)(memory + queue->layout.cq_record);
    qp->slot_ready = (uint32_t *)(qp + 1);
    qp->timeout_ns = attr->timeout_ns;
    qp->depth = attr->depth;
    qp->cq_depth = attr->cq_depth;
    qp->cq_collapsed = attr->collapsed;
    qp->order = attr->scope == DB_SCOPE_GPU ? DB_ORDER_GPU : DB_ORDER_SYSTEM;
    qp->with_record = attr->without_record    ? DB_WITHOUT_RECORD
                      : attr->exchange_record ? DB_RECORD_EXCHANGED
                                              : DB_WITH_RECORD;
}

int db_queue_memory_create(struct db_queue *queue)
{
    const struct db_queue_attr *attr = &queue->attr;
    size_t view_bytes = db_queue_view_bytes(attr);
    void *view;

    queue->layout = lay_out(attr);
    if (posix_memalign(&view, LINE_BYTES, view_bytes))
        return db_fail(-ENOMEM, "no memory for a queue of depth %u", attr->depth);
    void *memory =
        mmap(NULL, queue->layout.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        free(view);
        return db_fail(-ENOMEM, "no memory for the rings of a queue of depth %u", attr->depth);
    }
    memset(view, 0, view_bytes);
    queue->qp = view;
    queue->memory = memory;
    fill_view(queue);
    /* Rings of zeros would look like CQEs of a first lap. */
    memset(queue->qp->cq, 0xff, attr->cq_depth * sizeof(struct m5_cqe));
    memset(queue->memory + queue->layout.recv_cq, 0xff, attr->recv_depth * sizeof(struct m5_cqe));
    clear_receives(queue);
    return 0;
}

void db_queue_memory_destroy(struct db_queue *queue)
{
    if (queue->memory)
        munmap(queue->memory, queue->layout.bytes);
    free(queue->qp);
}
