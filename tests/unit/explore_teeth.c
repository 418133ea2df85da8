/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: without any one of the transport's ordering operations the explorer finds a
 * counterexample, or the reason why it stays is stated.
 */
#include "../../explore/teeth.h"

#include <stdlib.h>
#include <string.h>

#include "../check.h"

int main(void)
{
    const char *sanitizer = getenv("DOORBELL_SANITIZE");

    if (sanitizer && strcmp(sanitizer, "none") != 0)
        SKIP("many minutes under a sanitizer; the plain builds run it");
    int unexplained = ex_teeth_run(2, stdout);
    CHECK(unexplained == 0, "%d mutants are neither caught nor explained", unexplained);
    return 0;
}
