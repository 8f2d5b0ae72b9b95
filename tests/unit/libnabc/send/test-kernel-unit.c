/* SPDX-License-Identifier: MIT */
/*
 * test-kernel-unit.c - unit tests of units in the kernel module, with a model of it:
 * which units it stores, how they are filled and destroyed, and who can still read
 * them.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <nabc-uapi.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "cache/index.h"
#include "membership/grant-ops.h"
#include "membership/handle.h"
#include "os/device.h"
#include "policy/expiry.h"
#include "send/transmit.h"
#include "store/member.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit-checksum.h"

#include "device-model.h"
#include "kernel-fixture.h"
#include "pin-fixture.h"
#include "suite.h"
#include "transmit-fixture.h"

static enum NC_kind kind_made(size_t size, size_t fraglen, enum NC_kind kind)
{
	size_t id = insert(1, size, fraglen, kind);
	enum NC_kind made = kind_of(id);

	ck_assert_int_eq(nc_index_destroy(&cache, id), 0);
	return made;
}

START_TEST(test_which)
{
	open_with_module(16 * MIB);
	ck_assert_int_eq(kind_made(8 * KIB, 0, NC_KIND_AUTO), NC_KIND_KERNEL);
	ck_assert_int_eq(kind_made(3 * MIB, 0, NC_KIND_AUTO), NC_KIND_KERNEL);
	ck_assert_int_eq(kind_made(64 * KIB, 8 * KIB, NC_KIND_AUTO), NC_KIND_KERNEL);
	ck_assert_int_eq(kind_made(1, 0, NC_KIND_KERNEL), NC_KIND_KERNEL);
	/* Too small to benefit; the module does not support gaps. */
	ck_assert_int_eq(kind_made(8 * KIB - 1, 0, NC_KIND_AUTO), NC_KIND_RECYCLED);
	ck_assert_int_eq(kind_made(64 * KIB, 1448, NC_KIND_AUTO), NC_KIND_APPENDED);
	ck_assert_int_eq(kind_made(64 * KIB, 1448, NC_KIND_KERNEL), NC_KIND_APPENDED);
	ck_assert_int_eq(kind_made(100, 100, NC_KIND_KERNEL), NC_KIND_RECYCLED);
	/* Kinds that the caller requested. */
	ck_assert_int_eq(kind_made(64 * KIB, 0, NC_KIND_RECYCLED), NC_KIND_RECYCLED);
	ck_assert_int_eq(kind_made(64 * KIB, 0, NC_KIND_APPENDED), NC_KIND_APPENDED);
	ck_assert_int_eq(kind_made(64 * KIB, 0, NC_KIND_SEALED), NC_KIND_SEALED);
	/* If the module sends nothing, it stores no units. */
	ck_assert_int_eq(nc_transmit_route_set(&transmit, "*", NC_METHOD_SPLICE), 0);
	ck_assert_int_eq(kind_made(64 * KIB, 0, NC_KIND_AUTO), NC_KIND_APPENDED);
	ck_assert_int_eq(nc_transmit_route_set(&transmit, "*", NC_METHOD_KERNEL), 0);
	ck_assert_int_eq(kind_made(64 * KIB, 0, NC_KIND_AUTO), NC_KIND_KERNEL);
	ck_assert_int_eq(nc_transmit_route_set(&transmit, "127.0.0.1", NC_METHOD_COPY), 0);
	ck_assert_int_eq(kind_made(64 * KIB, 0, NC_KIND_AUTO), NC_KIND_KERNEL);
	ck_assert_uint_eq(model_units(), 0);
	close_cache();
}
END_TEST

/* Without the module the same calls work. */
START_TEST(test_without)
{
	open_cache(16 * MIB, NC_CACHE_NO_URING);
	ck_assert_int_eq(kind_made(64 * KIB, 0, NC_KIND_KERNEL), NC_KIND_APPENDED);
	ck_assert_int_eq(kind_made(1, 0, NC_KIND_KERNEL), NC_KIND_RECYCLED);
	ck_assert_int_eq(nc_transmit_route_set(&transmit, "*", NC_METHOD_KERNEL), -EOPNOTSUPP);
	ck_assert_str_eq(counters().kernel, "not used: disabled by the program");
	model.open_error = ENOENT;
	ck_assert_int_eq(nc_index_use_device(&cache, &model_system), -ENOENT);
	ck_assert_str_eq(counters().kernel, "not used: /dev/nabc: No such file or directory");
	ck_assert_int_eq(kind_made(64 * KIB, 0, NC_KIND_AUTO), NC_KIND_APPENDED);
	close_cache();
}
END_TEST

/* Units that do not fit into the module fall back to other memory, and are counted. */
START_TEST(test_full_module)
{
	size_t id;

	open_with_module(16 * MIB);
	model.memory = 100 * KIB;
	id = insert(1, 64 * KIB, 0, NC_KIND_AUTO);
	ck_assert_int_eq(kind_of(id), NC_KIND_KERNEL);
	ck_assert_int_eq(kind_made(64 * KIB, 0, NC_KIND_AUTO), NC_KIND_APPENDED);
	ck_assert_int_eq(kind_made(64 * KIB, 0, NC_KIND_KERNEL), NC_KIND_APPENDED);
	ck_assert_uint_eq(counters().kernel_memory, 2);
	ck_assert_uint_eq(counters().failures + counters().failures_system, 0);
	/* After a unit was destroyed, there is space again. */
	ck_assert_int_eq(nc_index_destroy(&cache, id), 0);
	ck_assert_int_eq(kind_made(64 * KIB, 0, NC_KIND_AUTO), NC_KIND_KERNEL);
	close_cache();
}
END_TEST

static struct nc_unit *unit_of(const NC_handle *handle)
{
	return ((const struct nc_handle *)(const void *)handle)->unit;
}

/* From memory, text and descriptors, with gaps: like a unit of any other kind. */
START_TEST(test_filled)
{
	static const bool way[] = {false, true};
	char bytes[20000], got[20000];
	NC_handle handle;
	size_t id;
	int fd = memfd_create("file", MFD_CLOEXEC);

	open_with_module(16 * MIB);
	pattern_fill(bytes, 9, 0, sizeof(bytes));
	ck_assert_int_eq(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	for (unsigned summed = 0; summed < 3; summed++)
		for (unsigned i = 0; i < 2; i++) {
			unsigned before = model_calls(NABC_IOC_READ);
			unsigned flags = summed ? 0 : NC_UNIT_UNSUMMED;

			if (summed == 2)
				cache.flags |= NC_CACHE_EAGER_SUMS;
			model.no_reading = way[i];
			ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
			ck_assert_int_eq(
				nc_handle_alloc(&handle, &cache, 30000, 0, NC_KIND_KERNEL, flags),
				0);
			memset(nc_unit_base(unit_of(&handle)), 0xdd, 30000);
			ck_assert_int_eq(nc_handle_read(fd, &handle, 5000, 10000), 10000);
			/*
			 * Bytes go directly from the descriptor to the module, unless they
			 * are summed now.
			 */
			ck_assert((model_calls(NABC_IOC_READ) > before) == (summed < 2));
			ck_assert_int_eq(nc_handle_write(&handle, 29000, "end", 3), 3);
			ck_assert_int_eq(nc_handle_copy(&handle, 5000, got, 10000), 10000);
			ck_assert_mem_eq(got, bytes, 10000);
			ck_assert_int_eq(nc_handle_insert(&handle, NC_WHOLE), 0);
			id = nc_handle_id(&handle);
			ck_assert_int_eq(nc_handle_free(&handle), 0);
			ck_assert_int_eq(kind_of(id), NC_KIND_KERNEL);
			ck_assert_int_eq(nc_unit_read(unit_at(id), 4999, got, 10002), 0);
			ck_assert(got[0] == 0 && got[10001] == 0);
			ck_assert_mem_eq(got + 1, bytes, 10000);
			ck_assert_int_eq(nc_unit_read(unit_at(id), 28999, got, 1001), 0);
			ck_assert(got[0] == 0 && !memcmp(got + 1, "end", 4) && got[1000] == 0);
			ck_assert_int_eq(nc_index_destroy(&cache, id), 0);
		}
	close(fd);
	close_cache();
}
END_TEST

/* After the insert no process has it mapped. */
START_TEST(test_out_of_reach)
{
	NC_handle handle;
	void *bytes;

	open_with_module(16 * MIB);
	ck_assert_int_eq(nc_handle_alloc(&handle, &cache, 10000, 0, NC_KIND_KERNEL, 0), 0);
	ck_assert_int_eq(nc_handle_fragment(&handle, 1, &bytes), 4096);
	memset(bytes, 1, 4096);
	ck_assert_int_eq(nc_handle_insert(&handle, NC_WHOLE), 0);
	ck_assert(!writable(bytes));
	ck_assert(!nc_unit_present(unit_at(nc_handle_id(&handle))));
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	close_cache();
}
END_TEST

/* However a unit ends, its copy in the module is destroyed. */
START_TEST(test_ends)
{
	struct nc_view view;
	NC_handle handle;
	size_t id;

	open_with_module(16 * MIB);
	for (size_t size = 10000; size <= 100000; size += 90000) {
		ck_assert_int_eq(nc_handle_alloc(&handle, &cache, size, 0, NC_KIND_KERNEL, 0), 0);
		ck_assert_uint_eq(model_units(), size > NC_DEVICE_BUFFER);
		ck_assert_int_eq(nc_handle_free(&handle), 0);
		ck_assert_uint_eq(model_units(), 0);
		ck_assert_uint_eq(cache.device.buffers_free, UINT64_MAX);
	}
	id = insert(1, 10000, 0, NC_KIND_KERNEL);
	ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), 0);
	ck_assert_int_eq(nc_index_destroy(&cache, id), 0);
	ck_assert_uint_eq(model_units(), 1);
	ck_assert_int_eq(nc_index_release(&cache, id), 0);
	ck_assert_uint_eq(model_units(), 0);
	/* Evicted: the budget is fifteen units of 1 MiB. */
	for (unsigned i = 0; i < 40; i++)
		(void)insert(i, MIB, 0, NC_KIND_AUTO);
	ck_assert_uint_le(model_units(), 16);
	ck_assert_uint_ge(counters().evictions, 24);
	ck_assert_uint_le(counters().used, 16 * MIB);
	close_cache();
	ck_assert_uint_eq(model_units(), 0);
}
END_TEST

/* A copy in memory for those that need one, made once, and within the budget. */
START_TEST(test_copies)
{
	struct nc_view view;
	size_t id;
	char *base;

	open_with_module(4 * MIB);
	id = insert(3, MIB, 0, NC_KIND_AUTO);
	ck_assert_uint_eq(counters().used, MIB);
	ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), 0);
	ck_assert(!nc_unit_present(view.unit));
	ck_assert_int_eq(nc_index_fetch(&cache, &view), 0);
	base = nc_unit_base(view.unit);
	ck_assert_uint_eq(pattern_match(base, 3, 0, MIB), MIB);
	ck_assert(!writable(base));
	ck_assert_int_eq(nc_index_fetch(&cache, &view), 0);
	ck_assert_ptr_eq(nc_unit_base(view.unit), base);
	ck_assert_uint_eq(counters().used, 2 * MIB);
	ck_assert_uint_eq(counters().kernel_copies, 1);
	ck_assert_uint_eq(counters().kernel_copied_bytes, MIB);
	ck_assert_int_eq(nc_index_release(&cache, id), 0);
	ck_assert_int_eq(nc_index_destroy(&cache, id), 0);
	ck_assert_uint_eq(counters().used, 0);
	close_cache();
}
END_TEST

/* The copy is locked, like other memory; the module's memory needs no lock. */
START_TEST(test_copies_locked)
{
	size_t before = locked_now(), id;
	struct nc_view view;

	if (!may_lock(64 * KIB))
		return;
	open_with_module_and(4 * MIB, NC_CACHE_PIN);
	id = insert(3, 64 * KIB, 0, NC_KIND_AUTO);
	ck_assert_uint_eq(locked_now(), before);
	ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), 0);
	ck_assert_int_eq(nc_index_fetch(&cache, &view), 0);
	ck_assert_uint_eq(counters().locked_bytes, 64 * KIB);
	ck_assert_uint_eq(locked_now(), before + 64 * KIB);
	ck_assert_int_eq(nc_index_release(&cache, id), 0);
	ck_assert_int_eq(nc_index_destroy(&cache, id), 0);
	ck_assert_uint_eq(counters().locked_bytes, 0);
	close_cache();
	ck_assert_uint_eq(locked_now(), before);
}
END_TEST

/* Other units are evicted for a copy, but no held one. */
START_TEST(test_copies_without_room)
{
	struct nc_view view[4];
	size_t ids[4];

	open_with_module(4 * MIB);
	for (unsigned i = 0; i < 4; i++) {
		ids[i] = insert(i, MIB, 0, NC_KIND_AUTO);
		ck_assert_int_eq(nc_index_hold(&cache, ids[i], false, &view[i]), 0);
	}
	ck_assert_int_eq(nc_index_fetch(&cache, &view[0]), -ENOMEM);
	ck_assert_uint_eq(counters().used, 4 * MIB);
	ck_assert_int_eq(nc_index_release(&cache, ids[3]), 0);
	ck_assert_int_eq(nc_index_fetch(&cache, &view[0]), 0);
	ck_assert_uint_eq(counters().used, 4 * MIB);
	ck_assert_uint_eq(counters().evictions, 1);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(nc_index_release(&cache, ids[i]), 0);
	close_cache();
}
END_TEST

#define THREADS 4

static void *fetch(void *context)
{
	const struct nc_view *view = context;

	ck_assert_int_eq(nc_index_fetch(&cache, view), 0);
	ck_assert_uint_eq(pattern_match(nc_unit_base(view->unit), 3, 0, 100 * KIB), 100 * KIB);
	return NULL;
}

/* Concurrently: one thread makes the copy. */
START_TEST(test_copies_by_threads)
{
	open_with_module(16 * MIB);
	for (unsigned i = 1; i <= scaled(50); i++) {
		size_t id = insert(3, 100 * KIB, 0, NC_KIND_AUTO);
		pthread_t threads[THREADS];
		struct nc_view view;

		ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), 0);
		for (unsigned j = 0; j < THREADS; j++)
			ck_assert_int_eq(pthread_create(&threads[j], NULL, fetch, &view), 0);
		for (unsigned j = 0; j < THREADS; j++)
			pthread_join(threads[j], NULL);
		ck_assert_uint_eq(counters().kernel_copies, i);
		ck_assert_int_eq(nc_index_release(&cache, id), 0);
		ck_assert_int_eq(nc_index_destroy(&cache, id), 0);
	}
	ck_assert_uint_eq(counters().used, 0);
	close_cache();
}
END_TEST

START_TEST(test_reading)
{
	char got[1000];
	size_t id;

	open_with_module(16 * MIB);
	id = insert(5, 50000, 0, NC_KIND_AUTO);
	ck_assert_int_eq(nc_grant_ops_read(unit_at(id), got, 1000, 777), 1000);
	ck_assert_uint_eq(pattern_match(got, 5, 777, 1000), 1000);
	ck_assert_int_eq(nc_grant_ops_read(unit_at(id), got, 1000, 49990), 10);
	ck_assert_int_eq(nc_grant_ops_read(unit_at(id), got, 1000, 50000), 0);
	ck_assert_int_eq(nc_grant_ops_read(unit_at(id), got, 1000, 50001), -ERANGE);
	ck_assert(!nc_unit_present(unit_at(id)));
	close_cache();
}
END_TEST

static uint32_t sum_at(const struct nc_view *view, enum NC_checksum_kind kind, size_t from,
		       size_t length)
{
	uint32_t sum = 1;

	ck_assert_int_eq(nc_index_checksum(&cache, view, kind, from, length, &sum), 0);
	return sum;
}

/* The module computes the sum of any range; nothing is copied for it, or kept here. */
START_TEST(test_sums_of_the_module)
{
	struct nc_view view, other;
	size_t id, there;

	open_with_module(16 * MIB);
	id = insert(5, 50000, 0, NC_KIND_KERNEL);
	there = insert(5, 50000, 0, NC_KIND_RECYCLED);
	ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), 0);
	ck_assert_int_eq(nc_index_hold(&cache, there, false, &other), 0);
	for (size_t from = 0; from < 50000; from += 4099)
		for (size_t length = 0; length <= 50000 - from; length += 1 + length * 2)
			ck_assert_uint_eq(sum_at(&view, NC_CHECKSUM_INET, from, length),
					  sum_at(&other, NC_CHECKSUM_INET, from, length));
	ck_assert_uint_gt(model_calls(NABC_IOC_SUM), 10);
	ck_assert(!nc_unit_present(view.unit) && !nc_unit_checksum_kept(view.unit));
	/* The other kind is not the module's. */
	ck_assert_uint_eq(sum_at(&view, NC_CHECKSUM_CRC32C, 5, 100),
			  sum_at(&other, NC_CHECKSUM_CRC32C, 5, 100));
	ck_assert(nc_unit_present(view.unit));
	ck_assert_int_eq(nc_unit_checksum_make(view.unit), 1);
	ck_assert_int_gt(nc_unit_checksum_verify(view.unit, 0, SIZE_MAX), 0);
	ck_assert_int_eq(nc_index_release(&cache, id), 0);
	ck_assert_int_eq(nc_index_release(&cache, there), 0);
	close_cache();
}
END_TEST

/* All bytes are zero, or their sum is: the module cannot tell, so the bytes are read. */
START_TEST(test_sums_of_zero)
{
	NC_handle handle;

	open_with_module(16 * MIB);
	for (unsigned i = 0; i < 2; i++) {
		struct nc_view view;

		ck_assert_int_eq(nc_handle_alloc(&handle, &cache, 50000, 0, NC_KIND_KERNEL, 0), 0);
		if (i)
			ck_assert_int_eq(nc_handle_write(&handle, 100, "\xff\xff", 2), 2);
		ck_assert_int_eq(nc_handle_insert(&handle, NC_WHOLE), 0);
		ck_assert_int_eq(nc_index_hold(&cache, nc_handle_id(&handle), false, &view), 0);
		ck_assert_uint_eq(sum_at(&view, NC_CHECKSUM_INET, 0, 50000), i ? 0xffff : 0);
		ck_assert(nc_unit_present(view.unit));
		ck_assert_int_eq(nc_index_release(&cache, nc_handle_id(&handle)), 0);
		ck_assert_int_eq(nc_handle_free(&handle), 0);
	}
	close_cache();
}
END_TEST

/* Its kept sums equal those in other memory; only partial fragments are read. */
START_TEST(test_sums)
{
	struct nc_view view, other;
	size_t id, there;

	open_with_module(16 * MIB);
	cache.flags |= NC_CACHE_EAGER_SUMS;
	id = insert(5, 50000, 0, NC_KIND_KERNEL);
	there = insert(5, 50000, 0, NC_KIND_RECYCLED);
	ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), 0);
	ck_assert_int_eq(nc_index_hold(&cache, there, false, &other), 0);
	for (unsigned i = 0; i < 4; i++) {
		const size_t from = i & 1 ? 4096 : 0, to = i & 2 ? 50000 : 40960;

		ck_assert(!nc_unit_checksum_reads(view.unit, NC_CHECKSUM_INET, from, to - from));
		ck_assert_uint_eq(
			nc_unit_checksum_range(view.unit, NC_CHECKSUM_INET, from, to - from),
			nc_unit_checksum_range(other.unit, NC_CHECKSUM_INET, from, to - from));
	}
	ck_assert(nc_unit_checksum_reads(view.unit, NC_CHECKSUM_INET, 1, 100));
	ck_assert(nc_unit_checksum_reads(view.unit, NC_CHECKSUM_INET, 0, 49999));
	ck_assert(nc_unit_checksum_reads(view.unit, NC_CHECKSUM_CRC32C, 0, 50000));
	ck_assert_int_eq(nc_index_fetch(&cache, &view), 0);
	ck_assert_uint_eq(nc_unit_checksum_range(view.unit, NC_CHECKSUM_INET, 77, 49000),
			  nc_unit_checksum_range(other.unit, NC_CHECKSUM_INET, 77, 49000));
	ck_assert_int_gt(nc_unit_checksum_verify(view.unit, 0, SIZE_MAX), 0);
	ck_assert_int_eq(nc_index_release(&cache, id), 0);
	ck_assert_int_eq(nc_index_release(&cache, there), 0);
	close_cache();
}
END_TEST

/* An insert that the module refuses leaves the unit unchanged. */
static bool refuse_insert;

static int refuse(int fd, unsigned long request, void *argument)
{
	return refuse_insert && (request == NABC_IOC_INSERT || request == NABC_IOC_PUT)
		       ? -EBUSY
		       : model_call(fd, request, argument);
}

START_TEST(test_insert_refused)
{
	const struct nc_insertion with = {.priority = NC_PRIORITY_PINNED, .lifetime = 1000};
	struct nc_device_system system = model_system;
	NC_handle handle;

	system.call = refuse;
	open_cache(MIB, NC_CACHE_NO_URING);
	ck_assert_int_eq(nc_index_use_device(&cache, &system), 0);
	for (size_t size = 10000; size <= 100000; size += 90000) {
		ck_assert_int_eq(nc_handle_alloc(&handle, &cache, size, 0, NC_KIND_KERNEL, 0), 0);
		refuse_insert = true;
		ck_assert_int_eq(nc_handle_insert_with(&handle, NC_WHOLE, &with), -EBUSY);
		/* Undone: a plain insert below has the default, and no lifetime. */
		ck_assert_uint_eq(cache.own.pinned, 0);
		ck_assert_uint_eq(cache.own.expiry.reserved, 0);
		ck_assert_uint_eq(cache.own.expiry.count, 0);
		ck_assert_int_eq(nc_handle_insert(&handle, NC_WHOLE), -EBUSY);
		ck_assert_int_eq(nc_handle_write(&handle, 0, "x", 1), 1);
		refuse_insert = false;
		ck_assert_int_eq(nc_handle_insert(&handle, NC_WHOLE), 0);
		ck_assert_int_eq(nc_handle_free(&handle), 0);
	}
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_which);
	tcase_add_test(tcase, test_without);
	tcase_add_test(tcase, test_full_module);
	tcase_add_test(tcase, test_filled);
	tcase_add_test(tcase, test_out_of_reach);
	tcase_add_test(tcase, test_ends);
	tcase_add_test(tcase, test_copies);
	tcase_add_test(tcase, test_copies_locked);
	tcase_add_test(tcase, test_copies_without_room);
	tcase_add_test(tcase, test_copies_by_threads);
	tcase_add_test(tcase, test_reading);
	tcase_add_test(tcase, test_sums_of_the_module);
	tcase_add_test(tcase, test_sums_of_zero);
	tcase_add_test(tcase, test_sums);
	tcase_add_test(tcase, test_insert_refused);
}

RUN_SUITE("kernel-unit", fill)
