/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An open device as the library's own files see it. Included by the files of src/ that speak to
 * one.
 */
#ifndef DOORBELL_SRC_DEVICE_H
#define DOORBELL_SRC_DEVICE_H

#include <doorbell/inventory.h>
#include <pthread.h>

struct ibv_context;
struct ibv_pd;
struct db_queue;

/* The way out of this machine. */
struct db_path {
    char name[DB_NAME_BYTES]; /* of the device */
    bool software;
    bool infiniband;
    uint32_t port;
    uint32_t gid_index;
    uint8_t gid[16];
    uint32_t lid;
    uint32_t mtu_bytes;
};

/* What the device can do, from QUERY_HCA_CAP. */
struct db_caps {
    uint32_t max_depth;      /* of a send ring, in blocks */
    uint32_t max_cq_depth;   /* CQEs */
    uint32_t max_recv_depth; /* receive WQEs */
    uint32_t log_reads_out;  /* reads and atomics in flight that a QP may issue */
    uint32_t log_reads_in;   /* and may answer */
    uint32_t log_max_msg;    /* log2 of the bytes of a message */
    uint32_t udp_sport;      /* RoCE v2: the lowest source port */
    bool atomics;
    bool without_record;
};

/* db_device_choice()'s sentence: db_choice.reason behind a name, a port and a GID. */
#define DB_CHOICE_BYTES 768

/* Constant while open, but for the first three. */
struct db_device {
    unsigned references; /* one of the user's handle, one of each region and queue */
    pthread_mutex_t lock;
    struct db_queue *recordless; /* under the lock: queues that share no doorbell page (uar.c) */
    struct ibv_context *context;
    struct ibv_pd *pd;
    uint32_t pdn;
    uint32_t eqn; /* completion vector 0 */
    struct db_path path;
    struct db_caps caps;
    char choice[DB_CHOICE_BYTES];
    char firmware[64];
    int numa_node;
};

#define DB_SOFTNIC_TEXT_BYTES 320

/* What brings a device where there is none: why the software one is not used, where this program
 * carries it. Returns `text`. */
const char *db_softnic_remedy(char text[DB_SOFTNIC_TEXT_BYTES]);

/* Why the software device does not open, and what to do. Returns `text`. */
const char *db_softnic_obstacle(int open_error, char text[DB_SOFTNIC_TEXT_BYTES]);

/* As db_inventory_read(), but opens only the device of that name, unless it is NULL; the others are
 * listed without their ports. */
int db_inventory_read_named(const char *name, struct db_inventory *inventory);

/* A region or a queue keeps its device alive. */
void db_device_hold(struct db_device *device);
void db_device_release(struct db_device *device);

/* Asks the device what it can do. */
int db_caps_read(struct db_device *device);

/* The MAC address that packets to `gid` go to: that of one of this device's own GIDs, or what the
 * kernel resolves. -EHOSTUNREACH. */
int db_device_resolve(struct db_device *device, const uint8_t *gid, uint8_t *mac);

/* 0, or -EOPNOTSUPP with the reason when the device cannot reach memory of that kind. `what` is for
 * the user; `device` is NULL for a detached queue, `gpu` when none was named. */
int db_memory_check(const struct db_device *device, enum db_memory kind, const struct db_gpu *gpu,
                    const char *what);

#endif
