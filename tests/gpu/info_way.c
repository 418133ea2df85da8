/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: `doorbell info` names the way that registration takes first: dma-buf, then peer memory,
 * and nothing on the software device; and its reason says what is missing.
 */
#include "fake_control.h"
#include "tool/info_gpu.h"

int main(void)
{
    static const struct {
        bool dma_buf, peer_memory;
        const char *software;
        const char *way, *words;
    } rows[] = {
        {true, true, NULL, "dma-buf", "peer memory is next|nvidia_peermem is loaded"},
        {true, false, NULL, "dma-buf", "no other way|nvidia_peermem is not loaded"},
        {false, true, NULL, "peer memory", "no dma-buf|nvidia_peermem is loaded"},
        {false, false, NULL, "none",
         "open kernel modules|nvidia_peermem is not loaded|host memory"},
        {true, true, "mlx5_soft0", "none", "engine runs on the CPU|host memory"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct info_gpu gpu = {
            .properties = {.dma_buf = rows[i].dma_buf, .peer_memory = rows[i].peer_memory}};
        const char *why, *way = info_gpu_memory(&gpu, rows[i].software, &why);

        CHECK(strcmp(way, rows[i].way) == 0, "row %zu: %s: %s", i, way, why);
        expect_words(way, why, rows[i].words);
    }
    return 0;
}
