/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: every field of a proxy's descriptor (impl/ring_format.h) comes back as it was put in, at
 * both ends of its range and beside full neighbours; it lies where the header says; and validity
 * flips each lap.
 */
#include <doorbell/impl/ring_format.h>

#include "../check.h"

struct fields {
    uint32_t op, flags, window, region;
    uint64_t window_offset, region_offset;
    uint32_t bytes;
};

static void round_trip(struct fields f)
{
    struct db_descriptor d =
        db_descriptor_memory((enum db_ring_op)f.op, f.flags, f.window, f.window_offset, f.region,
                             f.region_offset, f.bytes);

    CHECK(!((d.half[0] | d.half[1]) & DB_RING_VALID), "op %u sets a validity bit", f.op);
    for (uint64_t lap = 0; lap <= DB_RING_VALID; lap++) {
        d.half[0] = (d.half[0] & ~DB_RING_VALID) | lap;
        d.half[1] = (d.half[1] & ~DB_RING_VALID) | lap;
        CHECK(db_descriptor_op(d) == f.op, "op %u came as %u", f.op, db_descriptor_op(d));
        CHECK(db_descriptor_flags(d) == f.flags, "flags %u", db_descriptor_flags(d));
        CHECK(db_descriptor_window(d) == f.window, "window %u", db_descriptor_window(d));
        CHECK(db_descriptor_region(d) == f.region, "region %u", db_descriptor_region(d));
        CHECK(db_descriptor_window_offset(d) == f.window_offset, "window offset %#llx",
              (unsigned long long)db_descriptor_window_offset(d));
        CHECK(db_descriptor_region_offset(d) == f.region_offset, "region offset %#llx",
              (unsigned long long)db_descriptor_region_offset(d));
        CHECK(db_descriptor_bytes(d) == f.bytes, "%u bytes came as %u", f.bytes,
              db_descriptor_bytes(d));
    }
}

/* Each field at its least and at its greatest value, with all others at either. */
static void memory_fields(void)
{
    for (uint32_t set = 0; set < 1u << 7; set++)
        round_trip((struct fields){
            .op = set & 1 ? DB_RING_FETCH_ADD : DB_RING_PUT,
            .flags = set & 2 ? DB_RING_FENCE | DB_RING_SOLICITED : 0,
            .window = set & 4 ? DB_RING_PLACES - 1 : 0,
            .region = set & 8 ? DB_RING_PLACES - 1 : 0,
            .window_offset = set & 16 ? DB_RING_OFFSETS - 1 : 0,
            .region_offset = set & 32 ? DB_RING_OFFSETS - 1 : 0,
            .bytes = set & 64 ? (uint32_t)DB_RING_MAX_BYTES : 1,
        });
    for (uint32_t shift = 0; shift < 31; shift++)
        round_trip((struct fields){.op = DB_RING_GET, .window = 1, .bytes = (1u << shift) + 1});
}

static void values(void)
{
    static const uint64_t words[] = {0, 1, 2, 3, UINT64_MAX, UINT64_MAX - 1, 0x8000000000000001};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        struct db_descriptor d =
            db_descriptor_value(DB_RING_VALUE, DB_RING_PLACES - 1, DB_RING_OFFSETS - 1, words[i]);
        CHECK(!((d.half[0] | d.half[1]) & DB_RING_VALID), "a value sets a validity bit");
        d.half[0] |= DB_RING_VALID;
        d.half[1] |= DB_RING_VALID;
        CHECK(db_descriptor_operand(d) == words[i], "value %#llx came as %#llx",
              (unsigned long long)words[i], (unsigned long long)db_descriptor_operand(d));
        CHECK(db_descriptor_op(d) == DB_RING_VALUE, "op %u", db_descriptor_op(d));
        CHECK(db_descriptor_window(d) == DB_RING_PLACES - 1, "window %u", db_descriptor_window(d));
        CHECK(db_descriptor_window_offset(d) == DB_RING_OFFSETS - 1, "window offset");
    }
}

/* One descriptor, bit for bit as the header's table has it. */
static void layout(void)
{
    struct db_descriptor d =
        db_descriptor_memory(DB_RING_GET, DB_RING_SOLICITED, 0x15, 0x123456789a, 0x0a, 0x0fedcba987,
                             (0x5au << 23 | 0x2bcdefu) + 1);

    CHECK(d.half[0] == (0x123456789aull << 24 | 0x5aull << 16 | 2u << 14 | 0x0au << 9 | 0x15u << 4 |
                        3u << 1),
          "half 0 is %#llx", (unsigned long long)d.half[0]);
    CHECK(d.half[1] == (0x0fedcba987ull << 24 | 0x2bcdefull << 1), "half 1 is %#llx",
          (unsigned long long)d.half[1]);
}

static void laps(void)
{
    for (uint32_t depth = 2; depth <= 1u << 20; depth *= 2) {
        CHECK(db_ring_lap(0, depth) == 1 && db_ring_lap(depth - 1, depth) == 1, "first lap");
        CHECK(db_ring_lap(depth, depth) == 0 && db_ring_lap(2 * depth - 1, depth) == 0, "second");
        CHECK(db_ring_lap(2ull * depth, depth) == 1, "third");
        CHECK(db_ring_lap((1ull << 32) - 1, depth) == 0 && db_ring_lap(1ull << 32, depth) == 1,
              "across 2^32");
    }
}

int main(void)
{
    memory_fields();
    values();
    layout();
    laps();
    printf("all fields\n");
    return 0;
}
