/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sentence of the calling thread's last failure; see error.h.
 */
#include "error.h"

#include <doorbell/doorbell.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static _Thread_local char error_text[1024];

const char *db_error_text(void)
{
    return error_text;
}

int db_fail(int error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(error_text, sizeof(error_text), format, arguments);
    va_end(arguments);
    return error;
}

int db_errno(void)
{
    return errno > 0 ? -errno : -EIO;
}
