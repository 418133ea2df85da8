/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The floors of what a GPU and a CPU thread do through host memory (kernels/floor.h), measured in
 * the run of an experiment that stands on them. Included by cases.
 */
#ifndef BENCH_FLOORS_H
#define BENCH_FLOORS_H

#include "transport.h"

/* A flag to a CPU thread and back. */
enum bench_status floors_round_trip(struct bench *b, struct transport *transport);

/* What a push is made of: one store of 16 bytes; a store, a system-scope release and
 * another; a read; a flag to a CPU thread and back. */
enum bench_status floors_of_a_push(struct bench *b, struct transport *transport);

/* A release at both scopes, alone and beside threads of other blocks that poll host memory: on a
 * GPU a system-scope release waits for their reads too. */
enum bench_status floors_of_a_release(struct bench *b, struct transport *transport);

#endif
