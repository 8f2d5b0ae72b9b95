/* SPDX-License-Identifier: MIT */
/*
 * test-device.c - unit tests of device.c with a model of the module: what it receives,
 * what it returns, and every reason not to use it.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nabc-uapi.h>
#include <nabc.h>
#include "base/checksum.h"
#include "os/device.h"
#include "os/identity.h"

#include "suite.h"

#include "device-model.h"

static struct nc_device device;

static void open_model(void)
{
	nc_device_init(&device, "nobody wanted it");
	ck_assert_int_eq(nc_device_open(&device, &model_system), 0);
}

static uint64_t unit_with(uint64_t seed, size_t size)
{
	uint64_t id;
	char *base;

	ck_assert_int_eq(nc_device_alloc(&device, size, &id, &base), 0);
	pattern_fill(base, seed, 0, size);
	ck_assert_int_eq(nc_device_insert(&device, id, 0), 0);
	return id;
}

START_TEST(test_not_opened)
{
	nc_device_init(&device, "nobody wanted it");
	ck_assert(!nc_device_usable(&device));
	ck_assert_str_eq(device.why, "not used: nobody wanted it");
	/* Nothing to close. */
	nc_device_close(&device);
}
END_TEST

START_TEST(test_opened)
{
	unsigned before = open_descriptors();

	open_model();
	ck_assert(nc_device_usable(&device));
	ck_assert_str_eq(device.why, "used");
	ck_assert_uint_eq(device.arena_size, MODEL_ARENA);
	ck_assert_uint_eq(device.header_max, NABC_HEADER_MAX);
	nc_device_close(&device);
	ck_assert(!nc_device_usable(&device));
	ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

/* The reason for not using it is reported, and no descriptor stays open. */
START_TEST(test_refused)
{
	unsigned before = open_descriptors();

	nc_device_init(&device, "nobody wanted it");
	model.open_error = EACCES;
	ck_assert_int_eq(nc_device_open(&device, &model_system), -EACCES);
	ck_assert_str_eq(device.why, "not used: /dev/nabc: Permission denied");
	model.open_error = 0;
	model.version = NABC_ABI_VERSION + 1;
	ck_assert_int_eq(nc_device_open(&device, &model_system), -EPROTO);
	ck_assert_ptr_nonnull(strstr(device.why, "version 2, not 1"));
	ck_assert(!nc_device_usable(&device));
	ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

/* A different device, or none at all. */
static int open_null(void)
{
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

START_TEST(test_strange)
{
	struct nc_device_system null = nc_device_kernel;
	unsigned before = open_descriptors();

	null.open = open_null;
	nc_device_init(&device, "nobody wanted it");
	ck_assert_int_eq(nc_device_open(&device, &null), -ENOTTY);
	ck_assert_ptr_nonnull(strstr(device.why, "NABC_IOC_INFO"));
	ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

START_TEST(test_life)
{
	char got[20000];
	uint16_t sum;
	uint64_t id;
	char *base;

	open_model();
	ck_assert_int_eq(nc_device_alloc(&device, sizeof(got), &id, &base), 0);
	ck_assert_int_eq(nc_device_copy(&device, id, 0, got, 1), -EBUSY);
	pattern_fill(base, 3, 0, sizeof(got));
	ck_assert_int_eq(nc_device_insert(&device, id, 0), 0);
	ck_assert(!writable(base));
	ck_assert_int_eq(nc_device_insert(&device, id, 0), -EROFS);
	ck_assert_int_eq(nc_device_copy(&device, id, 0, got, sizeof(got)), 0);
	ck_assert_uint_eq(pattern_match(got, 3, 0, sizeof(got)), sizeof(got));
	ck_assert_int_eq(nc_device_copy(&device, id, 77, got, 100), 0);
	ck_assert_uint_eq(pattern_match(got, 3, 77, 100), 100);
	ck_assert_int_eq(nc_device_copy(&device, id, 1, got, sizeof(got)), -ERANGE);
	ck_assert_int_eq(nc_device_sum(&device, id, 77, 100, &sum), 0);
	ck_assert_uint_eq(sum, ntohs(nc_checksum(got, 100)));
	ck_assert_int_eq(nc_device_sum(&device, id, 1, sizeof(got), &sum), -ERANGE);
	ck_assert_int_eq(nc_device_destroy(&device, id), 0);
	ck_assert_int_eq(nc_device_copy(&device, id, 0, got, 1), -ENOENT);
	ck_assert_int_eq(nc_device_sum(&device, id, 0, 1, &sum), -ENOENT);
	ck_assert_uint_eq(model_units(), 0);
	nc_device_close(&device);
}
END_TEST

/* For each way in which the module reports that it is full. */
START_TEST(test_full)
{
	static const int errors[] = {ENOSPC, ENOMEM, EFBIG};
	uint64_t id;
	char *base;

	open_model();
	model.memory = 10000;
	for (unsigned i = 0; i < 3; i++) {
		model.full = errors[i];
		atomic_store(&device.refused, SIZE_MAX);
		ck_assert_int_eq(nc_device_alloc(&device, 10001, &id, &base), -ENOSPC);
	}
	ck_assert_int_eq(nc_device_alloc(&device, MODEL_ARENA + 1, &id, &base), -ENOSPC);
	ck_assert_int_eq(nc_device_alloc(&device, 10000, &id, &base), 0);
	nc_device_close(&device);
}
END_TEST

/* Buffers are counted, and one call makes a unit of one. */
START_TEST(test_put)
{
	char *buffers[NC_DEVICE_BUFFERS], got[NC_DEVICE_BUFFER];
	uint64_t id;

	open_model();
	ck_assert_ptr_null(nc_device_buffer(&device, NC_DEVICE_BUFFER + 1));
	for (unsigned i = 0; i < NC_DEVICE_BUFFERS; i++) {
		buffers[i] = nc_device_buffer(&device, NC_DEVICE_BUFFER);
		ck_assert_ptr_nonnull(buffers[i]);
		pattern_fill(buffers[i], i, 0, NC_DEVICE_BUFFER);
	}
	ck_assert_ptr_null(nc_device_buffer(&device, 1));
	for (unsigned i = 0; i < NC_DEVICE_BUFFERS; i++) {
		ck_assert_int_eq(nc_device_put(&device, buffers[i], sizeof(got), &id), 0);
		ck_assert_int_eq(nc_device_copy(&device, id, 0, got, sizeof(got)), 0);
		ck_assert_uint_eq(pattern_match(got, i, 0, sizeof(got)), sizeof(got));
		nc_device_buffer_return(&device, buffers[i]);
		/* The one that was just used is in the processor's cache. */
		ck_assert_ptr_eq(nc_device_buffer(&device, 1), buffers[i]);
	}
	nc_device_buffer_return(&device, buffers[0]);
	model.memory = model.used + 1000;
	ck_assert_int_eq(nc_device_put(&device, buffers[1], 1001, &id), -ENOSPC);
	ck_assert_ptr_null(nc_device_buffer(&device, 1001));
	ck_assert_ptr_eq(nc_device_buffer(&device, 1000), buffers[0]);
	nc_device_close(&device);
	model.no_put = true;
	open_model();
	ck_assert_ptr_null(nc_device_buffer(&device, 1));
	nc_device_close(&device);
}
END_TEST

START_TEST(test_read)
{
	char bytes[3000], got[3000];
	int ends[2];
	uint64_t id;
	char *base;

	open_model();
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	pattern_fill(bytes, 5, 0, sizeof(bytes));
	ck_assert_int_eq(write(ends[1], bytes, sizeof(bytes)), sizeof(bytes));
	ck_assert_int_eq(nc_device_alloc(&device, 4000, &id, &base), 0);
	ck_assert_int_eq(nc_device_read(&device, id, 1000, 3000, ends[0]), 3000);
	ck_assert_int_eq(nc_device_read(&device, id, 1001, 3000, ends[0]), -ERANGE);
	ck_assert_int_eq(nc_device_insert(&device, id, 0), 0);
	ck_assert_int_eq(nc_device_copy(&device, id, 1000, got, 3000), 0);
	ck_assert_mem_eq(got, bytes, 3000);
	close_pair(ends);
	nc_device_close(&device);
}
END_TEST

START_TEST(test_send)
{
	struct nc_device_range ranges[] = {{.offset = 7, .length = 2000}, {.length = 500}};
	struct nc_device_send message = {.header = "head",
					 .header_length = 4,
					 .ranges = ranges,
					 .range_count = 2,
					 .flags = NC_SEND_CLOSE};
	char got[2504];
	int pair[2];

	open_model();
	ranges[0].id = unit_with(1, 5000);
	ranges[1].id = unit_with(2, 500);
	tcp_pair(pair);
	ck_assert_int_eq(nc_device_send(&device, pair[0], &message), sizeof(got));
	read_exactly(pair[1], got, sizeof(got));
	ck_assert_mem_eq(got, "head", 4);
	ck_assert_uint_eq(pattern_match(got + 4, 1, 7, 2000), 2000);
	ck_assert_uint_eq(pattern_match(got + 2004, 2, 0, 500), 500);
	ck_assert_int_eq(read(pair[1], got, 1), 0);
	ck_assert_int_eq(nc_device_send(&device, pair[0], &message), -EPIPE);
	close_pair(pair);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(nc_device_send(&device, pair[0], &message), -EOPNOTSUPP);
	close_pair(pair);
	nc_device_close(&device);
}
END_TEST

/* After a refusal the module is not asked for a while, until there may be space again. */
START_TEST(test_refusals)
{
	uint64_t id, other;
	char *base;

	open_model();
	model.memory = 10000;
	ck_assert_int_eq(nc_device_alloc(&device, 6000, &id, &base), 0);
	for (unsigned i = 0; i < 128; i++)
		ck_assert_int_eq(nc_device_alloc(&device, 6000, &other, &base), -ENOSPC);
	ck_assert_uint_lt(model_calls(NABC_IOC_ALLOC), 6);
	/* A smaller size is accepted. */
	ck_assert_int_eq(nc_device_alloc(&device, 4000, &other, &base), 0);
	ck_assert_int_eq(nc_device_destroy(&device, id), 0);
	ck_assert_int_eq(nc_device_alloc(&device, 6000, &id, &base), 0);
	/* Other units free space too. */
	ck_assert_int_eq(nc_device_alloc(&device, 6000, &id, &base), -ENOSPC);
	model.memory = SIZE_MAX;
	for (unsigned i = 0; i < 64 && nc_device_alloc(&device, 6000, &id, &base); i++)
		;
	ck_assert_int_eq(nc_device_alloc(&device, 5999, &id, &base), 0);
	ck_assert_uint_eq(model_units(), 4);
	nc_device_close(&device);
}
END_TEST

/* Two processes: one may use the unit of the other only with a grant. */
START_TEST(test_rights)
{
	struct nc_device other;
	struct nc_device_unit unit;
	int pidfd = nc_identity_open(getpid());
	uint64_t id;
	char byte;

	if (pidfd < 0) /* Valgrind 3.19 */
		return;
	open_model();
	model.pid = 4242;
	nc_device_init(&other, "");
	ck_assert_int_eq(nc_device_open(&other, &model_system), 0);
	struct nc_device here = device;

	device = other;
	id = unit_with(1, 100);
	device = here;
	ck_assert_int_eq(nc_device_hold(&device, id), -EACCES);
	ck_assert_int_eq(nc_device_copy(&device, id, 0, &byte, 1), -EACCES);
	ck_assert_int_eq(nc_device_grant(&device, id, pidfd), -EACCES);
	ck_assert_int_eq(nc_device_grant(&other, id, pidfd), 0);
	ck_assert_int_eq(nc_device_hold(&device, id), 0);
	ck_assert_int_eq(nc_device_stat(&device, id, &unit), 0);
	ck_assert(unit.sendable && unit.size == 100 && unit.maker == 4242);
	ck_assert_int_eq(nc_device_destroy(&device, id), -EACCES);
	ck_assert_int_eq(nc_device_destroy(&other, id), 0);
	/* Held, so it is still there, only for the holder. */
	ck_assert_int_eq(nc_device_copy(&device, id, 0, &byte, 1), 0);
	ck_assert_int_eq(nc_device_copy(&other, id, 0, &byte, 1), -ENOENT);
	ck_assert_int_eq(nc_device_stat(&device, id, &unit), 0);
	ck_assert(!unit.sendable);
	ck_assert_int_eq(nc_device_release(&device, id), 0);
	ck_assert_int_eq(nc_device_release(&device, id), -EINVAL);
	ck_assert_int_eq(nc_device_copy(&device, id, 0, &byte, 1), -ENOENT);
	nc_device_close(&other);
	nc_device_close(&device);
	close(pidfd);
}
END_TEST

static unsigned interrupted;

static int interrupt(int fd, unsigned long request, void *argument)
{
	return interrupted && interrupted-- ? -EINTR : model_call(fd, request, argument);
}

/* A signal is not an error. */
START_TEST(test_signals)
{
	struct nc_device_system system = model_system;
	uint64_t id;
	char *base;

	system.call = interrupt;
	nc_device_init(&device, "nobody wanted it");
	interrupted = 3;
	ck_assert_int_eq(nc_device_open(&device, &system), 0);
	ck_assert_uint_eq(interrupted, 0);
	interrupted = 3;
	ck_assert_int_eq(nc_device_alloc(&device, 1, &id, &base), 0);
	nc_device_close(&device);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_not_opened);
	tcase_add_test(tcase, test_opened);
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_strange);
	tcase_add_test(tcase, test_life);
	tcase_add_test(tcase, test_full);
	tcase_add_test(tcase, test_refusals);
	tcase_add_test(tcase, test_put);
	tcase_add_test(tcase, test_read);
	tcase_add_test(tcase, test_send);
	tcase_add_test(tcase, test_rights);
	tcase_add_test(tcase, test_signals);
}

RUN_SUITE("device", fill)
