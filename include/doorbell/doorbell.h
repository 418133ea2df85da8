/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host side of Doorbell: devices, registered memory, and queue pairs that GPU threads, or the
 * CPU threads that play them, post to by themselves (device.h). Included by programs that link
 * libdoorbell.
 *
 * Conventions, which the functions below do not repeat:
 *   - A function that can fail returns 0 or a negative errno value and leaves a sentence for the
 * user in db_error_text(). Nothing is half-created when it failed, and its result is NULL.
 *   - The library never prints, exits or aborts, and starts no thread but the workers of a proxy.
 *   - Any thread may call. Two threads may not use one handle at the same time, but for a device,
 *     which is for all. What a queue's device view points to is for device.h alone.
 *   - Handles may be destroyed in any order: a device lives until the last of its regions, queues
 * and proxies is gone. Destroying NULL does nothing.
 *   - Calls take the time of the kernel's and the firmware's commands, tens of microseconds to
 *     milliseconds; none waits for a peer.
 */
#ifndef DOORBELL_DOORBELL_H
#define DOORBELL_DOORBELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct db_device; /* an open NIC */
struct db_region; /* memory that a NIC reaches */
struct db_queue;  /* a queue pair and its completion queues; or a ring of a proxy */
struct db_proxy;  /* CPU threads that submit for GPU threads */
struct db_qp;     /* the same as device code sees it: impl/qp.h */

struct db_gpu; /* gpu.h */
struct db_gpu_buffer;

/*
 * Tells what went wrong in the calling thread's last call that failed: one sentence that names the
 * thing and the remedy, without a full stop; "" before the first. It stays until the thread's next
 * failure. Valid in the calling thread.
 */
const char *db_error_text(void);

/* ---- Devices ---- */

#define DB_NAME_BYTES   64
#define DB_REASON_BYTES 256

/* One RDMA device of the machine, and whether Doorbell can use it. */
struct db_device_entry {
    char name[DB_NAME_BYTES];
    bool software;                /* the software ConnectX */
    bool usable;                  /* db_device_open() with this name would find a path */
    char reason[DB_REASON_BYTES]; /* the port and GID that it would take and why, or what is missing
                                   */
};

/*
 * Lists the machine's RDMA devices, whatever their driver, in the order of libibverbs. Writes at
 * most `capacity` entries, which the caller owns, and the number of devices to `*count`. Opens each
 * device for a moment. -ENOSYS: the kernel has no RDMA support. inventory.h also
 * tells of ports and GIDs.
 */
int db_device_list(struct db_device_entry *entries, size_t capacity, size_t *count);

#define DB_ANY_GID (-1)

/* Which path of a device to use. Start from DB_DEVICE_OPTIONS. */
struct db_device_options {
    uint32_t port;     /* from 1; 0: any that is active */
    int32_t gid_index; /* in the port's GID table; DB_ANY_GID: the best */
};

#define DB_DEVICE_OPTIONS                                                                          \
    {                                                                                              \
        .port = 0, .gid_index = DB_ANY_GID                                                         \
    }

/*
 * Opens a device by its name, or the best one when `name` is NULL; `options` may be NULL. Hardware
 * comes before the software device. On Ethernet, RoCE v2 comes before v1, and in each a GID that is
 * an IPv4 address before a global IPv6 one, then loopback and link-local ones, which no router
 * forwards. On InfiniBand the LID addresses the port.
 *
 * -ENODEV: no such device, port or GID, or none that can be used. -EOPNOTSUPP: the device or its
 * driver has no DEVX. -EACCES: no permission.
 */
int db_device_open(const char *name, const struct db_device_options *options,
                   struct db_device **device);

/* Gives the handle back. The device is closed when its last region and queue are gone too. */
void db_device_close(struct db_device *device);

/* Which device, port and GID were chosen, and why: one sentence that lives as long as the device.
 */
const char *db_device_choice(const struct db_device *device);

struct db_device_info {
    char name[DB_NAME_BYTES];
    char firmware[64];
    bool software;           /* the software ConnectX: its times say nothing about hardware */
    bool infiniband;         /* else Ethernet, so RoCE */
    bool without_record;     /* offers queues without a doorbell record: HCA_CAP_2,
                                send_dbr_mode_no_dbr_ext */
    int numa_node;           /* that the NIC is attached to; -1: unknown */
    uint32_t port;           /* from 1 */
    uint32_t gid_index;      /* in the port's table; InfiniBand: 0 */
    uint8_t gid[16];         /* in network byte order */
    uint32_t lid;            /* InfiniBand; Ethernet: 0 */
    uint32_t mtu_bytes;      /* of the path, 256 to 4096 */
    uint32_t max_depth;      /* of a queue, in blocks of 64 bytes */
    uint32_t max_collapsed;  /* the same with a collapsed CQ */
    uint32_t max_cq_depth;   /* in CQEs */
    uint32_t max_recv_depth; /* in receive WQEs */
};

/* Says what the device is and what its queues may be. */
void db_device_describe(const struct db_device *device, struct db_device_info *info);

/* ---- Memory ---- */

/* Where memory lies. What a device cannot reach is refused with the reason. */
enum db_memory {
    DB_MEMORY_HOST,
    DB_MEMORY_GPU,
};

/* What the NIC may do with a region: the values of ibv_access_flags. */
enum db_access {
    DB_ACCESS_LOCAL_WRITE = 1u << 0, /* results of gets and atomics; the two below need it */
    DB_ACCESS_REMOTE_WRITE = 1u << 1,
    DB_ACCESS_REMOTE_READ = 1u << 2,
    DB_ACCESS_REMOTE_ATOMIC = 1u << 3,
};

#define DB_ACCESS_ALL                                                                              \
    (DB_ACCESS_LOCAL_WRITE | DB_ACCESS_REMOTE_WRITE | DB_ACCESS_REMOTE_READ |                      \
     DB_ACCESS_REMOTE_ATOMIC)

/* What a put needs to know of a region. A peer needs rkey and iova. */
struct db_keys {
    uint32_t lkey; /* for the local side of an operation */
    uint32_t rkey; /* for the remote side */
    uint64_t iova; /* the region's first byte, as raddr and laddr count */
    size_t bytes;
};

/*
 * Makes [addr, addr + bytes) reachable by the device's queues; addresses in operations are those of
 * this process. The memory stays the caller's and must stay mapped until the region is destroyed.
 * `access` is a set of enum db_access; 0 is memory that is only read, by this side.
 *
 * -EINVAL: no bytes, unknown access, or remote writes or atomics without DB_ACCESS_LOCAL_WRITE.
 * -EOPNOTSUPP: a kind of memory that the device cannot reach. -EFAULT: not mapped so. -ENOMEM: the
 * kernel or the device has no room, or the limit of locked memory is too low.
 */
int db_region_register(struct db_device *device, enum db_memory kind, void *addr, size_t bytes,
                       unsigned access, struct db_region **region);

/*
 * The same for memory that db_gpu_backend.alloc() gave, or a part of it, whatever its kind. GPU
 * memory is registered through a dma-buf, or, where the driver, the kernel or rdma-core offers
 * none, through the GPU driver's peer-memory module; -EOPNOTSUPP where there is neither. Addresses
 * in operations are the device's, buffer->device.
 */
int db_region_register_buffer(struct db_device *device, struct db_gpu *gpu,
                              const struct db_gpu_buffer *buffer, unsigned access,
                              struct db_region **region);

struct db_keys db_region_keys(const struct db_region *region);

/* Operations that name its keys fail from now on. */
void db_region_destroy(struct db_region *region);

/* ---- Proxies: CPU threads that submit for GPU threads ---- */

/* How a worker posts to its queue pair. */
enum db_post {
    DB_POST_VERBS, /* a batch is one ibv_post_send() of chained requests */
    DB_POST_WQE,   /* WQEs that the worker writes into the same ring by itself */
};

/* What a worker does while its rings are empty. GPU threads cannot wake it: a sleep ends by
 * db_proxy_wake() or after `sleep_ns`. */
enum db_proxy_idle {
    DB_IDLE_SPIN,     /* polls on: the shortest way, and a core in full use */
    DB_IDLE_BACK_OFF, /* after `spin_ns`, naps of 1 us that double up to `sleep_ns` */
    DB_IDLE_SLEEP,    /* after `spin_ns`, sleeps */
};

/* Which cores the workers run on. */
enum db_proxy_pin {
    DB_PIN_NEAR_NIC, /* each its own, of the NIC's NUMA node where it is known; none where the
                        process has fewer than two cores beside those of the workers */
    DB_PIN_CPUS,     /* as `cpus` says */
    DB_PIN_NONE,     /* where the scheduler puts them */
};

#define DB_MAX_WORKERS       8u
#define DB_MAX_WORKER_QUEUES 32u /* proxied queues that a worker serves */
#define DB_MAX_BATCH         16u

/* Zero, or what a member says, is the default. */
struct db_proxy_attr {
    uint32_t workers; /* threads, each with its own queue pair, 1 to 8; 0: 1 */
    uint32_t batch;   /* requests that a worker posts with one doorbell, 1 to 16; 0: 16 */
    uint32_t depth;   /* requests in flight on each queue pair, a power of two; 0: 128. What is
                         pushed behind them waits for all of them. */
    enum db_post post;
    enum db_proxy_idle idle;
    uint64_t spin_ns;  /* of polling before a worker naps or sleeps; 0: 50 us */
    uint64_t sleep_ns; /* longest nap (0: 50 us) or sleep (0: 1 ms) */
    enum db_proxy_pin pin;
    uint32_t cpus[DB_MAX_WORKERS]; /* of each worker, with DB_PIN_CPUS */
    uint64_t timeout_ns;           /* of db_proxy_stop(); 0: DB_TIMEOUT_NS */
};

/*
 * Creates a proxy and starts its workers. Queues are created on it with db_queue_create(), up to 32
 * for each worker; all queues of a worker share its queue pair, so they go to one peer. -EINVAL: a
 * number that cannot be. -EOPNOTSUPP: DB_POST_WQE where libmlx5's queue pairs do not suit it.
 * -ENOMEM: no memory, or none of the device's objects left. -EAGAIN: no more threads.
 */
int db_proxy_create(struct db_device *device, const struct db_proxy_attr *attr,
                    struct db_proxy **proxy);

/*
 * Ends the workers when all that was pushed before is posted and complete, at the latest after
 * `timeout_ns`; threads that still wait, or push later, are told that the proxy was stopped. -EIO:
 * requests were not complete. Blocks for so long. A second stop does nothing.
 */
int db_proxy_stop(struct db_proxy *proxy);

/* Ends the sleep of all workers, until they have had something to do, at most for a second: before
 * the launch of a kernel that will push. */
void db_proxy_wake(struct db_proxy *proxy);

/* Stops the proxy and gives the handle back; what it has is freed when its last queue is gone. */
void db_proxy_destroy(struct db_proxy *proxy);

struct db_worker_info {
    bool running;      /* false: stopped, ended, or its queue pair is in error */
    int cpu;           /* that it is pinned to; -1: none */
    uint32_t qpn;      /* of its queue pair */
    uint64_t posts;    /* doorbells */
    uint64_t requests; /* posted */
    uint64_t cpu_ns;   /* of CPU time */
};

/* Tells what worker `worker`, from 1, has done so far. -EINVAL: there is no such worker. */
int db_proxy_query(struct db_proxy *proxy, uint32_t worker, struct db_worker_info *info);

/* ---- Queues ---- */

/* The register that rings the NIC. */
enum db_uar {
    DB_UAR_DEFAULT,    /* one of the queue's own, where a store reaches the NIC at once */
    DB_UAR_BLUEFLAME,  /* write-combining for a CPU, whose stores may linger there; for GPUs */
    DB_UAR_NON_CACHED, /* shared by all queues of the device */
};

/* At which scope the releases of db_put() and its kin work. */
enum db_scope {
    DB_SCOPE_SAFE,   /* the narrowest that reaches the ring's and the record's memory */
    DB_SCOPE_GPU,    /* reaches GPU memory alone */
    DB_SCOPE_SYSTEM, /* reaches all */
};

/* How GPU threads hand descriptors to a proxy: impl/ring.h says what each step is. */
enum db_protocol {
    DB_PROTOCOL_BEST,     /* tuned for one producer, else with an atomic for each reservation */
    DB_PROTOCOL_BASELINE, /* the paper's: an atomic, a read of the worker's progress and a release
                             for each descriptor */
    DB_PROTOCOL_TUNED,    /* the paper's: one store of 16 bytes, by the one producer */
};

/* Zero, or what a member says, is the default; `depth` has none. */
struct db_queue_attr {
    uint32_t depth;      /* of the send ring in blocks of 64 bytes, a power of two; a WQE takes 1 to
                            16 of them. Proxied: descriptors, 2 to 65536 */
    uint32_t cq_depth;   /* CQEs, a power of two, at least `depth`; 0: `depth` */
    uint32_t recv_depth; /* receives that may be posted, a power of two, made 4 at least; 0: none */
    bool collapsed; /* one CQE that is overwritten, instead of a ring of them; after an error it
                       may tell of a WQE that was flushed behind the one that failed */
    bool without_record;  /* of sends: the doorbell alone tells the device; only where it offers
                             that */
    bool exchange_record; /* GPU threads write the record by an atomic, in place of a release:
                             impl/qp.h, DB_RECORD_EXCHANGED. Ring and record in GPU memory */
    struct db_gpu *gpu;   /* whose kernels use the queue, and whose memory DB_MEMORY_GPU is; it must
                             outlive the queue. NULL: CPU threads that call device.h by themselves */
    enum db_memory ring;
    enum db_memory cq;
    enum db_memory record;
    bool forwarded; /* the doorbell is a word in host memory, for db_queue_forward() */
    enum db_uar uar;
    enum db_scope scope;
    uint64_t timeout_ns; /* of every device-side wait on the queue; 0: DB_TIMEOUT_NS */

    /* Of a proxied queue, to which of the above only depth, gpu and timeout_ns apply. */
    struct db_proxy *proxy; /* NULL: GPU threads post by themselves */
    uint32_t worker;        /* of the proxy, from 1; 0: the one with the fewest queues */
    uint32_t producers;     /* threads that push; 0: 1, else they use device.h's _shared calls */
    enum db_protocol protocol;
    enum db_memory progress; /* what the worker tells; GPU memory needs GDRCopy */
};

/* Longer than a NIC takes to give a silent peer up (2 s with the timers that connect sets). */
#define DB_TIMEOUT_NS 10000000000ull

/*
 * Creates a queue pair, or a ring of a proxy, not connected yet. A proxied queue is used through
 * the same calls of device.h, with the keys that db_queue_keys() gives. -EINVAL: a depth that
 * cannot be, GPU scope over host memory, GPU memory of no GPU, or an exchanged record without GPU
 * scope, of a proxied queue, or of a queue without a record. -EOPNOTSUPP: memory that the device
 * cannot reach, a doorbell that the GPU cannot, or no record where one is needed. -ENOMEM: no
 * memory, or none of the device's objects left. -EBUSY: a register for all, which on the software
 * device only one queue without a record may have. -EREMOTEIO: the device refused, with the status
 * and the syndrome in the sentence. -ENOSPC: the proxy's worker serves 32 queues already.
 * -ENOTRECOVERABLE: it serves none any more. -ENOSYS, -ENODEV: no GDRCopy.
 */
int db_queue_create(struct db_device *device, const struct db_queue_attr *attr,
                    struct db_queue **queue);

/*
 * Creates the same structure in the same memory without a device: its doorbell is an ordinary word.
 * It serves to time the issue path by itself, and to test it. `uar` means nothing here; else as
 * db_queue_create().
 */
int db_queue_create_detached(const struct db_queue_attr *attr, struct db_queue **queue);

/* The queue for device.h, at an address for the kernels of attr.gpu, or without one for CPU
 * threads; it lives as long as the queue. */
struct db_qp *db_queue_device_view(struct db_queue *queue);

enum db_side {
    DB_SIDE_LOCAL,  /* lkey: source of a put, target of a get */
    DB_SIDE_REMOTE, /* rkey */
};

/*
 * The keys under which device code names a region on this queue: the region's own; on a proxied
 * queue its place in the proxy's tables, and addresses that are offsets. `region` may be a peer's.
 * -ENOSPC: a proxy knows 32 regions of each side, and keeps them. -EINVAL: a proxied region of more
 * than 1 TiB.
 */
int db_queue_keys(struct db_queue *queue, enum db_side side, const struct db_keys *region,
                  struct db_keys *keys);

/* Ends all use of the queue's memory by the device, then frees it. Threads must have stopped using
 * the view. A peer that is still connected fails its next operation. */
void db_queue_destroy(struct db_queue *queue);

/* The state of the PRM's queue pair context. */
enum db_queue_state {
    DB_QUEUE_RESET,
    DB_QUEUE_INIT, /* created, or reset: to be connected */
    DB_QUEUE_RTR,
    DB_QUEUE_READY, /* RTS */
    DB_QUEUE_ERROR, /* db_queue_reset() brings it back */
    DB_QUEUE_OTHER, /* draining */
    DB_QUEUE_DETACHED,
};

struct db_queue_info {
    enum db_queue_state state;
    uint32_t qpn;
    uint32_t peer_qpn; /* 0: not connected */
    uint32_t depth;
    uint32_t cq_depth;
    uint32_t recv_depth;
    uint32_t executed;   /* low 16 bits of the count of blocks that the device executed */
    enum db_scope scope; /* DB_SCOPE_GPU or DB_SCOPE_SYSTEM: what DB_SCOPE_SAFE came to */
    bool without_record;
    bool exchange_record;
};

/* Asks the device for the queue's state. -EREMOTEIO, as above. */
int db_queue_query(struct db_queue *queue, struct db_queue_info *info);

/*
 * Tells how the queue fares, for a user: returns 0 when no operation failed; -EIO with the queue
 * pair, its peer, the failed WQE's index, operation and syndrome in db_error_text();
 * -ENOTRECOVERABLE when a thread gave up on blocks that it had claimed. With a GPU it reads the
 * GPU's memory, and -EIO may be of that.
 */
int db_queue_check(struct db_queue *queue);

/*
 * Rings the device if the word of a forwarded queue has changed: returns 1, or 0 when there was
 * nothing to do. Never blocks; for a thread that does nothing else. -EINVAL: the queue's doorbell
 * is no word to forward.
 */
int db_queue_forward(struct db_queue *queue);

/* ---- Connecting ---- */

/* What the other end must know to connect. Numbers in the byte order of the machine. */
struct db_endpoint {
    uint32_t qpn;
    uint32_t psn; /* packet sequence number of its first packet, 24 bits */
    uint32_t lid;
    uint32_t mtu_bytes;
    uint8_t gid[16];
};

/* Says where the queue is. The answer changes with db_queue_reset(). -EINVAL: a detached queue. */
int db_queue_endpoint(const struct db_queue *queue, struct db_endpoint *endpoint);

/*
 * Connects the queue to an endpoint, whose owner must do the same with this queue's. A proxied
 * queue stands for its worker's queue pair; connecting it to the same endpoint again does nothing.
 * -EINVAL: the
 * queue is connected already; db_queue_reset() comes first. -EHOSTUNREACH: no link-layer address is
 * known for the endpoint's GID. When it failed, the queue is as before, or as db_queue_reset()
 * leaves it.
 */
int db_queue_connect_remote(struct db_queue *queue, const struct db_endpoint *endpoint);

/* Connects two queues of this process, which may be one and the same, with each other. As
 * db_queue_connect_remote(). */
int db_queue_connect(struct db_queue *a, struct db_queue *b);

/*
 * Empties the queue and clears its error: it is as new, to be connected again, and so must be its
 * peer. Operations in flight are lost without a trace, posted receives too. Threads must have
 * stopped using the view. A detached queue is emptied alike. -EOPNOTSUPP: a proxied queue.
 */
int db_queue_reset(struct db_queue *queue);

/* ---- Receiving: what a put with immediate consumes at its target ---- */

/* Posts `count` receives, which have no buffer. -EINVAL: the queue was made for fewer at once. */
int db_queue_post_receives(struct db_queue *queue, uint32_t count);

struct db_receive {
    uint32_t imm;   /* as the sender gave it */
    uint32_t bytes; /* that were written before it */
    uint32_t qpn;   /* of this queue */
};

/* Takes the next arrival, if there is one: returns 1, or 0 when there is none. Never blocks. -EIO:
 * the queue is in error. What arrived is visible (acquire). */
int db_queue_poll_receive(struct db_queue *queue, struct db_receive *receive);

/* ---- Detached queues ---- */

/*
 * Plays the device of a detached queue: takes up to `count` of the WQEs that were published and
 * writes their CQEs, without moving data. A WQE posted unsignalled gets none. Returns how many WQEs
 * were taken. -EINVAL: not a detached queue, or one in GPU memory, which the CPU does not reach.
 * -EIO: the ring holds no WQE where one was published.
 */
int db_detached_complete(struct db_queue *queue, uint32_t count);

/* Copies the send ring of a detached queue, wherever it lies, to `blocks`: depth times 64 bytes.
 * -EINVAL: not a detached queue. */
int db_detached_ring(struct db_queue *queue, void *blocks);

#ifdef __cplusplus
}
#endif

#endif
