/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: closing a context ends all that was left in it, queue pairs in traffic among it; nothing
 * of it wears the device out, and the end of the process takes the rest.
 */
#include "rc_pair.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* libmlx5 cannot free what was never destroyed: there is nothing to learn from its leaks here. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

static void leave(uint64_t round)
{
    struct rc_options options = rc_defaults();
    struct rc_pair pair;
    void *memory[2];

    options.channel = round % 2;
    rc_create(&pair, NULL, &options);
    if (round % 3)
        rc_connect(&pair);
    if (round % 3 == 1) {
        rc_post(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, 1, 0, 0, 65536, IBV_SEND_SIGNALED);
        rc_expect(pair.a.send_cq, &pair.a, 1, IBV_WC_RDMA_WRITE);
    } else if (round % 3 == 2) {
        for (uint64_t i = 0; i < 32; i++)
            rc_post(&pair.a, &pair.b, i == 20 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, i, 0, 0, 65536, 0);
    }
    memory[0] = pair.a.buffer;
    memory[1] = pair.b.buffer;
    CHECK(ibv_close_device(pair.context) == 0, "ibv_close_device: %s", strerror(errno));
    /* Once the context is closed the device touches none of its memory. */
    munmap(memory[0], options.buffer_bytes);
    munmap(memory[1], options.buffer_bytes);
}

int main(void)
{
    struct rc_options options = rc_defaults();
    struct rc_pair witness;

    rc_start(&witness, &options);
    for (uint64_t round = 0; round < 300; round++) {
        leave(round);
        rc_post(&witness.a, &witness.b, IBV_WR_RDMA_WRITE, round, 0, 0, 8, IBV_SEND_SIGNALED);
        rc_expect(witness.a.send_cq, &witness.a, round, IBV_WC_RDMA_WRITE);
    }
    rc_destroy(&witness);
    for (uint64_t round = 0; round < 20; round++)
        leave(round);
    rc_create(&witness, NULL, &options);
    rc_connect(&witness);
    /* And the process ends with a connected pair and its context open. */
    return 0;
}
