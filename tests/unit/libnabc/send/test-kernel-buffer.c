/* SPDX-License-Identifier: MIT */
/*
 * test-kernel-buffer.c - unit tests of small units of the kernel module, with a model of
 * it: filled in a buffer, and made by one call; what moves them to the arena before that;
 * and a module without memory for them.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <nabc-uapi.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "cache/index.h"
#include "membership/handle.h"
#include "os/device.h"
#include "send/kernel.h"
#include "store/store.h"

#include "device-model.h"
#include "kernel-fixture.h"
#include "suite.h"
#include "transmit-fixture.h"

/* The calls of a unit's creation since the last question. */
static void check_calls(unsigned puts, unsigned allocs, unsigned inserts)
{
	static unsigned before[3];
	const unsigned now[] = {model_calls(NABC_IOC_PUT), model_calls(NABC_IOC_ALLOC),
				model_calls(NABC_IOC_INSERT)};

	ck_assert_uint_eq(now[0] - before[0], puts);
	ck_assert_uint_eq(now[1] - before[1], allocs);
	ck_assert_uint_eq(now[2] - before[2], inserts);
	memcpy(before, now, sizeof(before));
}

static void alloc_kernel(NC_handle *handle, size_t size, unsigned flags)
{
	ck_assert_int_eq(nc_handle_alloc(handle, &cache, size, 0, NC_KIND_KERNEL, flags), 0);
}

/* Inserts what was filled with the pattern, and destroys it. */
static void finish(NC_handle *handle, uint64_t seed, size_t size)
{
	char got[NC_DEVICE_BUFFER + 1];
	size_t id;

	ck_assert_int_eq(nc_handle_insert(handle, size), 0);
	id = nc_handle_id(handle);
	ck_assert_int_eq(nc_handle_free(handle), 0);
	ck_assert_int_eq(kind_of(id), NC_KIND_KERNEL);
	ck_assert_int_eq(nc_unit_read(unit_at(id), 0, got, size), 0);
	ck_assert_uint_eq(pattern_match(got, seed, 0, size), size);
	ck_assert_int_eq(nc_index_destroy(&cache, id), 0);
	ck_assert_uint_eq(model_units(), 0);
	ck_assert_uint_eq(cache.device.buffers_free, UINT64_MAX);
}

static void write_pattern(NC_handle *handle, uint64_t seed, size_t size)
{
	char bytes[NC_DEVICE_BUFFER + 1];

	pattern_fill(bytes, seed, 0, size);
	ck_assert_int_eq(nc_handle_write(handle, 0, bytes, size), (ssize_t)size);
}

/* A small unit is made by one call, unless its memory was given away before that. */
START_TEST(test_buffered)
{
	char *bytes;
	NC_handle handle, all[NC_DEVICE_BUFFERS + 1];
	int fd = memfd_create("file", MFD_CLOEXEC);

	open_with_module(16 * MIB);
	for (size_t size = 1; size <= NC_DEVICE_BUFFER; size += NC_DEVICE_BUFFER - 1) {
		alloc_kernel(&handle, size, 0);
		write_pattern(&handle, size, size);
		finish(&handle, size, size);
		check_calls(1, 0, 0);
	}
	/* Shorter than allocated. */
	alloc_kernel(&handle, 20000, 0);
	write_pattern(&handle, 1, 15000);
	finish(&handle, 1, 10001);
	check_calls(1, 0, 0);
	alloc_kernel(&handle, NC_DEVICE_BUFFER + 1, 0);
	write_pattern(&handle, 2, NC_DEVICE_BUFFER + 1);
	finish(&handle, 2, NC_DEVICE_BUFFER + 1);
	check_calls(0, 1, 1);
	/* A pointer must not lead to the bytes of a later unit. */
	alloc_kernel(&handle, 10000, 0);
	write_pattern(&handle, 3, 10000);
	ck_assert_int_eq(nc_handle_fragment(&handle, 1, (void **)&bytes), 4096);
	ck_assert_uint_eq(pattern_match(bytes, 3, 4096, 4096), 4096);
	write_pattern(&handle, 4, 5000);
	pattern_fill(bytes, 4, 4096, 4096);
	pattern_fill(bytes + 4096, 4, 8192, 1808);
	finish(&handle, 4, 10000);
	ck_assert(!writable(bytes));
	check_calls(0, 1, 1);
	/* The module reads; only into what is empty. */
	for (unsigned i = 0; i < 2; i++) {
		alloc_kernel(&handle, 10000, NC_UNIT_UNSUMMED);
		if (i)
			write_pattern(&handle, 5, 1);
		ck_assert_int_eq(pwrite(fd, (char[10000]){0}, 10000, 0), 10000);
		ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
		ck_assert_int_eq(nc_handle_read(fd, &handle, i, 9000), 9000);
		write_pattern(&handle, 5, 10000);
		finish(&handle, 5, 10000);
		check_calls(i, !i, !i);
	}
	/* If no buffer is free, there is the arena. */
	for (unsigned i = 0; i <= NC_DEVICE_BUFFERS; i++) {
		alloc_kernel(&all[i], 8 * KIB, 0);
		write_pattern(&all[i], i, 8 * KIB);
	}
	for (unsigned i = 0; i <= NC_DEVICE_BUFFERS; i++) {
		ck_assert_int_eq(nc_handle_insert(&all[i], NC_WHOLE), 0);
		ck_assert_int_eq(nc_index_destroy(&cache, nc_handle_id(&all[i])), 0);
		ck_assert_int_eq(nc_handle_free(&all[i]), 0);
	}
	check_calls(NC_DEVICE_BUFFERS, 1, 1);
	close(fd);
	close_cache();
}
END_TEST

/* A module without that call: as other sizes. */
START_TEST(test_unbuffered)
{
	NC_handle handle;

	model.no_put = true;
	open_with_module(16 * MIB);
	alloc_kernel(&handle, 10000, 0);
	write_pattern(&handle, 1, 10000);
	ck_assert_int_eq(nc_handle_insert(&handle, NC_WHOLE), 0);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	check_calls(0, 1, 1);
	close_cache();
}
END_TEST

/* The module has no memory when a unit leaves its buffer: it stays in this process. */
START_TEST(test_buffered_full)
{
	struct nc_view view;
	NC_handle handle;
	void *bytes = NULL;

	open_with_module(MIB);
	model.memory = 5000;
	for (unsigned i = 0; i < 2; i++) {
		alloc_kernel(&handle, 10000, 0);
		write_pattern(&handle, i, 10000);
		if (i)
			ck_assert_int_eq(nc_handle_fragment(&handle, 0, &bytes), 4096);
		ck_assert_int_eq(nc_handle_insert(&handle, 9999), 0);
		check_calls(!i, i, 0);
		ck_assert_int_eq(kind_of(nc_handle_id(&handle)), NC_KIND_RECYCLED);
		ck_assert_int_eq(nc_index_hold(&cache, nc_handle_id(&handle), false, &view), 0);
		ck_assert(nc_unit_present(view.unit) && !nc_kernel_has(view.unit));
		ck_assert_uint_eq(pattern_match(nc_unit_base(view.unit), i, 0, 9999), 9999);
		ck_assert(!writable(nc_unit_base(view.unit)) && (!bytes || !writable(bytes)));
		ck_assert_int_eq(nc_index_release(&cache, nc_handle_id(&handle)), 0);
		ck_assert_uint_eq(cache.device.buffers_free, UINT64_MAX);
		ck_assert_uint_eq(counters().kernel_memory, i + 1);
		ck_assert_int_eq(nc_index_destroy(&cache, nc_handle_id(&handle)), 0);
		ck_assert_uint_eq(counters().used, 0);
		ck_assert_int_eq(nc_handle_free(&handle), 0);
		/* It would be refused again until memory is freed. */
		ck_assert_ptr_null(nc_device_buffer(&cache.device, 12 * KIB));
		cache.device.refused = SIZE_MAX;
	}
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_buffered);
	tcase_add_test(tcase, test_unbuffered);
	tcase_add_test(tcase, test_buffered_full);
}

RUN_SUITE("kernel-buffer", fill)
