/* SPDX-License-Identifier: MIT */
/*
 * test-unit.c - filling, inserting, copying, summing, holding, listing and destroying
 * units, each call with everything that it must refuse.
 */
#include <errno.h>
#include <fcntl.h>
#include <nabc-uapi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device.h"
#include "guest.h"

#define NEVER 0x7777777777777777u

static struct device device;

static void test_info(void)
{
	must(device.info.page_size == (unsigned int)sysconf(_SC_PAGESIZE));
	must(device.info.chunk_size >= device.info.page_size);
	must(device.info.unit_max >= 1 << 20);
	must(device.info.unit_max <= device.info.arena_size);
	must(device.info.memory_limit > 0);
	must(device.info.ranges_max == NABC_RANGES_MAX);
	must(device.info.header_max == NABC_HEADER_MAX);
	must(device.info.linger_max > 0);
	must(device.info.sum_grain % 2 == 0);
	must_fail(ioctl(device.fd, NABC_IOC_INFO, NULL), EFAULT);
	must_fail(ioctl(device.fd, NABC_IOC_STATISTICS, (void *)8), EFAULT);
	for (unsigned int number = 0x11; number < 0x100; number++)
		must_fail(ioctl(device.fd, _IOC(_IOC_READ | _IOC_WRITE, NABC_IOC_MAGIC, number, 32),
				NULL),
			  ENOTTY);
	must_fail(ioctl(device.fd, _IO(NABC_IOC_MAGIC, 1), NULL), ENOTTY);
	must_fail(ioctl(device.fd, _IOWR('x', 1, struct nabc_alloc), NULL), ENOTTY);
	guest_tested("info, unknown calls");
}

static void test_alloc(void)
{
	struct nabc_alloc call = {.size = 100};
	unsigned char *bytes;
	uint64_t id, next;

	must_fail(nabc_alloc(device.fd, 0, &id), EINVAL);
	must_fail(nabc_alloc(device.fd, device.info.unit_max + 1, &id), EFBIG);
	must_fail(nabc_alloc(device.fd, UINT64_MAX, &id), EFBIG);
	must_fail(ioctl(device.fd, NABC_IOC_ALLOC, NULL), EFAULT);
	call.flags = 1;
	must_fail(ioctl(device.fd, NABC_IOC_ALLOC, &call), EINVAL);
	call.flags = 0;
	call.reserved = 1;
	must_fail(ioctl(device.fd, NABC_IOC_ALLOC, &call), EINVAL);
	id = device_alloc(&device, 10000, &bytes);
	next = device_alloc(&device, 1, &bytes);
	must(next != id);
	must(nabc_destroy(device.fd, id) == 0);
	must(nabc_destroy(device.fd, next) == 0);
	must_fail(nabc_destroy(device.fd, id), ENOENT);
	guest_tested("alloc");
}

/* A result that cannot be written must not leave a unit behind. */
static void test_alloc_fault(void)
{
	uint64_t units = device_statistics(device.fd).units;
	struct nabc_alloc *call =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(call != MAP_FAILED);
	call->size = 5000;
	must(mprotect(call, 4096, PROT_READ) == 0);
	must_fail(ioctl(device.fd, NABC_IOC_ALLOC, call), EFAULT);
	munmap(call, 4096);
	must(device_statistics(device.fd).units == units);
	guest_tested("alloc whose result cannot be written");
}

static void test_fill(void)
{
	static const uint64_t sizes[] = {1,	2,     4095,   4096,	4097,	10240,
					 32768, 32769, 102400, 1 << 20, 3000001};
	static unsigned char got[3000001];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t id = device_unit(&device, i, sizes[i]);

		memset(got, 0, sizes[i]);
		must(nabc_copy(device.fd, id, 0, sizes[i], got) == 0);
		must(guest_holds(got, i, 0, sizes[i]));
		must(nabc_copy(device.fd, id, sizes[i] - 1, 1, got) == 0);
		must(guest_holds(got, i, sizes[i] - 1, 1));
		must(nabc_copy(device.fd, id, sizes[i], 0, got) == 0);
		must_fail(nabc_copy(device.fd, id, sizes[i], 1, got), ERANGE);
		must_fail(nabc_copy(device.fd, id, 1, sizes[i], got), ERANGE);
		must_fail(nabc_copy(device.fd, id, UINT64_MAX, 2, got), ERANGE);
		must_fail(nabc_copy(device.fd, id, 1, UINT64_MAX, got), ERANGE);
		must_fail(nabc_copy(device.fd, id, 0, 1, (void *)8), EFAULT);
		must_fail(nabc_copy(device.fd, id, 0, 1, (void *)0xffff888000000000u), EFAULT);
		must(nabc_destroy(device.fd, id) == 0);
		must_fail(nabc_copy(device.fd, id, 0, 1, got), ENOENT);
	}
	guest_tested("fill by the arena and copy");
}

/* A new unit contains zeroes or bytes of this file: never those of others. */
static int leave_secrets(void *context)
{
	struct device own;

	(void)context;
	device_open(&own);
	for (int i = 0; i < 20; i++) {
		unsigned char *bytes;

		device_alloc(&own, 200000, &bytes);
		memset(bytes, 0xa5, 200000);
	}
	for (uint64_t i = 0; i < 20; i++)
		device_unit(&own, i, 200000);
	return 0;
}

static void test_secrets(void)
{
	guest_join(guest_fork(leave_secrets, NULL));
	for (int i = 0; i < 60; i++) {
		unsigned char *bytes;
		struct device fresh;

		if (i % 20 == 0)
			device_open(&fresh);
		device_alloc(&fresh, 200000, &bytes);
		for (size_t at = 0; at < 200000; at++)
			must(bytes[at] == 0);
		if (i % 20 == 19)
			device_close(&fresh);
	}
	guest_tested("no bytes of another process");
}

static void test_read(void)
{
	static unsigned char bytes[70000], got[70000];
	char path[] = "/tmp/readXXXXXX";
	int file = mkstemp(path), ends[2], write_only, directory;
	struct nabc_read call;
	unsigned char *arena;
	uint64_t id;

	must(file >= 0);
	guest_fill(bytes, 5, 0, sizeof(bytes));
	must(write(file, bytes, sizeof(bytes)) == sizeof(bytes));
	id = device_alloc(&device, sizeof(bytes), &arena);
	must(nabc_read(device.fd, id, 0, 30000, file, 0) == 30000);
	must(lseek(file, 30000, SEEK_SET) == 30000);
	must(nabc_read(device.fd, id, 30000, 40000, file, -1) == 40000);
	must(lseek(file, 0, SEEK_CUR) == 70000);
	must(nabc_read(device.fd, id, 0, 1, file, -1) == 0);
	must(nabc_read(device.fd, id, 0, 10, file, 69999) == 1);
	arena[0] = bytes[0];
	must_fail(nabc_read(device.fd, id, 1, sizeof(bytes), file, 0), ERANGE);
	must_fail(nabc_read(device.fd, id, UINT64_MAX, 2, file, 0), ERANGE);
	must_fail(nabc_read(device.fd, id, 0, 1, file, -2), EINVAL);
	must_fail(nabc_read(device.fd, id, 0, 1, file, INT64_MIN), EINVAL);
	must_fail(nabc_read(device.fd, id, 0, 1, -1, 0), EBADF);
	must_fail(nabc_read(device.fd, id, 0, 1, 9999, 0), EBADF);
	must_fail(nabc_read(device.fd, NEVER, 0, 1, file, 0), ENOENT);
	call = (struct nabc_read){.id = id, .length = 1, .fd = file, .flags = 1};
	must_fail(ioctl(device.fd, NABC_IOC_READ, &call), EINVAL);
	must_fail(ioctl(device.fd, NABC_IOC_READ, NULL), EFAULT);
	write_only = open(path, O_WRONLY);
	must_fail(nabc_read(device.fd, id, 0, 1, write_only, 0), EBADF);
	directory = open("/tmp", O_RDONLY);
	must_fail(nabc_read(device.fd, id, 0, 1, directory, 0), EISDIR);
	must(nabc_insert(device.fd, id, 0, 0, 0) == 0);
	must_fail(nabc_read(device.fd, id, 0, 1, file, 0), EROFS);
	must(nabc_copy(device.fd, id, 0, sizeof(got), got) == 0);
	must(guest_holds(got, 5, 0, sizeof(got)));
	must(nabc_destroy(device.fd, id) == 0);

	/* From a pipe and from a socket. */
	id = device_alloc(&device, 1000, &arena);
	must(pipe2(ends, O_NONBLOCK) == 0);
	must_fail(nabc_read(device.fd, id, 0, 10, ends[0], -1), EAGAIN);
	must_fail(nabc_read(device.fd, id, 0, 10, ends[0], 0), ESPIPE);
	must(write(ends[1], bytes, 10) == 10);
	must(nabc_read(device.fd, id, 0, 1000, ends[0], -1) == 10);
	must(guest_holds(arena, 5, 0, 10));
	close(ends[0]);
	close(ends[1]);
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	must(write(ends[1], bytes, 20) == 20);
	must(nabc_read(device.fd, id, 100, 900, ends[0], -1) == 20);
	must(guest_holds(arena + 100, 5, 0, 20));
	close(ends[0]);
	close(ends[1]);
	must(nabc_destroy(device.fd, id) == 0);
	close(file);
	close(write_only);
	close(directory);
	unlink(path);
	guest_tested("read from files, a pipe and a socket");
}

static void test_insert(void)
{
	struct nabc_stat stat;
	unsigned char *bytes;
	uint64_t id = device_alloc(&device, 50000, &bytes);

	guest_fill(bytes, 9, 0, 50000);
	must_fail(nabc_insert(device.fd, id, 50001, 0, 0), ERANGE);
	must_fail(nabc_insert(device.fd, id, 0, device.info.linger_max + 1, 0), EINVAL);
	must_fail(nabc_insert(device.fd, id, 0, 0, 0x80000000u), EINVAL);
	must_fail(nabc_insert(device.fd, NEVER, 0, 0, 0), ENOENT);
	must_fail(nabc_insert(device.fd, 0, 0, 0, 0), ENOENT);
	must_fail(ioctl(device.fd, NABC_IOC_INSERT, NULL), EFAULT);
	must(nabc_stat(device.fd, id, &stat) == 0);
	must(stat.state == NABC_STATE_FILLING);
	must(nabc_insert(device.fd, id, 10000, device.info.linger_max, NABC_INSERT_SUMS) == 0);
	must_fail(nabc_insert(device.fd, id, 0, 0, 0), EROFS);
	must(nabc_stat(device.fd, id, &stat) == 0);
	must(stat.id == id && stat.state == NABC_STATE_CACHED && stat.size == 10000);
	must(stat.memory >= 10000 && stat.sent == 0 && stat.holds == 0 && stat.grants == 0);
	must(stat.linger == device.info.linger_max && stat.flags == NABC_UNIT_SUMMED);
	must(stat.rights == (NABC_RIGHT_SEND | NABC_RIGHT_DESTROY));
	must(stat.maker_pid == (unsigned int)getpid() && stat.maker_uid == getuid());
	must_fail(nabc_stat(device.fd, NEVER, &stat), ENOENT);
	must_fail(nabc_copy(device.fd, id, 9999, 2, bytes), ERANGE);
	must(nabc_destroy(device.fd, id) == 0);
	guest_tested("insert, stat");
}

/* RFC 1071, directly implemented. */
static unsigned int sum_of(const unsigned char *bytes, size_t length)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < length; i++) {
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum;
}

/* Zero has two forms. */
static bool same_sum(long a, unsigned int b)
{
	return a >= 0 && a <= 0xffff && a % 0xffff == (long)(b % 0xffff);
}

static void test_sum(void)
{
	static unsigned char bytes[100001];
	static const unsigned char two[] = {1, 2};
	uint64_t id, state = 77, empty;
	unsigned char *arena;

	guest_fill(bytes, 3, 0, sizeof(bytes));
	id = device_unit(&device, 3, sizeof(bytes));
	for (int i = 0; i < 1500; i++) {
		uint64_t offset = guest_random(&state) % sizeof(bytes);
		uint64_t length = guest_random(&state) % (sizeof(bytes) - offset + 1);

		if (i % 3 == 0 && length > 600)
			length %= 600;
		must(same_sum(nabc_sum(device.fd, id, offset, length),
			      sum_of(bytes + offset, length)));
	}
	must(nabc_sum(device.fd, id, 7, 0) == 0);
	must_fail(nabc_sum(device.fd, id, sizeof(bytes), 1), ERANGE);
	must_fail(nabc_sum(device.fd, id, UINT64_MAX, 1), ERANGE);
	must_fail(nabc_sum(device.fd, NEVER, 0, 1), ENOENT);
	must_fail(ioctl(device.fd, NABC_IOC_SUM, NULL), EFAULT);
	must(nabc_destroy(device.fd, id) == 0);
	empty = device_alloc(&device, 2, &arena);
	must_fail(nabc_sum(device.fd, empty, 0, 2), EBUSY);
	memcpy(arena, two, 2);
	must(nabc_insert(device.fd, empty, 0, 0, NABC_INSERT_SUMS) == 0);
	must(nabc_sum(device.fd, empty, 0, 2) == 0x0102);
	must(nabc_destroy(device.fd, empty) == 0);
	guest_tested("sums of 1500 ranges");
}

static void test_hold(void)
{
	struct nabc_unit_id call;
	struct nabc_stat stat;
	unsigned char bytes[100], *arena;
	uint64_t id = device_unit(&device, 1, 100), filling = device_alloc(&device, 1, &arena);

	must_fail(nabc_hold(device.fd, filling), EBUSY);
	must(nabc_destroy(device.fd, filling) == 0);
	must_fail(nabc_release(device.fd, id), EINVAL);
	must(nabc_hold(device.fd, id) == 0);
	must(nabc_hold(device.fd, id) == 0);
	must(device_statistics(device.fd).file_held == 1);
	must(nabc_stat(device.fd, id, &stat) == 0);
	must(stat.holds == 1 && stat.flags == NABC_UNIT_HELD);
	must(nabc_destroy(device.fd, id) == 0);
	must(nabc_stat(device.fd, id, &stat) == 0);
	must(stat.state == NABC_STATE_DESTROYED);
	must(nabc_copy(device.fd, id, 0, 100, bytes) == 0);
	must(guest_holds(bytes, 1, 0, 100));
	must(nabc_release(device.fd, id) == 0);
	must(nabc_copy(device.fd, id, 0, 100, bytes) == 0);
	must(nabc_release(device.fd, id) == 0);
	must_fail(nabc_copy(device.fd, id, 0, 100, bytes), ENOENT);
	must_fail(nabc_release(device.fd, id), EINVAL);
	must_fail(nabc_hold(device.fd, id), ENOENT);
	must_fail(nabc_hold(device.fd, NEVER), ENOENT);
	call = (struct nabc_unit_id){.id = id, .flags = 1};
	must_fail(ioctl(device.fd, NABC_IOC_HOLD, &call), EINVAL);
	must_fail(ioctl(device.fd, NABC_IOC_RELEASE, &call), EINVAL);
	must_fail(ioctl(device.fd, NABC_IOC_DESTROY, &call), EINVAL);
	call = (struct nabc_unit_id){.id = id, .reserved = 1};
	must_fail(ioctl(device.fd, NABC_IOC_DESTROY, &call), EINVAL);
	must_fail(ioctl(device.fd, NABC_IOC_DESTROY, NULL), EFAULT);
	must(device_statistics(device.fd).file_held == 0);
	guest_tested("hold, release, destroy");
}

static void test_list(void)
{
	enum { UNITS = 50 };
	static struct nabc_stat units[NABC_LIST_MAX];
	struct nabc_list call = {.units = (uintptr_t)units, .count = 7};
	unsigned int found = 0;
	uint64_t ids[UNITS], last = 0;

	for (int i = 0; i < UNITS; i++)
		ids[i] = device_unit(&device, (uint64_t)i, 10 + (uint64_t)i);
	do {
		must(ioctl(device.fd, NABC_IOC_LIST, &call) == 0);
		must(call.found <= call.count);
		for (unsigned int i = 0; i < call.found; i++) {
			must(units[i].id > last);
			last = units[i].id;
			for (int own = 0; own < UNITS; own++)
				if (ids[own] == last) {
					must(units[i].size == 10 + (uint64_t)own);
					found++;
				}
		}
	} while (call.found == call.count);
	must(found == UNITS);
	for (int i = 0; i < UNITS; i++)
		must(nabc_destroy(device.fd, ids[i]) == 0);
	call = (struct nabc_list){.units = (uintptr_t)units};
	must_fail(ioctl(device.fd, NABC_IOC_LIST, &call), EINVAL);
	call.count = NABC_LIST_MAX + 1;
	must_fail(ioctl(device.fd, NABC_IOC_LIST, &call), EINVAL);
	must_fail(ioctl(device.fd, NABC_IOC_LIST, NULL), EFAULT);
	ids[0] = device_unit(&device, 1, 1);
	call = (struct nabc_list){.units = 8, .count = 5};
	must_fail(ioctl(device.fd, NABC_IOC_LIST, &call), EFAULT);
	must(nabc_destroy(device.fd, ids[0]) == 0);
	guest_tested("list");
}

/* The system call of a 32-bit program, which any program may make. */
static long ioctl_32(int fd, unsigned long request, void *argument)
{
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(54L), "b"((long)fd), "c"(request), "d"(argument)
			 : "memory", "cc", "r8", "r9", "r10", "r11");
	return result;
}

static void test_32_bits(void)
{
	/* All of it at addresses below 32 bits. */
	unsigned char *low = mmap(NULL, 20000, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	struct nabc_alloc *alloc = (struct nabc_alloc *)low;
	struct nabc_insert *insert = (struct nabc_insert *)(low + 100 * 8);
	struct nabc_copy *copy = (struct nabc_copy *)(low + 200 * 8);
	struct nabc_stat *stat = (struct nabc_stat *)(low + 300 * 8);

	must(low != MAP_FAILED);
	alloc->size = 3000;
	must(ioctl_32(device.fd, NABC_IOC_ALLOC, alloc) == 0);
	guest_fill(device.arena + alloc->arena_offset, 8, 0, 3000);
	insert->id = copy->id = stat->id = alloc->id;
	must(ioctl_32(device.fd, NABC_IOC_INSERT, insert) == 0);
	must(ioctl_32(device.fd, NABC_IOC_INSERT, insert) == -EROFS);
	copy->length = 3000;
	copy->data = (uintptr_t)low + 8000;
	must(ioctl_32(device.fd, NABC_IOC_COPY, copy) == 0);
	must(guest_holds(low + 8000, 8, 0, 3000));
	must(ioctl_32(device.fd, NABC_IOC_STAT, stat) == 0);
	must(stat->size == 3000 && stat->maker_pid == (unsigned int)getpid());
	must(nabc_destroy(device.fd, alloc->id) == 0);
	munmap(low, 20000);
	guest_tested("the calls of 32-bit programs");
}

/*
 * A user without privileges, so that RLIMIT_MEMLOCK applies.  No other test opens the device
 * as this one: memory that earlier processes left in sockets would count as well.
 */
enum { USER = 64000 };

static int locked_memory(void *context)
{
	const struct rlimit limit = {1 << 20, 1 << 20};
	struct device own;
	uint64_t id, count = 0;

	(void)context;
	must(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
	/* The real user is charged, the effective one may open the device. */
	must(setresuid(USER, 0, 0) == 0);
	device_open(&own);
	/* Without the capability. */
	must(setresuid(USER, USER, USER) == 0);
	while (count < 100 && nabc_alloc(own.fd, 65536, &id) == 0)
		count++;
	must(errno == ENOMEM);
	must(count >= 14 && count <= 16);
	must(device_statistics(own.fd).file_charged <= 1 << 20);
	must_fail(nabc_alloc(own.fd, 2 << 20, &id), ENOMEM);
	/* Returned memory can be allocated again. */
	must(nabc_destroy(own.fd, id) == 0);
	must(nabc_alloc(own.fd, 65536, &id) == 0);
	return 0;
}

static void test_limits(void)
{
	guest_join(guest_fork(locked_memory, NULL));
	guest_tested("RLIMIT_MEMLOCK");
}

int main(void)
{
	device_open(&device);
	test_info();
	test_alloc();
	test_alloc_fault();
	test_fill();
	test_secrets();
	test_read();
	test_insert();
	test_sum();
	test_hold();
	test_list();
	test_32_bits();
	test_limits();
	device_close(&device);
	return 0;
}
