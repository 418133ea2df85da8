/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: without an NVIDIA driver, or with one that lacks a function, each call on the "cuda" GPU
 * says so and what to do, and the GPU that CPU threads play works. The argument is the words of the
 * sentence that is expected.
 */
#include <errno.h>

#include "fake_control.h"

int main(int argc, char **argv)
{
    struct db_gpu_config config = {.index = 0};
    uint32_t count = 7;
    struct db_gpu *gpu;

    if (argc != 2)
        return 2;
    int error = db_gpu_cuda_backend.count(&count);
    if (error == 0)
        SKIP("there is an NVIDIA driver");
    CHECK((error == -ENODEV || error == -ENOSYS) && count == 0, "%d, %u GPUs", error, count);
    expect_words("count", db_gpu_error_text(), argv[1]);
    CHECK(db_gpu_cuda_backend.open(&config, &gpu) == error, "open");
    expect_words("open", db_gpu_error_text(), argv[1]);
    CHECK(db_gpu_cpu_backend.open(&config, &gpu) == 0, "%s", db_gpu_error_text());
    gpu->backend->close(gpu);
    return 0;
}
