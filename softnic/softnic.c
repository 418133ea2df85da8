/* SPDX-License-Identifier: BSD-3-Clause */
/* The software device as a program that links it sees it; see softnic.h. */
#include "softnic.h"

#include "adapter/process.h"

SOFT_EXPORT int softnic_set_mode(enum softnic_mode mode)
{
    return soft_choose(mode);
}

SOFT_EXPORT bool softnic_in_use(void)
{
    return soft_in_use();
}

SOFT_EXPORT const char *softnic_reason(void)
{
    return soft_reason();
}

SOFT_EXPORT const char *softnic_wrong_setting(void)
{
    const struct soft_settings *settings = soft_settings();

    return settings->wrong[0] != '\0' ? settings->wrong : NULL;
}

SOFT_EXPORT void softnic_set_strict(const struct nic_strict *strict)
{
    struct nic_strict *kept = &soft_settings()->config.strict;
    uint64_t random;

    pthread_mutex_lock(&soft_lock);
    random = strict->random != 0 ? strict->random : kept->random;
    *kept = *strict;
    kept->random = random;
    if (soft_device() != NULL) {
        struct nic *nic = nic_hold(soft_device());
        random = strict->random != 0 ? strict->random : nic->strict.random;
        nic->strict = *strict;
        nic->strict.random = random;
        nic_release(soft_device());
    }
    pthread_mutex_unlock(&soft_lock);
}

SOFT_EXPORT void softnic_read_counters(struct nic_counters *counters)
{
    pthread_mutex_lock(&soft_lock);
    soft_read_counters(counters);
    pthread_mutex_unlock(&soft_lock);
}

SOFT_EXPORT size_t softnic_read_diagnostics(struct nic_diag_entry *entries, size_t capacity)
{
    size_t count;

    pthread_mutex_lock(&soft_lock);
    count = soft_read_diagnostics(entries, capacity);
    pthread_mutex_unlock(&soft_lock);
    return count;
}
