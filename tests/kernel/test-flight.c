/* SPDX-License-Identifier: MIT */
/*
 * test-flight.c - bytes that are still in the socket or in flight when their unit is
 * destroyed, its memory is reused, its process is killed or the module is unloaded:
 * they arrive unchanged.
 */
#include <errno.h>
#include <fcntl.h>
#include <nabc-uapi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device.h"
#include "guest.h"

/* The line is slow, so sent bytes stay here for a while. */
static void slow_line(bool slow)
{
	if (slow)
		guest_run("/sbin/tc qdisc replace dev near root netem delay 50ms loss 0.3%% limit "
			  "5000");
	else
		guest_run("/sbin/tc qdisc del dev near root");
}

/* Sends as much of a unit as the socket accepts at once. */
static uint64_t stuff(struct device *device, int socket, uint64_t id, uint64_t size, uint32_t flags)
{
	const int buffer = 600000;
	uint64_t done = 0;

	must(setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer)) == 0);
	while (done < size) {
		ssize_t sent = nabc_socksend(device->fd, socket, id, done, size - done,
					     flags | NABC_SEND_DONTWAIT);

		if (sent < 0)
			break;
		done += (uint64_t)sent;
	}
	must(done > 0);
	return done;
}

static void test_destroy(int family, uint32_t flags)
{
	const uint64_t size = 3 << 20;
	struct guest_pair pair = guest_connect(family);
	struct device device;
	uint64_t id, sent;

	device_open(&device);
	id = device_unit(&device, 1, size);
	sent = stuff(&device, pair.near, id, size, flags);
	must(nabc_destroy(device.fd, id) == 0);
	/* Overwrites all reusable memory with other bytes. */
	for (uint64_t i = 0; i < 30; i++) {
		uint64_t other = device_unit(&device, 100 + i, i % 2 ? size : 40000);

		must(nabc_destroy(device.fd, other) == 0);
	}
	must(guest_receive(pair.far, 1, 0, sent));
	device_close(&device);
	guest_disconnect(&pair);
	guest_tested("destroyed and filled anew, IPv%d, flags %x: %llu bytes under way",
		     family == AF_INET ? 4 : 6, flags, (unsigned long long)sent);
}

struct sending {
	int socket, report;
	uint32_t flags;
	bool wait;
};

static int send_and_go(void *context)
{
	struct sending *sending = context;
	const uint64_t size = 3 << 20;
	struct device device;
	uint64_t sent;

	device_open(&device);
	sent = stuff(&device, sending->socket, device_unit(&device, 7, size), size, sending->flags);
	must(write(sending->report, &sent, sizeof(sent)) == sizeof(sent));
	if (sending->wait)
		pause();
	return 0;
}

static void test_death(bool killed, bool unload, uint32_t flags)
{
	struct guest_pair pair = guest_connect(AF_INET);
	struct sending sending = {.socket = pair.near, .flags = flags, .wait = killed};
	struct device device;
	int ends[2], status;
	uint64_t sent;
	pid_t child;

	must(pipe(ends) == 0);
	sending.report = ends[1];
	child = guest_fork(send_and_go, &sending);
	must(read(ends[0], &sent, sizeof(sent)) == sizeof(sent));
	if (killed)
		kill(child, SIGKILL);
	must(waitpid(child, &status, 0) == child);
	must(killed ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
	if (unload) {
		must(guest_unload() == 0);
		must(guest_load("") == 0);
	}
	device_open(&device);
	for (uint64_t i = 0; i < 20; i++)
		must(nabc_destroy(device.fd, device_unit(&device, 100 + i, 1 << 20)) == 0);
	must(guest_receive(pair.far, 7, 0, sent));
	device_close(&device);
	close(ends[0]);
	close(ends[1]);
	guest_disconnect(&pair);
	guest_tested("process %s%s, flags %x: %llu bytes under way", killed ? "killed" : "ended",
		     unload ? ", module unloaded and loaded" : "", flags, (unsigned long long)sent);
}

/* A module in use cannot be unloaded. */
static void test_busy(void)
{
	struct device device;

	device_open(&device);
	must(guest_unload() == -1);
	must(errno == EBUSY || errno == EAGAIN);
	device_close(&device);
	guest_tested("a module in use stays");
}

/* The other end closes while bytes are in flight. */
static void test_reset(void)
{
	struct device device;

	device_open(&device);
	for (int i = 0; i < 10; i++) {
		struct guest_pair pair = guest_connect(i % 2 ? AF_INET : AF_INET6);
		uint64_t id = device_unit(&device, 1, 1 << 20);

		stuff(&device, pair.near, id, 1 << 20, NABC_SEND_SUMS);
		must(nabc_destroy(device.fd, id) == 0);
		if (i % 3 == 0)
			setsockopt(pair.near, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0},
				   sizeof(struct linger));
		guest_disconnect(&pair);
	}
	device_close(&device);
	guest_tested("connections that end early");
}

int main(void)
{
	slow_line(true);
	for (uint32_t flags = 0; flags <= NABC_SEND_SUMS; flags += NABC_SEND_SUMS) {
		test_destroy(AF_INET, flags);
		test_destroy(AF_INET6, flags);
		test_death(false, false, flags);
		test_death(true, false, flags);
		test_death(false, true, flags);
		test_death(true, true, flags);
	}
	test_busy();
	test_reset();
	slow_line(false);
	return 0;
}
