/* SPDX-License-Identifier: MIT */
/*
 * test-reload.c - loads, uses and unloads the module 100 times; then the kernel has as
 * much free memory as before, except for normal variation.
 */
#include <fcntl.h>
#include <nabc-uapi.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device.h"
#include "guest.h"

/*
 * The memory of the rest of the system varies by 1.5 MiB; a leak of one chunk of 32
 * KiB in each of 90 rounds would be 2,880 KiB.
 */
enum { ROUNDS = 100, SLACK_KIB = 2400, TRIES = 5 };

static void use(struct guest_pair *pair, uint64_t round)
{
	struct device device;
	uint64_t ids[4];

	device_open(&device);
	for (uint64_t i = 0; i < 4; i++)
		ids[i] = device_unit(&device, round + i, 100000);
	device_send(&device, pair->near, ids[0], 1, 30000, round % 2 ? NABC_SEND_SUMS : 0);
	must(nabc_hold(device.fd, ids[1]) == 0);
	must(nabc_destroy(device.fd, ids[1]) == 0);
	must(nabc_grant(device.fd, ids[2], NABC_PRINCIPAL_PROCESS, (uint32_t)getpid(),
			NABC_RIGHT_SEND) == 0);
	must(nabc_sum(device.fd, ids[3], 0, 100000) >= 0);
	/* Some are left for the last close. */
	device_close(&device);
	must(guest_receive(pair->far, round, 1, 30000));
}

/* KiB that are free or can be reclaimed at once. */
static long settled(void)
{
	long most = 0;

	for (int i = 0; i < 20; i++) {
		long now;

		guest_run("echo 3 >/proc/sys/vm/drop_caches");
		usleep(50000);
		now = guest_meminfo("MemFree");
		if (now > most)
			most = now;
	}
	return most;
}

int main(void)
{
	struct guest_pair pair = guest_connect(AF_INET);
	long before = 0, after;

	must(access(NABC_DEVICE, F_OK) == 0);
	must(guest_unload() == 0);
	must(access(NABC_DEVICE, F_OK) == -1);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		if (round == 10)
			before = settled();
		must(guest_load("") == 0);
		must(access(NABC_DEVICE, F_OK) == 0);
		use(&pair, round);
		must(guest_unload() == 0);
	}
	after = settled();
	for (int i = 1; i < TRIES && after + SLACK_KIB <= before; i++)
		after = settled();
	must(guest_load("") == 0);
	printf("free before: %ld KiB, after: %ld KiB\n", before, after);
	must(after + SLACK_KIB > before);
	guest_disconnect(&pair);
	guest_tested("loaded and unloaded %d times", ROUNDS);
	return 0;
}
