/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ordering operations by their place in the source (sites.h). A place is a function, the kind of
 * operation and the word it concerns, so that it keeps its name when lines move.
 */
#include "sites.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"

/* "ring[1]" and "cqe[0]" are words of the same kind: the name up to the bracket. */
static void word_kind(const struct ex_model *model, unsigned word, char *name, size_t bytes)
{
    const char *full = word == EX_NO_WORD ? "doorbell" : model->words[word].name;
    const char *end = strchr(full, '[');
    size_t length = end ? (size_t)(end - full) : strlen(full);

    if (length >= bytes)
        length = bytes - 1;
    memcpy(name, full, length);
    name[length] = '\0';
}

void ex_site_met(struct ex_model *model, const struct port_op *op, unsigned word)
{
    struct ex_sites *sites = model->sites;
    struct ex_site site = {
        .file = op->site.file,
        .line = op->site.line,
        .kind = op->kind,
        .acquire = op->acquire,
        .release = op->release,
        .system = op->system,
    };

    if (!sites)
        return;
    word_kind(model, word, site.word, sizeof(site.word));
    snprintf(site.function, sizeof(site.function), "%s", op->site.function);
    for (size_t i = 0; i < sites->count; i++) {
        const struct ex_site *other = &sites->site[i];
        if (other->kind == site.kind && other->acquire == site.acquire &&
            other->release == site.release && other->system == site.system &&
            other->line == site.line && strcmp(other->function, site.function) == 0 &&
            strcmp(other->word, site.word) == 0)
            return;
    }
    sites->site = ex_grow(sites->site, sites->count + 1, sizeof(*sites->site));
    sites->site[sites->count++] = site;
}

void ex_site_weaken(struct ex_model *model, struct port_op *op, unsigned word)
{
    const struct ex_mutation *mutation = model->config.mutation;
    char name[sizeof(model->words[0].name)];

    if (!mutation || strcmp(mutation->function, op->site.function) != 0 ||
        (mutation->kind >= 0 && (unsigned)mutation->kind != op->kind) ||
        !(mutation->acquire ? op->acquire : op->release))
        return;
    word_kind(model, word, name, sizeof(name));
    if (mutation->word && strcmp(mutation->word, name) != 0)
        return;
    switch (mutation->weakening) {
    case EX_DELETE:
        op->acquire = op->release = false;
        break;
    case EX_GPU_SCOPE:
        op->system = false;
        break;
    case EX_NO_ACQUIRE:
        op->acquire = false;
        break;
    case EX_NO_RELEASE:
        op->release = false;
        break;
    }
}

void ex_sites_free(struct ex_sites *sites)
{
    free(sites->site);
    *sites = (struct ex_sites){0};
}
