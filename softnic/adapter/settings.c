/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The settings (process.h): SOFTNIC, SOFTNIC_POLL, SOFTNIC_STRICT, SOFTNIC_SEED, SOFTNIC_REPORT and
 * SOFTNIC_DEBUG, read once. A program that runs with more rights than its caller (AT_SECURE) takes
 * no orders from the caller's environment: the device is off there.
 */
#include "process.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>

static struct soft_settings settings;

__attribute__((format(printf, 1, 2))) static void wrong(const char *format, ...)
{
    va_list arguments;

    if (settings.wrong[0] != '\0')
        return;
    va_start(arguments, format);
    vsnprintf(settings.wrong, sizeof(settings.wrong), format, arguments);
    va_end(arguments);
}

/* The whole text as a number, decimal or 0x...; false when it is not one. */
static bool read_number(const char *text, uint64_t limit, uint64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoull(text, &end, 0);
    return errno == 0 && end != text && *end == '\0' && text[0] != '-' && *value <= limit;
}

static void read_mode(void)
{
    const char *mode = getenv("SOFTNIC");

    if (mode == NULL || mode[0] == '\0' || strcmp(mode, "auto") == 0)
        settings.mode = SOFTNIC_AUTO;
    else if (strcmp(mode, "on") == 0)
        settings.mode = SOFTNIC_ON;
    else if (strcmp(mode, "off") == 0)
        settings.mode = SOFTNIC_OFF;
    else
        wrong("SOFTNIC=%.40s is not a mode; use auto, on or off", mode);
}

static void read_poll(void)
{
    const char *poll = getenv("SOFTNIC_POLL");

    if (poll == NULL || poll[0] == '\0' || strcmp(poll, "adaptive") == 0)
        settings.config.poll = NIC_POLL_ADAPTIVE;
    else if (strcmp(poll, "spin") == 0)
        settings.config.poll = NIC_POLL_SPIN;
    else
        wrong("SOFTNIC_POLL=%.40s is not a way to poll; use adaptive or spin", poll);
}

static void read_strict_word(const char *word)
{
    struct nic_strict *strict = &settings.config.strict;
    uint64_t delay;

    strict->enabled = 1;
    if (strcmp(word, "on") == 0) {
        return;
    } else if (strcmp(word, "merge") == 0) {
        strict->doorbell_mode = NIC_DOORBELL_MERGE;
    } else if (strcmp(word, "poison") == 0) {
        strict->poison = 1;
    } else if (strcmp(word, "early") == 0) {
        strict->early = 1;
    } else if (strncmp(word, "fetch=", 6) == 0 && read_number(word + 6, 1000000000, &delay)) {
        strict->fetch_delay_ns = (uint32_t)delay;
    } else {
        wrong(
            "SOFTNIC_STRICT has no word '%.40s'; use on, merge, poison, early or fetch=NS (at most "
            "1000000000), with commas between them",
            word);
    }
}

static void read_strict(void)
{
    const char *list = getenv("SOFTNIC_STRICT");
    char *copy, *rest, *word;

    if (list == NULL || list[0] == '\0')
        return;
    settings.strict_asked = true;
    copy = rest = strdup(list);
    if (copy == NULL) {
        wrong("no memory to read SOFTNIC_STRICT");
        return;
    }
    while ((word = strsep(&rest, ",")) != NULL)
        read_strict_word(word);
    free(copy);
}

/* The generator's state must not be 0. */
static void read_seed(void)
{
    const char *seed = getenv("SOFTNIC_SEED");

    if (seed != NULL && seed[0] != '\0') {
        if (!read_number(seed, UINT64_MAX, &settings.seed) || settings.seed == 0)
            wrong("SOFTNIC_SEED=%.40s is not a seed; use a whole number from 1 on", seed);
    } else if (getrandom(&settings.seed, sizeof(settings.seed), GRND_NONBLOCK) !=
                   (ssize_t)sizeof(settings.seed) ||
               settings.seed == 0) {
        settings.seed = 1;
    }
    settings.config.strict.random = settings.seed;
}

static void read_all(void)
{
    const char *report = getenv("SOFTNIC_REPORT");
    const char *debug = getenv("SOFTNIC_DEBUG");
    const char *sysfs;

    if (getauxval(AT_SECURE) != 0) {
        settings.mode = SOFTNIC_OFF;
        return;
    }
    sysfs = getenv("SYSFS_PATH");
    settings.sysfs = sysfs != NULL && sysfs[0] == '/' ? strdup(sysfs) : NULL;
    read_mode();
    read_poll();
    read_strict();
    read_seed();
    settings.report = report != NULL && report[0] != '\0' ? strdup(report) : NULL;
    settings.debug = debug != NULL && debug[0] != '\0' && strcmp(debug, "0") != 0;
}

struct soft_settings *soft_settings(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, read_all);
    return &settings;
}
