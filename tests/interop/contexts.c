/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: the device can be opened more than once at a time and again after it was closed; contexts
 * share nothing but the wire; a fork in the middle of traffic, whatever the child does with what it
 * inherits, leaves the parent alone, and the child can open the device for itself.
 */
#include "rc_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* With RDMAV_FORK_SAFE=1 a child lacks memory that the leak search of its exit would walk through.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

enum { BYTES = 4096, FIRST_FILE = 3 };

static void check_works(struct rc_pair *pair, uint64_t seed)
{
    rc_fill(pair->a.buffer, BYTES, seed, 0);
    rc_post_recv(&pair->b, seed, BYTES, BYTES);
    rc_post(&pair->a, &pair->b, IBV_WR_RDMA_WRITE, 1, 0, 0, BYTES, IBV_SEND_SIGNALED);
    rc_post(&pair->a, &pair->b, IBV_WR_SEND, 2, 0, 0, BYTES, IBV_SEND_SIGNALED);
    rc_expect(pair->a.send_cq, &pair->a, 1, IBV_WC_RDMA_WRITE);
    rc_expect(pair->a.send_cq, &pair->a, 2, IBV_WC_SEND);
    rc_expect(pair->b.recv_cq, &pair->b, seed, IBV_WC_RECV);
    rc_verify(pair->b.buffer, BYTES, seed, 0, "written");
    rc_verify(pair->b.buffer + BYTES, BYTES, seed, 0, "sent");
}

static void two_at_once(void)
{
    struct rc_options options = rc_defaults();
    struct rc_pair one, two;
    struct ibv_send_wr wr = {.wr_id = 9, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    struct ibv_sge sge;

    rc_start(&one, &options);
    rc_start(&two, &options);
    CHECK(one.context != two.context, "one context twice");
    for (uint64_t i = 0; i < 100; i++) {
        check_works(&one, i);
        check_works(&two, 1000 + i);
    }
    /* The keys of one context mean nothing in the other. */
    sge = rc_sge(&one.a, 0, 8);
    wr.sg_list = &sge;
    wr.wr.rdma.remote_addr = (uintptr_t)one.b.buffer;
    wr.wr.rdma.rkey = two.b.mr->rkey;
    rc_post_chain(&one.a, &wr);
    rc_expect_error(one.a.send_cq, &one.a, 9, IBV_WC_REM_ACCESS_ERR);
    check_works(&two, 5);
    rc_destroy(&one);
    check_works(&two, 6);
    rc_destroy(&two);
}

/* Queue pairs of two contexts reach each other as any two of the device do. */
static void across_contexts(void)
{
    struct rc_options options = rc_defaults();
    struct rc_pair one, two;
    struct rc_pair crossed;

    rc_create(&one, NULL, &options);
    rc_create(&two, NULL, &options);
    crossed = one;
    crossed.b = two.b;
    rc_connect(&crossed);
    for (uint64_t i = 0; i < 100; i++)
        check_works(&crossed, i);
    rc_destroy(&one);
    rc_destroy(&two);
}

static void again_and_again(void)
{
    for (uint64_t i = 0; i < 30; i++) {
        struct rc_options options = rc_defaults();
        struct rc_pair pair;

        rc_start(&pair, &options);
        check_works(&pair, i);
        rc_destroy(&pair);
    }
    for (int i = 0; i < 20; i++)
        CHECK(ibv_close_device(rc_open()) == 0, "ibv_close_device failed");
}

/* What a forked child may do; it ends with a status that says whether that went well. */
enum child {
    EXITS_AT_ONCE,
    EXITS_IN_FULL,
    CLOSES_ALL_FILES,
    EXECUTES,
    IS_KILLED,
    OPENS_THE_DEVICE
};

static void be_child(enum child what)
{
    struct rc_options options = rc_defaults();
    struct rc_pair pair;

    alarm(60);
    switch (what) {
    case EXITS_AT_ONCE:
        _exit(0);
    case EXITS_IN_FULL:
        exit(0);
    case CLOSES_ALL_FILES:
        for (int fd = FIRST_FILE; fd < 256; fd++)
            close(fd);
        _exit(0);
    case EXECUTES:
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    case IS_KILLED:
        raise(SIGKILL);
        _exit(1);
    case OPENS_THE_DEVICE:
        rc_start(&pair, &options);
        check_works(&pair, 77);
        rc_destroy(&pair);
        _exit(0);
    }
}

static void fork_in_the_middle(enum child what)
{
    struct rc_options options = rc_defaults();
    struct rc_pair pair;
    pid_t child;
    int status;

    options.buffer_bytes = 1 << 20;
    rc_start(&pair, &options);
    check_works(&pair, 1);
    rc_fill(pair.a.buffer, 1 << 20, 3, 0);
    /* Some requests are under way, and some wait for a receive, as the process splits. */
    for (uint64_t i = 0; i < 20; i++)
        rc_post(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, i, 0, 0, 1 << 20, IBV_SEND_SIGNALED);
    rc_post(&pair.a, &pair.b, IBV_WR_SEND, 20, 0, 0, 8, IBV_SEND_SIGNALED);
    fflush(NULL);
    child = fork();
    CHECK(child >= 0, "fork: %s", strerror(errno));
    if (child == 0)
        be_child(what);
    for (uint64_t i = 0; i < 20; i++)
        rc_expect(pair.a.send_cq, &pair.a, i, IBV_WC_RDMA_WRITE);
    rc_post_recv(&pair.b, 21, 0, 8);
    rc_expect(pair.a.send_cq, &pair.a, 20, IBV_WC_SEND);
    rc_expect(pair.b.recv_cq, &pair.b, 21, IBV_WC_RECV);
    CHECK(waitpid(child, &status, 0) == child, "waitpid: %s", strerror(errno));
    if (what == IS_KILLED)
        CHECK(WIFSIGNALED(status), "child %d ended with status 0x%x", (int)what, status);
    else
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child %d ended with status 0x%x",
              (int)what, status);
    for (uint64_t i = 0; i < 20; i++)
        check_works(&pair, i);
    rc_destroy(&pair);
    /* Opening anew needs what the first opening made, the sysfs directory among it. */
    rc_start(&pair, &options);
    check_works(&pair, 1);
    rc_destroy(&pair);
}

int main(void)
{
    int last;

    two_at_once();
    across_contexts();
    again_and_again();
    /* ThreadSanitizer cannot bear a thread that is started in a forked child. */
    last = RC_THREAD_SANITIZED ? IS_KILLED : OPENS_THE_DEVICE;
    for (int what = EXITS_AT_ONCE; what <= last; what++) {
        printf("fork, child %d\n", what);
        fork_in_the_middle((enum child)what);
    }
    return 0;
}
