/* SPDX-License-Identifier: MIT */
/*
 * test-nabc-sums-bad.c - unit tests of nabc.c: every call that fills a unit, with
 * invalid arguments.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <nabc.h>

#include "nabc-fixture.h"
#include "suite.h"
#include "sums-fixture.h"

/* --- invalid arguments ----------------------------------------------------- */

/* Every call on a handle that is not in use. */
static void check_unused(NC_handle *handle)
{
	const char *text = "x";

	FAILS(NC_read(0, handle, 0, 0), EINVAL);
	FAILS(NC_write(handle, text, 1, 0), EINVAL);
	FAILS(NC_printf(handle, 0, "%s", text), EINVAL);
	NULL_FAILS(NC_fragment(handle, 0, NULL), EINVAL);
	NULL_FAILS(NC_stream(handle, "w"), EINVAL);
	FAILS(NC_insert(handle), EINVAL);
	FAILS(NC_free(handle), EINVAL);
	ck_assert_uint_eq(NC_cache_id(handle), 0);
}

START_TEST(test_bad_handles)
{
	NC_handle handle = {{0}}, other;

	open_cache(MIB);
	check_unused(NULL);
	memset(&other, 0, sizeof(other));
	check_unused(&other);
	memset(&other, 0xff, sizeof(other));
	check_unused(&other);
	ck_assert_int_eq(NC_alloc(&handle, 100, 0), 0);
	memcpy(&other, &handle, sizeof(other));
	check_unused(&other);
	ck_assert_int_eq(NC_free(&handle), 0);
	check_unused(&handle);
	/* A handle that NC_alloc() refused is unchanged. */
	ck_assert_int_eq(NC_alloc(&handle, 100, 0), 0);
	memcpy(&other, &handle, sizeof(other));
	FAILS(NC_alloc(&handle, 100, 0), EBUSY);
	FAILS(NC_alloc(&handle, 0, 0), EBUSY);
	FAILS(NC_unit_alloc(NULL, &handle, 100, 0, (enum NC_kind)99, 0), EBUSY);
	ck_assert_mem_eq(&handle, &other, sizeof(other));
	FAILS(NC_alloc(NULL, 100, 0), EINVAL);
	FAILS(NC_unit_alloc(NULL, NULL, 100, 0, NC_KIND_RECYCLED, 0), EINVAL);
	ck_assert_int_eq(NC_free(&handle), 0);
	memcpy(&other, &handle, sizeof(other));
	FAILS(NC_alloc(&handle, 0, 0), EINVAL);
	FAILS(NC_alloc(&handle, 100, 5000), EINVAL);
	FAILS(NC_alloc(&handle, SIZE_MAX, 0), EINVAL);
	FAILS(NC_alloc(&handle, MIB, 0), EFBIG);
	FAILS(NC_unit_alloc(NULL, &handle, 100, 0, (enum NC_kind)99, 0), EINVAL);
	FAILS(NC_unit_alloc(NULL, &handle, 100, 0, (enum NC_kind) - 1, 0), EINVAL);
	ck_assert_mem_eq(&handle, &other, sizeof(other));
	close_cache();
}
END_TEST

/* Ranges that do not fit, also across the end of the address space: nothing is written. */
START_TEST(test_bad_ranges)
{
	static const struct {
		size_t offset, length;
	} wrong[] = {{0, 101},		 {100, 1},
		     {101, 0},		 {SIZE_MAX, 0},
		     {SIZE_MAX, 1},	 {SIZE_MAX, SIZE_MAX},
		     {1, SIZE_MAX},	 {99, SIZE_MAX - 98},
		     {50, SIZE_MAX / 2}, {SIZE_MAX / 2, 60}};
	unsigned char *got;
	NC_handle handle;
	const char *none = NULL;
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	char data[100];

	open_cache(MIB);
	memset(data, 'd', sizeof(data));
	ck_assert_int_eq(NC_unit_alloc(NULL, &handle, 100, 0, NC_KIND_RECYCLED, 0), 0);
	ck_assert_int_eq(NC_write(&handle, data, 100, 0), 100);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		FAILS(NC_write(&handle, data, wrong[i].length, wrong[i].offset), ERANGE);
		FAILS(NC_read(zero, &handle, wrong[i].offset, wrong[i].length), ERANGE);
		if (wrong[i].offset > 100)
			FAILS(NC_printf(&handle, wrong[i].offset, "x"), ERANGE);
	}
	FAILS(NC_write(&handle, NULL, 1, 0), EINVAL);
	FAILS(NC_printf(&handle, 0, none, 1), EINVAL);
	FAILS(NC_printf(&handle, 1, "%100s", "x"), ENOSPC);
	FAILS(NC_read(-1, &handle, 0, 100), EBADF);
	ck_assert_int_eq(NC_write(&handle, NULL, 0, 100), 0);
	ck_assert_int_eq(NC_read(-1, &handle, 0, 0), 0);
	got = NC_fragment(&handle, 0, NULL);
	ck_assert_mem_eq(got, data, 100);
	ck_assert_int_eq(NC_insert(&handle), 0);
	ck_assert_uint_eq(must_sum(NC_cache_id(&handle), NC_CHECKSUM_CRC32C, 0, 100),
			  crc_of((unsigned char *)data, 100));
	ck_assert_int_eq(NC_free(&handle), 0);
	close(zero);
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_bad_handles);
	tcase_add_test(tcase, test_bad_ranges);
}

RUN_SUITE("nabc-sums-bad", fill)
