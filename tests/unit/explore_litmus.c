/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: the explorer's model allows and forbids what PTX's memory model does for the litmus
 * programs whose answers are known, but for those that docs/memory_order.md names.
 */
#include "../../explore/litmus.h"

#include "../check.h"

int main(void)
{
    int unexpected = ex_litmus_run(stdout);

    CHECK(unexpected == 0, "%d verdicts are not the expected ones", unexpected);
    return 0;
}
