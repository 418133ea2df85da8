/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a library's put is compared with ours byte for byte: each byte that differs is named,
 * unless it is one that the library leaves undefined; and so are record and doorbell. The expected
 * bytes are written out here, from the PRM's layouts.
 */
#include "bench/vendors/arm.h"
#include "bench/vendors/library.h"
#include "tests/check.h"

#include <string.h>

static const uint8_t pointer_wqe[64] = {
    0x00, 0x00, 0x00, 0x08, 0x12, 0x34, 0x56, 0x03,
    0,    0,    0,    0x08, 0,    0,    0,    0, /* control */
    0x00, 0x00, 0x7b, 0x20, 0x00, 0x54, 0x32, 0x18,
    0x00, 0xd4, 0xe5, 0xf6, 0,    0,    0,    0, /* remote */
    0x00, 0x00, 0x00, 0x08, 0x00, 0xa1, 0xb2, 0xc3,
    0x00, 0x00, 0x7a, 0x10, 0x00, 0x12, 0x34, 0x50,
};
static const uint8_t inline_wqe[64] = {
    0x00, 0x00, 0x00, 0x08, 0x12, 0x34, 0x56, 0x03,
    0,    0,    0,    0x08, 0,    0,    0,    0, /* control */
    0x00, 0x00, 0x7b, 0x20, 0x00, 0x54, 0x32, 0x18,
    0x00, 0xd4, 0xe5, 0xf6, 0,    0,    0,    0, /* remote */
    0x80, 0x00, 0x00, 0x08, 0x11, 0x22, 0x33, 0x44,
    0x55, 0x66, 0x77, 0x88, 0,    0,    0,    0,
};
static const uint8_t record_bytes[4] = {0, 0, 0, 1};
static const uint8_t doorbell_bytes[8] = {0, 0, 1, 0, 0x12, 0x34, 0x56, 0};

static const struct vendors_arm *find_arm(const char *symbol)
{
    for (size_t i = 0; i < VENDORS_LIBRARIES; i++)
        for (size_t k = 0; k < VENDORS_ARMS_MAX && vendors_library[i].arm[k].system; k++)
            if (strcmp(vendors_library[i].arm[k].kernel.name, symbol) == 0)
                return &vendors_library[i].arm[k];
    CHECK(0, "no arm %s", symbol);
    return NULL;
}

static struct vendors_posted posted_like(const uint8_t *wqe)
{
    struct vendors_posted posted;

    memcpy(posted.slot, wqe, sizeof(posted.slot));
    memcpy(&posted.record, record_bytes, sizeof(posted.record));
    memcpy(&posted.doorbell, doorbell_bytes, sizeof(posted.doorbell));
    return posted;
}

/* Changes each byte in turn: those of `undefined` may change, the other 48 may not. */
static void check_wqe(const char *symbol, const uint8_t *wqe, const char *undefined)
{
    const struct vendors_arm *arm = find_arm(symbol);
    struct vendors_posted posted = posted_like(wqe);
    char why[VENDORS_WHY_BYTES] = "", want[32];

    CHECK(vendors_posted_agrees(arm, &posted, why), "%s: %s", symbol, why);
    for (unsigned i = 0; i < sizeof(posted.slot); i++) {
        bool may = i >= 48 || undefined[i] == '?';
        posted = posted_like(wqe);
        posted.slot[i] ^= 0xff;
        snprintf(want, sizeof(want), "byte %u of", i);
        CHECK(vendors_posted_agrees(arm, &posted, why) == may, "%s: byte %u", symbol, i);
        CHECK(may || strstr(why, want), "%s: '%s' does not name byte %u", symbol, why, i);
    }
    posted = posted_like(wqe);
    posted.record ^= 1u << 31;
    CHECK(!vendors_posted_agrees(arm, &posted, why) && strstr(why, "record"), "%s: %s", symbol,
          why);
    posted = posted_like(wqe);
    posted.doorbell ^= 1;
    CHECK(!vendors_posted_agrees(arm, &posted, why) && strstr(why, "doorbell"), "%s: %s", symbol,
          why);
    memset(posted.slot, VENDORS_POISON, sizeof(posted.slot));
    CHECK(!vendors_posted_agrees(arm, &posted, why), "%s: nothing was posted", symbol);
}

static void check_descriptor(void)
{
    const struct vendors_arm *arm = find_arm("vendor_gin_proxy_put");
    const uint64_t words[8] = {0x403,
                               VENDORS_LADDR << 1 | 1,
                               ARM_RKEY << 1 | 1,
                               VENDORS_RADDR << 1 | 1,
                               ARM_RKEY << 1 | 1,
                               UINT64_C(0xdead000000000001),
                               1,
                               3};
    struct vendors_posted posted = {.record = 0};
    char why[VENDORS_WHY_BYTES] = "", want[32];

    memcpy(posted.slot, words, sizeof(words));
    CHECK(vendors_posted_agrees(arm, &posted, why), "%s", why);
    for (unsigned i = 0; i < 8; i++) {
        memcpy(posted.slot, words, sizeof(words));
        posted.slot[8 * i] ^= 1;
        snprintf(want, sizeof(want), "word %u of", i);
        CHECK(!vendors_posted_agrees(arm, &posted, why) && strstr(why, want), "word %u: %s", i,
              why);
    }
}

static void check_dump(void)
{
    struct vendors_posted posted = posted_like(inline_wqe);
    struct vendors_dump dump;

    vendors_posted_dump(find_arm("vendor_nvshmem_p"), &posted, &dump);
    CHECK(strlen(dump.posted) == 128 && strncmp(dump.posted, "00000008123456030000000800", 26) == 0,
          "posted %s", dump.posted);
    CHECK(strncmp(dump.ours, dump.posted, 88) == 0 && strlen(dump.ours) == 128 &&
              strspn(dump.ours + 88, "?") == 40,
          "ours %s", dump.ours);
    vendors_posted_dump(find_arm("vendor_gin_proxy_put"), &posted, &dump);
    CHECK(strlen(dump.posted) == 128 && dump.ours[0] == '\0', "a descriptor is none of ours");
}

int main(void)
{
    /*  byte    0               16              32              48 */
    check_wqe("vendor_doca_put_exclusive", pointer_wqe,
              "........???.................????................");
    check_wqe("vendor_doca_p_gpu", inline_wqe, "........???.????............????............????");
    check_wqe("vendor_gin_gdaki_put", pointer_wqe,
              "........???.................????................");
    check_wqe("vendor_gin_gdaki_put_value", inline_wqe,
              "........???.????............????............????");
    check_wqe("vendor_nvshmem_put_nbi", pointer_wqe,
              "................................................");
    check_wqe("vendor_nvshmem_p", inline_wqe, "............................................????");
    check_descriptor();
    check_dump();
    return 0;
}
