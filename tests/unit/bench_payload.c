/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a filled payload matches; one changed byte, another message or another seed does not, and
 * the offset of the first wrong byte is named.
 */
#include "bench/payload.h"
#include "tests/check.h"

#include <string.h>

#define BYTES 300

int main(void)
{
    uint8_t memory[BYTES + 2];
    struct bench_mismatch bad;

    for (size_t bytes = 0; bytes <= BYTES; bytes += bytes < 20 ? 1 : 37) {
        memset(memory, 0xa5, sizeof(memory));
        bench_payload_fill(memory + 1, bytes, 42, 7);
        CHECK(memory[0] == 0xa5 && memory[bytes + 1] == 0xa5, "%zu bytes: written outside", bytes);
        CHECK(bench_payload_matches(memory + 1, bytes, 42, 7, &bad), "%zu bytes: byte %zu", bytes,
              bad.offset);

        for (size_t i = 0; i < bytes; i++) {
            memory[i + 1] ^= 1;
            CHECK(!bench_payload_matches(memory + 1, bytes, 42, 7, &bad), "byte %zu unseen", i);
            CHECK(bad.offset == i && bad.got == memory[i + 1] && bad.expected == (bad.got ^ 1),
                  "byte %zu: told %zu, %02x for %02x", i, bad.offset, bad.got, bad.expected);
            memory[i + 1] ^= 1;
        }
        if (bytes >= 8) {
            CHECK(!bench_payload_matches(memory + 1, bytes, 42, 8, &bad), "index without effect");
            CHECK(!bench_payload_matches(memory + 1, bytes, 43, 7, &bad), "seed without effect");
        }
    }
    return 0;
}
