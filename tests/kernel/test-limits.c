/* SPDX-License-Identifier: MIT */
/*
 * test-limits.c - memory counts against RLIMIT_MEMLOCK and memory_limit until its last
 * user has released it: lingering units of a closed file, and memory that sockets
 * refer to, however few bytes of it are unsent, while the process lives and
 * afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <nabc-uapi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device.h"
#include "guest.h"

/* One unit is within the limit, two are not. */
enum { UNIT = 3 << 20, LIMIT = 4 << 20, OWNER = 1000, OTHER = 1001 };

static struct device device;

/* Becomes another user, of the device's group, to whom RLIMIT_MEMLOCK applies. */
static void become(uid_t uid)
{
	const struct rlimit limit = {LIMIT, LIMIT};

	must(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
	must(setgroups(0, NULL) == 0);
	must(setresuid(uid, uid, uid) == 0);
}

/* From now on sent data does not leave, and so is not acknowledged. */
static struct guest_pair connect_in_vain(void)
{
	struct guest_pair pair = guest_connect(AF_INET);

	guest_run("/sbin/tc qdisc replace dev near root netem loss 100%%");
	return pair;
}

/* The socket drops its unsent data; the collector notices that. */
static void disconnect(struct guest_pair *pair)
{
	const struct linger at_once = {.l_onoff = 1};

	must(setsockopt(pair->near, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)) == 0);
	guest_disconnect(pair);
	must(device_wait(device.fd, GAUGE(in_flight_memory), 0));
	guest_run("/sbin/tc qdisc del dev near root");
}

/* Sends a byte of each chunk: the socket refers to all memory of the unit. */
static void pin(int fd, int socket, uint64_t id)
{
	struct nabc_range ranges[NABC_RANGES_MAX];
	unsigned int count = 0;

	for (uint64_t at = 0; at < UNIT; at += device.info.chunk_size) {
		ranges[count++] = (struct nabc_range){.id = id, .offset = at, .length = 1};
		if (count < NABC_RANGES_MAX && at + device.info.chunk_size < UNIT)
			continue;
		must(nabc_socksendv(fd, socket, NULL, 0, ranges, count, 0, 0) == count);
		count = 0;
	}
}

static uint64_t lingering(int fd)
{
	uint64_t id;

	must(nabc_alloc(fd, UNIT, &id) == 0);
	must(nabc_insert(fd, id, 0, device.info.linger_max, 0) == 0);
	return id;
}

/* The limits of a process of that user. */
struct trial {
	uid_t uid;
	bool can;
};

static int trying(void *context)
{
	struct trial *trial = context;
	struct device own;
	uint64_t id;

	become(trial->uid);
	device_open(&own);
	if (trial->can) {
		must(device_statistics(own.fd).file_left == 0);
		must(nabc_alloc(own.fd, UNIT, &id) == 0);
	} else {
		must(device_statistics(own.fd).file_left >= UNIT);
		must_fail(nabc_alloc(own.fd, UNIT, &id), ENOMEM);
		/* Less than what was left behind still fits. */
		must(nabc_alloc(own.fd, 65536, &id) == 0);
	}
	must(nabc_destroy(own.fd, id) == 0);
	return 0;
}

static void try(uid_t uid, bool can)
{
	struct trial trial = {uid, can};

	guest_join(guest_fork(trying, &trial));
}

/* Closing the file frees no memory. */
static int closing(void *context)
{
	struct device own;
	uint64_t id, other;

	(void)context;
	become(OWNER);
	device_open(&own);
	id = lingering(own.fd);
	device_close(&own);
	device_open(&own);
	must(device_statistics(own.fd).file_left >= UNIT);
	must_fail(nabc_alloc(own.fd, UNIT, &other), ENOMEM);
	must(nabc_destroy(own.fd, id) == 0);
	must(device_statistics(own.fd).file_left == 0);
	must(nabc_alloc(own.fd, UNIT, &other) == 0);
	return 0;
}

/* Makes a unit for the parent, which gets its id, and exits. */
struct leaving {
	uint32_t linger;
	int report;
	int go; /* read before it exits, unless -1 */
};

static int leaving(void *context)
{
	struct leaving *leaving = context;
	struct device own;
	uint64_t id;
	char byte;

	become(OWNER);
	device_open(&own);
	must(nabc_alloc(own.fd, UNIT, &id) == 0);
	must(nabc_grant(own.fd, id, NABC_PRINCIPAL_PROCESS, (uint32_t)getppid(),
			NABC_RIGHT_SEND | NABC_RIGHT_DESTROY) == 0);
	must(nabc_insert(own.fd, id, 0, leaving->linger, 0) == 0);
	must(write(leaving->report, &id, sizeof(id)) == sizeof(id));
	if (leaving->go >= 0)
		must(read(leaving->go, &byte, 1) == 1);
	return 0;
}

static void test_linger(void)
{
	struct leaving left = {.linger = device.info.linger_max, .go = -1};
	uint64_t id;
	int ends[2];

	guest_join(guest_fork(closing, NULL));
	must(pipe(ends) == 0);
	left.report = ends[1];
	guest_join(guest_fork(leaving, &left));
	must(read(ends[0], &id, sizeof(id)) == sizeof(id));
	try(OWNER, false);
	try(OTHER, true);
	must(nabc_destroy(device.fd, id) == 0);
	try(OWNER, true);
	close(ends[0]);
	close(ends[1]);
	guest_tested("what lingers counts against its maker's user");
}

/* Sending a byte of each chunk, and destroying the unit, frees no memory. */
static int pinning(void *context)
{
	struct guest_pair *pair = context;
	struct device own;
	uint64_t id;

	become(OWNER);
	device_open(&own);
	must(nabc_alloc(own.fd, UNIT, &id) == 0);
	must(nabc_insert(own.fd, id, 0, 0, 0) == 0);
	pin(own.fd, pair->near, id);
	must(nabc_destroy(own.fd, id) == 0);
	must(device_statistics(own.fd).in_flight_memory >= UNIT);
	must_fail(nabc_alloc(own.fd, UNIT, &id), ENOMEM);
	must(device_statistics(own.fd).file_charged >= UNIT);
	must(nabc_alloc(own.fd, 65536, &id) == 0);
	return 0;
}

static void test_sockets(void)
{
	struct guest_pair pair = connect_in_vain();

	/* While the process lives, then for the next process of that user. */
	guest_join(guest_fork(pinning, &pair));
	must(device_statistics(device.fd).units == 0);
	try(OWNER, false);
	try(OTHER, true);
	disconnect(&pair);
	try(OWNER, true);
	guest_tested("what sockets refer to counts against its maker");
}

/*
 * Only the holder is charged for a unit without a creator; but sockets keep the charge
 * of the creator.
 */
static void test_holder(void)
{
	struct leaving left = {0};
	struct guest_pair pair;
	int report[2], go[2];
	pid_t child;
	uint64_t id;

	must(pipe(report) == 0);
	must(pipe(go) == 0);
	left.report = report[1];
	left.go = go[0];
	child = guest_fork(leaving, &left);
	/* So that its failure ends the read. */
	close(report[1]);
	close(go[0]);
	must(read(report[0], &id, sizeof(id)) == sizeof(id));
	must(nabc_hold(device.fd, id) == 0);
	must(device_statistics(device.fd).file_charged >= UNIT);
	must(write(go[1], "", 1) == 1);
	guest_join(child);
	must(device_wait(device.fd, GAUGE(files), 1));
	try(OWNER, true);

	pair = connect_in_vain();
	pin(device.fd, pair.near, id);
	must(nabc_release(device.fd, id) == 0);
	must(device_statistics(device.fd).in_flight_memory >= UNIT);
	try(OWNER, false);
	disconnect(&pair);
	try(OWNER, true);
	close(report[0]);
	close(go[1]);
	guest_tested("what is held counts against its holders alone");
}

static void limit(unsigned int mib)
{
	guest_run("echo %u >/sys/module/nabc/parameters/memory_limit", mib);
}

/* No rlimit applies to this process. */
static void test_machine(void)
{
	struct guest_pair pair = connect_in_vain();
	struct nabc_statistics statistics;
	uint64_t id;

	limit(LIMIT >> 20);
	must(nabc_alloc(device.fd, UNIT, &id) == 0);
	must(nabc_insert(device.fd, id, 0, 0, 0) == 0);
	pin(device.fd, pair.near, id);
	must(nabc_destroy(device.fd, id) == 0);
	must_fail(nabc_alloc(device.fd, UNIT, &id), ENOSPC);
	statistics = device_statistics(device.fd);
	must(statistics.in_flight_memory == UNIT && statistics.unit_memory == 0);
	disconnect(&pair);
	must(nabc_alloc(device.fd, UNIT, &id) == 0);
	must(nabc_destroy(device.fd, id) == 0);
	limit(0);
	guest_tested("what sockets refer to counts against memory_limit");
}

int main(void)
{
	device_open(&device);
	test_linger();
	test_sockets();
	test_holder();
	test_machine();
	device_close(&device);
	return 0;
}
