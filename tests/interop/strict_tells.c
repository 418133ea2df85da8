/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: SOFTNIC_STRICT without SOFTNIC_REPORT tells at the process's end what it found: at most
 * ten diagnostics, one a line with kind, queue pair and index; how many more there were; the seed
 * where it decided something; the option that writes all. It says nothing where nothing was found,
 * where a report was asked for, or where SOFTNIC_STRICT was not.
 */
#include "rc_pair.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Rings for a queue pair that does not exist, with index 7 and on. */
static void ring(struct ibv_context *context, uint32_t times)
{
    struct mlx5dv_devx_uar *uar = mlx5dv_devx_alloc_uar(context, MLX5DV_UAR_ALLOC_TYPE_NC);
    CHECK(uar, "mlx5dv_devx_alloc_uar: %s", strerror(errno));
    uint64_t *doorbell = uar->reg_addr;

    for (uint32_t i = 0; i < times; i++) {
        uint64_t begin = rc_now_ns();
        uint64_t value =
            (uint64_t)__builtin_bswap32(0xabcde << 8) << 32 | __builtin_bswap32((7 + i) << 8);
        __atomic_store_n(doorbell, value, __ATOMIC_RELEASE);
        while (__atomic_load_n(doorbell, __ATOMIC_ACQUIRE) != 0)
            CHECK(rc_now_ns() - begin < 20000000000u, "doorbell %u was not taken", i);
    }
    mlx5dv_devx_free_uar(uar);
}

/* What a process says that rings so often; `settings` are NAME=VALUE, the last NULL. */
static const char *said(uint32_t times, char *const settings[])
{
    static char text[16384];
    size_t used = 0;
    int ends[2], status;
    ssize_t got;

    CHECK(pipe(ends) == 0, "pipe: %s", strerror(errno));
    pid_t child = fork();
    CHECK(child >= 0, "fork: %s", strerror(errno));
    if (child == 0) {
        unsetenv("SOFTNIC_STRICT");
        unsetenv("SOFTNIC_REPORT");
        unsetenv("SOFTNIC_SEED");
        for (size_t i = 0; settings[i]; i++)
            putenv(settings[i]);
        close(ends[0]);
        dup2(ends[1], STDERR_FILENO);
        struct ibv_context *context = rc_open();
        ring(context, times);
        ibv_close_device(context);
        exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], text + used, sizeof(text) - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = '\0';
    close(ends[0]);
    CHECK(waitpid(child, &status, 0) == child, "waitpid: %s", strerror(errno));
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the process ended with 0x%x: %s", status,
          text);
    return text;
}

static size_t count(const char *text, const char *what)
{
    size_t found = 0;
    for (; (text = strstr(text, what)) != NULL; text++)
        found++;
    return found;
}

int main(void)
{
    const char *text = said(3, (char *[]){"SOFTNIC_STRICT=on", NULL});
    CHECK(count(text, "doorbell_qpn, QP 0xabcde, index ") == 3 && count(text, "\n") == 4, "%s",
          text);
    CHECK(strstr(text, "index 7: a doorbell names") && strstr(text, "index 9: "), "%s", text);
    CHECK(strstr(text, "--report=FILE (SOFTNIC_REPORT) counts all 3 "), "%s", text);
    CHECK(!strstr(text, "more\n") && !strstr(text, "seed"), "%s", text);

    text = said(10, (char *[]){"SOFTNIC_STRICT=on", NULL});
    CHECK(count(text, "doorbell_qpn") == 10 && !strstr(text, "more\n"), "%s", text);
    text = said(1100, (char *[]){"SOFTNIC_STRICT=fetch=1", "SOFTNIC_SEED=77", NULL});
    CHECK(count(text, "doorbell_qpn") == 10 && strstr(text, "and 1090 more\n"), "%s", text);
    CHECK(count(text, "seed 77; --seed=77") == 1 && strstr(text, "counts all 1100"), "%s", text);

    text = said(0, (char *[]){"SOFTNIC_STRICT=fetch=1", NULL});
    CHECK(text[0] == '\0', "%s", text);
    text = said(3, (char *[]){"SOFTNIC_STRICT=on", "SOFTNIC_REPORT=/dev/null", NULL});
    CHECK(text[0] == '\0', "%s", text);
    text = said(3, (char *[]){NULL});
    CHECK(text[0] == '\0', "%s", text);
    text = said(3, (char *[]){"SOFTNIC_STRICT=on", "SOFTNIC_REPORT=-", NULL});
    CHECK(strstr(text, "\"count\": 3"), "%s", text);
    CHECK(!strstr(text, "softnic: strict"), "%s", text);
    return 0;
}
