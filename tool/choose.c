/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice of choose.h: each device, port and GID that fits the wish gets a rank, the highest
 * wins. Where none fits, the reason names what came nearest.
 */
#include "choose.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* How far a GID's packets travel, and what it is. The order is the preference. */
enum reach {
    REACH_LINK_LOCAL,
    REACH_LOOPBACK,
    REACH_GLOBAL,
    REACH_IPV4,
    REACH_COUNT,
};

static const char *const reach_text[REACH_COUNT] = {
    [REACH_LINK_LOCAL] = "a link-local address, which no router forwards",
    [REACH_LOOPBACK] = "the loopback address, which reaches this host alone",
    [REACH_GLOBAL] = "a global IPv6 address",
    [REACH_IPV4] = "an IPv4 address",
};

static enum reach gid_reach(const struct db_gid *gid)
{
    static const uint8_t ipv4_mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    static const uint8_t ipv6_loopback[16] = {[15] = 1};
    const uint8_t *address = gid->address;

    if (memcmp(address, ipv4_mapped, sizeof(ipv4_mapped)) == 0) {
        if (address[12] == 127)
            return REACH_LOOPBACK;
        return address[12] == 169 && address[13] == 254 ? REACH_LINK_LOCAL : REACH_IPV4;
    }
    if (memcmp(address, ipv6_loopback, sizeof(ipv6_loopback)) == 0)
        return REACH_LOOPBACK;
    return address[0] == 0xfe && (address[1] & 0xc0) == 0x80 ? REACH_LINK_LOCAL : REACH_GLOBAL;
}

/* Higher is better; -1 = unfit. On InfiniBand LIDs address the port and any GID will do, so that
 * the first one wins. */
static int rank(const struct db_device *device, const struct db_port *port,
                const struct db_gid *gid)
{
    int hardware = device->software ? 0 : 100;

    if (port->link == DB_LINK_INFINIBAND)
        return hardware + 50;
    if (!gid)
        return -1;
    return hardware + (gid->type == DB_GID_ROCE_V2 ? 10 : 0) + (int)gid_reach(gid);
}

/* What stands in the way, furthest along last. */
enum obstacle {
    NO_DEVICE,
    NO_SUCH_DEVICE,
    NOT_MLX5,
    NOT_OPENED,
    NO_SUCH_PORT,
    PORT_DOWN,
    NO_GID,
};

struct failure {
    enum obstacle obstacle;
    const struct db_device *device;
    const struct db_port *port;
};

static void note(struct failure *failure, enum obstacle obstacle, const struct db_device *device,
                 const struct db_port *port)
{
    if (obstacle > failure->obstacle)
        *failure = (struct failure){obstacle, device, port};
}

static void explain_failure(const struct failure *failure, const struct db_choice_wish *wish,
                            struct db_choice *choice)
{
    const char *device = failure->device ? failure->device->name : "";
    const struct db_port *port = failure->port;
    char *text = choice->reason;
    size_t bytes = sizeof(choice->reason);

    switch (failure->obstacle) {
    case NO_DEVICE:
        snprintf(text, bytes, "there is no RDMA device; SOFTNIC=on brings the software one");
        break;
    case NO_SUCH_DEVICE:
        snprintf(text, bytes, "there is no device '%s'; one of those listed is needed",
                 wish->device);
        break;
    case NOT_MLX5:
        snprintf(text, bytes, "%s is not served by libmlx5, which Doorbell needs", device);
        break;
    case NOT_OPENED:
        snprintf(text, bytes, "%s cannot be opened: %s; see the permissions of /dev/infiniband",
                 device, strerror(-failure->device->open_error));
        break;
    case NO_SUCH_PORT:
        snprintf(text, bytes, "%s has no port %u; it has %zu", device, wish->port,
                 failure->device->n_ports);
        break;
    case PORT_DOWN:
        snprintf(text, bytes,
                 "port %u of %s is %s, not active; see its cable and its network device",
                 port->number, device, port->state);
        break;
    case NO_GID:
        if (wish->gid_index == DB_ANY_GID)
            snprintf(text, bytes, "port %u of %s has no GID; give its network device an address",
                     port->number, device);
        else
            snprintf(text, bytes,
                     "port %u of %s has no GID at index %d; one of those listed is needed",
                     port->number, device, wish->gid_index);
        break;
    }
}

struct search {
    const struct db_choice_wish *wish;
    struct db_choice *choice;
    struct failure failure;
    int best;
    unsigned n_active; /* ports that could be used */
};

static void offer(struct search *search, const struct db_device *device, const struct db_port *port,
                  const struct db_gid *gid)
{
    int this_rank = rank(device, port, gid);

    if (this_rank <= search->best)
        return;
    search->best = this_rank;
    search->choice->device = device;
    search->choice->port = port;
    search->choice->gid = gid;
}

static void search_port(struct search *search, const struct db_device *device,
                        const struct db_port *port)
{
    int wanted = search->wish->gid_index;

    if (!port->active) {
        note(&search->failure, PORT_DOWN, device, port);
        return;
    }
    note(&search->failure, NO_GID, device, port);
    search->n_active++;
    for (size_t i = 0; i < port->n_gids; i++) {
        if (wanted == DB_ANY_GID || port->gids[i].index == (uint32_t)wanted)
            offer(search, device, port, &port->gids[i]);
    }
    if (wanted == DB_ANY_GID)
        offer(search, device, port, NULL);
}

static void search_device(struct search *search, const struct db_device *device)
{
    const struct db_choice_wish *wish = search->wish;

    note(&search->failure, NO_SUCH_DEVICE, device, NULL);
    if (wish->device && strcmp(wish->device, device->name) != 0)
        return;
    if (!device->mlx5) {
        note(&search->failure, NOT_MLX5, device, NULL);
        return;
    }
    if (device->open_error) {
        note(&search->failure, NOT_OPENED, device, NULL);
        return;
    }
    note(&search->failure, NO_SUCH_PORT, device, NULL);
    for (size_t i = 0; i < device->n_ports; i++) {
        if (!wish->port || wish->port == device->ports[i].number)
            search_port(search, device, &device->ports[i]);
    }
}

static void explain(const struct search *search)
{
    const struct db_choice_wish *wish = search->wish;
    struct db_choice *choice = search->choice;
    char origin[64];

    if (wish->device || wish->port)
        snprintf(origin, sizeof(origin), "asked for");
    else if (search->n_active == 1)
        snprintf(origin, sizeof(origin), "the only active port");
    else
        snprintf(origin, sizeof(origin), "the best of %u active ports", search->n_active);

    if (choice->port->link == DB_LINK_INFINIBAND) {
        snprintf(choice->reason, sizeof(choice->reason), "%s; LIDs address it, so any GID will do",
                 origin);
        return;
    }

    enum reach reach = gid_reach(choice->gid);
    bool v2 = choice->gid->type == DB_GID_ROCE_V2;
    snprintf(choice->reason, sizeof(choice->reason), "%s; its %sGID is %s%s", origin,
             wish->gid_index == DB_ANY_GID ? "best " : "", v2 ? "RoCE v2 with " : "RoCE v1, ",
             v2 ? reach_text[reach] : "which no router forwards");
    choice->degraded = !choice->device->software && (!v2 || reach < REACH_GLOBAL);
}

int db_choose(const struct db_device_list *list, const struct db_choice_wish *wish,
              struct db_choice *choice)
{
    struct search search = {.wish = wish, .choice = choice, .best = -1};

    *choice = (struct db_choice){0};
    for (size_t i = 0; i < list->n_devices; i++)
        search_device(&search, &list->devices[i]);
    if (!choice->device) {
        explain_failure(&search.failure, wish, choice);
        return -ENODEV;
    }
    explain(&search);
    return 0;
}
