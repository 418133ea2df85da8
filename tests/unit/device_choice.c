/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: the device, port and GID that are used by default are the ones that the documentation
 * says, a wish is obeyed or refused by name, and the reason is true. Machines are made up here; no
 * device is opened.
 */
#include <arpa/inet.h>
#include <doorbell/inventory.h>
#include <errno.h>
#include <string.h>

#include "../check.h"

#define N_GIDS  8
#define N_PORTS 2
#define N_NICS  3

struct machine {
    struct db_nic_gid gids[N_NICS][N_PORTS][N_GIDS];
    struct db_nic_port ports[N_NICS][N_PORTS];
    struct db_nic nics[N_NICS];
    struct db_inventory inventory;
};

static struct db_nic *add_nic(struct machine *machine, const char *name)
{
    size_t i = machine->inventory.n_nics++;
    struct db_nic *nic = &machine->nics[i];

    machine->inventory.nics = machine->nics;
    snprintf(nic->name, sizeof(nic->name), "%s", name);
    nic->mlx5 = true;
    nic->ports = machine->ports[i];
    return nic;
}

static struct db_nic_port *add_port(struct machine *machine, enum db_link link, bool active)
{
    size_t i = machine->inventory.n_nics - 1;
    size_t j = machine->nics[i].n_ports++;
    struct db_nic_port *port = &machine->ports[i][j];

    *port = (struct db_nic_port){.number = (uint32_t)j + 1,
                                 .active = active,
                                 .state = active ? "PORT_ACTIVE" : "PORT_DOWN",
                                 .link = link,
                                 .gids = machine->gids[i][j]};
    return port;
}

static void add_gid(struct db_nic_port *port, uint32_t index, enum db_gid_type type,
                    const char *address)
{
    struct db_nic_gid *gid = &port->gids[port->n_gids++];

    gid->index = index;
    gid->type = type;
    CHECK(inet_pton(AF_INET6, address, gid->address) == 1, "%s", address);
}

/* The table of a host with one IPv4 address, in the order that Linux fills it. */
static void add_usual_gids(struct db_nic_port *port, const char *ipv4)
{
    add_gid(port, 0, DB_GID_ROCE_V1, "fe80::1");
    add_gid(port, 1, DB_GID_ROCE_V2, "fe80::1");
    add_gid(port, 2, DB_GID_ROCE_V1, ipv4);
    add_gid(port, 3, DB_GID_ROCE_V2, ipv4);
}

/* The arguments of db_inventory_choose(). */
struct wish {
    const char *name;
    struct db_device_options options;
};

static void expect(const struct machine *machine, struct wish wish, const char *device,
                   uint32_t port, int gid_index, bool degraded, const char *reason)
{
    struct db_choice choice;

    CHECK(db_inventory_choose(&machine->inventory, wish.name, &wish.options, &choice) == 0,
          "refused: %s", choice.reason);
    CHECK(strcmp(choice.nic->name, device) == 0, "%s chosen: %s", choice.nic->name, choice.reason);
    CHECK(choice.port->number == port, "port %u chosen: %s", choice.port->number, choice.reason);
    int index = choice.gid ? (int)choice.gid->index : DB_ANY_GID;
    CHECK(index == gid_index, "GID %d chosen, not %d: %s", index, gid_index, choice.reason);
    CHECK(choice.degraded == degraded, "degraded %d: %s", choice.degraded, choice.reason);
    CHECK(strstr(choice.reason, reason) != NULL, "'%s' is not in '%s'", reason, choice.reason);
}

static void expect_refusal(const struct machine *machine, struct wish wish, int error,
                           const char *reason)
{
    struct db_choice choice;
    int returned = db_inventory_choose(&machine->inventory, wish.name, &wish.options, &choice);

    CHECK(returned == error, "%d: %s", returned, choice.reason);
    CHECK(choice.nic == NULL, "refused and chosen");
    CHECK(strstr(choice.reason, reason) != NULL, "'%s' is not in '%s'", reason, choice.reason);
}

static void expect_none(const struct machine *machine, struct wish wish, const char *reason)
{
    expect_refusal(machine, wish, -ENODEV, reason);
}

static const struct wish any = {.options = DB_DEVICE_OPTIONS};

static void test_gid_order(void)
{
    struct machine machine = {0};

    add_nic(&machine, "mlx5_0");
    struct db_nic_port *port = add_port(&machine, DB_LINK_ETHERNET, true);

    add_gid(port, 0, DB_GID_ROCE_V1, "::ffff:10.0.0.1");
    expect(&machine, any, "mlx5_0", 1, 0, true, "RoCE v1, which no router forwards");
    add_gid(port, 1, DB_GID_ROCE_V2, "fe80::1");
    expect(&machine, any, "mlx5_0", 1, 1, true, "link-local");
    add_gid(port, 2, DB_GID_ROCE_V2, "::ffff:169.254.3.4");
    expect(&machine, any, "mlx5_0", 1, 1, true, "link-local");
    add_gid(port, 3, DB_GID_ROCE_V2, "::ffff:127.0.0.1");
    expect(&machine, any, "mlx5_0", 1, 3, true, "loopback");
    add_gid(port, 4, DB_GID_ROCE_V2, "2001:db8::1");
    expect(&machine, any, "mlx5_0", 1, 4, false, "global IPv6");
    add_gid(port, 5, DB_GID_ROCE_V2, "::ffff:10.0.0.1");
    expect(&machine, any, "mlx5_0", 1, 5, false, "the only active port");
    add_gid(port, 6, DB_GID_ROCE_V2, "::ffff:10.0.0.2");
    expect(&machine, any, "mlx5_0", 1, 5, false, "an IPv4 address");
}

static void test_ports_and_devices(void)
{
    struct machine machine = {0};

    expect_none(&machine, any, "there is no RDMA device");
    add_nic(&machine, "mlx5_soft0")->software = true;
    add_usual_gids(add_port(&machine, DB_LINK_ETHERNET, true), "::ffff:127.0.0.1");
    expect(&machine, any, "mlx5_soft0", 1, 3, false, "this host alone");

    add_nic(&machine, "mlx5_1");
    add_usual_gids(add_port(&machine, DB_LINK_ETHERNET, false), "::ffff:10.0.0.1");
    expect(&machine, any, "mlx5_soft0", 1, 3, false, "the only active port");
    expect_none(&machine, (struct wish){"mlx5_1", {0, DB_ANY_GID}}, "is PORT_DOWN");

    struct db_nic_port *second = add_port(&machine, DB_LINK_ETHERNET, true);
    expect_none(&machine, (struct wish){"mlx5_1", {2, DB_ANY_GID}}, "has no GID;");
    add_usual_gids(second, "::ffff:10.0.0.2");
    expect(&machine, any, "mlx5_1", 2, 3, false, "the best of 2 active ports");

    add_nic(&machine, "mlx5_2");
    add_port(&machine, DB_LINK_INFINIBAND, true);
    expect(&machine, any, "mlx5_2", 1, DB_ANY_GID, false, "LIDs");
    expect_none(&machine, (struct wish){"mlx5_2", {1, 0}},
                "port 1 of mlx5_2 has no GID at index 0");
    add_gid(&machine.ports[2][0], 0, DB_GID_IB, "fe80::5");
    add_gid(&machine.ports[2][0], 1, DB_GID_IB, "2001:db8::5");
    expect(&machine, any, "mlx5_2", 1, 0, false, "LIDs");
    expect(&machine, (struct wish){"mlx5_2", {1, 1}}, "mlx5_2", 1, 1, false, "asked for");
}

/* What is worst of hardware comes before what is best of software, wherever they are listed. */
static void test_hardware_first(void)
{
    struct machine machine = {0};

    add_nic(&machine, "mlx5_soft0")->software = true;
    add_usual_gids(add_port(&machine, DB_LINK_ETHERNET, true), "::ffff:10.0.0.1");
    add_nic(&machine, "mlx5_0");
    add_gid(add_port(&machine, DB_LINK_ETHERNET, true), 0, DB_GID_ROCE_V1, "fe80::1");
    add_nic(&machine, "mlx5_soft1")->software = true;
    add_usual_gids(add_port(&machine, DB_LINK_ETHERNET, true), "::ffff:10.0.0.2");
    expect(&machine, any, "mlx5_0", 1, 0, true, "the best of 3 active ports");
    expect(&machine, (struct wish){NULL, {0, 3}}, "mlx5_soft0", 1, 3, false, "its GID is RoCE v2");
}

static void test_wishes(void)
{
    struct machine machine = {0};

    add_nic(&machine, "mlx5_0");
    add_usual_gids(add_port(&machine, DB_LINK_ETHERNET, true), "::ffff:10.0.0.1");
    add_nic(&machine, "mlx5_1");
    add_usual_gids(add_port(&machine, DB_LINK_ETHERNET, true), "::ffff:10.0.0.2");

    expect(&machine, (struct wish){"mlx5_1", {0, DB_ANY_GID}}, "mlx5_1", 1, 3, false, "asked for");
    expect(&machine, (struct wish){NULL, {1, 2}}, "mlx5_0", 1, 2, true, "its GID is RoCE v1");
    expect(&machine, (struct wish){"mlx5_1", {1, 1}}, "mlx5_1", 1, 1, true, "link-local");
    expect_none(&machine, (struct wish){"mlx5_9", {0, DB_ANY_GID}}, "no device 'mlx5_9'");
    expect_none(&machine, (struct wish){"mlx5_0", {3, DB_ANY_GID}}, "mlx5_0 has no port 3");
    expect_none(&machine, (struct wish){"mlx5_0", {1, 9}}, "no GID at index 9");
    expect_none(&machine, (struct wish){NULL, {0, -2}}, "no GID at index -2");
    expect_none(&machine, (struct wish){"", {0, DB_ANY_GID}}, "''; there are mlx5_0, mlx5_1");

    struct db_choice choice;
    CHECK(db_inventory_choose(&machine.inventory, NULL, NULL, &choice) == 0, "%s", choice.reason);
    CHECK(choice.nic == &machine.nics[0] && choice.gid == &machine.gids[0][0][3], "%s",
          choice.reason);
}

static void test_unusable_devices(void)
{
    struct machine machine = {0};

    add_nic(&machine, "rxe0")->mlx5 = false;
    add_usual_gids(add_port(&machine, DB_LINK_ETHERNET, true), "::ffff:10.0.0.1");
    expect_none(&machine, any, "rxe0 is not served by libmlx5");

    struct db_nic *nic = add_nic(&machine, "mlx5_0");
    nic->open_error = -EACCES;
    expect_refusal(&machine, any, -EACCES,
                   "mlx5_0 cannot be opened: Permission denied; see the permissions");
    nic->open_error = -EIO;
    expect_refusal(&machine, any, -EIO, "see the kernel's log");
    nic->open_error = 0;
    expect_none(&machine, any, "mlx5_0 has no port;");

    /* A device that can be used hides those that cannot. */
    nic->open_error = -EACCES;
    add_nic(&machine, "mlx5_1");
    struct db_nic_port *unreadable = add_port(&machine, DB_LINK_UNKNOWN, false);
    unreadable->state = "unreadable";
    expect_none(&machine, any, "port 1 of mlx5_1 is unreadable");
    add_usual_gids(add_port(&machine, DB_LINK_ETHERNET, true), "::ffff:10.0.0.3");
    expect(&machine, any, "mlx5_1", 2, 3, false, "the only active port");
    expect_refusal(&machine, (struct wish){"mlx5_0", {0, DB_ANY_GID}}, -EACCES, "mlx5_0");
}

int main(void)
{
    test_gid_order();
    test_ports_and_devices();
    test_hardware_first();
    test_wishes();
    test_unusable_devices();
    return 0;
}
