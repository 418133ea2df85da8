/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the library's own files tell a failure (db_error_text() in doorbell.h reads it). Included by
 * every file of src/ that can fail.
 */
#ifndef DOORBELL_SRC_ERROR_H
#define DOORBELL_SRC_ERROR_H

/* Leaves the sentence for the calling thread and returns `error`, a negative errno value. */
__attribute__((format(printf, 2, 3))) int db_fail(int error, const char *format, ...);

/* The negative errno value of a call that set errno, or -EIO when it forgot to. */
int db_errno(void);

#endif
