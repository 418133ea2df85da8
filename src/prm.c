/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending PRM commands through libmlx5's DEVX calls; see prm.h.
 */
#include "prm.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

#include "device.h"
#include "error.h"

/* `error` is libmlx5's, of either sign. A device that refuses answers with a status and a syndrome.
 */
static int refused(const struct db_device *device, const char *name, int error, const void *out)
{
    error = error < 0 ? error : error > 0 ? -error : -EIO;
    unsigned status = (unsigned)db_prm_get(out, m5_mbox_out_status);

    if (status == M5_STAT_OK)
        return db_fail(error, "%s could not be sent to %s: %s", name, device->path.name,
                       strerror(-error));
    if (status == M5_STAT_NO_RES || status == M5_STAT_EXCEED_LIM)
        error = -ENOMEM;
    return db_fail(error, "%s refused %s with status %#x, syndrome %#x%s", device->path.name, name,
                   status, (unsigned)db_prm_get(out, m5_mbox_out_syndrome),
                   error == -ENOMEM ? ": it has none left; destroy some queues" : "");
}

int db_prm_create(struct db_device *device, struct db_prm *prm, struct mlx5dv_devx_obj **object)
{
    *object =
        mlx5dv_devx_obj_create(device->context, prm->in, prm->in_bytes, prm->out, prm->out_bytes);
    return *object ? 0 : refused(device, prm->name, errno, prm->out);
}

int db_prm_modify(struct db_device *device, struct db_prm *prm, struct mlx5dv_devx_obj *object)
{
    int error = mlx5dv_devx_obj_modify(object, prm->in, prm->in_bytes, prm->out, prm->out_bytes);

    return error ? refused(device, prm->name, error, prm->out) : 0;
}

int db_prm_query(struct db_device *device, struct db_prm *prm, struct mlx5dv_devx_obj *object)
{
    int error = mlx5dv_devx_obj_query(object, prm->in, prm->in_bytes, prm->out, prm->out_bytes);

    return error ? refused(device, prm->name, error, prm->out) : 0;
}

int db_prm_ask(struct db_device *device, const char *name, const void *in, size_t in_bytes,
               void *out, size_t out_bytes)
{
    int error = mlx5dv_devx_general_cmd(device->context, in, in_bytes, out, out_bytes);

    return error ? refused(device, name, error, out) : 0;
}
