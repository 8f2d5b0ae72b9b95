/* SPDX-License-Identifier: MIT */
/*
 * test-handle-sums.c - unit tests of handle.c: sums are those of the bytes for any way
 * and order of writing, kept while filling or computed later, and pointers into
 * fragments show no old data.  Each test owns its cache.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "base/fragment.h"
#include "cache/index.h"
#include "membership/handle.h"
#include "store/unit-checksum.h"
#include "store/unit.h"

#include "handle-fixture.h"
#include "suite.h"

static void open_summing(enum NC_checksum_kind kind, unsigned flags)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB, .checksum = kind, .flags = flags);

	ck_assert_int_eq(nc_index_init_owner(&cache, &options), 0);
}

START_TEST(test_kinds)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB, .checksum = (enum NC_checksum_kind)3);
	NC_handle handle;

	ck_assert_int_eq(nc_index_init_owner(&cache, &options), -EINVAL);
	for (unsigned i = 0; i < 6; i++) {
		unsigned kind = i / 2, flags = i % 2 ? NC_CACHE_EAGER_SUMS : 0;

		open_summing((enum NC_checksum_kind)kind, flags);
		must_alloc_unit(&handle, 100000, 0, NC_KIND_AUTO);
		ck_assert_int_eq(nc_unit_checksum_kind(unit_of(&handle)),
				 kind ? kind : NC_CHECKSUM_INET);
		/* Memory for sums is taken when they are computed. */
		ck_assert(nc_unit_checksum_kept(unit_of(&handle)) == (flags != 0));
		ck_assert((unit_of(&handle)->sums != NULL) == (flags != 0));
		ck_assert_int_eq(nc_handle_free(&handle), 0);
		nc_index_fini(&cache);
	}
}
END_TEST

/* Gets a pointer to a fragment and writes a random part through it. */
static void write_directly(NC_handle *handle, unsigned char *expected, uint64_t *state)
{
	const struct nc_layout *layout = &unit_of(handle)->layout;
	size_t index = random_next(state) % layout->fragments, from, length;
	void *bytes = NULL;
	ssize_t got = nc_handle_fragment(handle, index, &bytes);

	expect(got == (ssize_t)(index + 1 < layout->fragments
					? layout->fraglen
					: layout->size - index * layout->fraglen));
	/* Unwritten bytes are zero, written ones are there. */
	expect(!memcmp(bytes, expected + index * layout->fraglen, (size_t)got));
	from = random_next(state) % (size_t)got;
	length = random_next(state) % ((size_t)got - from + 1);
	pattern_fill((char *)bytes + from, *state, from, length);
	memcpy(expected + index * layout->fraglen + from, (char *)bytes + from, length);
}

static void write_copy(NC_handle *handle, unsigned char *expected, uint64_t *state, int file)
{
	size_t size = unit_of(handle)->layout.size;
	size_t offset = random_next(state) % (size + 1);
	size_t length = random_next(state) % (size - offset + 1);
	unsigned char *data = must_alloc(size);

	if (random_next(state) % 2)
		length %= 100;
	pattern_fill(data, *state, 0, length);
	memcpy(expected + offset, data, length);
	if (random_next(state) % 2) {
		expect(nc_handle_write(handle, offset, data, length) == (ssize_t)length);
	} else {
		expect(pwrite(file, data, length, 0) == (ssize_t)length);
		expect(lseek(file, 0, SEEK_SET) == 0);
		expect(nc_handle_read(file, handle, offset, length) == (ssize_t)length);
	}
	free(data);
}

/* Inserts all of the unit, or the first bytes of it; returns how many. */
static size_t insert_some(NC_handle *handle, size_t size, uint64_t *state)
{
	size_t length = random_next(state) % 2 ? size : random_next(state) % size + 1;

	ck_assert_int_eq(nc_handle_insert(handle, length), 0);
	return length;
}

static void check_filling(size_t size, size_t fraglen, enum NC_kind kind, uint64_t *state)
{
	unsigned char *expected = must_alloc(size), *got = must_alloc(size);
	int file = (int)syscall(SYS_memfd_create, "test", 0);
	struct nc_view view;
	NC_handle handle;

	memset(expected, 0, size);
	soil(kind, size);
	must_alloc_unit(&handle, size, fraglen, kind);
	for (unsigned i = random_next(state) % 20; i; i--) {
		if (random_next(state) % 4 == 0)
			write_directly(&handle, expected, state);
		else
			write_copy(&handle, expected, state, file);
	}
	size = insert_some(&handle, size, state);
	ck_assert_int_eq(nc_index_hold(&cache, nc_handle_id(&handle), false, &view), 0);
	ck_assert_uint_eq(view.unit->layout.size, size);
	copy_unit(view.unit, got);
	ck_assert_mem_eq(got, expected, size);
	ck_assert_int_eq(nc_unit_checksum_make(view.unit),
			 cache.flags & NC_CACHE_EAGER_SUMS ? 0 : 1);
	ck_assert_int_eq(nc_unit_checksum_verify(view.unit, 0, SIZE_MAX),
			 (ssize_t)view.unit->layout.fragments);
	ck_assert_int_eq(nc_index_release(&cache, nc_handle_id(&handle)), 0);
	ck_assert_int_eq(nc_index_destroy(&cache, nc_handle_id(&handle)), 0);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	close(file);
	free(expected);
	free(got);
}

static void check_fillings(enum NC_checksum_kind kind, unsigned flags)
{
	static const enum NC_kind memory[] = {NC_KIND_RECYCLED, NC_KIND_APPENDED, NC_KIND_SEALED};
	static const size_t sizes[] = {1, 63, 1448, 4096, 4097, 20000, 70000};
	uint64_t state = 61;

	open_summing(kind, flags);
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (size_t f = 0; f < FRAGLENS; f++)
			for (unsigned i = 0; i < scaled(12); i++)
				check_filling(sizes[s], fraglens[f], memory[i % 3], &state);
	nc_index_fini(&cache);
}

START_TEST(test_filling_inet)
{
	check_fillings(NC_CHECKSUM_INET, NC_CACHE_EAGER_SUMS);
}
END_TEST

START_TEST(test_filling_crc32c)
{
	check_fillings(NC_CHECKSUM_CRC32C, NC_CACHE_EAGER_SUMS);
}
END_TEST

START_TEST(test_filling_without_sums)
{
	check_fillings(NC_CHECKSUM_INET, 0);
}
END_TEST

START_TEST(test_fragment_refused)
{
	NC_handle handle = {{0}};
	void *bytes = &handle;

	open_cache();
	ck_assert_int_eq(nc_handle_fragment(NULL, 0, &bytes), -EINVAL);
	ck_assert_int_eq(nc_handle_fragment(&handle, 0, &bytes), -EINVAL);
	must_alloc_unit(&handle, 10000, 0, NC_KIND_RECYCLED);
	ck_assert_int_eq(nc_handle_fragment(&handle, 3, &bytes), -ERANGE);
	ck_assert_int_eq(nc_handle_fragment(&handle, SIZE_MAX, &bytes), -ERANGE);
	ck_assert_ptr_eq(bytes, &handle);
	ck_assert_int_eq(nc_handle_fragment(&handle, 2, &bytes), 10000 - 2 * 4096);
	ck_assert_int_eq(nc_handle_insert(&handle, NC_WHOLE), 0);
	ck_assert_int_eq(nc_handle_fragment(&handle, 0, &bytes), -EALREADY);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	ck_assert_int_eq(nc_handle_fragment(&handle, 0, &bytes), -EINVAL);
	nc_index_fini(&cache);
}
END_TEST

/* Fills a whole unit through pointers to one fragment after another. */
START_TEST(test_fragments)
{
	open_cache();
	for (size_t f = 0; f < FRAGLENS; f++) {
		unsigned char *got;
		NC_handle handle;
		size_t at = 0;
		void *bytes;

		soil(NC_KIND_RECYCLED, 30000);
		must_alloc_unit(&handle, 30000, fraglens[f], NC_KIND_RECYCLED);
		for (size_t i = 0; at < 30000; i++) {
			ssize_t length = nc_handle_fragment(&handle, i, &bytes);

			expect(length > 0);
			expect((uintptr_t)bytes % (fraglens[f] == 1 ? 1 : 64) == 0);
			for (ssize_t b = 0; b < length; b++)
				expect(((char *)bytes)[b] == 0);
			pattern_fill(bytes, 5, at, (size_t)length);
			at += (size_t)length;
		}
		ck_assert_uint_eq(at, 30000);
		got = insert_and_copy(&handle);
		ck_assert_uint_eq(pattern_match(got, 5, 0, 30000), 30000);
		free(got);
	}
	nc_index_fini(&cache);
}
END_TEST

START_TEST(test_copy)
{
	size_t size = 1, filled = 1;
	NC_handle handle = {{0}};
	char got[100];

	open_cache();
	ck_assert_int_eq(nc_handle_extent(&handle, &size, &filled), -EINVAL);
	ck_assert_int_eq(nc_handle_copy(&handle, 0, got, 1), -EINVAL);
	must_alloc_unit(&handle, 5000, 7, NC_KIND_RECYCLED);
	ck_assert_int_eq(nc_handle_copy(&handle, 0, got, 100), 0);
	ck_assert_int_eq(nc_handle_write(&handle, 10, "0123456789ABCDEF", 16), 16);
	ck_assert_int_eq(nc_handle_extent(&handle, &size, &filled), 0);
	ck_assert_uint_eq(size, 5000);
	ck_assert_uint_eq(filled, 26);
	ck_assert_int_eq(nc_handle_copy(&handle, 0, got, 100), 26);
	ck_assert_mem_eq(got,
			 "\0\0\0\0\0\0\0\0\0\0"
			 "0123456789ABCDEF",
			 26);
	ck_assert_int_eq(nc_handle_copy(&handle, 12, got, 9), 9);
	ck_assert_mem_eq(got, "23456789A", 9);
	ck_assert_int_eq(nc_handle_copy(&handle, 26, got, 1), 0);
	ck_assert_int_eq(nc_handle_copy(&handle, SIZE_MAX, got, 1), 0);
	ck_assert_int_eq(nc_handle_insert(&handle, NC_WHOLE), 0);
	ck_assert_int_eq(nc_handle_extent(&handle, &size, &filled), -EALREADY);
	ck_assert_int_eq(nc_handle_copy(&handle, 0, got, 1), -EALREADY);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	nc_index_fini(&cache);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_kinds);
	tcase_add_test(tcase, test_filling_inet);
	tcase_add_test(tcase, test_filling_crc32c);
	tcase_add_test(tcase, test_filling_without_sums);
	tcase_add_test(tcase, test_fragment_refused);
	tcase_add_test(tcase, test_fragments);
	tcase_add_test(tcase, test_copy);
}

RUN_SUITE("handle-sums", fill)
