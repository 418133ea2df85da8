/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: MLX5_QP_SIGNATURE=1, with which libmlx5 wants signed work requests, is refused when a
 * queue pair is created, with the word in the reason that SOFTNIC_DEBUG=1 prints; without the
 * variable the same process creates queue pairs.
 */
#include "rc_pair.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static struct ibv_qp *create(struct rc_pair *pair)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = pair->a.send_cq,
        .recv_cq = pair->a.recv_cq,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };

    return ibv_create_qp(pair->pd, &attr);
}

/* Creates with standard error going to a file; returns what was printed there. */
static const char *reason_for_refusal(struct rc_pair *pair)
{
    static char text[4096];
    FILE *file = tmpfile();
    int saved = dup(STDERR_FILENO);
    struct ibv_qp *qp;
    int error;

    CHECK(file && saved >= 0, "no place for standard error: %s", strerror(errno));
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    errno = 0;
    qp = create(pair);
    error = errno;
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    CHECK(!qp, "a queue pair with signatures was created");
    CHECK(error == EOPNOTSUPP || error == EINVAL, "refused with %s", strerror(error));
    rewind(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = 0;
    fclose(file);
    return text;
}

int main(void)
{
    struct rc_options options = rc_defaults();
    struct rc_pair pair;
    const char *reason;
    struct ibv_qp *qp;

    setenv("SOFTNIC_DEBUG", "1", 1);
    unsetenv("MLX5_QP_SIGNATURE");
    rc_start(&pair, &options);
    setenv("MLX5_QP_SIGNATURE", "1", 1);
    for (int i = 0; i < 100; i++) {
        reason = reason_for_refusal(&pair);
        CHECK(strcasestr(reason, "signature"), "the reason does not name it: \"%s\"", reason);
    }
    unsetenv("MLX5_QP_SIGNATURE");
    qp = create(&pair);
    CHECK(qp, "ibv_create_qp without signatures: %s", strerror(errno));
    CHECK(ibv_destroy_qp(qp) == 0, "ibv_destroy_qp failed");
    rc_destroy(&pair);
    return 0;
}
