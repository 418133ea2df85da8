/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim (case C02): a queue of 64 blocks carries more than 131,072 WQEs from near index 65,535 on,
 * each with a 16-bit index and a zero opmod; a builder that lets its index run into opmod is named,
 * as are a wrong index, a wrong QPN and reserved bits in a control segment.
 */
#include "engine_rig.h"

static struct rig rig;

static void start(void)
{
    struct nic_config config = {.strict = {.enabled = 1, .random = 1}};
    rig_start(&rig, &config);
}

static void many_wqes(void)
{
    struct rig_queue queue;
    struct wqe wqe;
    struct cqe cqe;
    uint64_t first = 65530, count = 140000, polled = 0;

    rig_loop(&rig, &queue, rig_uar(&rig), 0, 6);
    rig_start_at(&queue, first);
    while (polled < count) {
        if (queue.posted < first + count && queue.posted - first - polled < 64) {
            memcpy(rig.payload + 8 * (queue.posted % 64), &queue.posted, 8);
            rig_build(&queue, &wqe, 8 * (queue.posted % 64), 4096 + 8 * (queue.posted % 64));
            rig_post(&queue, &wqe);
            if (!rig_try(&queue.send_cq, &cqe))
                continue;
        } else {
            cqe = rig_poll(&queue.send_cq);
        }
        uint64_t index = first + polled, got;
        CHECK(cqe.opcode == M5_CQE_REQUESTER, "WQE %llu: syndrome 0x%x", (unsigned long long)index,
              cqe.syndrome);
        CHECK(cqe.wqe_counter == (index & 0xffff), "WQE %llu: counter 0x%x",
              (unsigned long long)index, cqe.wqe_counter);
        memcpy(&got, rig.payload + 4096 + 8 * (index % 64), 8);
        CHECK(got == index || got == index + 64, "WQE %llu wrote %llu", (unsigned long long)index,
              (unsigned long long)got);
        polled++;
    }
    rig_expect_clean(&rig);
    rig_destroy(&queue);
}

/* The builder of C02: the count goes into the first word unmasked. */
static void leaking_builder(void)
{
    struct rig_queue queue;
    struct wqe wqe;

    rig_loop(&rig, &queue, rig_uar(&rig), 0, 6);
    rig_start_at(&queue, 65530);
    for (int i = 0; i < 20; i++) {
        uint64_t index = queue.posted;
        rig_build(&queue, &wqe, 0, 64);
        rig_put(&queue, &wqe);
        uint8_t *at = queue.sq + 64 * (index % 64);
        bytes_put32(at, (uint32_t)index << 8 | M5_OP_WRITE);
        rig_record(&queue, queue.posted);
        rig_ring(&queue, index);
        rig_expect(&queue, index);
        if (index > 0xffff)
            rig_expect_diag(&queue, NIC_DIAG_INDEX_LEAK, index);
        else
            CHECK(rig_all_diags(&rig) == 0, "a diagnostic at index 0x%llx",
                  (unsigned long long)index);
    }
    rig_expect_clean(&rig);
    rig_destroy(&queue);
}

/* One byte of a WQE changed by `flip`. */
static void spoiled(uint64_t index, uint32_t byte, uint8_t flip, enum nic_diag kind)
{
    struct rig_queue queue;
    struct wqe wqe;

    rig_loop(&rig, &queue, rig_uar(&rig), 0, 6);
    rig_start_at(&queue, index);
    rig_build(&queue, &wqe, 0, 64);
    rig_put(&queue, &wqe);
    queue.sq[64 * (index % 64) + byte] ^= flip;
    rig_record(&queue, queue.posted);
    rig_ring(&queue, index);
    rig_expect_diag(&queue, kind, index);
    rig_poll(&queue.send_cq);
    rig_destroy(&queue);
}

/* The opmod byte is the masked atomics' own: their widths are no leak. */
static void masked_atomics(void)
{
    struct rig_queue queue;
    struct wqe wqe;

    rig_loop(&rig, &queue, rig_uar(&rig), 0, 6);
    for (uint32_t opmod = M5_ATOMIC_4_BYTES; opmod <= M5_ATOMIC_8_BYTES; opmod++) {
        wqe_begin(&wqe, M5_OP_ATOMIC_MASKED_FA, opmod, M5_CTRL_CQ_UPDATE, 0);
        wqe_raddr(&wqe, (uintptr_t)rig.payload, rig.key);
        wqe_operands64(&wqe, 0, 0);
        wqe_data(&wqe, rig.payload + 64, rig.key, opmod == M5_ATOMIC_4_BYTES ? 4 : 8);
        rig_expect(&queue, rig_post(&queue, &wqe));
    }
    rig_expect_clean(&rig);
    rig_destroy(&queue);
}

int main(void)
{
    static const uint64_t indices[] = {0, 1, 0x80, 0x100, 0x7fff, 0xffff, 0x10000, 0x12345};

    start();
    many_wqes();
    leaking_builder();
    masked_atomics();
    for (size_t i = 0; i < sizeof(indices) / sizeof(indices[0]); i++) {
        spoiled(indices[i], 0, 0x01, NIC_DIAG_INDEX_LEAK);
        spoiled(indices[i], 1, 0x40, NIC_DIAG_INDEX_MISMATCH);
        spoiled(indices[i], 2, 0x01, NIC_DIAG_INDEX_MISMATCH);
        spoiled(indices[i], 4, 0x80, NIC_DIAG_QPN_MISMATCH);
        spoiled(indices[i], 6, 0x03, NIC_DIAG_QPN_MISMATCH);
        spoiled(indices[i], 7, 0x40, NIC_DIAG_RESERVED_BITS);
        spoiled(indices[i], 7, 0x80, NIC_DIAG_RESERVED_BITS);
        spoiled(indices[i], 9, 0x01, NIC_DIAG_RESERVED_BITS);
        spoiled(indices[i], 10, 0x80, NIC_DIAG_RESERVED_BITS);
        spoiled(indices[i], 11, 0x01, NIC_DIAG_RESERVED_BITS);
        spoiled(indices[i], 11, 0x10, NIC_DIAG_RESERVED_BITS);
        spoiled(indices[i], 28, 0x01, NIC_DIAG_RESERVED_BITS);
        spoiled(indices[i], 31, 0x80, NIC_DIAG_RESERVED_BITS);
    }
    rig_expect_clean(&rig);
    rig_stop(&rig);
    return 0;
}
