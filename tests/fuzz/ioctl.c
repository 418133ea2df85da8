/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the adapter's RDMA_VERBS_IOCTL on a descriptor that open("/dev/infiniband/uverbs0") gave.
 * The input is a list of calls. Each starts as a right one of its kind, over the newest objects;
 * the input then leaves attributes out, changes lengths, handles, numbers and bytes. Every buffer
 * has exactly the length that its attribute states, so that AddressSanitizer sees one byte too
 * many. Buffers exist: the adapter lives in the program, and faults on a wild pointer as it would.
 *
 * Each call must end with a sensible errno (never ENOTTY, which would turn ioctls off); a refused
 * one must not have marked objects as made; closing the descriptor leaves nothing behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <adapter/process.h>
#include <core/engine.h>

#include "ioctl_calls.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* ---- Spoiling a call ---- */

static void spoil(struct input *input)
{
    for (uint32_t n = (uint32_t)take(input, 1) % 8; n > 4 && call.count > 0; n--) {
        struct attr *attr = &call.attrs[take(input, 1) % call.count];
        uint32_t what = (uint32_t)take(input, 1);
        switch (what % 4) {
        case 0: /* gone */
            *attr = call.attrs[--call.count];
            break;
        case 1: /* of another length; a new byte is 0 */
            if (attr->fixed || attr->is_number)
                break;
            attr->bytes =
                (uint32_t)take(input, 2) % (what & 4 ? 64u : (uint32_t)sizeof(attr->value));
            break;
        case 2:
            attr->number ^= take(input, what & 4 ? 8 : 1);
            break;
        default:
            if (attr->bytes > attr->fixed) {
                uint32_t at = (uint32_t)take(input, 2) % (attr->bytes - attr->fixed);
                attr->value[attr->fixed + at] ^= (uint8_t)take(input, 1);
            }
            break;
        }
    }
}

/* ---- Making the call ---- */

static int fds[64];
static uint32_t fd_count;

static const struct attr *find(uint16_t id)
{
    for (uint32_t i = 0; i < call.count; i++)
        if (call.attrs[i].id == id)
            return &call.attrs[i];
    return NULL;
}

/* The four bytes at `at` of what was answered; 0 when there is no such answer. */
static uint32_t answered(uint16_t id, uint32_t at)
{
    const struct attr *attr = find(id);
    uint32_t value = 0;
    if (attr && attr->is_out && attr->bytes >= at + 4)
        memcpy(&value, attr->buffer + at, 4);
    return value;
}

static uint32_t answered_prm(uint16_t id, uint32_t at)
{
    return __builtin_bswap32(answered(id, at)) & 0xffffff;
}

static void keep_fd(enum object object, uint64_t fd)
{
    newest[object] = fd;
    CHECK(fd_count < sizeof(fds) / sizeof(fds[0]));
    fds[fd_count++] = (int)fd;
}

static uint64_t number_of(const struct ib_uverbs_ioctl_hdr *header, uint16_t id)
{
    for (uint32_t i = 0; i < header->num_attrs; i++)
        if (header->attrs[i].attr_id == id)
            return header->attrs[i].data;
    return 0;
}

/* What a call that succeeded made. */
static void remember(const struct ib_uverbs_ioctl_hdr *header, uint64_t command)
{
    uint32_t kind = (uint32_t)call.object << 16 | call.method;
    if (kind == ((uint32_t)UVERBS_OBJECT_DEVICE << 16 | UVERBS_METHOD_INVOKE_WRITE)) {
        if (command == IB_USER_VERBS_CMD_ALLOC_PD) {
            newest[PD] = answered(UVERBS_ATTR_CORE_OUT, 0);
            newest[PDN] = answered(UVERBS_ATTR_UHW_OUT, 0);
        } else if (command == IB_USER_VERBS_CMD_REG_MR) {
            newest[MR] = answered(UVERBS_ATTR_CORE_OUT, 0);
        } else if (command == IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL) {
            CHECK(find(UVERBS_ATTR_CORE_OUT)->bytes >= 4);
            keep_fd(CHANNEL, answered(UVERBS_ATTR_CORE_OUT, 0));
        }
    } else if (kind ==
               ((uint32_t)UVERBS_OBJECT_ASYNC_EVENT << 16 | UVERBS_METHOD_ASYNC_EVENT_ALLOC)) {
        keep_fd(ASYNC, number_of(header, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE));
    } else if (kind == ((uint32_t)UVERBS_OBJECT_CQ << 16 | UVERBS_METHOD_CQ_CREATE)) {
        newest[CQ] = number_of(header, UVERBS_ATTR_CREATE_CQ_HANDLE);
        newest[CQN] = answered(UVERBS_ATTR_UHW_OUT, 0);
    } else if (kind == ((uint32_t)UVERBS_OBJECT_QP << 16 | UVERBS_METHOD_QP_CREATE)) {
        newest[QP] = number_of(header, UVERBS_ATTR_CREATE_QP_HANDLE);
        newest[QPN] = answered(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 0);
    } else if (kind == ((uint32_t)MLX5_IB_OBJECT_DEVX_UMEM << 16 | MLX5_IB_METHOD_DEVX_UMEM_REG)) {
        newest[UMEM] = answered(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, 0);
        newest[UMEM_HANDLE] = number_of(header, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE);
    } else if (kind == ((uint32_t)MLX5_IB_OBJECT_UAR << 16 | MLX5_IB_METHOD_UAR_OBJ_ALLOC)) {
        newest[UAR] = answered(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, 0);
        newest[UAR_HANDLE] = number_of(header, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE);
    } else if (kind == ((uint32_t)MLX5_IB_OBJECT_DEVX_OBJ << 16 | MLX5_IB_METHOD_DEVX_OBJ_CREATE)) {
        bool is_qp = find(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN)->buffer[0] == 5;
        newest[is_qp ? DEVX_QP : DEVX_CQ] = number_of(header, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE);
        newest[is_qp ? QPN : CQN] = answered_prm(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, 8);
    }
}

static void perform(int fd, struct input *input)
{
    static const int errors[] = {EINVAL,    EFAULT, EOPNOTSUPP,      ENOMEM, EBUSY,  ENOSPC,
                                 EREMOTEIO, ENOENT, EPROTONOSUPPORT, EBADF,  EMFILE, ENODATA};
    uint64_t
        storage[(sizeof(struct ib_uverbs_ioctl_hdr) + MOST_ATTRS * sizeof(struct ib_uverbs_attr)) /
                8];
    struct ib_uverbs_ioctl_hdr *header = (void *)storage;
    uint64_t command = UINT64_MAX;
    uint32_t spoiled = (uint32_t)take(input, 1);

    memset(storage, 0, sizeof(storage));
    header->object_id = call.object;
    header->method_id = call.method;
    header->num_attrs = (uint16_t)call.count;
    header->length = (uint16_t)(sizeof(*header) + call.count * sizeof(header->attrs[0]));
    header->driver_id = RDMA_DRIVER_MLX5;
    for (uint32_t i = 0; i < call.count; i++) {
        struct attr *attr = &call.attrs[i];
        struct ib_uverbs_attr *out = &header->attrs[i];
        attr->buffer = malloc(attr->bytes);
        CHECK(attr->buffer || attr->bytes == 0);
        if (attr->bytes && attr->is_out)
            memset(attr->buffer, 0xa5, attr->bytes);
        else if (attr->bytes)
            memcpy(attr->buffer, attr->value, attr->bytes);
        out->attr_id = attr->id;
        out->len = (uint16_t)attr->bytes;
        out->flags = spoiled & 1 ? 0 : UVERBS_ATTR_F_MANDATORY;
        if (attr->is_number)
            out->data = attr->number;
        else if (attr->is_out || attr->bytes > 8)
            out->data = (uintptr_t)attr->buffer;
        else
            memcpy(&out->data, attr->value, attr->bytes);
        if (attr->id == UVERBS_ATTR_WRITE_CMD && call.object == UVERBS_OBJECT_DEVICE)
            command = out->data;
    }
    if (spoiled > 250)
        ((uint8_t *)storage)[spoiled % 24] ^= (uint8_t)take(input, 1);

    int failed = ioctl(fd, RDMA_VERBS_IOCTL, header);
    bool known = !failed;
    for (size_t i = 0; failed && i < sizeof(errors) / sizeof(errors[0]); i++)
        known |= errno == errors[i];
    if (!known)
        fprintf(stderr, "object 0x%x, method 0x%x: %s\n", call.object, call.method,
                strerror(errno));
    CHECK(known);
    if (!failed && spoiled <= 250)
        remember(header, command);
    for (uint32_t i = 0; i < call.count; i++)
        free(call.attrs[i].buffer);
}

/* ---- What is left behind ---- */

struct left {
    uint32_t pds, uars, keys;
};

static struct left count_left(void)
{
    struct left left = {0, 0, 0};
    pthread_mutex_lock(&soft_lock);
    struct nic *nic = nic_hold(soft_device());
    for (uint32_t i = 0; i < NIC_MAX_PDS; i++) {
        left.pds += nic->pd_used[i];
        left.keys += nic->pd_users[i];
    }
    for (uint32_t i = 0; i < NIC_UAR_PAGES; i++) {
        left.uars += nic->uar_handed[i];
        CHECK(nic->first_on_uar[i] == 0 && nic->first_cq_on_uar[i] == 0);
    }
    nic_release(soft_device());
    pthread_mutex_unlock(&soft_lock);
    return left;
}

static int open_device(void)
{
    int fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct input empty = {NULL, 0};
    (void)argc;
    (void)argv;
    setenv("SOFTNIC", "on", 1);
    uint8_t *gap =
        mmap(NULL, 1u << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(gap != MAP_FAILED);
    arena = gap + (1u << 29);
    CHECK(mprotect(arena, ARENA_BYTES, PROT_READ | PROT_WRITE) == 0);
    /* Holds the device, so that it does not stop between inputs. */
    int fd = open_device();
    get_context(&empty);
    perform(fd, &empty);
    return 0;
}

/* What most inputs start with: the context, and one object of each kind. */
static void (*const usual[])(struct input *) = {
    get_context, alloc_pd,  uar_alloc,     umem_reg,      create_channel,
    alloc_async, create_cq, prm_create_cq, prm_create_qp, create_qp,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct input input = {data, bytes}, empty = {NULL, 0};
    struct left before = count_left();
    int fd = open_device();

    memset(newest, 0, sizeof(newest));
    fd_count = 0;
    uint64_t with = take(&input, 1);
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]) && with & (i == 0 ? 0xf : 0x30); i++) {
        usual[i](&empty);
        perform(fd, &empty);
    }
    for (int i = 0; i < 60 && input.left > 0; i++) {
        builders[take(&input, 1) % (sizeof(builders) / sizeof(builders[0]))](&input);
        spoil(&input);
        perform(fd, &input);
    }
    bool first = take(&input, 1) & 1;
    if (first)
        CHECK(close(fd) == 0);
    while (fd_count > 0)
        CHECK(close(fds[--fd_count]) == 0);
    if (!first)
        CHECK(close(fd) == 0);
    struct left after = count_left();
    CHECK(before.pds == after.pds && before.uars == after.uars && before.keys == after.keys);
    return 0;
}
