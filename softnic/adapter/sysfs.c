/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stand-in for /sys/class/infiniband* (sysfs.h): a private directory of small files under
 * TMPDIR, made when a program first looks for RDMA devices and removed when it exits. The process
 * holds a lock on the directory while it lives, so that the next one can tell a directory whose
 * owner was killed, in whatever PID namespace, and remove it.
 */
#include "sysfs.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>

#include "identity.h"
#include "process.h"
#include "real.h"

#define PREFIX SOFTNIC_DEVICE_NAME "-sysfs-"
#define RANDOM "XXXXXX" /* mkdtemp() puts as many characters in its place */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char path[PATH_MAX];
static bool made;
static int held = -1; /* descriptor that holds the lock; -1: the directory is not ours */

static const char *temporary_directory(void)
{
    const char *directory = secure_getenv("TMPDIR");

    return directory != NULL && directory[0] == '/' ? directory : "/tmp";
}

static int remove_entry(const char *name, const struct stat *status, int type, struct FTW *where)
{
    (void)status;
    (void)type;
    (void)where;
    return remove(name);
}

static void remove_tree(const char *directory)
{
    nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* Opens a directory of ours and locks it; -1 when another process has the lock. */
static int lock_directory(const char *directory)
{
    int fd = REAL(open)(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        REAL(close)(fd);
        fd = -1;
    }
    return fd;
}

/* True when nothing is in the directory but what put() makes there. */
static bool holds_ours_alone(int fd)
{
    int copy = REAL(fcntl)(fd, F_DUPFD_CLOEXEC, 0);
    DIR *directory = copy >= 0 ? fdopendir(copy) : NULL;
    bool ours = directory != NULL;

    if (directory == NULL && copy >= 0)
        REAL(close)(copy);
    for (struct dirent *entry; ours && (entry = readdir(directory)) != NULL;)
        ours = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
               strcmp(entry->d_name, "class") == 0;
    if (directory != NULL)
        closedir(directory);
    return ours;
}

/* Removes what processes of this user that were killed left behind, and nothing that only looks
 * like it. */
static void sweep(const char *parent)
{
    DIR *directory = REAL(opendir)(parent);
    char name[PATH_MAX];
    struct stat status;

    if (directory == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0 ||
            strlen(entry->d_name) != strlen(PREFIX RANDOM))
            continue;
        if (snprintf(name, sizeof(name), "%s/%s", parent, entry->d_name) >= (int)sizeof(name))
            continue;
        if (REAL(lstat)(name, &status) != 0 || !S_ISDIR(status.st_mode) ||
            (status.st_mode & 0777) != 0700 || status.st_uid != geteuid())
            continue;
        int fd = lock_directory(name);
        if (fd >= 0 && holds_ours_alone(fd))
            remove_tree(name);
        if (fd >= 0)
            REAL(close)(fd);
    }
    closedir(directory);
}

/* Makes the directory and takes its lock. A sweep by another process may take it in between: then
 * it is made again. */
static int make_root(void)
{
    const char *parent = temporary_directory();
    struct stat status;

    sweep(parent);
    for (int attempt = 0; attempt < 10; attempt++) {
        if (snprintf(path, sizeof(path), "%s/" PREFIX RANDOM, parent) >= (int)sizeof(path))
            return -ENAMETOOLONG;
        if (mkdtemp(path) == NULL)
            return -errno;
        held = lock_directory(path);
        if (held >= 0 && REAL(fstat)(held, &status) == 0 && status.st_nlink > 0)
            return 0;
        if (held >= 0)
            REAL(close)(held);
        held = -1;
    }
    return -EAGAIN;
}

/* Makes the directories that lead to `name`, which is below the root. */
static int make_parents(char *name)
{
    for (char *slash = name + strlen(path) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        if (mkdir(name, 0700) != 0 && errno != EEXIST)
            return -errno;
        *slash = '/';
    }
    return 0;
}

/* Writes one file below the root; its name and its text are a format each with `index`. */
static int put(const char *name, unsigned index, const char *text)
{
    char full[PATH_MAX + 128];
    FILE *file;
    int error, length;

    length = snprintf(full, sizeof(full), "%s/class/", path);
    snprintf(full + length, sizeof(full) - (size_t)length, name, index);
    error = make_parents(full);
    if (error != 0)
        return error;
    file = REAL(fopen)(full, "we");
    if (file == NULL)
        return -errno;
    fprintf(file, "%s\n", text);
    return fclose(file) == 0 ? 0 : -errno;
}

static int put_gid(unsigned index)
{
    const struct nic_roce_address *address = nic_roce_address(index);
    char text[48];
    int length = 0, error;

    for (int i = 0; i < 16; i += 2)
        length += snprintf(text + length, sizeof(text) - (size_t)length, "%s%02x%02x",
                           i == 0 ? "" : ":", address->gid[i], address->gid[i + 1]);
    error = put("infiniband/" SOFTNIC_DEVICE_NAME "/ports/1/gids/%u", index, text);
    if (error == 0)
        error = put("infiniband/" SOFTNIC_DEVICE_NAME "/ports/1/gid_attrs/types/%u", index,
                    address->version == M5_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1");
    if (error == 0 && soft_gid_netdev(index) != NULL)
        error = put("infiniband/" SOFTNIC_DEVICE_NAME "/ports/1/gid_attrs/ndevs/%u", index,
                    soft_gid_netdev(index));
    return error;
}

static int fill(void)
{
#define VERBS  "infiniband_verbs/"
#define DEVICE "infiniband/" SOFTNIC_DEVICE_NAME "/"
    static const struct {
        const char *name;
        const char *text;
    } files[] = {
        {VERBS "abi_version", "6"},
        {VERBS SOFT_UVERBS_NAME "/ibdev", SOFTNIC_DEVICE_NAME},
        {VERBS SOFT_UVERBS_NAME "/abi_version", "1"},
        {VERBS SOFT_UVERBS_NAME "/dev", "231:192"},
        {DEVICE "node_type", "1: CA"},
        {DEVICE "node_guid", SOFT_GUID_TEXT},
        {DEVICE "sys_image_guid", SOFT_GUID_TEXT},
        {DEVICE "node_desc", "software ConnectX (Doorbell)"},
        {DEVICE "board_id", SOFT_BOARD_ID},
        {DEVICE "fw_ver", "28.99.0001"},
        {DEVICE "hca_type", "MT4129"},
        {DEVICE "device/modalias", "pci:v000015B3d00001021sv000015B3sd00000023bc02sc00i00"},
        {DEVICE "device/vendor", "0x15b3"},
        {DEVICE "device/device", "0x1021"},
        {DEVICE "device/class", "0x020000"},
        {DEVICE "device/numa_node", "-1"},
        {DEVICE "ports/1/state", "4: ACTIVE"},
        {DEVICE "ports/1/phys_state", "5: LinkUp"},
        {DEVICE "ports/1/link_layer", "Ethernet"},
        {DEVICE "ports/1/rate", SOFT_RATE_TEXT},
        {DEVICE "ports/1/lid", "0x0"},
        {DEVICE "ports/1/lid_mask_count", "0"},
        {DEVICE "ports/1/sm_lid", "0x0"},
        {DEVICE "ports/1/sm_sl", "0"},
        {DEVICE "ports/1/cap_mask", "0x04010000"},
        {DEVICE "ports/1/pkeys/0", "0xffff"},
    };
#undef VERBS
#undef DEVICE
    int error = 0;

    for (size_t i = 0; error == 0 && i < sizeof(files) / sizeof(files[0]); i++)
        error = put(files[i].name, 0, files[i].text);
    for (unsigned index = 0; error == 0 && index < SOFT_GIDS; index++)
        error = put_gid(index);
    return error;
}

const char *soft_sysfs_path(void)
{
    int error = 0;

    pthread_mutex_lock(&lock);
    if (made && held < 0 && REAL(access)(path, F_OK) != 0)
        made = false; /* it was the parent's, which is gone */
    if (!made) {
        error = make_root();
        if (error == 0)
            error = fill();
        if (error == 0)
            made = true;
    }
    pthread_mutex_unlock(&lock);
    if (error != 0) {
        fprintf(stderr,
                "softnic: cannot describe the software device in a directory of %s: %s; set TMPDIR "
                "to a directory that can be written\n",
                temporary_directory(), strerror(-error));
        soft_sysfs_remove();
        return NULL;
    }
    return path;
}

void soft_sysfs_remove(void)
{
    pthread_mutex_lock(&lock);
    if (held >= 0) {
        remove_tree(path);
        REAL(close)(held);
    }
    held = -1;
    made = false;
    pthread_mutex_unlock(&lock);
}

void soft_sysfs_lock(void)
{
    pthread_mutex_lock(&lock);
}

void soft_sysfs_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void soft_sysfs_abandon(void)
{
    if (held >= 0)
        REAL(close)(held);
    held = -1;
}
