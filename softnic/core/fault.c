/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults of the engine's accesses to program memory; see fault.h.
 */
#include "fault.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "doorbell.h"

static _Thread_local struct nic_guard *thread_guard;
static int caught; /* 1 once the handlers are installed */

/* Where faults of the program's own go, by signal. Two copies: a handler may read one while another
 * thread replaces it, and `current` says which is whole. */
static struct {
    struct sigaction action[2];
    int current;
} others[2];
static pthread_mutex_t others_lock = PTHREAD_MUTEX_INITIALIZER;

static void set_other(int number, const struct sigaction *action)
{
    int which = number == SIGBUS;
    int next = !__atomic_load_n(&others[which].current, __ATOMIC_RELAXED);
    others[which].action[next] = *action;
    __atomic_store_n(&others[which].current, next, __ATOMIC_RELEASE);
}

static struct sigaction get_other(int number)
{
    int which = number == SIGBUS;
    return others[which].action[__atomic_load_n(&others[which].current, __ATOMIC_ACQUIRE)];
}

bool nic_catches_faults(int number)
{
    return (number == SIGSEGV || number == SIGBUS) && __atomic_load_n(&caught, __ATOMIC_ACQUIRE);
}

void nic_other_faults(int number, const struct sigaction *action, struct sigaction *old)
{
    struct sigaction before = get_other(number);
    if (action) {
        pthread_mutex_lock(&others_lock);
        set_other(number, action);
        pthread_mutex_unlock(&others_lock);
    }
    if (old)
        *old = before;
}

/* The access faults again on return, and then has the signal's default effect. The system call
 * itself, since sigaction() is stood in front of. */
static void die_by(int number)
{
    unsigned long kernel_default[4] = {0};
    syscall(SYS_rt_sigaction, number, kernel_default, NULL, sizeof(kernel_default[0]));
}

static void pass_on(int number, siginfo_t *info, void *context)
{
    struct sigaction other = get_other(number);
    bool wants_info = other.sa_flags & SA_SIGINFO;
    if (!wants_info && (other.sa_handler == SIG_DFL || other.sa_handler == SIG_IGN)) {
        die_by(number);
        return;
    }
    sigset_t before;
    if (!(other.sa_flags & SA_NODEFER))
        sigaddset(&other.sa_mask, number);
    pthread_sigmask(SIG_BLOCK, &other.sa_mask, &before);
    if (wants_info)
        other.sa_sigaction(number, info, context);
    else
        other.sa_handler(number);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    struct nic_guard *guard = thread_guard;
    if (!guard || guard->nic->touching == NIC_TOUCH_NOTHING) {
        pass_on(number, info, context);
        return;
    }
    /* Sanitizers run handlers with signals blocked, and the jump restores no mask. */
    sigset_t faults;
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    sigaddset(&faults, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
    guard->address = info->si_addr;
    siglongjmp(guard->resume, 1);
}

static int catch_error;

static void catch_once(void)
{
    /* SA_NODEFER: the handler is left by siglongjmp(), which restores no mask here. */
    struct sigaction action = {
        .sa_sigaction = on_fault,
        .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK,
    };
    struct sigaction segv, bus;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGSEGV, NULL, &segv) || sigaction(SIGBUS, NULL, &bus)) {
        catch_error = -errno;
        return;
    }
    set_other(SIGSEGV, &segv);
    set_other(SIGBUS, &bus);
    if (sigaction(SIGSEGV, &action, NULL) || sigaction(SIGBUS, &action, NULL))
        catch_error = -errno;
    else
        __atomic_store_n(&caught, 1, __ATOMIC_RELEASE);
}

int nic_catch_faults(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, catch_once);
    return catch_error;
}

void nic_guard_thread(struct nic_guard *guard)
{
    thread_guard = guard;
}

bool nic_try_store32(struct nic *nic, uint32_t *word, uint32_t value)
{
    struct nic_guard guard = {.nic = nic};
    bool volatile stored = false;
    if (sigsetjmp(guard.resume, 0) == 0) {
        nic_guard_thread(&guard);
        nic_touch(nic, NIC_TOUCH_CQ);
        port_st32(word, value, PORT_RELAXED, PORT_SYSTEM);
        stored = true;
    }
    nic_touch(nic, NIC_TOUCH_NOTHING);
    nic_guard_thread(NULL);
    return stored;
}

/* Is it one of the requester's own ranges that is gone? */
static bool is_local(const struct nic_work *work, const void *address)
{
    const uint8_t *at = address;
    for (uint32_t i = 0; i < work->ranges; i++)
        if (at >= work->range[i].at && at < work->range[i].at + work->range[i].bytes)
            return true;
    return false;
}

/* The requester's WQE is not retired: without this nothing would make the device look at it. Its
 * peer is in error by then, so that it retries in vain and ends with that error. */
static void look_again(struct nic *nic, struct nic_qp *qp)
{
    if (qp->qpn == 0)
        return;
    qp->recheck = 1;
    nic_watch(nic, qp);
}

/* A CQ's memory is gone, and with it a CQE of the requester at work or of its peer. */
static void lose_cq(struct nic *nic, struct nic_qp *qp, struct nic_qp *peer)
{
    uint32_t cqn = nic->touching_cqn;
    if (!nic->cqs[cqn].failed)
        nic_cq_fail(nic, &nic->cqs[cqn]);
    if (peer && (peer->send_cqn == cqn || peer->recv_cqn == cqn))
        nic_qp_fatal(nic, peer);
    if (qp->qpn && (qp->send_cqn == cqn || qp->recv_cqn == cqn))
        nic_qp_fatal(nic, qp);
    look_again(nic, qp);
}

static void settle(struct nic *nic, const void *address)
{
    uint32_t touched = nic->touching;
    struct nic_qp *qp = &nic->qps[nic->touching_id];
    struct nic_qp *peer = nic_peer(nic, qp);
    nic->touching = NIC_TOUCH_NOTHING;
    nic->counters.memory_faults++;

    if (touched == NIC_TOUCH_CQ) {
        lose_cq(nic, qp, peer);
        return;
    }
    if (touched == NIC_TOUCH_SEND_RING) {
        qp->sq = NULL; /* nothing can be fetched from it any more */
        nic_qp_fatal(nic, qp);
        return;
    }
    if (touched == NIC_TOUCH_RECV_RING) {
        struct nic_qp *owner = qp->state == NIC_QP_ERR || !peer ? qp : peer;
        owner->rq = NULL;
        nic_qp_fatal(nic, owner);
        look_again(nic, qp);
        return;
    }
    uint32_t syndrome = M5_SYN_LOCAL_PROTECTION;
    if (!is_local(&nic->work, address) && peer) {
        syndrome = M5_SYN_REMOTE_ACCESS;
        if (touched == NIC_TOUCH_MESSAGE) {
            struct nic_completion done = {
                .opcode = M5_CQE_RESPONDER_ERROR,
                .syndrome = M5_SYN_LOCAL_PROTECTION,
            };
            syndrome = M5_SYN_REMOTE_OPERATION;
            nic_retire_receive(nic, peer, &done);
        } else {
            nic_refuse(nic, peer, NIC_EVENT_QP_ACCESS_ERR, syndrome);
        }
    }
    qp->stall = NIC_RUNNING;
    nic_retire_send(nic, qp, syndrome);
}

void nic_settle_fault(struct nic *nic, const void *address)
{
    settle(nic, address);
    nic_look_everywhere(nic); /* may fault again, but each time fewer have memory */
}
