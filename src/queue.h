/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue as the library's own files see it: its memory, and the device's objects over it. Included
 * by queue*.c, connect.c, receive.c and detached.c.
 *
 * The memory of a queue is one mapping, registered as one umem: receive ring, send ring right
 * behind it (PRM, "CREATE_QP"), completion rings, and each record on a line of its own. What device
 * code uses beside it, struct db_qp and the slots' marks, is another allocation, which the device
 * never sees.
 *
 * A queue of a GPU (queue_gpu.c) has the same layout once more in GPU memory, of which the parts
 * that its attributes place there are in use, and a device view of its own there.
 */
#ifndef DOORBELL_SRC_QUEUE_H
#define DOORBELL_SRC_QUEUE_H

#include <doorbell/doorbell.h>
#include <doorbell/gpu.h>
#include <doorbell/impl/qp.h>

struct db_device;
struct db_proxy_ring;
struct mlx5dv_devx_obj;
struct mlx5dv_devx_uar;
struct mlx5dv_devx_umem;

/* A receive WQE is one scatter entry, which ends the list at once: there is no buffer. */
#define DB_RECV_WQE_BYTES 16

/* The send ring follows the receive ring and starts on a block. */
#define DB_MIN_RECV_DEPTH (M5_BLOCK_BYTES / DB_RECV_WQE_BYTES)

/* Registers of a UAR page besides a queue's own, at the most: rdma-core makes two or four of one.
 */
#define DB_UAR_REST 3u

/* Offsets into the queue's memory. */
struct db_layout {
    size_t recv_ring;
    size_t ring;
    size_t cq;
    size_t recv_cq;
    size_t record;
    size_t cq_record;
    size_t recv_cq_record;
    size_t doorbell; /* detached and forwarded queues */
    size_t bytes;    /* whole pages */
};

/* What a queue of a GPU has beside. */
struct db_queue_on_gpu {
    struct db_gpu_buffer parts; /* the layout in GPU memory; no device address: nothing is there */
    struct db_gpu_buffer view;  /* struct db_qp, then its slots' marks */
    void *memory;               /* queue->memory for kernels; NULL: not mapped */
    void *doorbell;             /* the register for kernels; NULL: not mapped, or forwarded */
};

struct db_queue {
    struct db_device *device;  /* NULL: detached */
    struct db_queue_attr attr; /* with the defaults filled in */
    struct db_qp *qp;          /* the device view, then its slots' marks; with a GPU a copy of its
                                  constants, and of its words when they were fetched last */
    struct db_queue_on_gpu on_gpu;
    struct db_proxy_ring *proxied; /* not NULL: of what follows, only peer_qpn is used */

    struct db_layout layout;
    uint8_t *memory;
    void *doorbell;     /* the device's register; NULL: detached */
    uint64_t forwarded; /* the doorbell word that db_queue_forward() saw last */

    struct mlx5dv_devx_umem *umem;
    struct mlx5dv_devx_umem *gpu_umem; /* of on_gpu.parts; NULL: none */
    struct mlx5dv_devx_uar *uar;
    struct db_queue *next_recordless; /* of the device's that share no page with each other */
    struct mlx5dv_devx_uar *uar_rest[DB_UAR_REST]; /* of its page, for nobody (uar.c) */
    uint32_t uar_rest_count;
    struct mlx5dv_devx_obj *cq;
    struct mlx5dv_devx_obj *recv_cq; /* NULL: none */
    struct mlx5dv_devx_obj *pair;
    uint32_t cqn;
    uint32_t recv_cqn;

    uint32_t psn;      /* of the next connection's first packet, 24 bits */
    uint32_t peer_qpn; /* 0: not connected */

    uint64_t recv_posted;   /* since the queue pair was reset */
    uint64_t recv_taken;    /* of these, by arrivals or errors that were polled */
    uint64_t recv_consumed; /* CQEs of the receive CQ, which a reset does not touch */

    /* A detached queue's device (detached.c). */
    uint64_t executed; /* blocks */
    uint64_t produced; /* CQEs */
};

/* queue_attr.c: checks `attr` and fills in its defaults; `device` is NULL for a detached queue. */
int db_queue_attr_check(const struct db_device *device, const struct db_queue_attr *attr,
                        struct db_queue_attr *full);

/* queue_memory.c: makes queue->memory and queue->qp for queue->attr, empty. */
int db_queue_memory_create(struct db_queue *queue);
void db_queue_memory_destroy(struct db_queue *queue);

/* Puts memory and view back to empty; the CQs, which outlive a reset of their queue pair, go on
 * where they are. The device must not be writing. */
int db_queue_memory_clear(struct db_queue *queue);

/* queue_objects.c: the device's objects over the memory; the queue pair is in INIT. The second
 * takes what the first left, complete or not. */
int db_queue_objects_create(struct db_queue *queue);
void db_queue_objects_destroy(struct db_queue *queue);

/* uar.c: the register, queue->doorbell. The second takes what the first left. */
int db_queue_uar_create(struct db_queue *queue);
void db_queue_uar_destroy(struct db_queue *queue);

/* queue_gpu.c: GPU memory for the parts that lie there, which the device's objects are made over;
 * and the view and the mappings, made when those are there. What destroys takes what creation left,
 * complete or not. All do nothing for a queue without a GPU. */
int db_queue_gpu_parts_create(struct db_queue *queue);
void db_queue_gpu_parts_destroy(struct db_queue *queue);
int db_queue_gpu_view_create(struct db_queue *queue);
void db_queue_gpu_view_destroy(struct db_queue *queue);

/* Brings queue->qp, and what lies in GPU memory but the send ring, up to date with what kernels
 * did; and the reverse, everything. No kernel may be posting. */
int db_queue_gpu_fetch(struct db_queue *queue);
int db_queue_gpu_store(struct db_queue *queue);

/* Copies a piece of the layout that lies in GPU memory. */
int db_queue_gpu_read(struct db_queue *queue, size_t at, size_t bytes, void *to);

/* queue_proxied.c: the same for a queue whose attributes name a proxy. */
int db_queue_proxied_create(struct db_device *device, const struct db_queue_attr *attr,
                            struct db_queue **queue);
void db_queue_proxied_destroy(struct db_queue *queue);
int db_queue_proxied_query(struct db_queue *queue, struct db_queue_info *info);
int db_queue_proxied_endpoint(const struct db_queue *queue, struct db_endpoint *endpoint);
int db_queue_proxied_connect(struct db_queue *queue, const struct db_endpoint *endpoint);

/* Brings queue->qp->done.error up to date. Returns 0, or why the queue failed when no operation is
 * to blame: a negative errno with the sentence. */
int db_queue_proxied_fetch(struct db_queue *queue);

/* connect.c: RST to INIT, with a fresh packet sequence number. */
int db_queue_init(struct db_queue *queue);

static inline bool db_queue_uses_gpu_memory(const struct db_queue_attr *attr)
{
    return attr->ring == DB_MEMORY_GPU || attr->cq == DB_MEMORY_GPU ||
           attr->record == DB_MEMORY_GPU;
}

/* Bytes of struct db_qp and its slots' marks. */
static inline size_t db_queue_view_bytes(const struct db_queue_attr *attr)
{
    return (sizeof(struct db_qp) + attr->depth * sizeof(uint32_t) + 127) / 128 * 128;
}

static inline struct m5_qp_record *db_queue_record(const struct db_queue *queue)
{
    return (struct m5_qp_record *)(void *)(queue->memory + queue->layout.record);
}

static inline struct m5_cq_record *db_queue_recv_cq_record(const struct db_queue *queue)
{
    return (struct m5_cq_record *)(void *)(queue->memory + queue->layout.recv_cq_record);
}

/* Is CQE `count` of a ring written? An acquire: the rest of it may be read then. */
static inline bool db_cqe_is_new(const uint8_t *cqe, uint64_t count, uint32_t depth)
{
    uint64_t tail =
        port_ld64((const uint64_t *)(const void *)(cqe + 56), PORT_ACQUIRE, PORT_SYSTEM);
    uint32_t op_own = (uint32_t)(tail >> 56);

    return op_own >> 4 != M5_CQE_INVALID && (op_own & M5_CQE_OWNER) == ((count & depth) != 0);
}

#endif
