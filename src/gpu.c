/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all kinds of GPU share on the host: the sentence of the last failure (gpu.h).
 */
#include <doorbell/gpu.h>

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char error_text[512];

const char *db_gpu_error_text(void)
{
    return error_text;
}

int db_gpu_fail(int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error_text, sizeof(error_text), format, arguments);
    va_end(arguments);
    return error;
}
