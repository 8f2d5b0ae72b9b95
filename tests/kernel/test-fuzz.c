/* SPDX-License-Identifier: MIT */
/*
 * test-fuzz.c - calls with random and with mutated structures, by two processes of
 * other users, for $FUZZ_SECONDS: every call returns, the units of another process
 * stay unchanged and out of their reach, and when they exit all is released.  Over 500
 * lines, because a guest's program is one source.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <nabc-uapi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device.h"
#include "guest.h"

enum { KNOWN = 16, BUFFER = 1 << 16, BYSTANDERS = 20 };

static const struct {
	unsigned long request;
	size_t size;
} calls[] = {
	{NABC_IOC_INFO, sizeof(struct nabc_info)},
	{NABC_IOC_ALLOC, sizeof(struct nabc_alloc)},
	{NABC_IOC_READ, sizeof(struct nabc_read)},
	{NABC_IOC_INSERT, sizeof(struct nabc_insert)},
	{NABC_IOC_SOCKSEND, sizeof(struct nabc_socksend)},
	{NABC_IOC_SOCKSENDV, sizeof(struct nabc_socksendv)},
	{NABC_IOC_COPY, sizeof(struct nabc_copy)},
	{NABC_IOC_SUM, sizeof(struct nabc_sum)},
	{NABC_IOC_DESTROY, sizeof(struct nabc_unit_id)},
	{NABC_IOC_HOLD, sizeof(struct nabc_unit_id)},
	{NABC_IOC_RELEASE, sizeof(struct nabc_unit_id)},
	{NABC_IOC_GRANT, sizeof(struct nabc_grant)},
	{NABC_IOC_REVOKE, sizeof(struct nabc_grant)},
	{NABC_IOC_STAT, sizeof(struct nabc_stat)},
	{NABC_IOC_LIST, sizeof(struct nabc_list)},
	{NABC_IOC_STATISTICS, sizeof(struct nabc_statistics)},
	{NABC_IOC_PUT, sizeof(struct nabc_put)},
};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

struct fuzzer {
	uint64_t state, seconds;
	uint64_t bystanders[BYSTANDERS];
	uint64_t known[KNOWN]; /* ids that existed once */
	int device, file, pipe[2], sockets[6];
	unsigned char *arena, *buffer; /* no memory follows the buffer */
	size_t arena_size;
	unsigned long tried, refused, worked[CALLS];
};

static uint64_t pick(struct fuzzer *fuzzer, uint64_t count)
{
	return guest_random(&fuzzer->state) % count;
}

/* Returns a number at which errors are likely. */
static uint64_t number(struct fuzzer *fuzzer)
{
	uint64_t edge = (uint64_t)1 << pick(fuzzer, 64);

	switch (pick(fuzzer, 7)) {
	case 0:
		return 0;
	case 1:
		return pick(fuzzer, 100);
	case 2:
		return pick(fuzzer, 100000);
	case 3:
		return edge - 1 + pick(fuzzer, 3);
	case 4:
		return -pick(fuzzer, 5000);
	case 5:
		return 4096 * pick(fuzzer, 300);
	default:
		return guest_random(&fuzzer->state);
	}
}

static uint64_t an_id(struct fuzzer *fuzzer)
{
	switch (pick(fuzzer, 16)) {
	case 0:
		return number(fuzzer);
	case 1:
		return fuzzer->bystanders[pick(fuzzer, BYSTANDERS)];
	case 2:
		return fuzzer->known[pick(fuzzer, KNOWN)] ^ (uint64_t)1 << pick(fuzzer, 64);
	default:
		return fuzzer->known[pick(fuzzer, KNOWN)];
	}
}

static uint64_t an_address(struct fuzzer *fuzzer)
{
	switch (pick(fuzzer, 10)) {
	case 0:
		return 0;
	case 1:
		return 0xffff888000000000u + pick(fuzzer, 1 << 28);
	case 2:
		return number(fuzzer);
	case 3:
		return (uintptr_t)fuzzer->buffer + BUFFER - pick(fuzzer, 200);
	case 4:
		return (uintptr_t)fuzzer->arena + pick(fuzzer, 1 << 20);
	default:
		return (uintptr_t)fuzzer->buffer + pick(fuzzer, BUFFER / 2);
	}
}

static int32_t a_descriptor(struct fuzzer *fuzzer)
{
	switch (pick(fuzzer, 10)) {
	case 0:
		return (int32_t)number(fuzzer);
	case 1:
		return fuzzer->file;
	case 2:
		return fuzzer->pipe[pick(fuzzer, 2)];
	case 3:
		return fuzzer->device;
	default:
		return fuzzer->sockets[pick(fuzzer, 6)];
	}
}

static uint32_t some_flags(struct fuzzer *fuzzer)
{
	return (uint32_t)(pick(fuzzer, 8) ? pick(fuzzer, 32) & pick(fuzzer, 32) : number(fuzzer));
}

/* A valid structure of a call that sends, like sensible(). */
static void sensible_send(struct fuzzer *fuzzer, unsigned long request, unsigned char *to)
{
	uint64_t id = an_id(fuzzer), small = 1 + pick(fuzzer, 3000);
	struct nabc_range *ranges = (struct nabc_range *)(fuzzer->buffer + pick(fuzzer, 1000) * 8);

	if (request == NABC_IOC_SOCKSEND) {
		*(struct nabc_socksend *)to = (struct nabc_socksend){.id = id,
								     .offset = pick(fuzzer, 2000),
								     .length = small,
								     .socket = a_descriptor(fuzzer),
								     .flags = some_flags(fuzzer)};
		return;
	}
	for (int i = 0; i < 8; i++)
		ranges[i] = (struct nabc_range){an_id(fuzzer), pick(fuzzer, 1000),
						1 + pick(fuzzer, 1000)};
	*(struct nabc_socksendv *)to =
		(struct nabc_socksendv){.header = (uintptr_t)fuzzer->buffer,
					.ranges = (uintptr_t)ranges,
					.header_length = (uint32_t)pick(fuzzer, 500),
					.range_count = (uint32_t)pick(fuzzer, 5),
					.skip = pick(fuzzer, 3) * small / 2,
					.socket = a_descriptor(fuzzer),
					.flags = some_flags(fuzzer)};
}

/* A valid structure. */
static void sensible(struct fuzzer *fuzzer, unsigned long request, unsigned char *to)
{
	uint64_t id = an_id(fuzzer), small = 1 + pick(fuzzer, 3000);

	memset(to, 0, 256);
	switch (request) {
	case NABC_IOC_ALLOC:
		*(struct nabc_alloc *)to = (struct nabc_alloc){
			.size = pick(fuzzer, 20) ? 1 + pick(fuzzer, 60000) : pick(fuzzer, 3 << 20)};
		break;
	case NABC_IOC_READ:
		*(struct nabc_read *)to = (struct nabc_read){
			.id = id,
			.offset = pick(fuzzer, 2000),
			.length = small,
			.position = (int64_t)pick(fuzzer, 1000) - 1,
			.fd = pick(fuzzer, 2) ? fuzzer->file : a_descriptor(fuzzer)};
		break;
	case NABC_IOC_INSERT:
		*(struct nabc_insert *)to =
			(struct nabc_insert){.id = id,
					     .length = pick(fuzzer, 2) * small,
					     .linger = (uint32_t)pick(fuzzer, 300),
					     .flags = (uint32_t)pick(fuzzer, 2)};
		break;
	case NABC_IOC_SOCKSEND:
	case NABC_IOC_SOCKSENDV:
		sensible_send(fuzzer, request, to);
		break;
	case NABC_IOC_COPY:
		*(struct nabc_copy *)to = (struct nabc_copy){.id = id,
							     .offset = pick(fuzzer, 2000),
							     .length = small,
							     .data = an_address(fuzzer)};
		break;
	case NABC_IOC_SUM:
		*(struct nabc_sum *)to =
			(struct nabc_sum){.id = id, .offset = pick(fuzzer, 2000), .length = small};
		break;
	case NABC_IOC_GRANT:
	case NABC_IOC_REVOKE:
		*(struct nabc_grant *)to = (struct nabc_grant){
			.id = id,
			.principal = 1 + (uint32_t)pick(fuzzer, 4),
			.who = (uint32_t)(pick(fuzzer, 2) ? (uint64_t)getpid()
							  : pick(fuzzer, 3000)),
			.rights = request == NABC_IOC_GRANT ? 1 + (uint32_t)pick(fuzzer, 3) : 0};
		break;
	case NABC_IOC_PUT:
		*(struct nabc_put *)to = (struct nabc_put){
			.size = pick(fuzzer, 20) ? 1 + pick(fuzzer, 40000) : pick(fuzzer, 3 << 20),
			.data = an_address(fuzzer),
			.linger = (uint32_t)pick(fuzzer, 300),
			.flags = (uint32_t)pick(fuzzer, 2)};
		if (pick(fuzzer, 2)) {
			((struct nabc_put *)to)->principal = 1 + (uint32_t)pick(fuzzer, 4);
			((struct nabc_put *)to)->who = (uint32_t)pick(fuzzer, 3000);
			((struct nabc_put *)to)->rights = 1 + (uint32_t)pick(fuzzer, 3);
		}
		break;
	case NABC_IOC_LIST:
		*(struct nabc_list *)to =
			(struct nabc_list){.cursor = pick(fuzzer, 2) * id,
					   .units = an_address(fuzzer),
					   .count = 1 + (uint32_t)pick(fuzzer, 50)};
		break;
	default:
		/* Those that begin with an id and have nothing else. */
		*(uint64_t *)to = id;
	}
}

/* Changes bits, words and numbers. */
static void mutate(struct fuzzer *fuzzer, unsigned char *bytes, size_t size)
{
	for (uint64_t i = pick(fuzzer, 3); i > 0; i--) {
		size_t at = pick(fuzzer, size);
		uint64_t value = number(fuzzer);

		switch (pick(fuzzer, 3)) {
		case 0:
			bytes[at] ^= (unsigned char)(1 << pick(fuzzer, 8));
			break;
		case 1:
			memcpy(bytes + at / 4 * 4, &value, 4);
			break;
		default:
			if (size >= 8)
				memcpy(bytes + at / 8 * 8, &value, 8);
		}
	}
}

static void drain(struct fuzzer *fuzzer)
{
	for (int i = 1; i < 6; i += 2)
		while (recv(fuzzer->sockets[i], fuzzer->buffer, BUFFER, MSG_DONTWAIT) > 0)
			;
}

static void connect_all(struct fuzzer *fuzzer)
{
	struct guest_pair pair;

	for (int i = 0; i < 2; i++) {
		pair = guest_connect(i ? AF_INET6 : AF_INET);
		fuzzer->sockets[2 * i] = pair.near;
		fuzzer->sockets[2 * i + 1] = pair.far;
	}
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fuzzer->sockets + 4) == 0);
}

static void new_sockets(struct fuzzer *fuzzer)
{
	/* The other end of a connection within this process. */
	struct sockaddr_storage address = {.ss_family = AF_INET};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	sigset_t alarm;

	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	sigprocmask(SIG_BLOCK, &alarm, NULL);
	must(listener >= 0 && listen(listener, 1) == 0);
	must(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
	close(fuzzer->sockets[0]);
	close(fuzzer->sockets[1]);
	fuzzer->sockets[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(connect(fuzzer->sockets[0], (struct sockaddr *)&address, length) == 0);
	fuzzer->sockets[1] = accept(listener, NULL, NULL);
	must(fuzzer->sockets[1] >= 0);
	close(listener);
	sigprocmask(SIG_UNBLOCK, &alarm, NULL);
}

/* Calls other than ioctl: mappings of any kind. */
static void map_something(struct fuzzer *fuzzer)
{
	size_t length = pick(fuzzer, 2) ? 4096 * (1 + pick(fuzzer, 100)) : number(fuzzer);
	unsigned char *at =
		mmap(NULL, length, (int)pick(fuzzer, 8), MAP_SHARED + (int)pick(fuzzer, 2),
		     fuzzer->device, (off_t)(pick(fuzzer, 3) ? 0 : number(fuzzer)));

	if (at == MAP_FAILED)
		return;
	if (pick(fuzzer, 2))
		(void)mprotect(at, length / 2, (int)pick(fuzzer, 8));
	if (pick(fuzzer, 2))
		(void)madvise(at, length, (int)pick(fuzzer, 30));
	if (pick(fuzzer, 2)) {
		size_t other = 4096 * (1 + pick(fuzzer, 200));
		unsigned char *moved = mremap(at, length, other, MREMAP_MAYMOVE);

		if (moved != MAP_FAILED) {
			at = moved;
			length = other;
		}
	}
	if (munmap(at, length) < 0)
		must(errno == EINVAL);
}

/* A new unit replaces another, which is usually destroyed. */
static void remember(struct fuzzer *fuzzer, uint64_t id)
{
	size_t slot = pick(fuzzer, KNOWN);

	if (pick(fuzzer, 8))
		nabc_destroy(fuzzer->device, fuzzer->known[slot]);
	fuzzer->known[slot] = id;
}

static void use_arena(struct fuzzer *fuzzer, const struct nabc_alloc *made)
{
	fuzzer->arena[made->arena_offset] = 1;
	if (pick(fuzzer, 3))
		nabc_insert(fuzzer->device, made->id, 0, 0, (uint32_t)pick(fuzzer, 2));
}

static void call(struct fuzzer *fuzzer)
{
	size_t which = pick(fuzzer, 4) ? pick(fuzzer, CALLS) : 1 + pick(fuzzer, 4);
	size_t size = calls[which].size;
	unsigned long request = calls[which].request;
	unsigned char bytes[256];
	void *argument;

	if (pick(fuzzer, 4)) {
		sensible(fuzzer, request, bytes);
		if (pick(fuzzer, 2))
			mutate(fuzzer, bytes, size);
	} else {
		for (size_t at = 0; at < sizeof(bytes); at += 8) {
			uint64_t value = number(fuzzer);

			memcpy(bytes + at, &value, 8);
		}
	}
	/* At the end of memory, so that a read beyond is a fault. */
	argument = fuzzer->buffer + BUFFER - size;
	memcpy(argument, bytes, size);
	switch (pick(fuzzer, 40)) {
	case 0:
		argument = (char *)argument + 1 + pick(fuzzer, size);
		break;
	case 1:
		argument = (void *)(uintptr_t)an_address(fuzzer);
		break;
	case 2:
		request ^= 1ul << pick(fuzzer, 32);
		break;
	}
	fuzzer->tried++;
	if (ioctl(fuzzer->device, request, argument) < 0) {
		if ((request == NABC_IOC_ALLOC || request == NABC_IOC_PUT) &&
		    (errno == ENOMEM || errno == ENOSPC))
			fuzzer->refused++;
		return;
	}
	fuzzer->worked[which]++;
	if (argument != fuzzer->buffer + BUFFER - size)
		return;
	memcpy(bytes, argument, size);
	if (request == NABC_IOC_PUT)
		remember(fuzzer, ((struct nabc_put *)bytes)->id);
	if (request == NABC_IOC_ALLOC) {
		remember(fuzzer, ((struct nabc_alloc *)bytes)->id);
		use_arena(fuzzer, (struct nabc_alloc *)bytes);
	}
}

static void open_device(struct fuzzer *fuzzer)
{
	struct device device;

	device_open(&device);
	fuzzer->device = device.fd;
	fuzzer->arena = device.arena;
	fuzzer->arena_size = device.info.arena_size;
	fuzzer->refused = 0;
}

/* If it has lost too many units to get more: closes all. */
static void open_again(struct fuzzer *fuzzer)
{
	must(munmap(fuzzer->arena, fuzzer->arena_size) == 0);
	must(close(fuzzer->device) == 0);
	open_device(fuzzer);
}

static void on_signal(int signal)
{
	(void)signal;
}

static int fuzzing(void *context)
{
	static const struct itimerval soon = {{0, 20000}, {0, 20000}};
	const struct rlimit locked = {16 << 20, 16 << 20};
	struct sigaction action = {.sa_handler = on_signal};
	struct fuzzer *fuzzer = context;
	uint64_t until = guest_now() + 1000 * fuzzer->seconds;
	uid_t uid = (uid_t)(1000 + fuzzer->state % 50000);

	/* A timer interrupts calls that block. */
	sigaction(SIGALRM, &action, NULL);
	connect_all(fuzzer);
	open_device(fuzzer);
	fuzzer->file = open("/bin/busybox", O_RDONLY | O_CLOEXEC);
	must(pipe2(fuzzer->pipe, O_NONBLOCK | O_CLOEXEC) == 0);
	fuzzer->buffer = mmap(NULL, BUFFER + 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(fuzzer->buffer != MAP_FAILED && munmap(fuzzer->buffer + BUFFER, 4096) == 0);
	must(setrlimit(RLIMIT_MEMLOCK, &locked) == 0);
	must(setgroups(0, NULL) == 0 && setresgid(uid, uid, uid) == 0 &&
	     setresuid(uid, uid, uid) == 0);
	must(setitimer(ITIMER_REAL, &soon, NULL) == 0);
	while (guest_now() < until) {
		for (int i = 0; i < 100; i++)
			call(fuzzer);
		drain(fuzzer);
		if (fuzzer->refused > 20)
			open_again(fuzzer);
		if (pick(fuzzer, 4) == 0)
			map_something(fuzzer);
		/* Ended by CLOSE or by shutdown. */
		if (pick(fuzzer, 20) == 0)
			new_sockets(fuzzer);
	}
	guest_tested("%lu calls; these worked: alloc %lu, read %lu, insert %lu, socksend %lu, "
		     "socksendv %lu, copy %lu, sum %lu, destroy %lu, hold %lu, grant %lu, put %lu",
		     fuzzer->tried, fuzzer->worked[1], fuzzer->worked[2], fuzzer->worked[3],
		     fuzzer->worked[4], fuzzer->worked[5], fuzzer->worked[6], fuzzer->worked[7],
		     fuzzer->worked[8], fuzzer->worked[9], fuzzer->worked[11], fuzzer->worked[16]);
	for (size_t i = 1; i < 10; i++)
		must(fuzzer->worked[i] > 0);
	must(fuzzer->worked[16] > 0);
	return 0;
}

static bool only_orphans(void *context)
{
	const struct device *device = context;
	struct nabc_statistics statistics = device_statistics(device->fd);

	return statistics.units == statistics.orphans &&
	       statistics.unit_memory == statistics.orphan_memory;
}

int main(void)
{
	const char *seconds = getenv("FUZZ_SECONDS"), *seed = getenv("FUZZ_SEED");
	uint64_t start = seed ? strtoull(seed, NULL, 10) : 1;
	static unsigned char bytes[30000];
	struct fuzzer fuzzers[2] = {0};
	struct nabc_statistics statistics;
	struct device device;
	struct nabc_stat stat;
	pid_t children[2];

	/* All users may open it here. */
	must(chmod(NABC_DEVICE, 0666) == 0);
	guest_tested("seed %llu", (unsigned long long)start);
	device_open(&device);
	for (int i = 0; i < 2; i++) {
		/* Never 0. */
		fuzzers[i].state = 2 * (start % 1000000000) + 1 + (uint64_t)i;
		fuzzers[i].seconds = seconds ? (uint64_t)atoi(seconds) : 10;
	}
	for (uint64_t i = 0; i < BYSTANDERS; i++) {
		uint64_t id = device_unit(&device, i, sizeof(bytes));

		fuzzers[0].bystanders[i] = fuzzers[1].bystanders[i] = id;
	}
	for (int i = 0; i < 2; i++)
		children[i] = guest_fork(fuzzing, &fuzzers[i]);
	for (int i = 0; i < 2; i++)
		guest_join(children[i]);
	for (uint64_t i = 0; i < BYSTANDERS; i++) {
		uint64_t id = fuzzers[0].bystanders[i];

		must(nabc_stat(device.fd, id, &stat) == 0);
		must(stat.holds == 0 && stat.grants == 0 && stat.sent == 0);
		must(nabc_copy(device.fd, id, 0, sizeof(bytes), bytes) == 0);
		must(guest_holds(bytes, i, 0, sizeof(bytes)));
		must(nabc_destroy(device.fd, id) == 0);
	}
	must(device_wait(device.fd, GAUGE(files), 1));
	/* Until they expire or the module is unloaded. */
	must(guest_wait(only_orphans, &device));
	/* The sockets are closed. */
	must(device_wait(device.fd, GAUGE(in_flight_memory), 0));
	statistics = device_statistics(device.fd);
	device_close(&device);
	must(guest_unload() == 0);
	must(guest_load("") == 0);
	guest_tested("a bystander's units; %llu orphans", (unsigned long long)statistics.orphans);
	return 0;
}
