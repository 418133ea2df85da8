/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: queue_expect_no_diagnostics(), on which the tests of our queues rest, can fail: when
 * strict mode is off, when the device executed nothing, and when a queue breaks one of the rules;
 * and a queue that keeps them passes. Each in a process of its own.
 */
#include "queue_ends.h"

#include <sys/wait.h>
#include <unistd.h>

enum run {
    KEEPS_THE_RULES,
    STRICT_OFF,
    NOTHING_EXECUTED,
    INDEX_IN_OPMOD,
    NOT_WRITTEN,
    RECORD_NOT_MOVED,
    RUNS,
};

static const char *const names[RUNS] = {
    [KEEPS_THE_RULES] = "a put that keeps the rules",
    [STRICT_OFF] = "the same with strict mode off",
    [NOTHING_EXECUTED] = "no put at all",
    [INDEX_IN_OPMOD] = "an index of more than 16 bits in a WQE",
    [NOT_WRITTEN] = "a block published that nobody wrote",
    [RECORD_NOT_MOVED] = "a doorbell whose record did not move",
};

/* Posts one NOP in the way of the run, and waits until it ends in one way or another. */
static void nop(const struct queue_end *a, enum run run)
{
    uint64_t index;

    QUEUE_OK(db_claim(a->qp, 1, &index));
    if (run != NOT_WRITTEN)
        db_build_nop(a->qp, index, DB_SIGNALED);
    if (run == INDEX_IN_OPMOD)
        a->qp->sq[(index & (a->qp->depth - 1)) * M5_BLOCK_BYTES] = 1;
    if (run == RECORD_NOT_MOVED)
        port_doorbell(a->qp->doorbell, db_ctrl_word(a->qp->qpn, index + 1, 0, 0));
    else
        db_publish_safe(a->qp, index, index + 1);
    db_wait(a->qp, index);
}

static void child(enum run run)
{
    const struct db_queue_attr attr = {.depth = 4, .timeout_ns = 500000000};
    struct queue_ends ends;

    queue_ends_start(&ends, &attr, 4096);
    if (run != STRICT_OFF)
        queue_strict(true);
    /* A lap first, so that each slot was executed, and is poison since. */
    for (int i = 0; i < 4 && run != NOTHING_EXECUTED; i++)
        nop(&ends.a, KEEPS_THE_RULES);
    if (run != NOTHING_EXECUTED)
        nop(&ends.a, run);
    queue_ends_destroy(&ends);
    queue_expect_no_diagnostics();
}

int main(void)
{
    for (int run = 0; run < RUNS; run++) {
        int status;
        pid_t pid = fork();

        CHECK(pid >= 0, "no process");
        if (pid == 0) {
            child((enum run)run);
            _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status), "%s: status %#x", names[run],
              (unsigned)status);
        CHECK((WEXITSTATUS(status) == 0) == (run == KEEPS_THE_RULES), "%s ended with %d",
              names[run], WEXITSTATUS(status));
    }
    return 0;
}
