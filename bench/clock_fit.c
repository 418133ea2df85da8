/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fit T = C/f + B; see clock_fit.h.
 */
#include "clock_fit.h"

/* Nanoseconds a tick. */
static double tick_ns(const struct clock_point *point)
{
    return 1e3 / point->mhz;
}

bool clock_fit(const struct clock_point *points, size_t count, struct clock_fit *fit)
{
    const struct clock_point *highest = points;
    double x = 0, y = 0, xx = 0, xy = 0;
    bool two_clocks = false;

    for (size_t i = 0; i < count; i++) {
        x += tick_ns(&points[i]) / (double)count;
        y += points[i].ns / (double)count;
        two_clocks |= points[i].mhz != points[0].mhz;
        if (points[i].mhz > highest->mhz)
            highest = &points[i];
    }
    if (!two_clocks)
        return false;
    for (size_t i = 0; i < count; i++) {
        double from_mean = tick_ns(&points[i]) - x;
        xx += from_mean * from_mean;
        xy += from_mean * (points[i].ns - y);
    }
    fit->ticks = xy / xx;
    fit->free_ns = y - fit->ticks * x;
    fit->share = 100 * fit->ticks * tick_ns(highest) / highest->ns;
    return true;
}

static enum bench_status report_value(struct bench *b, size_t levels, const char *metric,
                                      const char *unit, double value)
{
    struct bench_record record = {
        .system = "mini-gda",
        .config = {{"fit", "T = C/f + B", 0}, {"levels", NULL, levels}},
        .metric = metric,
        .unit = unit,
        .msg_bytes = 8,
    };
    return bench_report_value(b, &record, value);
}

enum bench_status clock_fit_report(struct bench *b, const struct clock_fit *fit, size_t levels)
{
    enum bench_status status = report_value(b, levels, "clock_ticks", "count", fit->ticks);
    if (status == BENCH_PASS)
        status = report_value(b, levels, "clock_free", "us", fit->free_ns);
    if (status == BENCH_PASS)
        status = report_value(b, levels, "clock_share", "%", fit->share);
    if (status != BENCH_PASS || (fit->ticks >= 0 && fit->free_ns >= 0))
        return status;
    return bench_degrade(b,
                         "the fit T = C/f + B gives C = %.1f ticks and B = %.1f ns, and no part of "
                         "a time is negative: these posts did not follow the clock so",
                         fit->ticks, fit->free_ns);
}
