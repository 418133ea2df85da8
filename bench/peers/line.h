/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The floor of a software device: one cache line sent to another core and back. Included by cases.
 */
#ifndef BENCH_PEERS_LINE_H
#define BENCH_PEERS_LINE_H

#include "../bench.h"

/* Measures it between two threads of this process, wherever the kernel puts them, and reports it.
 */
enum bench_status line_round_trip(struct bench *b);

#endif
