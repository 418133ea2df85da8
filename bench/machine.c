/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the machine's state from /proc and /sys. Nothing here fails: what a machine does not tell
 * is reported as unknown.
 */
#include "machine.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Reads the first line of a small file without its newline; leaves "" when that fails. */
static void read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "re");

    line[0] = '\0';
    if (!file)
        return;
    if (!fgets(line, (int)size, file))
        line[0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    fclose(file);
}

/* The value of a "key : value" line of /proc/cpuinfo, or NULL when the line has another key. */
static const char *cpuinfo_value(char *line, const char *key)
{
    char *colon = strchr(line, ':');

    if (!colon || strncmp(line, key, strlen(key)) != 0)
        return NULL;
    if (strspn(line + strlen(key), " \t") != (size_t)(colon - line) - strlen(key))
        return NULL;
    colon[1 + strcspn(colon + 1, "\n")] = '\0';
    return colon + 1 + strspn(colon + 1, " \t");
}

static void read_cpuinfo(struct bench_machine *machine)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[4096];
    long highest_socket = 0;

    while (file && fgets(line, sizeof(line), file)) {
        const char *value = cpuinfo_value(line, "model name");
        if (value && machine->cpu_model[0] == '\0')
            snprintf(machine->cpu_model, sizeof(machine->cpu_model), "%s", value);
        value = cpuinfo_value(line, "physical id");
        if (value && strtol(value, NULL, 10) > highest_socket)
            highest_socket = strtol(value, NULL, 10);
    }
    if (file)
        fclose(file);
    machine->sockets = (unsigned)highest_socket + 1;
}

unsigned bench_cpus_allowed(void)
{
    cpu_set_t allowed;

    return sched_getaffinity(0, sizeof(allowed), &allowed) ? 0 : (unsigned)CPU_COUNT(&allowed);
}

void bench_machine_read(struct bench_machine *machine)
{
    struct utsname name;

    memset(machine, 0, sizeof(*machine));
    read_cpuinfo(machine);
    read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", machine->governor,
              sizeof(machine->governor));

    long online = sysconf(_SC_NPROCESSORS_ONLN);
    machine->cpus_online = online > 0 ? (unsigned)online : 0;
    machine->cpus_allowed = bench_cpus_allowed();

    if (uname(&name) == 0) {
        snprintf(machine->kernel, sizeof(machine->kernel), "%s %s", name.sysname, name.release);
        snprintf(machine->architecture, sizeof(machine->architecture), "%s", name.machine);
    }
    if (machine->cpu_model[0] == '\0')
        snprintf(machine->cpu_model, sizeof(machine->cpu_model), "%s", machine->architecture);
}

/* The frequency that the kernel states for one CPU in /proc/cpuinfo, where cpufreq is absent. */
static double cpuinfo_mhz(long cpu)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[4096];
    long current = -1;
    double mhz = 0;

    while (file && fgets(line, sizeof(line), file)) {
        const char *value = cpuinfo_value(line, "processor");
        if (value)
            current = strtol(value, NULL, 10);
        value = cpuinfo_value(line, "cpu MHz");
        if (value && current == cpu) {
            mhz = strtod(value, NULL);
            break;
        }
    }
    if (file)
        fclose(file);
    return mhz;
}

double bench_cpu_mhz(int cpu)
{
    char path[96];
    char line[64];

    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", cpu);
    read_line(path, line, sizeof(line));
    return line[0] ? strtod(line, NULL) / 1000 : cpuinfo_mhz(cpu);
}

void bench_cpu_state_read(struct bench_cpu_state *state)
{
    char line[64];

    state->mhz = bench_cpu_mhz(sched_getcpu());
    read_line("/proc/loadavg", line, sizeof(line));
    state->load_average = line[0] ? strtod(line, NULL) : -1;
}
