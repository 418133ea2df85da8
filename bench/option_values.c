/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the text of one option becomes a value. Each reader refuses what it does not understand with
 * a sentence that names the option, the text and what is allowed.
 */
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t *number_field(struct bench_options *options, const struct bench_option_row *row)
{
    return (uint64_t *)(void *)((char *)options + row->offset);
}

static bool *bool_field(struct bench_options *options, const struct bench_option_row *row)
{
    return (bool *)(void *)((char *)options + row->offset);
}

/* A decimal number with nothing after it but, when it is a size, one letter of K, M and G. */
static bool read_number(const char *text, bool sizes, uint64_t *value)
{
    static const char units[] = "KMG";
    char *end;

    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno)
        return false;

    const char *unit = sizes && *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (end[unit ? 1 : 0] != '\0' || number > UINT64_MAX >> shift)
        return false;
    *value = (uint64_t)number << shift;
    return true;
}

static bool set_number(struct bench_options *options, const struct bench_option_row *row,
                       const char *text, char *error)
{
    bool sizes = row->kind == BENCH_KIND_SIZE;
    uint64_t value;

    if (read_number(text, sizes, &value) && value >= row->least && value <= row->most) {
        *number_field(options, row) = value;
        return true;
    }
    snprintf(error, BENCH_ERROR_BYTES, "--%s=%s: a %s from %llu to %llu is needed%s", row->name,
             text, sizes ? "size" : "number", (unsigned long long)row->least,
             (unsigned long long)row->most, sizes ? ", and K, M or G may follow it" : "");
    return false;
}

static bool set_seconds(struct bench_options *options, const struct bench_option_row *row,
                        const char *text, char *error)
{
    char *end = NULL;
    bool plain = text[0] != '\0' && strspn(text, "0123456789.") == strlen(text);
    double ns = plain ? strtod(text, &end) * 1e9 : -1;

    if (plain && end != text && *end == '\0' && ns >= (double)row->least &&
        ns <= (double)row->most) {
        *number_field(options, row) = (uint64_t)(ns + 0.5);
        return true;
    }
    snprintf(error, BENCH_ERROR_BYTES, "--%s=%s: seconds from %g to %g are needed", row->name, text,
             (double)row->least / 1e9, (double)row->most / 1e9);
    return false;
}

/* The place of `text` among the words of a list such as "off|on", or -1. */
static int place_in(const char *list, const char *text)
{
    size_t bytes = strlen(text);

    for (int place = 0;; place++) {
        size_t word = strcspn(list, "|");
        if (word == bytes && memcmp(list, text, word) == 0)
            return place;
        if (list[word] == '\0')
            return -1;
        list += word + 1;
    }
}

static bool set_choice(struct bench_options *options, const struct bench_option_row *row,
                       const char *text, char *error)
{
    int place = place_in(row->argument, text);

    if (place < 0) {
        snprintf(error, BENCH_ERROR_BYTES, "--%s=%s: one of %s is needed", row->name, text,
                 row->argument);
        return false;
    }
    if (strcmp(row->argument, "off|on") == 0)
        *bool_field(options, row) = place == 1;
    else
        *number_field(options, row) = (uint64_t)place;
    return true;
}

static bool set_gpu(struct bench_options *options, const struct bench_option_row *row,
                    const char *text, char *error)
{
    static const char prefix[] = "cuda:"; /* as messages name a GPU */
    size_t bytes = sizeof(prefix) - 1;
    const char *number = strncmp(text, prefix, bytes) == 0 ? text + bytes : text;
    uint64_t index = 0;

    if (strcmp(text, "cpu") == 0) {
        options->gpu = BENCH_GPU_CPU;
    } else if (strcmp(text, "cuda") == 0 ||
               (read_number(number, false, &index) && index <= row->most)) {
        options->gpu = BENCH_GPU_CUDA;
    } else {
        snprintf(error, BENCH_ERROR_BYTES, "--%s=%s: cpu, cuda, or cuda:N or N for GPU N is needed",
                 row->name, text);
        return false;
    }
    options->gpu_index = index;
    options->gpu_text = text;
    return true;
}

static bool set_inject(struct bench_options *options, const struct bench_option_row *row,
                       const char *text, char *error)
{
    static const char prefix[] = "flip=";
    size_t bytes = sizeof(prefix) - 1;

    if (strncmp(text, prefix, bytes) == 0 &&
        read_number(text + bytes, true, &options->flip_offset) && options->flip_offset <= row->most)
        return true;
    snprintf(error, BENCH_ERROR_BYTES, "--%s=%s: flip=OFFSET is needed, with an offset in bytes",
             row->name, text);
    return false;
}

bool bench_options_set(struct bench_options *options, enum bench_option option, const char *text,
                       char *error)
{
    const struct bench_option_row *row = &bench_option_rows[option];
    bool good = true;

    switch (row->kind) {
    case BENCH_KIND_FLAG:
        *bool_field(options, row) = true;
        break;
    case BENCH_KIND_NUMBER:
    case BENCH_KIND_SIZE:
        good = set_number(options, row, text, error);
        break;
    case BENCH_KIND_SECONDS:
        good = set_seconds(options, row, text, error);
        break;
    case BENCH_KIND_CHOICE:
        good = set_choice(options, row, text, error);
        break;
    case BENCH_KIND_TEXT:
    case BENCH_KIND_OPTIONAL_TEXT:
        *(const char **)(void *)((char *)options + row->offset) = text;
        break;
    case BENCH_KIND_GPU:
        good = set_gpu(options, row, text, error);
        break;
    case BENCH_KIND_INJECT:
        good = set_inject(options, row, text, error);
        break;
    }
    if (good)
        options->given |= UINT64_C(1) << option;
    return good;
}
