/* SPDX-License-Identifier: MIT */
/*
 * test-degradation.c - the library on a system with missing features: no io_uring, no
 * seals, little lockable memory, no mlock2, few descriptors.  Each test runs in a
 * process of its own, whose features it restricts.
 */
#include <errno.h>
#include <fcntl.h>
#include <nabc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "degradation-fixture.h"
#include "nabc-fixture.h"
#include "suite.h"
#include "unit-holds.h"

/* The whole life of a unit; returns 0 or the errno that ended it. */
static int live_and_die(size_t size, enum NC_kind kind)
{
	unsigned char *data = must_alloc(size), *got = must_alloc(size);
	int pair[2], error = 0;
	NC_handle handle;
	size_t id;

	pattern_fill(data, size, 0, size);
	if (NC_unit_alloc(NULL, &handle, size, 0, kind, 0) < 0) {
		error = errno;
	} else if (NC_write(&handle, data, size, 0) < 0 || NC_insert(&handle) < 0) {
		error = errno;
		ck_assert_int_eq(NC_free(&handle), 0);
	} else {
		id = NC_cache_id(&handle);
		ck_assert_int_eq(NC_free(&handle), 0);
		tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4 << 20, 4 << 20);
		send_whole(pair[0], id, size);
		read_exactly(pair[1], got, size);
		ck_assert_uint_eq(pattern_match(got, size, 0, size), size);
		close_pair(pair);
		ck_assert_int_eq(NC_destroy(NULL, id), 0);
	}
	free(data);
	free(got);
	return error;
}

static void check_all_kinds(void)
{
	static const size_t sizes[] = {1, 4096, 100 << 10, 1 << 20};

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (enum NC_kind kind = NC_KIND_AUTO; kind <= NC_KIND_KERNEL; kind++)
			ck_assert_int_eq(live_and_die(sizes[i], kind), 0);
}

START_TEST(test_without_uring)
{
	struct NC_cache_stat stat;

	refuse_call(SYS_io_uring_setup, -1, EPERM);
	open_listening(16 * MIB, 0);
	check_all_kinds();
	ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	ck_assert_ptr_nonnull(strstr(stat.uring, "Operation not permitted"));
	ck_assert_uint_eq(times_said("io_uring"), 1);
	ck_assert_uint_eq(says, 1);
	close_cache();

	/* A caller that disabled io_uring gets no message. */
	open_listening(16 * MIB, NC_CACHE_NO_URING);
	check_all_kinds();
	close_cache();
	ck_assert_uint_eq(says, 1);
}
END_TEST

START_TEST(test_without_seals)
{
	char directory[64], path[100];
	struct NC_cache_stat stat;

	refuse_call(SYS_fcntl, F_ADD_SEALS, EINVAL);
	open_listening(16 * MIB, NC_CACHE_NO_URING);
	ck_assert_uint_eq(times_said("seal"), 1);
	ck_assert_int_eq(live_and_die(1000, NC_KIND_AUTO), 0);
	ck_assert_int_eq(live_and_die(100 << 10, NC_KIND_AUTO), 0);
	ck_assert_int_eq(live_and_die(5000000 / 2, NC_KIND_APPENDED), 0);
	ck_assert_int_eq(live_and_die(100 << 10, NC_KIND_RECYCLED), 0);
	/* A kind whose guarantees are impossible is unavailable. */
	ck_assert_int_eq(live_and_die(1000, NC_KIND_SEALED), ENOTSUP);
	FAILS(NC_grant(cache, insert(1, 100), NC_USER, 0), ENOTSUP);
	ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	ck_assert_uint_eq(stat.units, 1);
	make_directory(directory);
	snprintf(path, sizeof(path), "%s/cache", directory);
	ck_assert_int_eq(NC_cache_serve(cache, path, NULL), 0);
	close_cache();
	rmdir(directory);
	ck_assert_uint_eq(says, 1);
}
END_TEST

START_TEST(test_little_lockable_memory)
{
	struct rlimit little = {64 << 10, 64 << 10};

	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &little), 0);
	/* Root has no limit on pinned memory. */
	if (geteuid() == 0)
		ck_assert_int_eq(setresuid(65534, 65534, 65534), 0);
	open_listening(16 * MIB, 0);
	check_all_kinds();
	close_cache();
}
END_TEST

/* A kernel without mlock2, or a container that forbids it: all memory, or none, is locked. */
static void check_without_mlock2(int error)
{
	struct NC_cache_stat stat;

	refuse_call(SYS_mlock2, -1, error);
	/* Valgrind 3.19 does not pass the call on: there it is missing in any case. */
	if (syscall(SYS_mlock2, NULL, 0, 0) < 0 && errno == ENOSYS)
		error = ENOSYS;
	open_listening(4 * MIB, NC_CACHE_PIN | NC_CACHE_NO_URING);
	check_all_kinds();
	ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	ck_assert_uint_eq(stat.locked_bytes + stat.unlocked_bytes, stat.used);
	if (error == EPERM) {
		ck_assert_uint_eq(stat.locked_bytes, 0);
		ck_assert_uint_eq(times_said("locked, the rest is not"), 1);
	} else if (geteuid() == 0) {
		ck_assert_uint_eq(stat.unlocked_bytes, 0);
		ck_assert_uint_eq(says, 0);
	}
	close_cache();
}

START_TEST(test_without_mlock2)
{
	check_without_mlock2(ENOSYS);
}
END_TEST

START_TEST(test_mlock2_forbidden)
{
	check_without_mlock2(EPERM);
}
END_TEST

/* Leaves only that many descriptors free. */
static void leave_descriptors(unsigned count)
{
	struct rlimit limit;
	int highest = 0;

	for (int fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			highest = fd;
	for (int fd = 0; fd <= highest; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			ck_assert_int_ge(dup2(0, fd), 0);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = (rlim_t)highest + 1 + count;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

START_TEST(test_few_descriptors)
{
	static size_t ids[64];
	unsigned kept = 0, refused = 0;
	NC_handle handle;

	leave_descriptors(16);
	open_listening(64 * MIB, 0);
	check_all_kinds();
	/* Each costs a descriptor; held, so that none is evicted. */
	for (unsigned i = 0; i < 64; i++) {
		if (NC_unit_alloc(NULL, &handle, 10000, 0, NC_KIND_SEALED, 0) < 0) {
			ck_assert_int_eq(errno, EMFILE);
			refused++;
			continue;
		}
		ck_assert_int_eq(NC_printf(&handle, 0, "unit %u", kept), kept < 10 ? 6 : 7);
		ck_assert_int_eq(NC_insert(&handle), 0);
		ids[kept] = NC_cache_id(&handle);
		ck_assert_int_eq(hold_id(NULL, ids[kept++]), 0);
		ck_assert_int_eq(NC_free(&handle), 0);
	}
	ck_assert_uint_gt(refused, 0);
	ck_assert_uint_gt(kept, 0);
	ck_assert_uint_eq(times_said("RLIMIT_NOFILE"), 1);
	/* Nothing was lost, and there is space again after some were destroyed. */
	for (unsigned i = 0; i < kept; i++) {
		char text[16] = "", expected[16];

		snprintf(expected, sizeof(expected), "unit %u", i);
		ck_assert_int_eq(NC_pread(cache, ids[i], text, strlen(expected), 0),
				 (ssize_t)strlen(expected));
		ck_assert_str_eq(text, expected);
		ck_assert_int_eq(release_id(NULL, ids[i]), 0);
		ck_assert_int_eq(NC_destroy(NULL, ids[i]), 0);
	}
	check_all_kinds();
	close_cache();
}
END_TEST

/* Units that are not held are evicted: a cache does not fail for lack of descriptors. */
START_TEST(test_few_descriptors_evict)
{
	NC_handle handle;

	leave_descriptors(16);
	open_listening(64 * MIB, 0);
	for (unsigned i = 0; i < 200; i++) {
		ck_assert_int_eq(NC_unit_alloc(NULL, &handle, 10000, 0,
					       i % 3 ? NC_KIND_SEALED : NC_KIND_AUTO, 0),
				 0);
		ck_assert_int_eq(NC_insert(&handle), 0);
		ck_assert_int_eq(NC_free(&handle), 0);
	}
	close_cache();
}
END_TEST

/* Returns the number of descriptors that the process could still open. */
static unsigned descriptors_left(void)
{
	unsigned count = 0;
	int fds[256];

	while (count < 256 && (fds[count] = dup(0)) >= 0)
		count++;
	for (unsigned i = 0; i < count; i++)
		close(fds[i]);
	return count;
}

/* Inserts a unit without a hold; returns its id. */
static size_t leave_unit(size_t size, enum NC_kind kind)
{
	NC_handle handle;
	size_t id;

	ck_assert_int_eq(NC_unit_alloc(NULL, &handle, size, 0, kind, 0), 0);
	ck_assert_int_eq(NC_insert(&handle), 0);
	id = NC_cache_id(&handle);
	ck_assert_int_eq(NC_free(&handle), 0);
	return id;
}

/* With any limit, the cache leaves most descriptors to the process, and works. */
START_TEST(test_descriptors_for_the_program)
{
	static size_t ids[60];
	unsigned alive_count = 0, spare;
	struct rlimit few;

	/* Valgrind does not permit a change of the hard limit. */
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &few), 0);
	few.rlim_cur = 32;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	open_listening(64 * MIB, NC_CACHE_NO_THREAD);
	/* A quarter of 32 is for segments. */
	spare = descriptors_left() - 8;
	ck_assert_uint_ge(spare, 4);
	for (unsigned i = 0; i < 60; i++)
		ids[i] = leave_unit(MIB - 4096, NC_KIND_AUTO);
	for (unsigned i = 0; i < 60; i++)
		alive_count += alive(ids[i]);
	ck_assert_uint_ge(alive_count, 56);
	ck_assert_uint_ge(descriptors_left(), spare);
	for (unsigned i = 0; i < 100; i++)
		(void)leave_unit(i % 2 ? 10000 : 9 * MIB, i % 3 ? NC_KIND_SEALED : NC_KIND_AUTO);
	ck_assert_uint_ge(descriptors_left(), spare);
	close_cache();
}
END_TEST

/* For any kinds in any order: at most as many descriptors as the option permits. */
START_TEST(test_max_descriptors)
{
	static const size_t sizes[] = {100, 40000, 3 * MIB, MIB};
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 64 * MIB, .member_quota = 64 * MIB,
				      .flags = NC_CACHE_NO_THREAD | NC_CACHE_NO_KERNEL, .log = hear,
				      .log_context = said, .max_descriptors = 3);
	unsigned before, held = 0, granted = 0;
	size_t id, first = 0;

	NULL_FAILS(NC_cache_open(&options), EINVAL);
	options.max_descriptors = 6;
	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	before = open_descriptors();
	for (unsigned i = 0; i < 400; i++) {
		enum NC_kind kind = (enum NC_kind)(i % NC_KIND_KERNEL);

		(void)leave_unit(sizes[i / 7 % 4], kind);
		ck_assert_uint_le(open_descriptors() - before, 6);
	}
	/* Units in use cannot be evicted. */
	for (NC_handle handle; held < 7; held++) {
		if (NC_unit_alloc(NULL, &handle, 100, 0, NC_KIND_SEALED, 0) < 0)
			break;
		ck_assert_int_eq(NC_insert(&handle), 0);
		ck_assert_int_eq(hold_id(NULL, NC_cache_id(&handle)), 0);
	}
	ck_assert_int_eq(errno, EMFILE);
	ck_assert_uint_eq(held, 6);
	ck_assert_uint_eq(open_descriptors() - before, 6);
	ck_assert_uint_eq(times_said("max_descriptors"), 1);
	close_cache();
	/* Copies for others have a limit of the same size. */
	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	for (; granted < 7; granted++) {
		id = leave_unit(100, NC_KIND_RECYCLED);
		if (NC_grant(cache, id, NC_USER, 12345) < 0)
			break;
		first = granted ? first : id;
	}
	ck_assert_int_eq(errno, EMFILE);
	ck_assert_uint_eq(granted, 6);
	/* After one is destroyed, another one fits. */
	ck_assert_int_eq(NC_destroy(NULL, first), 0);
	ck_assert_int_eq(NC_grant(cache, id, NC_USER, 12345), 0);
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_without_uring);
	tcase_add_test(tcase, test_without_seals);
	tcase_add_test(tcase, test_little_lockable_memory);
	tcase_add_test(tcase, test_without_mlock2);
	tcase_add_test(tcase, test_mlock2_forbidden);
	tcase_add_test(tcase, test_few_descriptors);
	tcase_add_test(tcase, test_few_descriptors_evict);
	tcase_add_test(tcase, test_descriptors_for_the_program);
	tcase_add_test(tcase, test_max_descriptors);
}

RUN_SUITE("degradation", fill)
