/* SPDX-License-Identifier: MIT */
/*
 * test-handle-grow.c - unit tests of handle.c: units that become longer while they are
 * filled, and shorter when they are inserted.  Each test owns its cache.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/fragment.h"
#include "cache/index.h"
#include "membership/handle.h"
#include "os/segment.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit-checksum.h"
#include "store/unit.h"

#include "handle-fixture.h"
#include "suite.h"

#define MOST (300u << 10)

static void join_cache(size_t size)
{
	struct nc_segment segment;

	ck_assert_int_eq(nc_segment_create(&segment, size, false, true), 0);
	ck_assert_int_eq(nc_index_init_attached(&cache, 3, &segment, PAGE, 64, 1, MIB), 0);
}

START_TEST(test_refused)
{
	NC_handle handle = {{0}};
	size_t size, filled;

	join_cache(2 * MIB);
	ck_assert_int_eq(nc_handle_grow(NULL, 10), -EINVAL);
	ck_assert_int_eq(nc_handle_grow(&handle, 10), -EINVAL);
	must_alloc_unit(&handle, MIB - 10, 0, NC_KIND_AUTO);
	ck_assert_int_eq(nc_handle_write(&handle, 0, "text", 4), 4);
	ck_assert_int_eq(nc_handle_grow(&handle, MIB + 1), -EFBIG);
	ck_assert_int_eq(nc_handle_grow(&handle, SIZE_MAX), -EFBIG);
	/* Not shorter. */
	ck_assert_int_eq(nc_handle_grow(&handle, 0), 0);
	ck_assert_int_eq(nc_handle_grow(&handle, MIB - 10), 0);
	ck_assert_int_eq(nc_handle_extent(&handle, &size, &filled), 0);
	ck_assert_uint_eq(size, MIB - 10);
	ck_assert_uint_eq(filled, 4);
	ck_assert_int_eq(nc_handle_insert(&handle, 4), 0);
	ck_assert_int_eq(nc_handle_grow(&handle, 10), -EALREADY);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	ck_assert_int_eq(nc_handle_grow(&handle, 10), -EINVAL);
	must_alloc_unit(&handle, 10, 1, NC_KIND_AUTO);
	ck_assert_int_eq(nc_handle_grow(&handle, MIB), 0);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	nc_index_fini(&cache);
}
END_TEST

/* Neither behind the unit nor elsewhere: the unit is as before. */
static void check_full(size_t size, size_t more)
{
	NC_handle handle, other[64];
	unsigned count = 0;
	char *base;

	must_alloc_unit(&handle, size, 0, NC_KIND_AUTO);
	pattern_fill(nc_unit_base(unit_of(&handle)), 5, 0, size);
	ck_assert_ptr_nonnull(nc_unit_base(unit_of(&handle)));
	while (nc_handle_alloc(&other[count], &cache, 200 << 10, 0, NC_KIND_AUTO, 0) == 0)
		ck_assert_uint_lt(++count, 64);
	base = nc_unit_base(unit_of(&handle));
	ck_assert_int_eq(nc_handle_grow(&handle, more), -ENOMEM);
	ck_assert_ptr_eq(nc_unit_base(unit_of(&handle)), base);
	ck_assert_uint_eq(unit_of(&handle)->layout.size, size);
	ck_assert_uint_eq(pattern_match(base, 5, 0, size), size);
	while (count--)
		ck_assert_int_eq(nc_handle_free(&other[count]), 0);
	ck_assert_int_eq(nc_handle_grow(&handle, more), 0);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
}

START_TEST(test_full)
{
	join_cache(MIB);
	check_full(100 << 10, 600 << 10);
	nc_index_fini(&cache);
	open_cache();
	check_full(200 << 10, MIB);
	ck_assert_uint_le(cache.own.used, cache.own.budget);
	nc_index_fini(&cache);
}
END_TEST

START_TEST(test_in_place)
{
	static const enum NC_kind kinds[] = {NC_KIND_RECYCLED, NC_KIND_APPENDED};

	for (unsigned i = 0; i < 2; i++) {
		NC_handle handle, behind;
		struct nc_unit *unit;
		char *base;

		open_cache();
		must_alloc_unit(&handle, 2 * PAGE, 0, kinds[i]);
		unit = unit_of(&handle);
		base = nc_unit_base(unit);
		ck_assert_int_eq(nc_handle_write(&handle, 0, "text", 4), 4);
		ck_assert_int_eq(nc_handle_grow(&handle, 3 * PAGE - 1), 0);
		ck_assert_ptr_eq(unit_of(&handle), unit);
		ck_assert_uint_eq(unit->store->live, 3 * PAGE);
		must_alloc_unit(&behind, PAGE, 0, kinds[i]);
		ck_assert_ptr_eq(nc_unit_base(unit_of(&behind)), base + 3 * PAGE);
		/* The rest of its last page. */
		ck_assert_int_eq(nc_handle_grow(&handle, 3 * PAGE), 0);
		ck_assert_ptr_eq(nc_unit_base(unit_of(&handle)), base);
		ck_assert_int_eq(nc_handle_grow(&handle, 3 * PAGE + 1), 0);
		ck_assert_ptr_eq(nc_unit_base(unit_of(&handle)), base + 4 * PAGE);
		ck_assert_mem_eq(nc_unit_base(unit_of(&handle)), "text", 4);
		ck_assert_uint_eq(unit_of(&handle)->store->live, 5 * PAGE);
		ck_assert_int_eq(nc_handle_free(&behind), 0);
		ck_assert_int_eq(nc_handle_free(&handle), 0);
		nc_index_fini(&cache);
	}
}
END_TEST

/* The library chooses the memory of the length that the unit has then. */
START_TEST(test_kind)
{
	NC_handle handle;

	open_cache();
	must_alloc_unit(&handle, 100, 0, NC_KIND_AUTO);
	ck_assert_int_eq(unit_of(&handle)->store->kind, NC_KIND_RECYCLED);
	ck_assert_int_eq(nc_handle_grow(&handle, 31 << 10), 0);
	ck_assert_int_eq(unit_of(&handle)->store->kind, NC_KIND_RECYCLED);
	ck_assert_int_eq(nc_handle_grow(&handle, 64 << 10), 0);
	ck_assert_int_eq(unit_of(&handle)->store->kind, NC_KIND_APPENDED);
	ck_assert_int_eq(nc_handle_grow(&handle, MIB), 0);
	ck_assert(unit_of(&handle)->store->alone);
	ck_assert_uint_eq(unit_of(&handle)->store->segment.size, MIB);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	nc_index_fini(&cache);
}
END_TEST

/* Random writes and growth, against a plain buffer of zeroes; with checksums. */
static void check_growth(size_t fraglen, enum NC_kind kind, uint64_t *state)
{
	unsigned char *expected = must_alloc(MOST), *data = must_alloc(MOST), *got;
	size_t size = 1 + random_next(state) % 9000, length;
	struct nc_view view;
	NC_handle handle;

	memset(expected, 0, MOST);
	soil(kind, 60000);
	must_alloc_unit(&handle, size, fraglen, kind);
	for (unsigned i = 1 + random_next(state) % 16; i; i--) {
		size_t offset = random_next(state) % (size + 1), part = 0;
		void *bytes = NULL;

		length = random_next(state) % (size - offset + 1);
		pattern_fill(data, i, 0, length);
		memcpy(expected + offset, data, length);
		ck_assert_int_eq(nc_handle_write(&handle, offset, data, length), (ssize_t)length);
		if (random_next(state) % 4 == 0) {
			part = (size_t)nc_handle_fragment(&handle, 0, &bytes);
			pattern_fill(bytes, i + 99, 0, part);
			pattern_fill(expected, i + 99, 0, part);
		}
		size += random_next(state) % (random_next(state) % 2 ? 40000 : 3000);
		size = size < MOST ? size : MOST;
		ck_assert_int_eq(nc_handle_grow(&handle, size), 0);
	}
	length = 1 + random_next(state) % size;
	ck_assert_int_eq(nc_handle_insert(&handle, length), 0);
	ck_assert_int_eq(nc_index_hold(&cache, nc_handle_id(&handle), false, &view), 0);
	ck_assert_uint_eq(view.unit->layout.size, length);
	got = must_alloc(length);
	copy_unit(view.unit, got);
	ck_assert_mem_eq(got, expected, length);
	if (cache.flags & NC_CACHE_EAGER_SUMS)
		ck_assert_int_eq(nc_unit_checksum_verify(view.unit, 0, SIZE_MAX),
				 view.unit->layout.fragments);
	ck_assert_int_eq(nc_index_release(&cache, view.id), 0);
	ck_assert_int_eq(nc_index_destroy(&cache, view.id), 0);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	free(got);
	free(data);
	free(expected);
}

START_TEST(test_growth)
{
	static const enum NC_kind kinds[] = {NC_KIND_AUTO, NC_KIND_RECYCLED, NC_KIND_APPENDED,
					     NC_KIND_SEALED};
	uint64_t state = 47;

	for (unsigned eager = 0; eager < 2; eager++) {
		open_cache();
		cache.flags |= eager ? NC_CACHE_EAGER_SUMS : 0;
		for (unsigned i = 0; i < scaled(300); i++)
			check_growth(fraglens[random_next(&state) % FRAGLENS], kinds[i % 4],
				     &state);
		ck_assert_uint_eq(nc_index_filling(&cache), 0);
		nc_index_fini(&cache);
	}
	join_cache(2 * MIB);
	for (unsigned i = 0; i < scaled(100); i++)
		check_growth(fraglens[i % FRAGLENS], NC_KIND_AUTO, &state);
	nc_index_fini(&cache);
	/* Each has a segment of its own. */
	ck_assert_int_eq(nc_index_init_guest(&cache, MIB), 0);
	for (unsigned i = 0; i < 100; i++) {
		NC_handle handle;

		must_alloc_unit(&handle, 4, 0, NC_KIND_AUTO);
		ck_assert_int_eq(nc_handle_write(&handle, 0, "text", 4), 4);
		ck_assert_int_eq(nc_handle_grow(&handle, 1000 * (1 + i)), 0);
		ck_assert_mem_eq(nc_unit_base(unit_of(&handle)), "text", 4);
		ck_assert_int_eq(nc_handle_free(&handle), 0);
	}
	nc_index_fini(&cache);
}
END_TEST

/* --- many threads ------------------------------------------------------------------ */

#define THREADS 4
#define KEPT 24

static _Atomic unsigned spoilt, checked;

/* Whether the unit still has the bytes that its thread wrote; evicted: it is gone. */
static void look_at(size_t id, uint64_t seed)
{
	struct nc_view view;
	size_t size;

	if (!id || nc_index_hold(&cache, id, false, &view))
		return;
	size = view.unit->layout.size;
	if (pattern_match(nc_unit_base(view.unit), seed, 0, size) != size)
		atomic_fetch_add(&spoilt, 1);
	atomic_fetch_add(&checked, 1);
	(void)nc_index_release(&cache, id);
}

/* Returns the id of a unit that grew and was then cut, or 0. */
static size_t make(uint64_t *state, uint64_t seed, enum NC_kind kind)
{
	size_t size = 1 + random_next(state) % 20000, written = 0, id;
	unsigned char data[3000];
	NC_handle handle;

	if (nc_handle_alloc(&handle, &cache, size, 0, kind, 0))
		return 0;
	for (unsigned i = random_next(state) % 24; i; i--) {
		if (written + sizeof(data) > size) {
			size = 2 * size + random_next(state) % 8000;
			if (nc_handle_grow(&handle, size))
				break;
		}
		if (written + sizeof(data) > size)
			continue;
		pattern_fill(data, seed, written, sizeof(data));
		if (nc_handle_write(&handle, written, data, sizeof(data)) < 0)
			atomic_fetch_add(&spoilt, 1);
		written += sizeof(data);
	}
	if (!written || random_next(state) % 8 == 0 || nc_handle_insert(&handle, written)) {
		(void)nc_handle_free(&handle);
		return 0;
	}
	id = nc_handle_id(&handle);
	(void)nc_handle_free(&handle);
	return id;
}

static void *trade(void *context)
{
	static const enum NC_kind kinds[] = {NC_KIND_AUTO, NC_KIND_RECYCLED, NC_KIND_APPENDED,
					     NC_KIND_SEALED};
	uint64_t state = (uintptr_t)context, seed = state << 32, seeds[KEPT] = {0};
	size_t ids[KEPT] = {0};

	for (unsigned steps = scaled(1500); steps; steps--) {
		unsigned i = random_next(&state) % KEPT;

		look_at(ids[i], seeds[i]);
		if (random_next(&state) % 2)
			continue;
		if (ids[i])
			(void)nc_index_destroy(&cache, ids[i]);
		seeds[i] = ++seed;
		ids[i] = make(&state, seed, cache.owner ? kinds[i % 4] : NC_KIND_AUTO);
	}
	for (unsigned i = 0; i < KEPT; i++)
		look_at(ids[i], seeds[i]);
	return NULL;
}

static void run_threads(void)
{
	pthread_t threads[THREADS];

	atomic_store(&spoilt, 0);
	atomic_store(&checked, 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, trade, (void *)(i + 11)), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(atomic_load(&spoilt), 0);
	ck_assert_uint_gt(atomic_load(&checked), 0);
	ck_assert_uint_eq(nc_index_filling(&cache), 0);
	ck_assert_uint_le(cache.own.used, cache.own.budget);
}

START_TEST(test_threads)
{
	open_cache();
	run_threads();
	nc_index_fini(&cache);
	join_cache(2 * MIB);
	run_threads();
	nc_index_fini(&cache);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_full);
	tcase_add_test(tcase, test_in_place);
	tcase_add_test(tcase, test_kind);
	tcase_add_test(tcase, test_growth);
	tcase_add_test(tcase, test_threads);
}

RUN_SUITE("handle-grow", fill)
