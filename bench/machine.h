/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of the machine that goes into every result: what the CPU is and does, which kernel
 * runs, how busy it is. Read from /proc and /sys; what cannot be read is left empty, or 0, or -1 as
 * stated. Included by record.h.
 */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

/* What stays the same during a run. */
struct bench_machine {
    char cpu_model[96];
    unsigned sockets;
    unsigned cpus_online;
    unsigned cpus_allowed; /* by the affinity mask of this process */
    char governor[32];     /* of CPU 0; empty when the kernel controls no frequency */
    char kernel[160];
    char architecture[72];
};

/* What may change from one measurement to the next. */
struct bench_cpu_state {
    double mhz;          /* of the CPU that asks, 0 when unknown */
    double load_average; /* of the last minute, -1 when unknown */
};

/* By the affinity mask of the calling thread; 0 when unknown. */
unsigned bench_cpus_allowed(void);

/* The clock of a CPU; 0 when unknown. */
double bench_cpu_mhz(int cpu);

void bench_machine_read(struct bench_machine *machine);
void bench_cpu_state_read(struct bench_cpu_state *state);

#endif
