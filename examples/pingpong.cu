/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two blocks of a CUDA kernel send a number back and forth through the NIC: each puts it into the
 * other's word, and waits in its own for the next. Whether the GPU rings the NIC by itself or hands
 * its puts to CPU workers is chosen when the queues are made; the kernel is the same.
 *
 * Build and run, without a NIC, on a machine with an NVIDIA GPU:
 *     nvcc -std=c++17 -arch=native pingpong.cu $(pkg-config --cflags --libs doorbell) -o pingpong
 *     doorbell softnic -- ./pingpong          # or: ./pingpong proxy
 */
#include <doorbell/device.h>
#include <doorbell/doorbell.h>
#include <doorbell/gpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS     1000u
#define WORD_BYTES 128 /* each word on a line of its own */

/* One of the two, as the kernel sees it. */
struct end {
    struct db_qp *qp;
    const uint64_t *word; /* where the other one's puts arrive */
    uint64_t raddr;       /* the other one's word */
    uint32_t rkey;
};

__global__ void pingpong(struct end first, struct end second, uint32_t rounds, int *status)
{
    struct end end = blockIdx.x == 0 ? first : second;
    uint64_t index;
    int error = DB_OK;

    for (uint64_t round = 1; round <= rounds && !error; round++) {
        if (blockIdx.x == 0)
            error = db_put_value(end.qp, end.raddr, end.rkey, round, &index);
        if (!error)
            error = db_wait_word(end.word, round, DB_TIMEOUT_NS);
        if (!error && blockIdx.x == 1)
            error = db_put_value(end.qp, end.raddr, end.rkey, round, &index);
    }
    status[blockIdx.x] = error ? error : db_flush(end.qp);
}

/* ---- The host ---- */

static struct db_gpu *gpu;
static struct db_device *device;
static struct db_proxy *proxy; /* NULL: the GPU rings the NIC */
static struct db_queue *queues[2];
static struct db_gpu_buffer words; /* that the NIC writes and the GPU polls */
static struct db_region *region;

static int create(bool proxied)
{
    struct db_gpu_config config = {};
    struct db_proxy_attr workers = {};
    struct db_queue_attr attr = {};

    /* In host memory, which every NIC reaches; DB_GPU_MEMORY_GPU is nearer to the GPU. */
    if (db_gpu_cuda_backend.open(&config, &gpu) ||
        gpu->backend->alloc(gpu, DB_GPU_MEMORY_HOST, 2 * WORD_BYTES, &words)) {
        fprintf(stderr, "%s\n", db_gpu_error_text());
        return -1;
    }
    int error = db_device_open(NULL, NULL, &device);
    if (!error)
        error = db_region_register_buffer(device, gpu, &words, DB_ACCESS_ALL, &region);
    workers.workers = 2;
    if (!error && proxied)
        error = db_proxy_create(device, &workers, &proxy);
    attr.depth = 64;
    attr.gpu = gpu;
    attr.proxy = proxy;
    for (int i = 0; i < 2 && !error; i++)
        error = db_queue_create(device, &attr, &queues[i]);
    if (!error)
        error = db_queue_connect(queues[0], queues[1]);
    if (error)
        fprintf(stderr, "%s\n", db_error_text());
    return error;
}

static void destroy(void)
{
    db_queue_destroy(queues[1]);
    db_queue_destroy(queues[0]);
    db_proxy_destroy(proxy);
    db_region_destroy(region);
    if (words.device)
        gpu->backend->free(gpu, &words);
    db_device_close(device);
    if (gpu)
        gpu->backend->close(gpu);
}

/* What block `i` gets. A queue may name memory in its own way, so it is asked. */
static int describe(int i, struct end *end)
{
    struct db_keys own = db_region_keys(region), keys;

    if (db_queue_keys(queues[i], DB_SIDE_REMOTE, &own, &keys)) {
        fprintf(stderr, "%s\n", db_error_text());
        return -1;
    }
    end->qp = db_queue_device_view(queues[i]);
    end->word = (const uint64_t *)((const char *)words.device + i * WORD_BYTES);
    end->raddr = keys.iova + (uint64_t)(1 - i) * WORD_BYTES;
    end->rkey = keys.rkey;
    return 0;
}

/* Ends the program when a call of the CUDA runtime failed. */
static void check(cudaError_t error, const char *what)
{
    if (error) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        exit(1);
    }
}

/* Launches the kernel as any CUDA program does: the library shares the GPU's primary context. */
static int run(float *ms)
{
    struct end ends[2];
    cudaEvent_t start, stop;
    int *status;

    if (describe(0, &ends[0]) || describe(1, &ends[1]))
        return -1;
    check(cudaMallocManaged(&status, 2 * sizeof(*status)), "memory for the kernel's status");
    check(cudaEventCreate(&start), "an event");
    check(cudaEventCreate(&stop), "an event");
    if (proxy)
        db_proxy_wake(proxy);
    check(cudaEventRecord(start), "an event");
    pingpong<<<2, 1>>>(ends[0], ends[1], ROUNDS, status);
    check(cudaGetLastError(), "the kernel does not start");
    check(cudaEventRecord(stop), "an event");
    check(cudaDeviceSynchronize(), "the kernel");
    check(cudaEventElapsedTime(ms, start, stop), "the time");
    for (int i = 0; i < 2; i++) {
        if (status[i]) {
            fprintf(stderr, "block %d: %s\n", i,
                    db_queue_check(queues[i])       ? db_error_text()
                    : status[i] == DB_ERROR_TIMEOUT ? "nothing came before the deadline"
                                                    : "a call's arguments are not possible");
            return -1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    bool proxied = argc > 1 && strcmp(argv[1], "proxy") == 0;
    float ms = 0;
    int error = create(proxied);

    if (!error) {
        printf("using %s\n", db_device_choice(device));
        error = run(&ms);
    }
    if (!error) {
        struct db_device_info info;
        db_device_describe(device, &info);
        printf("%u round trips, %s: %.2f us each%s\n", ROUNDS,
               proxied ? "posted by CPU workers" : "posted by the GPU", ms * 1e3 / ROUNDS,
               info.software ? ", over the software device: no NIC's time" : "");
    }
    destroy();
    return error ? 1 : 0;
}
