/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running the table (table.h): cells are searches of their own, shared out to jobs; results are
 * printed in the order of the rows whoever finished first.
 */
#include "table.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define RULES 2

struct cell {
    struct ex_result result;
    char *trace; /* of a counterexample, when asked for */
    char expected;
    bool run;
    int rc;
};

struct table {
    const struct ex_table_options *options;
    struct cell *cells; /* [row][rules][cell] */
    size_t next;
    pthread_mutex_t mutex;
};

static const char *const devices[] = {"D", "E", "R"};

bool ex_row_config(const struct ex_row *row, unsigned cell, enum ex_rules rules,
                   struct ex_config *config)
{
    bool with_device = strlen(row->expected) == EX_CELLS;

    if (cell >= strlen(row->expected) || row->expected[cell] == '-')
        return false;
    *config = (struct ex_config){
        .rules = rules,
        .order = row->order,
        .record = row->record,
        .ring = (with_device ? cell / 3 : cell) ? EX_HOST_MEMORY : EX_GPU_MEMORY,
        .device = (enum ex_device_model)(with_device ? cell % 3 : 0),
        .delivery = row->delivery,
        .writes_reordered = row->writes_reordered,
        .torn = row->torn,
        .unwaited = row->unwaited,
        .threads = row->threads,
        .messages = row->messages,
        .others = row->others,
        .depth = row->depth,
        .variant = row->variant,
        .mutation = row->mutation,
    };
    return true;
}

static bool is_wanted(const struct ex_table_options *options, size_t row)
{
    if (options->row >= 0)
        return (size_t)options->row == row;
    return (options->large || !ex_rows[row].large) && (options->first == 0 || row < options->first);
}

/* ---- Jobs ---- */

static void run_cell(const struct ex_table_options *options, size_t number, struct cell *cell)
{
    const struct ex_row *row = &ex_rows[number / (RULES * EX_CELLS)];
    enum ex_rules rules = (enum ex_rules)(number / EX_CELLS % RULES);
    unsigned column = (unsigned)(number % EX_CELLS);
    struct ex_config config;
    size_t bytes = 0;
    FILE *trace = NULL;

    if (!is_wanted(options, number / (RULES * EX_CELLS)) ||
        !ex_row_config(row, column, rules, &config))
        return;
    config.max_states = options->max_states;
    const char *expected =
        rules == EX_LETTER && row->by_the_letter ? row->by_the_letter : row->expected;
    cell->expected = expected[column];
    cell->run = true;
    if (options->trace)
        trace = open_memstream(&cell->trace, &bytes);
    cell->rc = ex_search(row->program, &config, &cell->result, trace, NULL);
    if (trace)
        fclose(trace);
}

static void *work(void *argument)
{
    struct table *table = argument;

    for (;;) {
        pthread_mutex_lock(&table->mutex);
        size_t number = table->next++;
        pthread_mutex_unlock(&table->mutex);
        if (number >= ex_row_count * RULES * EX_CELLS)
            return NULL;
        run_cell(table->options, number, &table->cells[number]);
    }
}

static void run_jobs(struct table *table)
{
    pthread_t threads[16];
    unsigned started = 0, jobs = table->options->jobs;

    while (started + 1 < jobs && started < 16 &&
           pthread_create(&threads[started], NULL, work, table) == 0)
        started++;
    work(table);
    while (started > 0)
        pthread_join(threads[--started], NULL);
}

/* ---- Printing ---- */

static char verdict_letter(const struct cell *cell)
{
    if (!cell->run)
        return '-';
    return cell->result.verdict == EX_SAFE             ? 's'
           : cell->result.verdict == EX_COUNTEREXAMPLE ? 'c'
                                                       : '?';
}

static void print_cells(const struct cell *cells, const struct ex_row *row, FILE *to)
{
    size_t count = strlen(row->expected);

    for (size_t i = 0; i < EX_CELLS; i++) {
        char letter = i < count ? verdict_letter(&cells[i]) : ' ';
        bool wrong = i < count && cells[i].run && letter != cells[i].expected;
        fprintf(to, "%s%c%c", i == 3 ? "  " : "", letter, wrong ? '!' : ' ');
    }
}

static void print_traces(const struct cell *cells, FILE *to)
{
    for (size_t i = 0; i < EX_CELLS * RULES; i++) {
        if (cells[i].run && cells[i].result.verdict == EX_COUNTEREXAMPLE && cells[i].trace)
            fprintf(to, "\n  device %s, %s memory, %s\n%s", devices[i % 3],
                    i % EX_CELLS / 3 ? "host" : "GPU",
                    i / EX_CELLS ? "by the letter of PTX" : "by the rules of machines",
                    cells[i].trace);
    }
}

static void print_row(const struct ex_row *row, size_t number, const struct cell *cells, FILE *to)
{
    uint64_t states = 0;
    bool cut = false;

    for (size_t i = 0; i < RULES * EX_CELLS; i++) {
        states += cells[i].result.states;
        cut |= cells[i].result.versions_cut;
    }
    fprintf(to, "%3zu %-35s %-28s ", number, row->name, row->ordering);
    print_cells(cells, row, to);
    fprintf(to, "   ");
    print_cells(cells + EX_CELLS, row, to);
    fprintf(to, "  %8" PRIu64 "%s\n", states, cut ? " v" : "");
    print_traces(cells, to);
}

static void add_totals(const struct cell *cell, struct ex_totals *totals)
{
    if (!cell->run)
        return;
    totals->cells++;
    totals->states += cell->result.states;
    totals->seconds += cell->result.seconds;
    totals->stopped += cell->result.verdict == EX_STOPPED;
    totals->unexpected += verdict_letter(cell) != cell->expected;
}

static void print_head(FILE *to)
{
    fprintf(
        to,
        "s  every reachable state was visited and none is a fault\n"
        "c  a counterexample was found       ?  stopped at the bound: nothing is known\n"
        "-  not a case                       !  not what is expected of the row\n"
        "v  of some word more than %d stores could still be read: the oldest were not kept\n"
        "D  the device trusts the doorbell   E  it reads the record early   R  at a doorbell\n\n"
        "%-68s rules of machines   letter of PTX\n%-68s GPU     host      GPU     host\n"
        "row %-35s %-28s D E R   D E R     D E R   D E R     states\n",
        EX_VERSIONS, "", "", "program", "releases");
}

int ex_table_run(const struct ex_table_options *options, FILE *to, struct ex_totals *totals)
{
    size_t count = ex_row_count * RULES * EX_CELLS;
    struct table table = {.options = options, .mutex = PTHREAD_MUTEX_INITIALIZER};
    int rc = 0;

    memset(totals, 0, sizeof(*totals));
    table.cells = calloc(count, sizeof(*table.cells));
    if (!table.cells)
        return -ENOMEM;
    run_jobs(&table);
    print_head(to);
    for (size_t row = 0; row < ex_row_count; row++) {
        if (is_wanted(options, row))
            print_row(&ex_rows[row], row, table.cells + row * RULES * EX_CELLS, to);
    }
    for (size_t i = 0; i < count; i++) {
        add_totals(&table.cells[i], totals);
        rc = rc ? rc : table.cells[i].rc;
        free(table.cells[i].trace);
    }
    free(table.cells);
    return rc;
}
