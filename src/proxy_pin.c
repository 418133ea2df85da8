/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which CPU each worker of a proxy runs on. hwloc, where the build found it, knows the cores, their
 * hardware threads and the NUMA nodes; without it every CPU counts as a core, and none as near.
 */
#include <errno.h>
#include <sched.h>

#ifdef DOORBELL_HWLOC
#include <hwloc.h>
#endif

#include "device.h"
#include "proxy.h"

/* Beside the workers there are the producers, where CPU threads play them, and the device, where it
 * is a software one: two more threads that poll. */
bool db_proxy_is_crowded(const struct db_proxy *proxy)
{
    cpu_set_t usable;
    uint32_t cpus =
        sched_getaffinity(0, sizeof(usable), &usable) ? 1 : (uint32_t)CPU_COUNT(&usable);

    return cpus < proxy->worker_count + 2;
}

#ifdef DOORBELL_HWLOC

/* Fills `cpus` with one usable CPU of each core of the node, last ones first: the first cores serve
 * the kernel's interrupts. Returns how many there are. */
static uint32_t usable_cores(int node, int *cpus, uint32_t capacity)
{
    hwloc_topology_t topology;
    uint32_t count = 0;

    if (hwloc_topology_init(&topology))
        return 0;
    hwloc_bitmap_t usable = hwloc_bitmap_alloc();
    if (!usable || hwloc_topology_load(topology) ||
        hwloc_get_cpubind(topology, usable, HWLOC_CPUBIND_PROCESS))
        goto out;
    hwloc_obj_t near =
        node < 0 ? NULL : hwloc_get_numanode_obj_by_os_index(topology, (unsigned)node);
    if (near && hwloc_bitmap_intersects(usable, near->cpuset))
        hwloc_bitmap_and(usable, usable, near->cpuset);
    for (int i = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE); i-- > 0 && count < capacity;) {
        hwloc_obj_t core = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, (unsigned)i);
        hwloc_bitmap_and(core->cpuset, core->cpuset, usable);
        if (!hwloc_bitmap_iszero(core->cpuset))
            cpus[count++] = hwloc_bitmap_first(core->cpuset);
    }
out:
    hwloc_bitmap_free(usable);
    hwloc_topology_destroy(topology);
    return count;
}

#else

static uint32_t usable_cores(int node, int *cpus, uint32_t capacity)
{
    cpu_set_t usable;
    uint32_t count = 0;

    (void)node;
    if (sched_getaffinity(0, sizeof(usable), &usable))
        return 0;
    for (int cpu = CPU_SETSIZE; cpu-- > 0 && count < capacity;)
        if (CPU_ISSET((size_t)cpu, &usable))
            cpus[count++] = cpu;
    return count;
}

#endif

void db_proxy_choose_cpus(struct db_proxy *proxy)
{
    const struct db_proxy_attr *attr = &proxy->attr;
    int cpus[DB_MAX_WORKERS];
    uint32_t count = 0;

    /* A worker that shares its core is better off where the scheduler puts it. */
    if (attr->pin == DB_PIN_NEAR_NIC && !db_proxy_is_crowded(proxy))
        count = usable_cores(proxy->device->numa_node, cpus, proxy->worker_count);
    for (uint32_t i = 0; i < proxy->worker_count; i++) {
        proxy->workers[i].cpu = i < count ? cpus[i] : -1;
        if (attr->pin == DB_PIN_CPUS)
            proxy->workers[i].cpu = (int)attr->cpus[i];
    }
}

int db_pin_thread(int cpu)
{
    cpu_set_t one;

    if (cpu < 0)
        return 0;
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    return -pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
}
