/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: wherever opening a device, registering memory, creating a queue or connecting fails, the
 * call says so, its result is NULL, and nothing that it had made is left. Every call into libmlx5
 * and libibverbs that makes something fails once, in turn.
 *
 * This program stands in front of those calls: its own definitions take the library's calls, count
 * what lives, and pass them on.
 */
#include <dlfcn.h>
#include <doorbell/doorbell.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <softnic.h>
#include <string.h>

#include "../check.h"

static int fail_at;           /* the call that fails, from 1; 0: none */
static int calls;             /* of those that can fail */
static const char *fail_name; /* the one that failed */

enum kind { CONTEXT, DOMAIN, REGION, UMEM, UAR, OBJECT, KINDS };

static const char *const kind_names[KINDS] = {
    "context", "protection domain", "memory region", "umem", "UAR", "DEVX object"};
static int living[KINDS];
static bool opening; /* what libmlx5 asks for while it opens a device is its own affair */

static bool fails(const char *name)
{
    if (opening || ++calls != fail_at)
        return false;
    fail_name = name;
    errno = ENOSPC;
    return true;
}

static void *count(enum kind kind, void *made)
{
    living[kind] += made != NULL;
    return made;
}

/* The library's own function behind ours. */
#define REAL(name) ((__typeof__(&(name)))(uintptr_t)dlsym(RTLD_NEXT, #name))

struct ibv_context *mlx5dv_open_device(struct ibv_device *device, struct mlx5dv_context_attr *attr)
{
    if (fails(__func__))
        return NULL;
    opening = true;
    struct ibv_context *context = count(CONTEXT, REAL(mlx5dv_open_device)(device, attr));
    opening = false;
    return context;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    if (fails(__func__))
        return NULL;
    opening = true;
    struct ibv_context *context = count(CONTEXT, REAL(ibv_open_device)(device));
    opening = false;
    return context;
}

int ibv_close_device(struct ibv_context *context)
{
    living[CONTEXT]--;
    return REAL(ibv_close_device)(context);
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    return fails(__func__) ? NULL : count(DOMAIN, REAL(ibv_alloc_pd)(context));
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    living[DOMAIN]--;
    return REAL(ibv_dealloc_pd)(pd);
}

int mlx5dv_init_obj(struct mlx5dv_obj *object, uint64_t type)
{
    return fails(__func__) ? ENOSPC : REAL(mlx5dv_init_obj)(object, type);
}

/* What the macro ibv_reg_mr() becomes when its flags are not a constant. */
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t bytes, uint64_t iova,
                                unsigned int access)
{
    return fails(__func__) ? NULL
                           : count(REGION, REAL(ibv_reg_mr_iova2)(pd, addr, bytes, iova, access));
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    living[REGION]--;
    return REAL(ibv_dereg_mr)(mr);
}

int mlx5dv_devx_query_eqn(struct ibv_context *context, uint32_t vector, uint32_t *eqn)
{
    return fails(__func__) ? ENOSPC : REAL(mlx5dv_devx_query_eqn)(context, vector, eqn);
}

int mlx5dv_devx_general_cmd(struct ibv_context *context, const void *in, size_t in_bytes, void *out,
                            size_t out_bytes)
{
    return fails(__func__) ? ENOSPC
                           : REAL(mlx5dv_devx_general_cmd)(context, in, in_bytes, out, out_bytes);
}

struct mlx5dv_devx_umem *mlx5dv_devx_umem_reg(struct ibv_context *context, void *addr, size_t bytes,
                                              uint32_t access)
{
    return fails(__func__) ? NULL
                           : count(UMEM, REAL(mlx5dv_devx_umem_reg)(context, addr, bytes, access));
}

int mlx5dv_devx_umem_dereg(struct mlx5dv_devx_umem *umem)
{
    living[UMEM]--;
    return REAL(mlx5dv_devx_umem_dereg)(umem);
}

struct mlx5dv_devx_uar *mlx5dv_devx_alloc_uar(struct ibv_context *context, uint32_t flags)
{
    return fails(__func__) ? NULL : count(UAR, REAL(mlx5dv_devx_alloc_uar)(context, flags));
}

void mlx5dv_devx_free_uar(struct mlx5dv_devx_uar *uar)
{
    living[UAR]--;
    REAL(mlx5dv_devx_free_uar)(uar);
}

struct mlx5dv_devx_obj *mlx5dv_devx_obj_create(struct ibv_context *context, const void *in,
                                               size_t in_bytes, void *out, size_t out_bytes)
{
    return fails(__func__)
               ? NULL
               : count(OBJECT, REAL(mlx5dv_devx_obj_create)(context, in, in_bytes, out, out_bytes));
}

int mlx5dv_devx_obj_destroy(struct mlx5dv_devx_obj *object)
{
    living[OBJECT]--;
    return REAL(mlx5dv_devx_obj_destroy)(object);
}

int mlx5dv_devx_obj_modify(struct mlx5dv_devx_obj *object, const void *in, size_t in_bytes,
                           void *out, size_t out_bytes)
{
    return fails(__func__) ? ENOSPC
                           : REAL(mlx5dv_devx_obj_modify)(object, in, in_bytes, out, out_bytes);
}

/* ---- The claim ---- */

static int create_all(struct db_device **device, struct db_region **region,
                      struct db_queue *queues[2])
{
    static uint8_t memory[4096];
    const struct db_queue_attr attr = {.depth = 64, .recv_depth = 16};
    int error = db_device_open(SOFTNIC_DEVICE_NAME, NULL, device);

    CHECK(!error == (*device != NULL), "open: %d with %p", error, (void *)*device);
    if (!error) {
        error = db_region_register(*device, DB_MEMORY_HOST, memory, sizeof(memory), DB_ACCESS_ALL,
                                   region);
        CHECK(!error == (*region != NULL), "register: %d with %p", error, (void *)*region);
    }
    for (int i = 0; i < 2 && !error; i++) {
        error = db_queue_create(*device, &attr, &queues[i]);
        CHECK(!error == (queues[i] != NULL), "create: %d with %p", error, (void *)queues[i]);
    }
    return error ? error : db_queue_connect(queues[0], queues[1]);
}

static void check_nothing_lives(void)
{
    for (int kind = 0; kind < KINDS; kind++)
        CHECK(living[kind] == 0, "call %d, %s, failed: %d of kind %s left", fail_at, fail_name,
              living[kind], kind_names[kind]);
}

int main(void)
{
    int failed = 0;

    for (fail_at = 1;; fail_at++) {
        struct db_device *device = NULL;
        struct db_region *region = NULL;
        struct db_queue *queues[2] = {NULL, NULL};
        calls = 0;
        fail_name = NULL;
        int error = create_all(&device, &region, queues);
        if (fail_name && error) {
            CHECK(strstr(db_error_text(), SOFTNIC_DEVICE_NAME), "%s failed: %s", fail_name,
                  db_error_text());
            failed++;
        }
        /* There is more than one kind of doorbell register to try. */
        CHECK(error || !fail_name || strcmp(fail_name, "mlx5dv_devx_alloc_uar") == 0,
              "nobody noticed that %s failed", fail_name);
        CHECK(!error || fail_name, "without a failure: %s", db_error_text());
        /* What failed half-way in connecting can be done again. */
        if (error && queues[1])
            CHECK(db_queue_connect(queues[0], queues[1]) == 0, "after %s: %s", fail_name,
                  db_error_text());
        db_device_close(device);
        db_queue_destroy(queues[0]);
        db_queue_destroy(queues[1]);
        db_region_destroy(region);
        check_nothing_lives();
        if (!fail_name)
            break;
    }
    CHECK(failed >= 20, "only %d calls failed", failed);
    printf("%d failures\n", failed);
    return 0;
}
