/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The smallest whole program: a put from one registered buffer to another, through a pair of queues
 * on the best device of this machine. The thread that calls db_put() and db_wait() is the CPU's
 * here; a GPU kernel calls the same two functions with the same arguments.
 *
 * Build and run, without a NIC:
 *     cc put.c $(pkg-config --cflags --libs doorbell) -o put
 *     doorbell softnic -- ./put
 */
#include <doorbell/device.h>
#include <doorbell/doorbell.h>
#include <stdio.h>
#include <string.h>

static char source[64] = "hello from a put";
static char target[64];

static struct db_device *device;
static struct db_region *source_region, *target_region;
static struct db_queue *queue, *peer;

static int create(void)
{
    const struct db_queue_attr attr = {.depth = 64};
    int error = db_device_open(NULL, NULL, &device);

    if (!error)
        error =
            db_region_register(device, DB_MEMORY_HOST, source, sizeof(source), 0, &source_region);
    if (!error)
        error = db_region_register(device, DB_MEMORY_HOST, target, sizeof(target),
                                   DB_ACCESS_LOCAL_WRITE | DB_ACCESS_REMOTE_WRITE, &target_region);
    if (!error)
        error = db_queue_create(device, &attr, &queue);
    if (!error)
        error = db_queue_create(device, &attr, &peer);
    return error ? error : db_queue_connect(queue, peer);
}

/* What a GPU thread would do. */
static int put(struct db_qp *qp, struct db_keys from, struct db_keys to)
{
    uint64_t index;
    int status = db_put(qp, to.iova, to.rkey, from.iova, from.lkey, sizeof(source), &index);

    return status ? status : db_wait(qp, index);
}

int main(void)
{
    int error = create();

    if (!error) {
        printf("using %s\n", db_device_choice(device));
        error = put(db_queue_device_view(queue), db_region_keys(source_region),
                    db_region_keys(target_region));
        if (error && !db_queue_check(queue))
            fprintf(stderr, "the put is not complete after %llu s\n", DB_TIMEOUT_NS / 1000000000);
    }
    if (error)
        fprintf(stderr, "%s\n", db_error_text());
    else if (strcmp(target, source) != 0)
        error = -1;
    else
        printf("the target holds: %s\n", target);

    db_queue_destroy(peer);
    db_queue_destroy(queue);
    db_region_destroy(target_region);
    db_region_destroy(source_region);
    db_device_close(device);
    return error ? 1 : 0;
}
