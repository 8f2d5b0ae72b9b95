/* SPDX-License-Identifier: MIT */
/*
 * test-kill.c - processes that are killed anywhere: their memory is free again within
 * a second, except units that linger or that another process holds.
 */
#include <errno.h>
#include <fcntl.h>
#include <nabc-uapi.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device.h"
#include "guest.h"

static struct device device;

/* All calls, over and over. */
static int working(void *context)
{
	static unsigned char memory[40000];
	struct guest_pair *pair = context;
	struct device own;
	uint64_t state = (uint64_t)getpid();

	device_open(&own);
	for (;;) {
		uint64_t size = 1 + guest_random(&state) % 300000, id, put, kept[5];
		unsigned char *bytes;

		for (int i = 0; i < 5; i++)
			kept[i] = device_unit(&own, 1, 5000);
		must(nabc_put(own.fd, memory, 1 + size % sizeof(memory), &put) == 0);
		id = device_alloc(&own, size, &bytes);
		guest_fill(bytes, 1, 0, size);
		nabc_grant(own.fd, id, NABC_PRINCIPAL_USER, 1, NABC_RIGHT_SEND);
		must(nabc_insert(own.fd, id, 0, 0, NABC_INSERT_SUMS) == 0);
		must(nabc_hold(own.fd, id) == 0);
		nabc_socksend(own.fd, pair->near, id, 0, size, NABC_SEND_SUMS | NABC_SEND_DONTWAIT);
		must(nabc_destroy(own.fd, id) == 0);
		/* Blocks when the socket is full. */
		nabc_socksend(own.fd, pair->near, kept[0], 0, 5000, 0);
		for (int i = 0; i < 5; i++)
			must(nabc_destroy(own.fd, kept[i]) == 0);
		must(nabc_destroy(own.fd, put) == 0);
		must(nabc_release(own.fd, id) == 0);
	}
	return 0;
}

static void test_kill(void)
{
	uint64_t state = 12345;

	for (int i = 0; i < 40; i++) {
		struct guest_pair pair = guest_connect(i % 2 ? AF_INET : AF_INET6);
		pid_t child = guest_fork(working, &pair);
		int status;

		usleep((useconds_t)(guest_random(&state) % 60000));
		must(kill(child, SIGKILL) == 0);
		must(waitpid(child, &status, 0) == child);
		must(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		must(device_wait(device.fd, GAUGE(files), 1));
		must(device_wait(device.fd, GAUGE(unit_memory), 0));
		must(device_wait(device.fd, GAUGE(units), 0));
		guest_disconnect(&pair);
	}
	guest_tested("40 processes killed anywhere");
}

/* Makes units, and a child that keeps the descriptor. */
static int parting(void *context)
{
	int *told = context;
	struct device own;
	pid_t child;

	device_open(&own);
	for (uint64_t i = 0; i < 10; i++)
		device_unit(&own, i, 100000);
	child = fork();
	must(child >= 0);
	if (child == 0) {
		/* It cannot use units of its parent. */
		pause();
		_exit(0);
	}
	must(write(*told, &child, sizeof(child)) == sizeof(child));
	pause();
	return 0;
}

static void test_kept_descriptor(void)
{
	pid_t parent, child;
	int ends[2], status;

	must(pipe(ends) == 0);
	parent = guest_fork(parting, &ends[1]);
	must(read(ends[0], &child, sizeof(child)) == sizeof(child));
	must(device_statistics(device.fd).units == 10);
	must(kill(parent, SIGKILL) == 0);
	must(waitpid(parent, &status, 0) == parent);
	must(device_wait(device.fd, GAUGE(units), 0));
	must(kill(child, SIGKILL) == 0);
	must(device_wait(device.fd, GAUGE(files), 1));
	close(ends[0]);
	close(ends[1]);
	guest_tested("a process killed whose child has its descriptor");
}

/* A process consists of its threads: it continues when its first one ends. */
static void *going_on(void *context)
{
	struct device *own = context;
	static unsigned char bytes[100000];
	uint64_t id = device_unit(own, 9, sizeof(bytes));

	/* Unused units are freed in the collector's eighth round or later: it has run here. */
	must(nabc_destroy(own->fd, device_unit(own, 1, 30000)) == 0);
	must(device_wait_more(own->fd, GAUGE(aged)));
	must(nabc_copy(own->fd, id, 0, sizeof(bytes), bytes) == 0);
	must(guest_holds(bytes, 9, 0, sizeof(bytes)));
	exit(0);
}

static int leaderless(void *context)
{
	static struct device own;
	pthread_t thread;

	(void)context;
	device_open(&own);
	must(pthread_create(&thread, NULL, going_on, &own) == 0);
	pthread_exit(NULL);
}

static void test_leader(void)
{
	guest_join(guest_fork(leaderless, NULL));
	must(device_wait(device.fd, GAUGE(units), 0));
	guest_tested("a process whose first thread ended");
}

struct lingering {
	uint64_t id;
	uint32_t linger;
	int told;
};

static int leaving(void *context)
{
	struct lingering *lingering = context;
	struct device own;
	unsigned char *bytes;

	device_open(&own);
	lingering->id = device_alloc(&own, 50000, &bytes);
	guest_fill(bytes, 3, 0, 50000);
	must(nabc_grant(own.fd, lingering->id, NABC_PRINCIPAL_PROCESS, (uint32_t)getppid(),
			NABC_RIGHT_SEND | NABC_RIGHT_DESTROY) == 0);
	must(nabc_insert(own.fd, lingering->id, 0, lingering->linger, 0) == 0);
	must(write(lingering->told, &lingering->id, 8) == 8);
	return 0;
}

static uint64_t left_behind(uint32_t linger)
{
	struct lingering lingering = {.linger = linger};
	int ends[2];
	uint64_t id;

	must(pipe(ends) == 0);
	lingering.told = ends[1];
	guest_join(guest_fork(leaving, &lingering));
	must(read(ends[0], &id, 8) == 8);
	close(ends[0]);
	close(ends[1]);
	return id;
}

static void test_linger(void)
{
	static unsigned char bytes[50000];
	struct nabc_stat stat;
	uint64_t id = left_behind(0), began;

	must(device_wait(device.fd, GAUGE(units), 0));
	must_fail(nabc_stat(device.fd, id, &stat), ENOENT);

	began = guest_now();
	id = left_behind(1500);
	must(nabc_stat(device.fd, id, &stat) == 0);
	must(stat.flags & NABC_UNIT_ORPHAN);
	must(stat.maker_pid == 0);
	must(device_statistics(device.fd).orphans == 1);
	must(nabc_copy(device.fd, id, 0, sizeof(bytes), bytes) == 0);
	must(guest_holds(bytes, 3, 0, sizeof(bytes)));
	must(device_wait(device.fd, GAUGE(units), 0));
	must(guest_now() - began >= 1500);
	must(device_statistics(device.fd).orphan_memory == 0);

	/* A held unit outlives that; and its holder may destroy it. */
	id = left_behind(300);
	must(nabc_hold(device.fd, id) == 0);
	must(device_wait(device.fd, GAUGE(orphans), 0));
	must(nabc_copy(device.fd, id, 0, sizeof(bytes), bytes) == 0);
	must(guest_holds(bytes, 3, 0, sizeof(bytes)));
	must(nabc_release(device.fd, id) == 0);
	must(device_wait(device.fd, GAUGE(units), 0));
	id = left_behind(device.info.linger_max);
	must(nabc_destroy(device.fd, id) == 0);
	must(device_wait(device.fd, GAUGE(units), 0));
	guest_tested("units that linger, and that are held");
}

int main(void)
{
	device_open(&device);
	test_kill();
	test_kept_descriptor();
	test_leader();
	test_linger();
	device_close(&device);
	return 0;
}
