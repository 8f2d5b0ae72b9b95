/* SPDX-License-Identifier: MIT */
/*
 * test-segment-pin.c - unit tests of segment.c: segments whose memory is locked, also
 * when freezing replaces their mapping, and beyond the limit.  Owns its segments;
 * single-threaded.
 */
#include <nabc.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/diagnostics.h"
#include "os/pin.h"
#include "os/segment.h"

#include "pin-fixture.h"
#include "suite.h"

#define PAGE ((size_t)4096)

static struct nc_diagnostics diagnostics;
static struct nc_pin pin;

static void check_locked(size_t before, uint64_t locked, uint64_t unlocked)
{
	ck_assert_uint_eq(locked_now(), before + locked);
	ck_assert_uint_eq(atomic_load(&pin.locked), locked);
	ck_assert_uint_eq(atomic_load(&pin.unlocked), unlocked);
}

static size_t open_pin(void)
{
	nc_diagnostics_init(&diagnostics, lock_hear, lock_said);
	nc_pin_init(&pin, nc_pin_methods, &diagnostics, 1 << 20, 0);
	return locked_now();
}

/* Freezing replaces the mapping, and with it the lock: by the seal, by a copy, and if it fails. */
START_TEST(test_pin)
{
	size_t before = open_pin();
	struct nc_segment segment, other;
	char *writer;
	int fd;

	if (!may_lock(4 * PAGE))
		return;
	for (unsigned copied = 0; copied < 2; copied++) {
		ck_assert_int_eq(nc_segment_create(&segment, 2 * PAGE, false, false), 0);
		nc_segment_pin(&segment, &pin, false);
		check_locked(before, 2 * PAGE, 0);
		ck_assert_uint_eq(locked_at(segment.base), has_mlock2() ? 0 : 2 * PAGE);
		pattern_fill(segment.base, 7, 0, segment.size);
		ck_assert_uint_eq(locked_at(segment.base), 2 * PAGE);
		ck_assert_int_eq(nc_segment_protect(&segment, 0, PAGE), 0);
		check_locked(before, 2 * PAGE, 0);
		writer = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, segment.fd, 0);
		ck_assert_ptr_ne(writer, MAP_FAILED);
		if (!copied)
			ck_assert_int_eq(munmap(writer, PAGE), 0);
		ck_assert_int_eq(nc_segment_freeze(&segment), 0);
		check_locked(before, 2 * PAGE, 0);
		/* Nobody has read it through the new mapping. */
		ck_assert_uint_eq(locked_at(segment.base), 2 * PAGE);
		if (copied)
			ck_assert_int_eq(munmap(writer, PAGE), 0);
		/* What another process froze. */
		fd = fcntl(segment.fd, F_DUPFD_CLOEXEC, 0);
		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(nc_segment_adopt_frozen(&other, fd, 2 * PAGE), 0);
		nc_segment_pin(&other, &pin, true);
		check_locked(before, 4 * PAGE, 0);
		nc_segment_close(&segment);
		check_locked(before, 2 * PAGE, 0);
		ck_assert_uint_eq(pattern_match(other.base, 7, 0, other.size), other.size);
		nc_segment_close(&other);
		check_locked(before, 0, 0);
	}
	ck_assert_int_eq(nc_segment_create_private(&segment, PAGE), 0);
	nc_segment_pin(&segment, NULL, false);
	check_locked(before, 0, 0);
	nc_segment_pin(&segment, &pin, false);
	check_locked(before, PAGE, 0);
	nc_segment_close(&segment);
	check_locked(before, 0, 0);
	ck_assert_uint_eq(lock_says, 0);
}
END_TEST

START_TEST(test_pin_freeze_refused)
{
	struct rlimit descriptors, none = {0};
	size_t before = open_pin();
	struct nc_segment segment;
	char *writer;

	if (!may_lock(PAGE))
		return;
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
	ck_assert_int_eq(nc_segment_create(&segment, PAGE, false, false), 0);
	writer = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, segment.fd, 0);
	ck_assert_ptr_ne(writer, MAP_FAILED);
	nc_segment_pin(&segment, &pin, false);
	none.rlim_max = descriptors.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ck_assert_int_eq(nc_segment_freeze(&segment), -EBUSY);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
	check_locked(before, PAGE, 0);
	nc_segment_close(&segment);
	check_locked(before, 0, 0);
	ck_assert_int_eq(munmap(writer, PAGE), 0);
}
END_TEST

/* Beyond the limit, segments work without a lock; what was frozen without one gets it if it can. */
START_TEST(test_pin_limit)
{
	struct nc_segment small, large;
	size_t before;

	limit_locked(8 * PAGE + locked_now());
	before = open_pin();
	ck_assert_int_eq(nc_segment_create(&small, 8 * PAGE, false, false), 0);
	nc_segment_pin(&small, &pin, false);
	ck_assert_int_eq(nc_segment_create(&large, 8 * PAGE, false, false), 0);
	nc_segment_pin(&large, &pin, false);
	check_locked(before, 8 * PAGE, 8 * PAGE);
	ck_assert_ptr_nonnull(strstr(lock_message(1), "32 KiB of 64 KiB of memory are locked"));
	pattern_fill(large.base, 8, 0, large.size);
	nc_segment_close(&small);
	check_locked(before, 0, 8 * PAGE);
	ck_assert_int_eq(nc_segment_freeze(&large), 0);
	check_locked(before, 8 * PAGE, 0);
	ck_assert_uint_eq(pattern_match(large.base, 8, 0, large.size), large.size);
	nc_segment_close(&large);
	check_locked(before, 0, 0);
	(void)lock_message(1);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_pin);
	tcase_add_test(tcase, test_pin_freeze_refused);
	tcase_add_test(tcase, test_pin_limit);
}

RUN_SUITE("segment-pin", fill)
