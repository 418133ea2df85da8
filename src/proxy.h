/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A proxy as the library's own files see it: its workers, each with a thread and a queue pair, the
 * rings that they serve, and the tables of memory that descriptors name. Included by proxy*.c and,
 * for proxied queues, by queue.c and connect.c.
 *
 * Who touches what: a worker's thread touches its pair, its rings and its records while it runs.
 * Another thread changes the list of rings only while it holds the worker (db_worker_hold()), or
 * when the thread has ended. The tables grow only, and their counts are released.
 */
#ifndef DOORBELL_SRC_PROXY_H
#define DOORBELL_SRC_PROXY_H

#include <doorbell/doorbell.h>
#include <doorbell/gpu.h>
#include <doorbell/impl/ring.h>
#include <infiniband/verbs.h>
#include <pthread.h>

#define DB_PROXY_MAX_DEPTH 8192u

struct db_device;
struct db_worker;

/* ---- Memory that descriptors name ---- */

struct db_place {
    uint64_t iova;
    uint64_t bytes;
    uint32_t key;
};

struct db_places {
    struct db_place at[DB_RING_PLACES];
    uint32_t count; /* atomic */
};

/* ---- Requests: descriptors, with their memory looked up ---- */

struct db_request {
    struct db_proxy_ring *ring;
    uint64_t end; /* index in the ring behind its descriptors */
    uint64_t raddr;
    uint64_t laddr;
    uint64_t operand; /* value, immediate or addend */
    uint32_t rkey;
    uint32_t lkey;
    uint32_t bytes;
    uint16_t op;    /* enum db_ring_op */
    uint16_t flags; /* enum db_ring_flags */
};

/* ---- A worker's queue pair ---- */

struct db_pair;

/* A way of posting to it; one is chosen for the life of a proxy. */
struct db_post_way {
    const char *name;

    /* Posts up to `count` requests (1 to DB_MAX_BATCH) in order, with one doorbell; the last
     * of them is signalled. Returns how many were posted, 0 when the queue pair is busy, or a
     * negative errno when it is of no more use. */
    int (*post)(struct db_pair *pair, const struct db_request *requests, uint32_t count);

    /* Takes what completed and moves pair->completed. Returns 0, or -EIO with the syndromes filled
     * in when the operation pair->completed failed. */
    int (*poll)(struct db_pair *pair);
};

extern const struct db_post_way db_post_verbs; /* proxy_post.c: ibv_post_send() and chains */
extern const struct db_post_way db_post_wqe;   /* proxy_post_wqe.c: WQEs that we build */

struct db_pair {
    const struct db_post_way *way;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    uint32_t depth;           /* requests that may be in flight */
    uint64_t posted;          /* requests */
    uint64_t completed;       /* all below are complete */
    uint32_t syndrome;        /* of the operation that failed, enum m5_syndrome */
    uint32_t vendor_syndrome; /* as the device gave it */

    struct ibv_send_wr requests[DB_MAX_BATCH]; /* what db_post_verbs hands over */
    struct ibv_sge memory[DB_MAX_BATCH];
    /* The same queue pair as db_post_wqe sees it. With db_post_verbs only where its send ring lies,
     * a block for each request; sq is NULL where libmlx5 does not tell. */
    struct db_qp direct;

    uint32_t psn;
    uint32_t recv_depth;
    struct db_endpoint peer; /* qpn 0: not connected */
};

/* proxy_pair.c: makes a queue pair in INIT for `depth` requests; destroys what there is of it. */
int db_pair_create(struct db_device *device, const struct db_post_way *way, uint32_t depth,
                   struct db_pair *pair);
void db_pair_destroy(struct db_pair *pair);
void db_pair_endpoint(const struct db_device *device, const struct db_pair *pair,
                      struct db_endpoint *endpoint);
int db_pair_connect(struct db_device *device, struct db_pair *pair,
                    const struct db_endpoint *endpoint);

/* proxy_post_wqe.c: where the send ring lies, into pair->direct, if that is known. */
void db_pair_find_ring(struct db_pair *pair);

/* proxy_post_wqe.c: fills all of pair->direct. -EOPNOTSUPP with the reason. */
int db_pair_open_direct(struct db_pair *pair);

/* ---- Rings ---- */

struct db_proxy_ring {
    struct db_worker *worker;
    uint32_t number; /* of the worker's rings */
    uint32_t depth;
    const uint8_t *slots;
    struct db_ring_progress *progress; /* as the worker reaches it */
    bool failed;                       /* told the producers; it is served no more */
    uint64_t next;                     /* descriptors taken */
    uint64_t posted;                   /* of them, posted */
    uint64_t completed;                /* as published */

    uint8_t *memory; /* slots, then progress when it is in host memory */
    size_t memory_bytes;
    size_t progress_at;
    struct db_gpu *gpu;                /* NULL: CPU threads push by themselves */
    void *mapped;                      /* memory for kernels; NULL: not mapped */
    struct db_gpu_buffer gpu_progress; /* device NULL: progress is in host memory */
    struct db_gdr_mapping *gdr;        /* of gpu_progress; NULL: none is needed */
};

/* proxy_ring.c: checks the attributes of a proxied queue and fills in their defaults; makes a ring
 * for them, which nobody serves yet, and the words of its device view; has it served by a worker of
 * the proxy, and no more. */
int db_proxy_ring_check(const struct db_queue_attr *attr, struct db_queue_attr *full);
int db_proxy_ring_create(const struct db_queue_attr *attr, struct db_proxy_ring **ring,
                         struct db_ring *view);
int db_proxy_ring_attach(struct db_proxy *proxy, uint32_t worker, struct db_proxy_ring *ring);
void db_proxy_ring_destroy(struct db_proxy_ring *ring);

/* Of the worker that serves it. */
uint32_t db_proxy_ring_qpn(const struct db_proxy_ring *ring);

/* The place of a region in one of the proxy's tables, as keys. */
int db_proxy_keys(struct db_proxy *proxy, enum db_side side, const struct db_keys *region,
                  struct db_keys *keys);

/* ---- Workers ---- */

enum db_worker_state {
    DB_WORKER_RUNNING,
    DB_WORKER_FAILED,  /* its queue pair is in error; the thread only waits for its end */
    DB_WORKER_STOPPED, /* as asked for */
    DB_WORKER_LOST,    /* its thread was ended by something else */
};

/* Requests of one ring, of one kind, that were posted in a row with one doorbell. */
struct db_run {
    struct db_proxy_ring *ring; /* NULL: destroyed since */
    uint64_t end;               /* index in the ring behind the last one's descriptors */
    uint32_t count;             /* of them that are not complete */
    uint32_t op;                /* enum db_ring_op */
};

struct db_worker {
    struct db_proxy *proxy;
    uint32_t number; /* from 1 */
    struct db_pair pair;
    struct db_run *run;  /* [pair.depth] run n lies at n modulo that */
    uint64_t oldest_run; /* not complete */
    uint64_t next_run;
    struct db_proxy_ring *rings[DB_MAX_WORKER_QUEUES];
    uint32_t served;                       /* bit n: rings[n] is there */
    uint32_t empty;                        /* of them, when they were looked at last */
    uint32_t next_rare;                    /* which of those is looked at first */
    uint32_t next_ring;                    /* whose turn it is */
    struct db_request batch[DB_MAX_BATCH]; /* taken and not yet posted: [first, first + n) */
    uint32_t batch_first;
    uint32_t batch_count;

    /* Idling; proxy_idle.c. */
    bool crowded; /* fewer cores than threads that want one: it yields while it polls */
    uint32_t idle_rounds;
    uint64_t idle_since_ns;
    uint64_t awake_until_ns; /* after a wake */
    uint64_t nap_ns;

    /* Shared with other threads; atomic. */
    uint32_t attention; /* enum db_attention bits */
    uint32_t state;     /* enum db_worker_state */
    int cpu;            /* pinned to; -1: none */
    uint64_t posts;     /* calls of the way's post() that took requests */
    uint64_t requests;
    uint64_t cpu_ns; /* of the thread, when it has ended */

    pthread_t thread;
    bool started;           /* and not joined */
    pthread_mutex_t holder; /* of who holds the thread */
    pthread_mutex_t mutex;  /* of what follows, but for the condition */
    pthread_cond_t changed; /* waits by CLOCK_MONOTONIC */
    bool holding;           /* the thread stands still for a holder */
    bool ended;
    bool woken;
};

enum db_attention {
    DB_ATTENTION_HOLD = 1,
    DB_ATTENTION_STOP = 2,
};

struct db_proxy {
    unsigned references; /* one of the user's handle, one of each ring; atomic */
    struct db_device *device;
    struct db_proxy_attr attr; /* with the defaults filled in */
    const struct db_post_way *way;
    pthread_mutex_t mutex; /* of the tables, and of who changes the workers' rings */
    struct db_places regions;
    struct db_places windows;
    uint32_t worker_count;
    uint64_t stop_by_ns; /* set before DB_ATTENTION_STOP */
    struct db_worker workers[DB_MAX_WORKERS];
};

void db_proxy_hold(struct db_proxy *proxy);
void db_proxy_release(struct db_proxy *proxy);

/* proxy_worker.c: the thread's body; the argument is the worker. */
void *db_worker_run(void *argument);

/* One round: completes, takes, posts. Returns whether there was anything to do. The thread's own;
 * tests call it in the thread's place. */
bool db_worker_step(struct db_worker *worker);

/* Is something taken and not yet posted, or posted and not yet complete? */
bool db_worker_has_work(const struct db_worker *worker);

/* How many requests that were pushed are not complete. The thread has ended. */
uint64_t db_worker_left(const struct db_worker *worker);

/* Makes the thread stand still between two rounds, and lets it go. Of a thread that has ended,
 * nothing is waited for. The caller owns the worker's rings in between. */
void db_worker_hold(struct db_worker *worker);
void db_worker_let_go(struct db_worker *worker);

/* proxy_idle.c: what the thread does after a round that brought something, and after one that
 * brought nothing; and how another thread ends its sleep. */
void db_worker_busy(struct db_worker *worker);
void db_worker_idle(struct db_worker *worker);
void db_worker_wake(struct db_worker *worker);

/* proxy_pin.c: chooses a core for each worker as the attributes say; -1: none. */
void db_proxy_choose_cpus(struct db_proxy *proxy);

/* Pins the calling thread; -1 leaves it alone. */
int db_pin_thread(int cpu);

/* Are there fewer cores than threads that poll? */
bool db_proxy_is_crowded(const struct db_proxy *proxy);

#endif
