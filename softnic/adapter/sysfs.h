/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The directory that stands in for /sys/class/infiniband and /sys/class/infiniband_verbs while the
 * software device is in use.
 *
 * Included by libc_path.c, which leads programs to it, and by process.c. The files are those that
 * libibverbs, libmlx5 and others that look for RDMA devices read.
 */
#ifndef SOFTNIC_ADAPTER_SYSFS_H
#define SOFTNIC_ADAPTER_SYSFS_H

/* The directory's path, made on the first call; NULL when it cannot be made (said on standard
 * error). It holds class/infiniband and class/infiniband_verbs. */
const char *soft_sysfs_path(void);

/* Removes the directory, if this process made it. */
void soft_sysfs_remove(void);

/* For fork: the child uses the parent's directory while it is there, but does not remove it. */
void soft_sysfs_lock(void);
void soft_sysfs_unlock(void);
void soft_sysfs_abandon(void);

#endif
