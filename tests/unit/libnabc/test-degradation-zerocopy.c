/* SPDX-License-Identifier: MIT */
/*
 * test-degradation-zerocopy.c - the library on a system where zero-copy sends are fixed, and
 * something that they need is missing: the operation, tables of registered buffers, memory
 * for registrations, memory that may be locked.  All bytes arrive, one message states what
 * is missing, and nothing remains pinned.  Each test runs in a process of its own, whose
 * features it restricts.
 */
#include <errno.h>
#include <liburing.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "degradation-fixture.h"
#include "nabc-fixture.h"
#include "pinned.h"
#include "suite.h"

#define KIB ((size_t)1 << 10)
/* Enough sends until the memory is registered: see nabc(7). */
#define SIZE (250 * KIB)
#define SENDS 60u

static struct NC_cache_stat statistics(void)
{
	struct NC_cache_stat stat;

	ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	return stat;
}

/*
 * As open_listening(), but so small that the unit has a segment of its own; before Linux 6.14, an
 * eighth of the cache is registered at most.
 */
static void open_small(void)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB, .max_unit = MIB / 4,
				      .flags = NC_CACHE_NO_THREAD | NC_CACHE_NO_HUGE, .log = hear,
				      .log_context = said);

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
}

/* Sends a unit often enough for its memory to be registered; the bytes are compared. */
static void send_often(void)
{
	size_t id = insert_as(NULL, 1, SIZE, 0, NC_KIND_APPENDED);
	char *got = must_alloc(SIZE);
	int pair[2];

	tcp_pair_between(pair, "127.0.0.1", "127.0.0.2", 4 << 20, 4 << 20);
	for (unsigned i = 0; i < SENDS; i++) {
		send_whole(pair[0], id, SIZE);
		read_exactly(pair[1], got, SIZE);
		ck_assert_uint_eq(pattern_match(got, 1, 0, SIZE), SIZE);
		ck_assert_int_ge(NC_cache_dispatch(cache), 0);
	}
	close_pair(pair);
	free(got);
	ck_assert_int_eq(NC_destroy(cache, id), 0);
}

/* The probe names no operations: then the kernel is older than IORING_OP_SEND_ZC. */
START_TEST(test_without_operation)
{
	if (getenv("NABC_TEST_NO_URING"))
		return;
	refuse_call(SYS_io_uring_register, IORING_REGISTER_PROBE, EINVAL);
	open_small();
	FAILS(NC_route_set(cache, "*", NC_METHOD_ZEROCOPY), EOPNOTSUPP);
	send_often();
	ck_assert_uint_eq(statistics().by_zerocopy.sends, 0);
	ck_assert_uint_eq(statistics().registrations + statistics().registrations_failed, 0);
	ck_assert_str_ne(statistics().uring, "used");
	ck_assert_uint_eq(times_said(statistics().uring + strlen("not used: ")), 1);
	ck_assert_uint_eq(says, 1);
	close_cache();
}
END_TEST

/* Zero-copy sends continue without registered memory. */
static void check_unregistered(unsigned call, int error, const char *message)
{
	size_t before = pinned();
	struct NC_cache_stat stat;

	if (getenv("NABC_TEST_NO_URING") || !may_pin())
		return;
	refuse_call(SYS_io_uring_register, call, error);
	open_small();
	if (NC_route_set(cache, "*", NC_METHOD_ZEROCOPY) < 0) {
		printf("degradation-zerocopy: io_uring %s\n", statistics().uring);
		return;
	}
	send_often();
	stat = statistics();
	ck_assert_uint_ge(stat.by_zerocopy.sends, SENDS);
	ck_assert_uint_ge(stat.registrations_failed, 1);
	ck_assert_uint_eq(stat.registrations + stat.registered_bytes + stat.registered_sends, 0);
	ck_assert_uint_eq(pinned(), before);
	ck_assert_uint_eq(times_said(message), 1);
	ck_assert_uint_eq(says, 1);
	close_cache();
	ck_assert_uint_eq(pinned(), before);
}

/* A kernel without tables of buffers, or without their update. */
START_TEST(test_without_tables)
{
	check_unregistered(IORING_REGISTER_BUFFERS2, EINVAL, "is not registered with io_uring");
}
END_TEST

START_TEST(test_without_updates)
{
	check_unregistered(IORING_REGISTER_BUFFERS_UPDATE, EINVAL,
			   "is not registered with io_uring");
}
END_TEST

/* No memory for the table, or for the pages of a block. */
START_TEST(test_no_memory_for_table)
{
	check_unregistered(IORING_REGISTER_BUFFERS2, ENOMEM, "no more memory may be locked");
}
END_TEST

START_TEST(test_no_memory_for_block)
{
	check_unregistered(IORING_REGISTER_BUFFERS_UPDATE, ENOMEM, "no more memory may be locked");
}
END_TEST

/* Neither sends without a copy nor registrations are possible: each is reported once. */
static void check_limit(size_t limit)
{
	size_t before = pinned();
	struct NC_cache_stat stat;
	bool usable;

	if (getenv("NABC_TEST_NO_URING") || !limit_pins(limit))
		return;
	open_small();
	usable = NC_route_set(cache, "*", NC_METHOD_ZEROCOPY) == 0;
	send_often();
	stat = statistics();
	ck_assert_uint_eq(stat.registered_bytes, 0);
	ck_assert_uint_eq(pinned(), before);
	if (!usable) {
		/* Newer kernels lock the memory of the ring, too. */
		ck_assert_uint_eq(times_said("io_uring"), 1);
		ck_assert_uint_eq(says, 1);
	} else if (stat.by_zerocopy.sends) {
		printf("degradation-zerocopy: locked memory is not limited here\n");
	} else {
		ck_assert_uint_ge(stat.zerocopy_memory, SENDS);
		ck_assert_uint_ge(stat.by_copy.sends, SENDS);
		ck_assert_uint_ge(stat.registrations_failed, 1);
		ck_assert_uint_eq(times_said("memory for zero-copy sends cannot be locked"), 1);
		ck_assert_uint_eq(times_said("no more memory may be locked"), 1);
		ck_assert_uint_eq(says, 2);
	}
	close_cache();
	ck_assert_uint_eq(pinned(), before);
}

START_TEST(test_hardly_any_memlock)
{
	check_limit(64 * KIB);
}
END_TEST

START_TEST(test_no_memlock)
{
	check_limit(0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_without_operation);
	tcase_add_test(tcase, test_without_tables);
	tcase_add_test(tcase, test_without_updates);
	tcase_add_test(tcase, test_no_memory_for_table);
	tcase_add_test(tcase, test_no_memory_for_block);
	tcase_add_test(tcase, test_hardly_any_memlock);
	tcase_add_test(tcase, test_no_memlock);
}

RUN_SUITE("degradation-zerocopy", fill)
