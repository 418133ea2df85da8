/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that a program registered and then unmapped: the engine's access faults, and the fault
 * becomes a protection error instead of the program's death.
 */
#ifndef SOFTNIC_CORE_FAULT_H
#define SOFTNIC_CORE_FAULT_H

#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>

#include "nic.h"

/* Where the calling thread goes on after a fault in an access that nic_touch() announced. */
struct nic_guard {
    sigjmp_buf resume;
    void *address; /* that faulted */
    struct nic *nic;
};

/* Installs the process's handler for SIGSEGV and SIGBUS, once. It acts on guarded accesses alone;
 * every other fault goes to the handler that was there before. */
int nic_catch_faults(void);

/* Whether it has: from then on sigaction(2) for SIGSEGV and SIGBUS must come here, or a handler
 * that the program installs would take the device's faults. */
bool nic_catches_faults(int number);

/* As sigaction(2), for the action that every other fault goes to. */
void nic_other_faults(int number, const struct sigaction *action, struct sigaction *old);

/* The calling thread's guard; NULL for none. The guard's `resume` must be set by then. */
void nic_guard_thread(struct nic_guard *guard);

/* Stores to program memory from a control call, which holds the device. False when it is gone. */
bool nic_try_store32(struct nic *nic, uint32_t *word, uint32_t value);

/* After a fault: ends the WQE that caused it with the error that fits what was touched, and looks
 * at all that the fault may have made the engine miss. May fault again. */
void nic_settle_fault(struct nic *nic, const void *address);

#endif
