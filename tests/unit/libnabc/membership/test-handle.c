/* SPDX-License-Identifier: MIT */
/*
 * test-handle.c - unit tests of handle.c: filling units from memory and text, the
 * value of unwritten bytes, and insertion.  Each test owns its cache.
 */
#include <nabc-worker.h>
#include <nabc.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <wchar.h>

#include "cache/index.h"
#include "membership/handle.h"
#include "os/segment.h"
#include "store/member.h"
#include "store/store.h"
#include "store/unit.h"

#include "handle-fixture.h"
#include "suite.h"

static void join_cache(void)
{
	struct nc_segment segment;

	ck_assert_int_eq(nc_segment_create(&segment, MIB, false, true), 0);
	ck_assert_int_eq(nc_index_init_attached(&cache, 3, &segment, PAGE, 64, 1, 256 << 10), 0);
}

START_TEST(test_alloc_refused)
{
	NC_handle handle;

	open_cache();
	ck_assert_int_eq(nc_handle_alloc(NULL, &cache, 10, 0, NC_KIND_AUTO, 0), -EINVAL);
	ck_assert_int_eq(nc_handle_alloc(&handle, &cache, 0, 0, NC_KIND_AUTO, 0), -EINVAL);
	ck_assert_int_eq(nc_handle_alloc(&handle, &cache, SIZE_MAX, 0, NC_KIND_AUTO, 0), -EINVAL);
	ck_assert_int_eq(nc_handle_alloc(&handle, &cache, 10, 4097, NC_KIND_AUTO, 0), -EINVAL);
	ck_assert_int_eq(nc_handle_alloc(&handle, &cache, 10, 6000, NC_KIND_AUTO, 0), -EINVAL);
	ck_assert_int_eq(nc_handle_alloc(&handle, &cache, 10, SIZE_MAX, NC_KIND_AUTO, 0), -EINVAL);
	ck_assert_int_eq(nc_handle_alloc(&handle, &cache, 10, 0, (enum NC_kind)5, 0), -EINVAL);
	ck_assert_int_eq(nc_handle_alloc(&handle, &cache, 10, 0, (enum NC_kind) - 1, 0), -EINVAL);
	ck_assert_int_eq(nc_handle_alloc(&handle, &cache, MIB + 1, 0, NC_KIND_AUTO, 0), -EFBIG);
	ck_assert_int_eq(nc_handle_alloc(&handle, &cache, MIB, 0, NC_KIND_AUTO, 0), 0);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	nc_index_fini(&cache);

	join_cache();
	ck_assert_int_eq(nc_handle_alloc(&handle, &cache, 10, 0, NC_KIND_APPENDED, 0), -ENOTSUP);
	ck_assert_int_eq(nc_handle_alloc(&handle, &cache, (256 << 10) + 1, 0, NC_KIND_AUTO, 0),
			 -EFBIG);
	nc_index_fini(&cache);
}
END_TEST

START_TEST(test_kinds)
{
	NC_handle handle;

	open_cache();
	must_alloc_unit(&handle, (32 << 10) - 1, 0, NC_KIND_AUTO);
	ck_assert_int_eq(unit_of(&handle)->store->kind, NC_KIND_RECYCLED);
	nc_handle_free(&handle);
	must_alloc_unit(&handle, 32 << 10, 0, NC_KIND_AUTO);
	ck_assert_int_eq(unit_of(&handle)->store->kind, NC_KIND_APPENDED);
	nc_handle_free(&handle);
	must_alloc_unit(&handle, 1, 0, NC_KIND_APPENDED);
	ck_assert_int_eq(unit_of(&handle)->store->kind, NC_KIND_APPENDED);
	nc_handle_free(&handle);
	must_alloc_unit(&handle, MIB, 0, NC_KIND_RECYCLED);
	ck_assert_int_eq(unit_of(&handle)->store->kind, NC_KIND_RECYCLED);
	nc_handle_free(&handle);
	nc_index_fini(&cache);

	join_cache();
	must_alloc_unit(&handle, 200 << 10, 0, NC_KIND_AUTO);
	ck_assert_int_eq(unit_of(&handle)->store->kind, NC_KIND_RECYCLED);
	nc_handle_free(&handle);
	nc_index_fini(&cache);
}
END_TEST

static int print(NC_handle *handle, size_t offset, const char *format, ...)
{
	va_list arguments;
	int result;

	va_start(arguments, format);
	result = nc_handle_vprintf(handle, offset, format, arguments);
	va_end(arguments);
	return result;
}

static void check_useless(NC_handle *handle)
{
	char byte = 0;

	ck_assert_int_eq(nc_handle_write(handle, 0, &byte, 1), -EINVAL);
	ck_assert_int_eq(nc_handle_read(0, handle, 0, 1), -EINVAL);
	ck_assert_int_eq(print(handle, 0, "x"), -EINVAL);
	ck_assert_int_eq(nc_handle_insert(handle, NC_WHOLE), -EINVAL);
	ck_assert_int_eq(nc_handle_free(handle), -EINVAL);
	ck_assert_uint_eq(nc_handle_id(handle), 0);
}

/* Handles that are not in use: never used, freed, or a copy of one that is. */
START_TEST(test_not_in_use)
{
	NC_handle handle, other;

	open_cache();
	check_useless(NULL);
	memset(&other, 0, sizeof(other));
	check_useless(&other);
	memset(&other, 0xa5, sizeof(other));
	check_useless(&other);
	must_alloc_unit(&handle, 100, 0, NC_KIND_AUTO);
	memcpy(&other, &handle, sizeof(other));
	check_useless(&other);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	check_useless(&handle);
	nc_index_fini(&cache);
}
END_TEST

START_TEST(test_inserted)
{
	NC_handle handle;
	char byte = 0;
	size_t id;

	open_cache();
	must_alloc_unit(&handle, 100, 0, NC_KIND_AUTO);
	ck_assert_int_eq(nc_handle_insert(&handle, NC_WHOLE), 0);
	id = nc_handle_id(&handle);
	ck_assert_int_eq(nc_handle_write(&handle, 0, &byte, 1), -EALREADY);
	ck_assert_int_eq(nc_handle_read(0, &handle, 0, 1), -EALREADY);
	ck_assert_int_eq(print(&handle, 0, "x"), -EALREADY);
	ck_assert_int_eq(nc_handle_insert(&handle, NC_WHOLE), -EALREADY);
	ck_assert_uint_eq(nc_handle_id(&handle), id);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	check_useless(&handle);
	/* The unit stays. */
	ck_assert_int_eq(nc_index_destroy(&cache, id), 0);
	nc_index_fini(&cache);
}
END_TEST

START_TEST(test_ranges)
{
	NC_handle handle;
	char data[200] = {0};

	open_cache();
	must_alloc_unit(&handle, 100, 0, NC_KIND_AUTO);
	ck_assert_int_eq(nc_handle_write(&handle, 0, data, 101), -ERANGE);
	ck_assert_int_eq(nc_handle_write(&handle, 100, data, 1), -ERANGE);
	ck_assert_int_eq(nc_handle_write(&handle, 101, data, 0), -ERANGE);
	ck_assert_int_eq(nc_handle_write(&handle, SIZE_MAX, data, 2), -ERANGE);
	ck_assert_int_eq(nc_handle_write(&handle, 50, data, SIZE_MAX - 49), -ERANGE);
	ck_assert_int_eq(nc_handle_write(&handle, 100, data, 0), 0);
	ck_assert_int_eq(nc_handle_write(&handle, 100, NULL, 0), 0);
	ck_assert_int_eq(nc_handle_write(&handle, 0, NULL, 1), -EINVAL);
	ck_assert_int_eq(nc_handle_write(&handle, 0, data, 100), 100);
	ck_assert_int_eq(nc_handle_read(-1, &handle, 0, 101), -ERANGE);
	ck_assert_int_eq(nc_handle_read(-1, &handle, 101, 0), -ERANGE);
	ck_assert_int_eq(nc_handle_read(-1, &handle, 100, 0), 0);
	ck_assert_int_eq(nc_handle_read(-1, &handle, 0, 1), -EBADF);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	nc_index_fini(&cache);
}
END_TEST

/* Random writes in any order over dirty memory, against a plain buffer of zeroes. */
static void check_writes(size_t size, size_t fraglen, enum NC_kind kind, uint64_t *state)
{
	unsigned char *expected = must_alloc(size), *data = must_alloc(size), *got;
	NC_handle handle;

	memset(expected, 0, size);
	soil(kind, size);
	must_alloc_unit(&handle, size, fraglen, kind);
	for (unsigned i = random_next(state) % 12; i; i--) {
		size_t offset = random_next(state) % (size + 1);
		size_t length = random_next(state) % (size - offset + 1);

		if (random_next(state) % 2)
			length %= 100;
		pattern_fill(data, i, 0, length);
		memcpy(expected + offset, data, length);
		ck_assert_int_eq(nc_handle_write(&handle, offset, data, length), (ssize_t)length);
	}
	got = insert_and_copy(&handle);
	ck_assert_mem_eq(got, expected, size);
	free(got);
	free(data);
	free(expected);
}

START_TEST(test_writes)
{
	static const size_t sizes[] = {1, 63, 1448, 4096, 4097, 20000};
	uint64_t state = 101;

	open_cache();
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (size_t f = 0; f < FRAGLENS; f++)
			for (unsigned i = 0; i < 6; i++)
				check_writes(sizes[s], fraglens[f],
					     i % 2 ? NC_KIND_RECYCLED : NC_KIND_APPENDED, &state);
	nc_index_fini(&cache);
	/* And in a member, which has only recycled memory. */
	join_cache();
	for (unsigned i = 0; i < 10; i++)
		check_writes(30000, fraglens[i % FRAGLENS], NC_KIND_RECYCLED, &state);
	nc_index_fini(&cache);
}
END_TEST

/* A unit that was never written, or only in part, shows no bytes of its predecessor. */
START_TEST(test_unwritten_is_zero)
{
	unsigned char *got;
	NC_handle handle;

	open_cache();
	for (size_t f = 0; f < FRAGLENS; f++) {
		soil(NC_KIND_RECYCLED, 9000);
		must_alloc_unit(&handle, 9000, fraglens[f], NC_KIND_RECYCLED);
		got = insert_and_copy(&handle);
		for (size_t i = 0; i < 9000; i++)
			expect(got[i] == 0);
		free(got);
		soil(NC_KIND_RECYCLED, 9000);
		must_alloc_unit(&handle, 9000, fraglens[f], NC_KIND_RECYCLED);
		ck_assert_int_eq(nc_handle_write(&handle, 8999, "z", 1), 1);
		ck_assert_int_eq(nc_handle_write(&handle, 5000, "y", 1), 1);
		got = insert_and_copy(&handle);
		for (size_t i = 0; i < 9000; i++)
			expect(got[i] == (i == 8999 ? 'z' : i == 5000 ? 'y' : 0));
		free(got);
	}
	nc_index_fini(&cache);
}
END_TEST

/* --- text ------------------------------------------------------------------ */

START_TEST(test_printf)
{
	unsigned char *got;
	NC_handle handle;

	open_cache();
	soil(NC_KIND_RECYCLED, 3000);
	must_alloc_unit(&handle, 3000, 100, NC_KIND_RECYCLED);
	ck_assert_int_eq(print(&handle, 0, "%s-%d", "number", 42), 9);
	ck_assert_int_eq(print(&handle, 9, "%*s|", 1000, "x"), 1001);
	ck_assert_int_eq(print(&handle, 1010, "%511s", "y"), 511);
	ck_assert_int_eq(print(&handle, 1521, "%512s", "z"), 512);
	ck_assert_int_eq(print(&handle, 2033, "%s", ""), 0);
	got = insert_and_copy(&handle);
	ck_assert_mem_eq(got, "number-42", 9);
	ck_assert_int_eq(got[9], ' ');
	ck_assert_mem_eq(got + 9 + 999, "x|", 2);
	ck_assert_int_eq(got[1010 + 510], 'y');
	ck_assert_int_eq(got[1521 + 511], 'z');
	/* No NUL is stored; unwritten bytes are zero. */
	for (size_t i = 2033; i < 3000; i++)
		expect(got[i] == 0);
	for (size_t i = 0; i < 2033; i++)
		expect(got[i] != 0);
	free(got);
	nc_index_fini(&cache);
}
END_TEST

START_TEST(test_printf_does_not_fit)
{
	unsigned char *got;
	NC_handle handle;

	open_cache();
	must_alloc_unit(&handle, 1000, 0, NC_KIND_RECYCLED);
	ck_assert_int_eq(nc_handle_write(&handle, 0, "0123456789", 10), 10);
	ck_assert_int_eq(print(&handle, 5, "%996s", "short buffer exceeded"), -ENOSPC);
	ck_assert_int_eq(print(&handle, 990, "%s", "eleven char"), -ENOSPC);
	ck_assert_int_eq(print(&handle, 1000, "x"), -ENOSPC);
	ck_assert_int_eq(print(&handle, 1000, "%s", ""), 0);
	ck_assert_int_eq(print(&handle, 1001, "%s", ""), -ERANGE);
	ck_assert_int_eq(print(&handle, 990, "%s", "ten chars!"), 10);
	got = insert_and_copy(&handle);
	ck_assert_mem_eq(got, "0123456789", 10);
	for (size_t i = 10; i < 990; i++)
		expect(got[i] == 0);
	ck_assert_mem_eq(got + 990, "ten chars!", 10);
	free(got);
	nc_index_fini(&cache);
}
END_TEST

START_TEST(test_printf_refused)
{
	const char *none = NULL;
	NC_handle handle;

	open_cache();
	must_alloc_unit(&handle, 100, 0, NC_KIND_RECYCLED);
	ck_assert_int_eq(print(&handle, 0, none), -EINVAL);
	/* A character that the C locale does not have. */
	ck_assert_int_eq(print(&handle, 0, "%lc", (wint_t)0x10ffff), -EILSEQ);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	nc_index_fini(&cache);
}
END_TEST

/* --- insertion ------------------------------------------------------------- */

/* After insert, appended memory is read-only; recycled memory is not. */
START_TEST(test_read_only)
{
	NC_handle handle;
	char *base;

	open_cache();
	must_alloc_unit(&handle, 100000, 0, NC_KIND_APPENDED);
	base = nc_unit_base(unit_of(&handle));
	ck_assert(writable(base));
	ck_assert_int_eq(nc_handle_insert(&handle, NC_WHOLE), 0);
	ck_assert(!writable(base));
	ck_assert(!writable(base + 99999));
	must_alloc_unit(&handle, 5000, 0, NC_KIND_RECYCLED);
	base = nc_unit_base(unit_of(&handle));
	ck_assert_int_eq(nc_handle_insert(&handle, NC_WHOLE), 0);
	ck_assert(writable(base));
	nc_index_fini(&cache);
}
END_TEST

START_TEST(test_memory_ends)
{
	NC_handle handle[300];
	unsigned count = 0;

	join_cache();
	while (nc_handle_alloc(&handle[count], &cache, 30000, 0, NC_KIND_AUTO, 0) == 0)
		ck_assert_uint_lt(++count, 300);
	ck_assert_uint_eq(count, (MIB - PAGE) / (8 * PAGE));
	ck_assert_int_eq(nc_handle_alloc(&handle[count], &cache, 30000, 0, NC_KIND_AUTO, 0),
			 -ENOMEM);
	ck_assert_int_eq(nc_handle_free(&handle[3]), 0);
	ck_assert_int_eq(nc_handle_alloc(&handle[3], &cache, 30000, 0, NC_KIND_AUTO, 0), 0);
	while (count--)
		ck_assert_int_eq(nc_handle_free(&handle[count]), 0);
	ck_assert_uint_eq(nc_member_filling(&cache.own), 0);
	nc_index_fini(&cache);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_alloc_refused);
	tcase_add_test(tcase, test_kinds);
	tcase_add_test(tcase, test_not_in_use);
	tcase_add_test(tcase, test_inserted);
	tcase_add_test(tcase, test_ranges);
	tcase_add_test(tcase, test_writes);
	tcase_add_test(tcase, test_unwritten_is_zero);
	tcase_add_test(tcase, test_printf);
	tcase_add_test(tcase, test_printf_does_not_fit);
	tcase_add_test(tcase, test_printf_refused);
	tcase_add_test(tcase, test_read_only);
	tcase_add_test(tcase, test_memory_ends);
}

RUN_SUITE("handle", fill)
