/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of data/reference.csv, from the first symbol up to the second; no zero byte follows.
 * Included by reference.c and by its test.
 */
#ifndef BENCH_REFERENCE_DATA_H
#define BENCH_REFERENCE_DATA_H

extern const char bench_reference_csv[];
extern const char bench_reference_csv_end[];

#endif
