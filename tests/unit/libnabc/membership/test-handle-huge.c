/* SPDX-License-Identifier: MIT */
/*
 * test-handle-huge.c - unit tests of handle.c and store.c: which blocks of a unit are
 * collapsed into huge pages, when, and how many in one call; and units of huge sizes.
 * The test replaces madvise(), so that the numbers are the same on each system.  Each
 * test owns its cache; single-threaded.
 */
#include <nabc-worker.h>
#include <nabc.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/extent.h"
#include "base/fragment.h"
#include "cache/index.h"
#include "membership/handle.h"
#include "os/segment.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit.h"

#include "handle-fixture.h"
#include "suite.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define HUGE_PAGE NC_HUGE_PAGE
#define GIB ((size_t)1 << 30)
#define TIB ((size_t)1 << 40)

static unsigned calls;	 /* of madvise() that collapse */
static size_t collapsed; /* bytes */
static int refuse;	 /* errno of such a call; 0: succeed without doing it */

/* The collapsed blocks of the segment under test. */
static const char *watched;
static unsigned char blocks[64];

int madvise(void *start, size_t length, int advice)
{
	if (advice != MADV_COLLAPSE)
		return (int)syscall(SYS_madvise, start, length, advice);
	calls++;
	if (refuse) {
		errno = refuse;
		return -1;
	}
	collapsed += length;
	/* The test must not use all memory of the machine. */
	expect(collapsed <= 128 * MIB);
	expect((uintptr_t)start % HUGE_PAGE == 0);
	expect(length == HUGE_PAGE);
	if (watched) {
		size_t block = (size_t)((const char *)start - watched) / HUGE_PAGE;

		expect(block < sizeof(blocks));
		blocks[block]++;
	}
	/* These bytes are still unwritten. */
	for (size_t at = 0; at < length; at += sizeof(uint64_t))
		expect(*(const uint64_t *)(const void *)((const char *)start + at) == 0);
	return 0;
}

static void forget(void)
{
	calls = 0;
	collapsed = 0;
}

static void open_large(size_t size, uint32_t flags)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = size, .flags = flags);

	ck_assert_int_eq(nc_index_init_owner(&cache, &options), 0);
	watched = NULL;
	memset(blocks, 0, sizeof(blocks));
	refuse = 0;
	forget();
}

static void watch(const NC_handle *handle)
{
	watched = unit_of(handle)->store->segment.base;
}

/* One allocation of any size collapses at most one block. */
START_TEST(test_alloc)
{
	NC_handle handle[40];
	uint64_t random = 1;
	unsigned count;

	open_large(512 * MIB, 0);
	for (unsigned round = 0; round < 4; round++) {
		for (count = 0; count < 40; count++) {
			size_t size = random_next(&random) % (10 * MIB) + 1;

			forget();
			must_alloc_unit(&handle[count], size, count % 2 ? 0 : 1448,
					NC_KIND_APPENDED);
			ck_assert_uint_le(collapsed, HUGE_PAGE);
		}
		while (count--)
			ck_assert_int_eq(nc_handle_free(&handle[count]), 0);
	}
	forget();
	must_alloc_unit(&handle[0], 64 * MIB, 0, NC_KIND_AUTO);
	ck_assert_uint_eq(calls, 0);
	ck_assert_int_eq(nc_handle_free(&handle[0]), 0);
	nc_index_fini(&cache);
}
END_TEST

/* --- filling ----------------------------------------------------------------- */

#define UNIT (17 * MIB)
#define PART (300 * (size_t)1000)

enum way { PARTS, WHOLE, READ_PARTS, READ_WHOLE, POINTERS, NOTHING, AT_END, WAYS };

/* One call that fills `length` bytes collapses their blocks, gaps included, and one more. */
static void check_bound(size_t length)
{
	size_t memory = length / 2 * 3 + 64 * PAGE;

	ck_assert_uint_le(collapsed, (memory / HUGE_PAGE + 1) * HUGE_PAGE);
	forget();
}

static void fill_unit(NC_handle *handle, enum way way, const char *data, int fd, size_t size)
{
	size_t part = way == PARTS || way == READ_PARTS ? PART : size, length;

	for (size_t at = 0; way <= READ_WHOLE && at < size; at += part) {
		size_t here = part < size - at ? part : size - at;

		if (way <= WHOLE)
			ck_assert_int_eq(nc_handle_write(handle, at, data + at, here),
					 (ssize_t)here);
		else
			ck_assert_int_eq(nc_handle_read(fd, handle, at, here), (ssize_t)here);
		check_bound(here);
	}
	for (size_t i = 0, at = 0; way == POINTERS && at < size; i++, at += length) {
		void *bytes;

		length = (size_t)nc_handle_fragment(handle, i, &bytes);
		memcpy(bytes, data + at, length);
		check_bound(length);
	}
	if (way == AT_END)
		ck_assert_int_eq(nc_handle_write(handle, size - 1, data + size - 1, 1), 1);
}

static void check_way(enum way way, size_t fraglen, const char *data, int fd)
{
	bool zeroes = way == NOTHING || way == AT_END;
	NC_handle handle;
	unsigned char *got;
	size_t extent;

	open_large(512 * MIB, 0);
	must_alloc_unit(&handle, UNIT, fraglen, NC_KIND_AUTO);
	watch(&handle);
	extent = unit_of(&handle)->layout.extent;
	ck_assert_uint_eq(calls, 0);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	fill_unit(&handle, way, data, fd, UNIT);
	got = insert_and_copy(&handle);
	/* Each block once. */
	for (size_t i = 0; i < sizeof(blocks); i++)
		ck_assert_uint_eq(blocks[i], i < extent / HUGE_PAGE);
	for (size_t i = 0; zeroes && i < UNIT; i++)
		expect(got[i] == (way == AT_END && i == UNIT - 1 ? (unsigned char)data[i] : 0));
	if (!zeroes)
		ck_assert_int_eq(memcmp(got, data, UNIT), 0);
	free(got);
	nc_index_fini(&cache);
}

/* For any way to fill a unit, its blocks are collapsed when the fill reaches them. */
START_TEST(test_fill)
{
	char *data = must_alloc(UNIT);
	int fd = memfd_create("test", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	memset(data, 'x', UNIT);
	ck_assert_int_eq(pwrite(fd, data, UNIT, 0), (ssize_t)UNIT);
	check_way((enum way)(_i / 2), _i % 2 ? 1448 : 0, data, fd);
	close(fd);
	free(data);
}
END_TEST

/* A read that gets nothing collapses one block, and the next one none. */
START_TEST(test_read_nothing)
{
	NC_handle handle;
	int ends[2];

	open_large(512 * MIB, 0);
	must_alloc_unit(&handle, UNIT, 0, NC_KIND_AUTO);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(nc_handle_read(ends[0], &handle, 0, UNIT), -EAGAIN);
		ck_assert_uint_eq(collapsed, HUGE_PAGE);
	}
	close_pair(ends);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	nc_index_fini(&cache);
}
END_TEST

/* A block that two units share is collapsed before the second unit gets its memory. */
START_TEST(test_shared_block)
{
	char *data = must_alloc(3 * MIB);
	NC_handle first, second;

	memset(data, 'x', 3 * MIB);
	open_large(512 * MIB, 0);
	must_alloc_unit(&first, 3 * MIB, 0, NC_KIND_AUTO);
	watch(&first);
	ck_assert_uint_eq(collapsed, HUGE_PAGE);
	must_alloc_unit(&second, 3 * MIB, 0, NC_KIND_AUTO);
	ck_assert_ptr_eq(unit_of(&second)->store, unit_of(&first)->store);
	ck_assert_uint_eq(unit_of(&second)->at, 3 * MIB);
	ck_assert_int_eq(nc_handle_write(&second, 0, data, 3 * MIB), (ssize_t)(3 * MIB));
	ck_assert_int_eq(nc_handle_insert(&second, NC_WHOLE), 0);
	ck_assert_uint_eq(blocks[0], 0);
	ck_assert_int_eq(nc_handle_write(&first, 0, data, 3 * MIB), (ssize_t)(3 * MIB));
	ck_assert_int_eq(nc_handle_insert(&first, NC_WHOLE), 0);
	/*
	 * The second one was there before the test watched the segment; the third ends with its
	 * unit.
	 */
	for (unsigned i = 0; i < sizeof(blocks); i++)
		ck_assert_uint_eq(blocks[i], i == 0 || i == 2);
	nc_handle_free(&first);
	nc_handle_free(&second);
	nc_index_fini(&cache);
	free(data);
}
END_TEST

/* A system without huge pages is asked once for each unit. */
START_TEST(test_refused)
{
	static const int errors[] = {EINVAL, ENOMEM, EAGAIN};

	for (unsigned i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		unsigned char *got;
		NC_handle handle;

		open_large(512 * MIB, 0);
		refuse = errors[i];
		must_alloc_unit(&handle, UNIT, 0, NC_KIND_AUTO);
		ck_assert_int_eq(nc_handle_write(&handle, UNIT - 1, "x", 1), 1);
		got = insert_and_copy(&handle);
		ck_assert_uint_eq(calls, 1);
		ck_assert_uint_eq(got[UNIT - 1], 'x');
		free(got);
		nc_index_fini(&cache);
	}
}
END_TEST

/* Where huge pages are disabled, and for memory outside the log. */
START_TEST(test_none)
{
	static const enum NC_kind kinds[] = {NC_KIND_RECYCLED, NC_KIND_SEALED, NC_KIND_APPENDED};

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		NC_handle handle;

		open_large(64 * MIB, kinds[i] == NC_KIND_APPENDED ? NC_CACHE_NO_HUGE : 0);
		must_alloc_unit(&handle, 5 * MIB, 0, kinds[i]);
		free(insert_and_copy(&handle));
		ck_assert_uint_eq(calls, 0);
		nc_index_fini(&cache);
	}
}
END_TEST

/* --- huge sizes ---------------------------------------------------------------- */

/* Returns whether the process can map a range of that size; under Valgrind it cannot. */
static bool has_addresses(size_t size)
{
	void *range =
		mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return range != MAP_FAILED && munmap(range, size) == 0;
}

static void check_lazy(size_t size, size_t fraglen, enum NC_kind kind, unsigned flags)
{
	struct nc_store *store;
	NC_handle handle;
	struct stat stat;
	int error = nc_handle_alloc(&handle, &cache, size, fraglen, kind, flags);

	if (error)
		printf("handle: no address space for %zu GiB\n", size / GIB);
	ck_assert(!error || !has_addresses(2 * size));
	if (!error) {
		store = unit_of(&handle)->store;
		ck_assert_uint_eq(unit_of(&handle)->layout.size, size);
		ck_assert_int_eq(fstat(store->segment.fd, &stat), 0);
		ck_assert_int_eq(stat.st_blocks, 0);
		ck_assert_ptr_null(store->extent.map);
		/* A unit with few bytes uses little memory. */
		ck_assert_int_eq(nc_handle_write(&handle, 0, "x", 1), 1);
		ck_assert_uint_le(collapsed, HUGE_PAGE);
		ck_assert_int_eq(fstat(store->segment.fd, &stat), 0);
		ck_assert_int_le(stat.st_blocks, (blkcnt_t)(HUGE_PAGE / 512));
		ck_assert_int_eq(nc_handle_free(&handle), 0);
	}
	ck_assert_uint_eq(cache.own.used, 0);
	ck_assert_ptr_null(cache.own.stores);
	forget();
}

/* A unit of a huge size is only a range of addresses until it is filled. */
START_TEST(test_huge_units)
{
	static const enum NC_kind kinds[] = {NC_KIND_AUTO, NC_KIND_RECYCLED, NC_KIND_SEALED};

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		open_large(TIB, 0);
		check_lazy(256 * GIB, 0, kinds[i], 0);
		check_lazy(256 * GIB, 1448, kinds[i], 0);
		nc_index_fini(&cache);
		/* More pages than a 32-bit number can hold. */
		open_large(64 * TIB, 0);
		check_lazy(16 * TIB, 64 << 10, kinds[i], NC_UNIT_UNSUMMED);
		nc_index_fini(&cache);
	}
}
END_TEST

START_TEST(test_too_huge)
{
	static const size_t fraglens[] = {0, 1, 1448, 4096, 1 << 20, (size_t)1 << 46};
	static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 4095, SIZE_MAX / 2 + 1,
				       ((size_t)1 << 46) + 1};
	NC_handle handle;

	open_large(TIB, 0);
	for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (unsigned f = 0; f < sizeof(fraglens) / sizeof(fraglens[0]); f++)
			for (enum NC_kind kind = NC_KIND_AUTO; kind <= NC_KIND_KERNEL; kind++)
				ck_assert_int_eq(nc_handle_alloc(&handle, &cache, sizes[s],
								 fraglens[f], kind, 0),
						 -EINVAL);
	ck_assert_int_eq(nc_handle_alloc(&handle, &cache, 256 * GIB + 1, 0, NC_KIND_AUTO, 0),
			 -EFBIG);
	ck_assert_int_eq(
		nc_handle_alloc(&handle, &cache, (size_t)1 << 46, 1 << 20, NC_KIND_AUTO, 0),
		-EFBIG);
	ck_assert_uint_eq(cache.own.used, 0);
	nc_index_fini(&cache);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_alloc);
	tcase_add_loop_test(tcase, test_fill, 0, 2 * WAYS);
	tcase_add_test(tcase, test_read_nothing);
	tcase_add_test(tcase, test_shared_block);
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_none);
	tcase_add_test(tcase, test_huge_units);
	tcase_add_test(tcase, test_too_huge);
}

RUN_SUITE("handle-huge", fill)
