/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: each row of the explorer's table is what it is expected to be: every ordering, placement
 * and way of sharing that the library offers as safe is exhausted without a fault, and every one
 * that is not has a counterexample; and the table is the same text each time. Under a sanitizer,
 * the rows of one thread alone.
 */
#include "../../explore/table.h"

#include <stdlib.h>
#include <string.h>

#include "../check.h"

static bool is_slow(void)
{
    const char *sanitizer = getenv("DOORBELL_SANITIZE");
    return sanitizer && strcmp(sanitizer, "none") != 0;
}

static size_t first_shared_row(void)
{
    size_t row = 0;

    while (strncmp(ex_rows[row].name, "2 threads", 9) != 0)
        row++;
    return row;
}

static char *run(const struct ex_table_options *options, struct ex_totals *totals)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);

    CHECK(to, "no memory");
    int rc = ex_table_run(options, to, totals);
    fclose(to);
    CHECK(rc == 0, "rc %d", rc);
    return text;
}

int main(void)
{
    struct ex_table_options options = {.row = -1, .jobs = 2, .max_states = 4000000};
    struct ex_totals totals;

    if (is_slow())
        options.first = first_shared_row();
    char *text = run(&options, &totals);
    printf("%s%u searches, %.1f s of one core\n", text, totals.cells, totals.seconds);
    CHECK(totals.cells > 300, "only %u searches", totals.cells);
    CHECK(totals.stopped == 0, "%u searches were stopped", totals.stopped);
    CHECK(totals.unexpected == 0, "%u verdicts are not as expected", totals.unexpected);
    free(text);

    options.first = first_shared_row();
    char *once = run(&options, &totals);
    options.jobs = 1;
    char *again = run(&options, &totals);
    CHECK(strcmp(once, again) == 0, "two runs differ:\n%s\n%s", once, again);
    free(once);
    free(again);
    return 0;
}
