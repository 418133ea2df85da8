/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data/reference.csv as bytes of the program. The build defines BENCH_REFERENCE_CSV as the file's
 * path and compiles this file again when that file changes.
 */
#include "reference_data.h"

__asm__(".pushsection .rodata\n"
        ".global bench_reference_csv\n"
        ".global bench_reference_csv_end\n"
        "bench_reference_csv:\n"
        ".incbin \"" BENCH_REFERENCE_CSV "\"\n"
        "bench_reference_csv_end:\n"
        ".popsection\n");
