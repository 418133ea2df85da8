/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the tests over fake_driver.c get at its controls, and what they all check.
 */
#ifndef DOORBELL_TESTS_GPU_FAKE_CONTROL_H
#define DOORBELL_TESTS_GPU_FAKE_CONTROL_H

#include <dlfcn.h>
#include <doorbell/gpu.h>
#include <string.h>

#include "fake_driver.h"
#include "tests/check.h"

/* The controls; skips the test where LD_LIBRARY_PATH leads to no fake driver. */
static inline struct fake_driver *fake_control(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    struct fake_driver *fake = library ? dlsym(library, "fake_driver") : NULL;

    if (!fake)
        SKIP("the fake driver is not in LD_LIBRARY_PATH");
    return fake;
}

/* The second of its GPUs. */
static inline struct db_gpu *fake_open_gpu(void)
{
    struct db_gpu_config config = {.index = 1};
    struct db_gpu *gpu;

    CHECK(db_gpu_cuda_backend.open(&config, &gpu) == 0, "%s", db_gpu_error_text());
    return gpu;
}

/* Every word of "a|b|c" is in the sentence. */
static inline void expect_words(const char *what, const char *sentence, const char *words)
{
    char copy[256], *rest = copy, *word;

    snprintf(copy, sizeof(copy), "%s", words);
    while ((word = strsep(&rest, "|")))
        CHECK(strstr(sentence, word), "%s: '%s' is not in: %s", what, word, sentence);
}

/* Nothing of the driver is held. */
static inline void expect_nothing(const struct fake_driver *fake, const char *what)
{
    CHECK(fake->contexts == 0 && fake->pushed == 0 && fake->modules == 0, "%s: %d %d %d", what,
          fake->contexts, fake->pushed, fake->modules);
    CHECK(fake->streams == 0 && fake->events == 0, "%s: %d %d", what, fake->streams, fake->events);
    CHECK(fake->gpu_memory == 0 && fake->host_memory == 0 && fake->registrations == 0,
          "%s: %d %d %d", what, fake->gpu_memory, fake->host_memory, fake->registrations);
}

#endif
