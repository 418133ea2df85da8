/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice of inventory.h: each device, port and GID that fits the wish gets a rank, the highest
 * wins. Where none fits, the reason names what came nearest.
 */
#include <doorbell/inventory.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "device.h"

/* ---- Rank ---- */

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

static enum reach gid_reach(const struct db_nic_gid *gid)
{
    static const uint8_t ipv4_mapped[12] = {[10] = 0xff, [11] = 0xff};
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
static int rank(const struct db_nic *nic, const struct db_nic_port *port,
                const struct db_nic_gid *gid)
{
    int hardware = nic->software ? 0 : 100;

    if (port->link == DB_LINK_INFINIBAND)
        return hardware + 50;
    if (!gid)
        return -1;
    return hardware + (gid->type == DB_GID_ROCE_V2 ? 10 : 0) + (int)gid_reach(gid);
}

/* ---- The search ---- */

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
    const struct db_nic *nic;
    const struct db_nic_port *port;
};

struct search {
    const struct db_inventory *inventory;
    const char *name;
    struct db_device_options options;
    struct db_choice *choice;
    struct failure failure;
    int best;
    unsigned n_active; /* ports that could be used */
};

static void note(struct search *search, enum obstacle obstacle, const struct db_nic *nic,
                 const struct db_nic_port *port)
{
    if (obstacle > search->failure.obstacle)
        search->failure = (struct failure){obstacle, nic, port};
}

static void offer(struct search *search, const struct db_nic *nic, const struct db_nic_port *port,
                  const struct db_nic_gid *gid)
{
    int this_rank = rank(nic, port, gid);

    if (this_rank <= search->best)
        return;
    search->best = this_rank;
    search->choice->nic = nic;
    search->choice->port = port;
    search->choice->gid = gid;
}

static void search_port(struct search *search, const struct db_nic *nic,
                        const struct db_nic_port *port)
{
    int32_t wanted = search->options.gid_index;

    if (!port->active) {
        note(search, PORT_DOWN, nic, port);
        return;
    }
    note(search, NO_GID, nic, port);
    search->n_active++;
    for (size_t i = 0; i < port->n_gids; i++) {
        if (wanted == DB_ANY_GID || port->gids[i].index == (uint32_t)wanted)
            offer(search, nic, port, &port->gids[i]);
    }
    if (wanted == DB_ANY_GID)
        offer(search, nic, port, NULL);
}

static void search_nic(struct search *search, const struct db_nic *nic)
{
    uint32_t wanted = search->options.port;

    note(search, NO_SUCH_DEVICE, nic, NULL);
    if (search->name && strcmp(search->name, nic->name) != 0)
        return;
    if (!nic->mlx5) {
        note(search, NOT_MLX5, nic, NULL);
        return;
    }
    if (nic->open_error) {
        note(search, NOT_OPENED, nic, NULL);
        return;
    }
    note(search, NO_SUCH_PORT, nic, NULL);
    for (size_t i = 0; i < nic->n_ports; i++) {
        if (!wanted || wanted == nic->ports[i].number)
            search_port(search, nic, &nic->ports[i]);
    }
}

/* ---- Sentences ---- */

__attribute__((format(printf, 2, 3))) static void say(struct db_choice *choice, const char *format,
                                                      ...)
{
    size_t used = strlen(choice->reason);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(choice->reason + used, sizeof(choice->reason) - used, format, arguments);
    va_end(arguments);
}

static void say_no_such_device(const struct search *search)
{
    const struct db_inventory *inventory = search->inventory;

    say(search->choice, "there is no device '%.*s'; there %s ", DB_NAME_BYTES, search->name,
        inventory->n_nics == 1 ? "is" : "are");
    for (size_t i = 0; i < inventory->n_nics; i++)
        say(search->choice, "%s%s", i ? ", " : "", inventory->nics[i].name);
}

static void say_no_gid(const struct search *search)
{
    const struct failure *failure = &search->failure;

    say(search->choice, "port %u of %s has no GID", failure->port->number, failure->nic->name);
    if (search->options.gid_index == DB_ANY_GID)
        say(search->choice, "; give its network device an address");
    else
        say(search->choice, " at index %d; `doorbell info` lists them", search->options.gid_index);
}

static void explain_failure(const struct search *search)
{
    const struct failure *failure = &search->failure;
    const struct db_nic *nic = failure->nic;
    struct db_choice *choice = search->choice;
    char text[DB_SOFTNIC_TEXT_BYTES];

    switch (failure->obstacle) {
    case NO_DEVICE:
        say(choice, "there is no RDMA device; %s", db_softnic_remedy(text));
        break;
    case NO_SUCH_DEVICE:
        say_no_such_device(search);
        break;
    case NOT_MLX5:
        say(choice, "%s is not served by libmlx5; a ConnectX is needed", nic->name);
        break;
    case NOT_OPENED:
        if (nic->software) {
            say(choice, "%s cannot be opened: %s", nic->name,
                db_softnic_obstacle(nic->open_error, text));
            break;
        }
        say(choice, "%s cannot be opened: %s; see %s", nic->name, strerror(-nic->open_error),
            nic->open_error == -EACCES || nic->open_error == -EPERM
                ? "the permissions of /dev/infiniband"
                : "the kernel's log");
        break;
    case NO_SUCH_PORT:
        if (search->options.port)
            say(choice, "%s has no port %u; it has %zu", nic->name, search->options.port,
                nic->n_ports);
        else
            say(choice, "%s has no port; another device is needed", nic->name);
        break;
    case PORT_DOWN:
        say(choice, "port %u of %s is %s, not active; see its cable and its network device",
            failure->port->number, nic->name, failure->port->state);
        break;
    case NO_GID:
        say_no_gid(search);
        break;
    }
}

static void explain(const struct search *search)
{
    struct db_choice *choice = search->choice;

    if (search->name || search->options.port)
        say(choice, "asked for");
    else if (search->n_active == 1)
        say(choice, "the only active port");
    else
        say(choice, "the best of %u active ports", search->n_active);

    if (choice->port->link == DB_LINK_INFINIBAND) {
        say(choice, "; LIDs address it, so any GID will do");
        return;
    }

    enum reach reach = gid_reach(choice->gid);
    bool v2 = choice->gid->type == DB_GID_ROCE_V2;
    say(choice, "; its %sGID is %s%s", search->options.gid_index == DB_ANY_GID ? "best " : "",
        v2 ? "RoCE v2 with " : "RoCE v1, ", v2 ? reach_text[reach] : "which no router forwards");
    choice->degraded = !choice->nic->software && (!v2 || reach < REACH_GLOBAL);
}

int db_inventory_choose(const struct db_inventory *inventory, const char *name,
                        const struct db_device_options *options, struct db_choice *choice)
{
    struct search search = {.inventory = inventory,
                            .name = name,
                            .options = DB_DEVICE_OPTIONS,
                            .choice = choice,
                            .best = -1};

    *choice = (struct db_choice){0};
    if (options)
        search.options = *options;
    for (size_t i = 0; i < inventory->n_nics; i++)
        search_nic(&search, &inventory->nics[i]);
    if (choice->nic) {
        explain(&search);
        return 0;
    }
    explain_failure(&search);
    return search.failure.obstacle == NOT_OPENED ? search.failure.nic->open_error : -ENODEV;
}
