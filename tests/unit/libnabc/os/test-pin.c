/* SPDX-License-Identifier: MIT */
/*
 * test-pin.c - unit tests of pin.c: what is counted, what the report says, and real
 * locks within limits.  A test that changes its limit runs in a process of its own.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <nabc.h>

#include "base/diagnostics.h"
#include "os/pin.h"

#include "pin-fixture.h"
#include "suite.h"

#define PAGE ((size_t)4096)
#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* mlock() does nothing under a sanitizer. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define METHODS 1u
#else
#define METHODS 2u
#endif

static struct nc_diagnostics diagnostics;
static struct nc_pin pin;

static void open_pin(const struct nc_pin_method *methods, size_t memory, size_t member_quota)
{
	nc_diagnostics_init(&diagnostics, lock_hear, lock_said);
	nc_pin_init(&pin, methods, &diagnostics, memory, member_quota);
}

static void check_counts(uint64_t locked, uint64_t unlocked)
{
	ck_assert_uint_eq(atomic_load(&pin.locked), locked);
	ck_assert_uint_eq(atomic_load(&pin.unlocked), unlocked);
}

static char *map(size_t size)
{
	char *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(base, MAP_FAILED);
	return base;
}

static size_t present(char *base, size_t size)
{
	unsigned char vector[64];
	size_t count = 0;

	ck_assert_uint_le(size / PAGE, sizeof(vector));
	ck_assert_int_eq(mincore(base, size, vector), 0);
	for (size_t i = 0; i < size / PAGE; i++)
		count += vector[i] & 1;
	return count;
}

/* --- methods that do nothing -------------------------------------------------------- */

static int answer;
static unsigned tries;
static bool tried_filled;

static int missing(void *base, size_t size, bool filled)
{
	(void)base;
	(void)size;
	(void)filled;
	tries++;
	return -ENOSYS;
}

static int answers(void *base, size_t size, bool filled)
{
	(void)base;
	(void)size;
	tried_filled = filled;
	return answer;
}

static const struct nc_pin_method simulated[] = {
	{"missing", missing}, {"answers", answers}, {NULL, NULL}};
static const struct nc_pin_method none[] = {{"missing", missing}, {NULL, NULL}};

START_TEST(test_counts)
{
	open_pin(simulated, MIB, 0);
	ck_assert(nc_pin_lock(&pin, NULL, 8 * PAGE, true));
	ck_assert_uint_eq(tries, 1);
	ck_assert(tried_filled);
	check_counts(8 * PAGE, 0);
	answer = -ENOMEM;
	ck_assert(!nc_pin_lock(&pin, NULL, 2 * PAGE, false));
	ck_assert(!tried_filled);
	check_counts(8 * PAGE, 2 * PAGE);
	/* Another mapping takes the place of each. */
	ck_assert(!nc_pin_lock_again(&pin, NULL, 8 * PAGE, true));
	check_counts(0, 10 * PAGE);
	answer = 0;
	ck_assert(nc_pin_lock_again(&pin, NULL, 2 * PAGE, false));
	ck_assert(tried_filled);
	check_counts(2 * PAGE, 8 * PAGE);
	nc_pin_closed(&pin, 8 * PAGE, false);
	nc_pin_closed(&pin, 2 * PAGE, true);
	check_counts(0, 0);
	(void)lock_message(1);
	/* A kernel with no method at all. */
	open_pin(none, MIB, 0);
	ck_assert(!nc_pin_lock(&pin, NULL, PAGE, true));
	check_counts(0, PAGE);
	ck_assert_ptr_nonnull(strstr(lock_message(2), "mlock2: Function not implemented"));
}
END_TEST

static void check_said(int error, size_t size, const char *text)
{
	nc_diagnostics_init(&diagnostics, lock_hear, lock_said);
	lock_says = 0;
	answer = error;
	ck_assert(!nc_pin_lock(&pin, NULL, size, false));
	nc_pin_closed(&pin, size, false);
	ck_assert(!nc_pin_lock(&pin, NULL, size, false));
	nc_pin_closed(&pin, size, false);
	ck_assert_str_eq(lock_message(1), text);
}

START_TEST(test_report)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	open_pin(simulated, 256 * MIB, 4 * MIB);
	limit.rlim_cur = 60 * KIB;
	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	ck_assert(nc_pin_lock(&pin, NULL, 2 * PAGE, false));
	check_said(-ENOMEM, MIB - 2 * PAGE,
		   "8 KiB of 1 MiB of memory are locked, the rest is not and may be swapped out: "
		   "RLIMIT_MEMLOCK is 60 KiB; raise it to at least 256 MiB (ulimit -l, "
		   "LimitMEMLOCK=)");
	/* Members need more, as long as they are there. */
	nc_pin_expect_member(&pin, 16 * MIB);
	nc_pin_expect_member(&pin, MIB + PAGE);
	limit.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	check_said(-EPERM, MIB,
		   "8 KiB of 1032 KiB of memory are locked, the rest is not and may be swapped "
		   "out: RLIMIT_MEMLOCK is 0 KiB; raise it to at least 282 MiB (ulimit -l, "
		   "LimitMEMLOCK=)");
	nc_pin_forget_member(&pin, MIB + PAGE);
	nc_pin_forget_member(&pin, 16 * MIB);
	ck_assert_uint_eq(atomic_load(&pin.expected), 256 * MIB);
	/* A limit that suffices is not the reason. */
	atomic_store(&pin.expected, 0);
	check_said(-ENOMEM, MIB,
		   "8 KiB of 1032 KiB of memory are locked, the rest is not and may be swapped "
		   "out: mlock2: Cannot allocate memory");
	check_said(-EAGAIN, MIB,
		   "8 KiB of 1032 KiB of memory are locked, the rest is not and may be swapped "
		   "out: mlock2: Resource temporarily unavailable");
	/* Nobody listens. */
	nc_diagnostics_init(&diagnostics, NULL, NULL);
	ck_assert(!nc_pin_lock(&pin, NULL, MIB, false));
}
END_TEST

/* --- the kernel's ------------------------------------------------------------------- */

START_TEST(test_locks)
{
	size_t before = locked_now(), size = 4 * PAGE;
	char *base = map(size);

	if (!may_lock(size))
		return;
	open_pin(nc_pin_methods, MIB, 0);
	ck_assert(nc_pin_lock(&pin, base, size, false));
	ck_assert_uint_eq(locked_now(), before + size);
	/* Nothing is present before it is used. */
	ck_assert_uint_eq(present(base, size), has_mlock2() ? 0 : 4);
	base[PAGE] = 'a';
	ck_assert_uint_eq(present(base, size), has_mlock2() ? 1 : 4);
	ck_assert_int_eq(munmap(base, size), 0);
	nc_pin_closed(&pin, size, true);
	ck_assert_uint_eq(locked_now(), before);
	/* What contains data is present at once; so is all without mlock2. */
	for (unsigned i = 0; i < METHODS; i++) {
		base = map(size);
		open_pin(nc_pin_methods + i, MIB, 0);
		ck_assert(nc_pin_lock(&pin, base, size, i == 0));
		ck_assert_uint_eq(present(base, size), 4);
		ck_assert_uint_eq(locked_now(), before + size);
		ck_assert_int_eq(munmap(base, size), 0);
	}
	ck_assert_uint_eq(locked_now(), before);
	ck_assert_uint_eq(lock_says, 0);
}
END_TEST

static int locks_and_fails(void *base, size_t size, bool filled)
{
	(void)filled;
	ck_assert_int_eq(mlock(base, size), 0);
	return -EAGAIN;
}

/* The kernel keeps the lock if it cannot read the pages; what is counted is true all the same. */
START_TEST(test_fails_locked)
{
	static const struct nc_pin_method methods[] = {{"fails", locks_and_fails}, {NULL, NULL}};
	size_t before = locked_now();
	char *base = map(PAGE);

	if (!may_lock(PAGE))
		return;
	open_pin(methods, MIB, 0);
	ck_assert(!nc_pin_lock(&pin, base, PAGE, true));
	check_counts(0, PAGE);
	ck_assert_uint_eq(locked_now(), before);
	ck_assert_int_eq(munmap(base, PAGE), 0);
}
END_TEST

/* When memory was unlocked, later memory is locked again. */
START_TEST(test_limit)
{
	size_t half = 8 * PAGE, before;
	char *base[3];

	limit_locked(2 * half + locked_now());
	before = locked_now();
	open_pin(nc_pin_methods, MIB, 0);
	for (unsigned i = 0; i < 3; i++) {
		base[i] = map(half);
		ck_assert(nc_pin_lock(&pin, base[i], half, i & 1) == (i < 2));
	}
	ck_assert_uint_eq(locked_now(), before + 2 * half);
	check_counts(2 * half, half);
	ck_assert_ptr_nonnull(strstr(lock_message(1), "64 KiB of 96 KiB of memory are locked"));
	base[2][0] = 'a';
	ck_assert_int_eq(munmap(base[0], half), 0);
	nc_pin_closed(&pin, half, true);
	ck_assert(nc_pin_lock_again(&pin, base[2], half, false));
	check_counts(2 * half, 0);
	ck_assert_int_eq(base[2][0], 'a');
	ck_assert_int_eq(munmap(base[1], half), 0);
	ck_assert_int_eq(munmap(base[2], half), 0);
	ck_assert_uint_eq(locked_now(), before);
	(void)lock_message(1);
}
END_TEST

START_TEST(test_limit_zero)
{
	char *base = map(PAGE);

	limit_locked(0);
	open_pin(nc_pin_methods, MIB, 0);
	ck_assert(!nc_pin_lock(&pin, base, PAGE, false));
	ck_assert(!nc_pin_lock(&pin, base, PAGE, true));
	check_counts(0, 2 * PAGE);
	ck_assert_ptr_nonnull(strstr(lock_message(1), "0 KiB of 4 KiB of memory are locked"));
	ck_assert_uint_eq(locked_now(), 0);
	base[0] = 'a';
	ck_assert_int_eq(munmap(base, PAGE), 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_counts);
	tcase_add_test(tcase, test_report);
	tcase_add_test(tcase, test_locks);
	tcase_add_test(tcase, test_fails_locked);
	tcase_add_test(tcase, test_limit);
	tcase_add_test(tcase, test_limit_zero);
}

RUN_SUITE("pin", fill)
