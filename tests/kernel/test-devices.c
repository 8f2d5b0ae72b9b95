/* SPDX-License-Identifier: MIT */
/*
 * test-devices.c - units through stacked devices (VLAN, bridge, tunnels), with the
 * parameter that selects when kept sums are used, and devices and namespaces that are
 * removed while the module watches them.
 */
#include <fcntl.h>
#include <nabc-uapi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device.h"
#include "guest.h"

enum { SIZE = 300000 };

static struct device device;

/*
 * Sends a unit over one connection, in pieces of any size; returns the bytes whose
 * kept sums were used.
 */
static uint64_t pass(int family, const char *to, uint32_t flags)
{
	struct guest_pair pair = guest_connect_to(family, to);
	uint64_t id = device_unit(&device, 31, SIZE), state = 5, done = 0;
	uint64_t before = device_statistics(device.fd).sum_reused;

	while (done < SIZE) {
		uint64_t length = 1 + guest_random(&state) % 40000;

		if (length > SIZE - done)
			length = SIZE - done;
		device_send(&device, pair.near, id, done, length, flags);
		must(guest_receive(pair.far, 31, done, length));
		done += length;
	}
	must(nabc_destroy(device.fd, id) == 0);
	guest_disconnect(&pair);
	return device_statistics(device.fd).sum_reused - before;
}

static void test_upper(const char *name, const char *here, const char *there, const char *undo,
		       const char *v4, const char *v6)
{
	uint64_t reused = 0;

	guest_run("%s", here);
	guest_run("%s", there);
	for (uint32_t flags = 0; flags <= NABC_SEND_SUMS; flags += NABC_SEND_SUMS)
		for (int on = 0; on < 2; on++) {
			guest_offload(on);
			reused += pass(AF_INET, v4, flags);
			if (v6)
				reused += pass(AF_INET6, v6, flags);
		}
	guest_run("%s", undo);
	guest_tested("%s: %llu bytes with kept sums", name, (unsigned long long)reused);
}

static void set_sums(const char *value)
{
	guest_run("echo %s >/sys/module/nabc/parameters/sums", value);
}

/* 0 never, 1 for sends that ask, 2 also for all sends at large MTUs. */
static void test_parameter(void)
{
	guest_offload(false);
	set_sums("0");
	must(pass(AF_INET, "10.9.0.2", NABC_SEND_SUMS) == 0);
	set_sums("2");
	must(pass(AF_INET, "10.9.0.2", 0) == 0);
	guest_run("/sbin/ip link set near mtu 9000 && /sbin/ip -n peer link set far mtu 9000");
	must(pass(AF_INET, "10.9.0.2", 0) > 0);
	must(pass(AF_INET6, "fd09::2", 0) > 0);
	set_sums("1");
	must(pass(AF_INET, "10.9.0.2", 0) == 0);
	must(pass(AF_INET, "10.9.0.2", NABC_SEND_SUMS) > 0);
	guest_run("/sbin/ip link set near mtu 1500 && /sbin/ip -n peer link set far mtu 1500");
	guest_offload(true);
	guest_tested("the parameter sums");
}

/* Devices that are added and removed, with their namespace or alone, with bytes in flight. */
static void test_gone(void)
{
	for (int i = 0; i < 10; i++) {
		struct guest_pair pair;
		uint64_t id = device_unit(&device, 1, SIZE);

		guest_run(
			"/sbin/ip link add brief type veth peer name other netns peer &&"
			" /sbin/ip addr add 10.9.7.1/24 dev brief && /sbin/ip link set brief up &&"
			" /sbin/ip -n peer addr add 10.9.7.2/24 dev other &&"
			" /sbin/ip -n peer link set other up");
		pair = guest_connect_to(AF_INET, "10.9.7.2");
		/* Without offload, so that the module handles it. */
		guest_offload_of("brief", false);
		guest_run("/sbin/tc qdisc add dev brief root netem delay 50ms");
		must(nabc_socksend(device.fd, pair.near, id, 0, SIZE,
				   NABC_SEND_SUMS | NABC_SEND_DONTWAIT) > 0);
		if (i % 2)
			guest_run("/sbin/ip link del brief");
		else
			guest_run("/sbin/ip -n peer link del other");
		must(nabc_destroy(device.fd, id) == 0);
		guest_disconnect(&pair);
	}
	guest_tested("devices that go");
}

/* The sending namespace itself is removed. */
static int in_brief_namespace(void *context)
{
	const struct device *parent = context;
	struct guest_pair pair;
	struct device own;

	guest_enter("brief");
	close(parent->fd);
	guest_offload(false);
	device_open(&own);
	pair = guest_connect_to(AF_INET, "10.9.8.2");
	must(nabc_socksend(own.fd, pair.near, device_unit(&own, 1, SIZE), 0, SIZE,
			   NABC_SEND_SUMS | NABC_SEND_DONTWAIT) > 0);
	return 0;
}

static bool link_is_gone(void *context)
{
	(void)context;
	return system("/sbin/ip -n peer link show other >/dev/null 2>&1") != 0;
}

static void test_namespace(void)
{
	for (int i = 0; i < 5; i++) {
		guest_run("/sbin/ip netns add brief && /sbin/ip -n brief link add near type veth"
			  " peer name other netns peer &&"
			  " /sbin/ip -n brief addr add 10.9.8.1/24 dev near &&"
			  " /sbin/ip -n brief link set near up &&"
			  " /sbin/ip -n peer addr add 10.9.8.2/24 dev other &&"
			  " /sbin/ip -n peer link set other up");
		guest_run("/sbin/tc -n brief qdisc add dev near root netem delay 50ms");
		guest_join(guest_fork(in_brief_namespace, &device));
		guest_run("/sbin/ip netns del brief");
		/* It is removed in the background, after its sockets were closed. */
		must(guest_wait(link_is_gone, NULL));
	}
	guest_tested("namespaces that go");
}

/* The module is unloaded and loaded while devices stay. */
static void test_hooks(void)
{
	uint64_t hooks;

	guest_offload(false);
	must(pass(AF_INET, "10.9.0.2", NABC_SEND_SUMS) > 0);
	hooks = device_statistics(device.fd).hooks;
	must(hooks > 0);
	device_close(&device);
	must(guest_unload() == 0);
	must(guest_load("") == 0);
	device_open(&device);
	must(device_statistics(device.fd).hooks == 0);
	must(pass(AF_INET, "10.9.0.2", NABC_SEND_SUMS) > 0);
	guest_offload(true);
	guest_tested("%llu hooks, that go with the module", (unsigned long long)hooks);
}

int main(void)
{
	device_open(&device);
	test_upper("VLAN",
		   "/sbin/ip link add link near name upper type vlan id 5 &&"
		   " /sbin/ip addr add 10.9.5.1/24 dev upper &&"
		   " /sbin/ip addr add fd0a::1/64 dev upper nodad && /sbin/ip link set upper up",
		   "/sbin/ip -n peer link add link far name upper type vlan id 5 &&"
		   " /sbin/ip -n peer addr add 10.9.5.2/24 dev upper &&"
		   " /sbin/ip -n peer addr add fd0a::2/64 dev upper nodad &&"
		   " /sbin/ip -n peer link set upper up",
		   "/sbin/ip link del upper && /sbin/ip -n peer link del upper", "10.9.5.2",
		   "fd0a::2");
	test_upper("IPv4 in IPv4",
		   "/sbin/ip tunnel add upper mode ipip local 10.9.0.1 remote 10.9.0.2 &&"
		   " /sbin/ip addr add 10.9.6.1/24 dev upper && /sbin/ip link set upper up",
		   "/sbin/ip -n peer tunnel add upper mode ipip local 10.9.0.2 remote 10.9.0.1 &&"
		   " /sbin/ip -n peer addr add 10.9.6.2/24 dev upper &&"
		   " /sbin/ip -n peer link set upper up",
		   "/sbin/ip link del upper && /sbin/ip -n peer link del upper", "10.9.6.2", NULL);
	test_upper(
		"bridge",
		"/sbin/ip link add upper type bridge && /sbin/ip addr flush dev near &&"
		" /sbin/ip link set near master upper && /sbin/ip addr add 10.9.0.1/24 dev upper &&"
		" /sbin/ip addr add fd09::1/64 dev upper nodad && /sbin/ip link set upper up",
		"timeout 60 sh -c 'until grep -qx up /sys/class/net/upper/operstate;"
		" do usleep 10000; done'",
		"/sbin/ip link del upper && /sbin/ip addr add 10.9.0.1/24 dev near &&"
		" /sbin/ip addr add fd09::1/64 dev near nodad",
		"10.9.0.2", "fd09::2");
	test_parameter();
	test_gone();
	test_namespace();
	test_hooks();
	device_close(&device);
	return 0;
}
