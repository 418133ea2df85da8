/* SPDX-License-Identifier: BSD-3-Clause */
/* The C library's own functions (real.h): the next definition after this object's, in the dynamic
 * linker's order. */
#include "real.h"

#include <dlfcn.h>
#include <stdatomic.h>

#define SOFT_REAL_NAME(name) [SOFT_REAL_##name] = #name,
static const char *const names[SOFT_REAL_COUNT] = {SOFT_REAL_FUNCTIONS(SOFT_REAL_NAME)};

static _Atomic(void *) found[SOFT_REAL_COUNT];

/* A signal handler may be the first to call one: looking it up there would not be safe. */
__attribute__((constructor)) static void find_all(void)
{
    for (int which = 0; which < SOFT_REAL_COUNT; which++)
        soft_real((enum soft_real)which);
}

void (*soft_real(enum soft_real which))(void)
{
    union {
        void *symbol;
        void (*function)(void);
    } real = {.symbol = atomic_load_explicit(&found[which], memory_order_relaxed)};

    if (real.symbol == NULL) {
        real.symbol = dlsym(RTLD_NEXT, names[which]);
        atomic_store_explicit(&found[which], real.symbol, memory_order_relaxed);
    }
    return real.function;
}
