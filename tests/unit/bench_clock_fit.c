/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: the fit of the experiment clock finds the C and the B that times were made of, exactly
 * without noise and within it with some; it knows when there is no line; and a negative part is
 * reported as it was fitted, with a word that makes the result doubtful.
 */
#include "bench/clock_fit.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

#define CHECK_NEAR(got, expected, by)                                                              \
    CHECK(fabs((got) - (expected)) <= (by), "%.9g, expected %.9g", got, expected)

static const double clocks[] = {345, 510, 975, 1290, 1605, 1980, 780};

#define CLOCKS (sizeof(clocks) / sizeof(clocks[0]))

/* T = C/f + B, and `noise` nanoseconds more and less in turn. */
static void make(struct clock_point *points, double ticks, double free_ns, double noise)
{
    for (size_t i = 0; i < CLOCKS; i++) {
        double sign = i % 2 ? 1 : -1;
        points[i] = (struct clock_point){clocks[i], ticks * 1e3 / clocks[i] + free_ns};
        points[i].ns += sign * noise;
    }
}

static void exact(double ticks, double free_ns)
{
    struct clock_point points[CLOCKS];
    struct clock_fit fit;

    make(points, ticks, free_ns, 0);
    CHECK(clock_fit(points, CLOCKS, &fit), "no fit");
    CHECK_NEAR(fit.ticks, ticks, 1e-6);
    CHECK_NEAR(fit.free_ns, free_ns, 1e-6);
    double at_top = ticks * 1e3 / 1980;
    CHECK_NEAR(fit.share, 100 * at_top / (at_top + free_ns), 1e-6);

    CHECK(clock_fit(points, 2, &fit), "no fit through two points");
    CHECK_NEAR(fit.ticks, ticks, 1e-6);
    CHECK_NEAR(fit.free_ns, free_ns, 1e-6);
}

/* How far the points are from a line. */
static double squares(const struct clock_point *points, double ticks, double free_ns)
{
    double sum = 0;

    for (size_t i = 0; i < CLOCKS; i++)
        sum += pow(points[i].ns - ticks * 1e3 / points[i].mhz - free_ns, 2);
    return sum;
}

static void noisy(void)
{
    struct clock_point points[CLOCKS];
    struct clock_fit fit;

    make(points, 700, 60, 3);
    CHECK(clock_fit(points, CLOCKS, &fit), "no fit");
    CHECK_NEAR(fit.ticks, 700.0, 7.0);
    CHECK_NEAR(fit.free_ns, 60.0, 5.0);
    double least = squares(points, fit.ticks, fit.free_ns);
    CHECK(least < squares(points, 700, 60), "what the points were made of is nearer");
    for (int sign = -1; sign <= 1; sign += 2)
        CHECK(least < squares(points, fit.ticks + sign, fit.free_ns) &&
                  least < squares(points, fit.ticks, fit.free_ns + sign),
              "another line is nearer");
}

static void one_clock(void)
{
    const struct clock_point points[] = {{1980, 350}, {1980, 370}, {1980, 340}};
    struct clock_fit fit = {.ticks = 1};

    for (size_t count = 0; count <= 3; count++)
        CHECK(!clock_fit(points, count, &fit), "a fit through %zu points of one clock", count);
    CHECK(fit.ticks == 1, "what is no fit was written");
}

/* Reports `fit`; its three values are the results. */
static void report(struct clock_fit fit, enum bench_status expected)
{
    static const struct bench_case row = {.name = "clock", .paper = {"F5"}};
    struct bench_results results = {0};
    struct bench_options options;

    bench_options_init(&options);
    options.iters = options.repetitions = 1;
    struct bench b = {.row = &row, .options = &options, .results = &results};
    enum bench_status status = clock_fit_report(&b, &fit, 5);
    CHECK(status == expected, "status %d", (int)status);
    CHECK(results.count == 3, "%zu results", results.count);
    CHECK_NEAR(results.record[0].stats.typical, fit.ticks, 1e-9);
    CHECK_NEAR(results.record[1].stats.typical, fit.free_ns / 1e3, 1e-9);
    CHECK_NEAR(results.record[2].stats.typical, fit.share, 1e-9);
    CHECK(results.record[1].config[1].number == 5, "levels");
    bench_results_free(&results);
}

int main(void)
{
    exact(700, 60);
    exact(350, 0);
    exact(0, 400);
    exact(700, -25);
    exact(-80, 300);
    noisy();
    one_clock();
    report((struct clock_fit){700, 60, 85}, BENCH_PASS);
    report((struct clock_fit){700, 0, 100}, BENCH_PASS);
    report((struct clock_fit){700, -25, 107}, BENCH_DEGRADED);
    report((struct clock_fit){-80, 300, -14}, BENCH_DEGRADED);
    return 0;
}
