/* SPDX-License-Identifier: MIT */
/*
 * test-library.c - libnabc with the module: an owner's units of all sizes over IPv4
 * and IPv6, mixed messages, sockets that the module refuses, bytes in flight, little
 * memory, and users who may not open the device.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nabc-async.h>
#include <nabc-uapi.h>
#include <nabc.h>

#include "device.h"
#include "guest.h"
#include "library.h"

#ifndef TCP_ULP
#define TCP_ULP 31
#endif

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static const size_t sizes[] = {8 * KIB, 10000, 100000, MIB, 3 * MIB + 5};

static NC_cache *open_cache(size_t size)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = size);
	NC_cache *cache = NC_cache_open(&options);

	must(cache);
	return cache;
}

static void test_units(int family)
{
	NC_cache *cache = open_cache(64 * MIB);
	struct guest_pair pair = guest_connect(family);
	struct NC_hold hold;
	uint64_t bytes = 0;

	must(strcmp(library_stat().kernel, "used") == 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t id = library_unit(i, sizes[i], NC_KIND_AUTO);

		must(library_kind(id) == NC_KIND_KERNEL);
		library_send(pair.near, pair.far, id, i, 0, sizes[i], 0, NULL);
		library_send(pair.near, pair.far, id, i, 777, sizes[i] - 1000, NC_SEND_DONTWAIT,
			     NULL);
		bytes += sizes[i] + sizes[i] - 1000;
		must(NC_destroy(NULL, id) == 0);
		must_fail(NC_hold(NULL, id, &hold), ENOENT);
	}
	must(library_stat().by_kernel.bytes == bytes);
	must(library_stat().by_copy.bytes + library_stat().by_splice.bytes == 0);
	must(library_stat().kernel_copies == 0);
	must(library_module().units == 0);
	guest_disconnect(&pair);
	must(NC_cache_close(cache) == 0);
	must(library_module().files == 0);
	guest_tested("an owner's units, IPv%d", family == AF_INET ? 4 : 6);
}

/* From a file: with sums through the mapping, without sums directly into the unit. */
static void test_read(void)
{
	static unsigned char bytes[100000], got[100000];
	NC_cache *cache = open_cache(64 * MIB);
	int fd = open("/tmp/file", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	guest_fill(bytes, 5, 0, sizeof(bytes));
	must(write(fd, bytes, sizeof(bytes)) == sizeof(bytes));
	for (unsigned i = 0; i < 2; i++) {
		uint64_t before = library_module().read_bytes;
		struct NC_hold hold;
		const void *data;
		NC_handle handle;
		uint32_t sum, other;
		size_t id, run;

		must(lseek(fd, 0, SEEK_SET) == 0);
		must(NC_unit_alloc(NULL, &handle, sizeof(bytes), 0, NC_KIND_KERNEL,
				   i ? NC_UNIT_UNSUMMED : 0) == 0);
		must(NC_read(fd, &handle, 0, sizeof(bytes)) == sizeof(bytes));
		must(NC_insert(&handle) == 0);
		id = NC_cache_id(&handle);
		must(NC_free(&handle) == 0);
		must(library_kind(id) == NC_KIND_KERNEL);
		must(library_module().read_bytes - before == sizeof(bytes));
		must(NC_pread(cache, id, got, sizeof(got), 0) == sizeof(got));
		must(memcmp(got, bytes, sizeof(got)) == 0);
		must(library_stat().kernel_copies == i);
		must(NC_checksum(cache, id, &sum, NC_CHECKSUM_INET, 99997, 1) == 0);
		must(library_stat().kernel_copies == i);
		must(NC_hold(NULL, id, &hold) == 0);
		data = NC_data(&hold, &run, 4097);
		must(data && run == sizeof(bytes) - 4097 && !memcmp(data, bytes + 4097, run));
		must(NC_release(&hold) == 0);
		must(library_stat().kernel_copies == i + 1);
		if (i)
			must_fail(NC_verify(cache, id), ENODATA);
		else
			must(NC_verify(cache, id) == 0);
		must(NC_destroy(NULL, id) == 0);
		id = library_unit(5, sizeof(bytes), NC_KIND_RECYCLED);
		must(NC_checksum(cache, id, &other, NC_CHECKSUM_INET, 99997, 1) == 0);
		must(sum == other);
		must(NC_destroy(NULL, id) == 0);
	}
	close(fd);
	must(NC_cache_close(cache) == 0);
	guest_tested("read from a file, looked at");
}

static int read_mixed(void *context)
{
	const int *socket = context;

	return guest_receive(*socket, 1, 0, 50000) && guest_receive(*socket, 2, 1, 300) &&
			       guest_receive(*socket, 3, 7, 200000) &&
			       guest_receive(*socket, 1, 49999, 1) && guest_ended(*socket)
		       ? 0
		       : 1;
}

/* Units in the module and others in one message, to its end. */
static void test_mixed(void)
{
	NC_cache *cache = open_cache(64 * MIB);
	struct guest_pair pair = guest_connect(AF_INET6);
	size_t ids[3] = {library_unit(1, 50000, NC_KIND_KERNEL),
			 library_unit(2, 4000, NC_KIND_RECYCLED),
			 library_unit(3, MIB, NC_KIND_APPENDED)};
	struct NC_range ranges[] = {
		{ids[0], 0, 50000}, {ids[1], 1, 300}, {ids[2], 7, 200000}, {ids[0], 49999, 1}};
	struct NC_send message =
		NC_SEND_INIT(.ranges = ranges, .range_count = 4, .flags = NC_SEND_CLOSE);
	pid_t child = guest_fork(read_mixed, &pair.far);

	must(NC_send(NULL, pair.near, &message) == 250301);
	guest_join(child);
	must(library_stat().by_kernel.bytes == 50001);
	must_fail(NC_socksend(pair.near, ids[0], 0, 1), EPIPE);
	guest_disconnect(&pair);
	must(NC_cache_close(cache) == 0);
	guest_tested("mixed messages");
}

/* The module refuses; the bytes arrive all the same. */
static void test_refused(void)
{
	NC_cache *cache = open_cache(64 * MIB);
	struct guest_pair pair = guest_connect(AF_INET);
	size_t id = library_unit(4, 300000, NC_KIND_AUTO);
	uint64_t asked;
	int ends[2];

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	library_send(ends[0], ends[1], id, 4, 0, 300000, 0, NULL);
	must(library_stat().kernel_refused > 0 && library_stat().kernel_copies == 1);
	must(setsockopt(pair.near, IPPROTO_TCP, TCP_ULP, "tls", 4) == 0);
	library_send(pair.near, pair.far, id, 4, 0, 300000, 0, NULL);
	must(library_stat().kernel_copies == 1);
	must(library_stat().by_kernel.bytes == 0);
	/* The library remembers such a socket, at least until it sends to another. */
	for (unsigned i = 0; i < 2; i++) {
		const int near = i ? pair.near : ends[0], far = i ? pair.far : ends[1];

		library_send(near, far, id, 4, 0, 300000, 0, NULL);
		asked = library_module().refused;
		library_send(near, far, id, 4, 0, 300000, 0, NULL);
		must(library_module().refused == asked);
	}
	guest_disconnect(&pair);
	pair = guest_connect(AF_INET);
	library_send(pair.near, pair.far, id, 4, 0, 300000, 0, NULL);
	must(library_stat().by_kernel.bytes == 300000);
	guest_disconnect(&pair);
	close(ends[0]);
	close(ends[1]);
	must(NC_cache_close(cache) == 0);
	guest_tested("Unix sockets, and TLS in the kernel");
}

/* Destroyed, evicted and replaced while no process reads: sent bytes stay. */
static void test_flight(void)
{
	NC_cache *cache = open_cache(8 * MIB);
	struct guest_pair pair = guest_connect(AF_INET);
	size_t id = library_unit(6, MIB, NC_KIND_AUTO);
	ssize_t sent = NC_socksend(pair.near, id, 0, 60000);

	must(sent == 60000);
	must(NC_destroy(NULL, id) == 0);
	for (unsigned i = 0; i < 32; i++)
		(void)library_unit(100 + i, MIB, NC_KIND_AUTO);
	must(library_stat().evictions >= 24);
	must(library_module().unit_memory <= 8 * MIB);
	must(guest_receive(pair.far, 6, 0, 60000));
	guest_disconnect(&pair);
	must(NC_cache_close(cache) == 0);
	must(library_module().units == 0 && library_module().files == 0);
	guest_tested("units that go while their bytes are under way");
}

static int read_ring(void *context)
{
	const int *socket = context;

	for (unsigned i = 0; i < 5; i++)
		if (!guest_receive(*socket, i, 0, 400000))
			return 1;
	return 0;
}

/* Through the library's ring, which never blocks. */
static void test_ring(void)
{
	NC_cache *cache = open_cache(64 * MIB);
	struct guest_pair pair = guest_connect(AF_INET);
	NC_sender *ring = NC_sender_open(cache, 0, 0);
	struct NC_completion done[5];
	pid_t child;
	int over = 0;

	must(ring);
	child = guest_fork(read_ring, &pair.far);
	for (unsigned i = 0; i < 5; i++) {
		struct NC_range range = {library_unit(i, 400000, NC_KIND_AUTO), 0, 400000};
		struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);

		must(NC_sender_send(ring, pair.near, &message, NULL) == 0);
	}
	must(NC_sender_submit(ring) >= 0);
	while (over < 5) {
		struct pollfd wait = {.fd = NC_sender_fd(ring), .events = POLLIN};
		int reaped;

		must(poll(&wait, 1, 60000) == 1);
		reaped = NC_sender_reap(ring, done, sizeof(*done), 5);
		must(reaped >= 0);
		for (int i = 0; i < reaped; i++)
			must(done[i].error == 0 && done[i].sent == 400000);
		over += reaped;
	}
	guest_join(child);
	must(library_stat().by_kernel.bytes == 5 * 400000);
	must(library_stat().kernel_copies == 0);
	must(NC_sender_close(ring) == 0);
	guest_disconnect(&pair);
	must(NC_cache_close(cache) == 0);
	guest_tested("a ring of the library");
}

static void become(uid_t user, rlim_t locked)
{
	struct rlimit limit = {locked, locked};

	must(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
	must(setgroups(0, NULL) == 0);
	must(setgid(user) == 0 && setuid(user) == 0);
}

/* Units beyond the limit on locked memory of an ordinary user fall back to other memory. */
static int with_little_memory(void *context)
{
	struct guest_pair *pair = context;
	unsigned kernel = 0;
	size_t ids[16];

	become(LIBRARY_USER, 2 * MIB);
	must(open_cache(64 * MIB));
	for (unsigned i = 0; i < 16; i++) {
		ids[i] = library_unit(i, 256 * KIB, NC_KIND_AUTO);
		kernel += library_kind(ids[i]) == NC_KIND_KERNEL;
	}
	must(kernel > 0 && kernel <= 8);
	must(library_stat().kernel_memory == 16 - kernel);
	for (unsigned i = 0; i < 16; i++)
		library_send(pair->near, pair->far, ids[i], i, 0, 256 * KIB, 0, NULL);
	must(library_stat().by_kernel.bytes == kernel * 256 * KIB);
	return 0;
}

/* A user who may not open it gets the same bytes, and the reason. */
static int as_stranger(void *context)
{
	struct guest_pair *pair = context;
	size_t id;

	become(LIBRARY_STRANGER, 8 * MIB);
	must(open_cache(64 * MIB));
	must(strcmp(library_stat().kernel, "not used: /dev/nabc: Permission denied") == 0);
	id = library_unit(1, 100000, NC_KIND_KERNEL);
	must(library_kind(id) == NC_KIND_APPENDED);
	must_fail(NC_route_set(NULL, "*", NC_METHOD_KERNEL), EOPNOTSUPP);
	library_send(pair->near, pair->far, id, 1, 0, 100000, 0, NULL);
	return 0;
}

static int without_wanting(void *context)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.flags = NC_CACHE_NO_KERNEL);
	struct guest_pair *pair = context;
	size_t id;

	must(NC_cache_open(&options));
	must(strcmp(library_stat().kernel, "not used: disabled by the program") == 0);
	id = library_unit(1, 100000, NC_KIND_AUTO);
	must(library_kind(id) == NC_KIND_APPENDED);
	library_send(pair->near, pair->far, id, 1, 0, 100000, 0, NULL);
	return 0;
}

static void test_users(void)
{
	struct guest_pair pair = guest_connect(AF_INET);

	must(chown(NABC_DEVICE, 0, LIBRARY_USER) == 0);
	guest_join(guest_fork(with_little_memory, &pair));
	guest_join(guest_fork(as_stranger, &pair));
	guest_join(guest_fork(without_wanting, &pair));
	must(chown(NABC_DEVICE, 0, 0) == 0);
	guest_disconnect(&pair);
	guest_tested("little memory, no permission, no wish");
}

/* All memory of a killed process is free within a second. */
static int fill_and_wait(void *context)
{
	const int *ready = context;

	must(open_cache(64 * MIB));
	for (unsigned i = 0; i < 16; i++)
		(void)library_unit(i, MIB, NC_KIND_AUTO);
	must(write(*ready, "x", 1) == 1);
	pause();
	return 0;
}

static void test_killed(void)
{
	int ready[2], fd = open(NABC_DEVICE, O_RDWR | O_CLOEXEC);
	pid_t child;
	char byte;

	must(pipe(ready) == 0 && fd >= 0);
	child = guest_fork(fill_and_wait, &ready[1]);
	must(read(ready[0], &byte, 1) == 1);
	must(device_statistics(fd).units == 16);
	must(kill(child, SIGKILL) == 0);
	must(device_wait(fd, GAUGE(units), 0));
	must(device_wait(fd, GAUGE(pooled_memory), 0));
	close(fd);
	close(ready[0]);
	close(ready[1]);
	guest_tested("kill -9 of an owner");
}

/* Sends a unit of 100 KB by the library; returns the bytes sent with kept checksums. */
static uint64_t send_summed(int family)
{
	uint64_t before = library_module().sum_reused;
	struct guest_pair pair = guest_connect(family);
	size_t id = library_unit(9, 100000, NC_KIND_AUTO);

	library_send(pair.near, pair.far, id, 9, 0, 100000, 0, NULL);
	must(NC_destroy(NULL, id) == 0);
	guest_disconnect(&pair);
	return library_module().sum_reused - before;
}

/* The module keeps checksums where the device computes none and segments are large. */
static void test_sums(void)
{
	NC_cache *cache = open_cache(64 * MIB);
	int fd = open(NABC_DEVICE, O_RDWR | O_CLOEXEC);

	must(fd >= 0);
	for (unsigned i = 0; i < 4; i++) {
		const bool offload = i & 1, large = i & 2;
		uint64_t reused;

		guest_offload(offload);
		guest_run("/sbin/ip link set near mtu %u && /sbin/ip -n peer link set far mtu %u",
			  large ? 9000 : 1500, large ? 9000 : 1500);
		reused = send_summed(AF_INET);
		/* The module hooks on to the device after the first message that wants it. */
		if (!offload && large) {
			must(device_wait(fd, GAUGE(hooks), 1));
			reused = send_summed(AF_INET);
		}
		must((reused > 0) == (!offload && large));
		reused = send_summed(AF_INET6);
		must((reused > 0) == (!offload && large));
	}
	guest_run("/sbin/ip link set near mtu 1500 && /sbin/ip -n peer link set far mtu 1500");
	guest_offload(true);
	close(fd);
	must(NC_cache_close(cache) == 0);
	guest_tested("kept checksums where they pay");
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	test_units(AF_INET);
	test_units(AF_INET6);
	test_read();
	test_mixed();
	test_refused();
	test_flight();
	test_sums();
	test_ring();
	test_users();
	test_killed();
	return 0;
}
