/* SPDX-License-Identifier: MIT */
/*
 * test-revocation-map.c - unit tests of revocation-map.c: slots added, revoked and freed, as the
 * owner writes and a member reads them, and a member that tries to write.
 * Single-threaded.
 */
#include <nabc.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/segment.h"
#include "store/revocation-map.h"

#include "suite.h"

static struct nc_revocation_map map;

static void open_map(struct nc_segment *seen)
{
	int fd;

	map = (struct nc_revocation_map){.segment = {.fd = -1}};
	ck_assert_int_eq(nc_revocation_map_open(&map), 0);
	fd = fcntl(map.segment.fd, F_DUPFD_CLOEXEC, 0);
	ck_assert_int_eq(nc_segment_adopt_readable(seen, fd, NC_REVOCATION_MAP_SIZE), 0);
}

static void close_map(struct nc_segment *seen)
{
	nc_segment_close(seen);
	nc_revocation_map_close(&map);
	ck_assert_ptr_null(map.segment.base);
	nc_revocation_map_close(&map);
}

START_TEST(test_slots)
{
	struct nc_segment seen;
	int first, second;

	open_map(&seen);
	for (uint32_t slot = 0; slot < NC_REVOCATION_MAP_SLOTS; slot++)
		expect(nc_revocation_map_read(&seen, slot) == NC_REVOCATION_DESTROYED);
	first = nc_revocation_map_add(&map, 1001);
	second = nc_revocation_map_add(&map, 1002);
	ck_assert_int_ge(first, 0);
	ck_assert_int_ne(first, second);
	ck_assert_uint_eq(nc_revocation_map_read(&seen, (uint32_t)first), 1001);
	ck_assert_uint_eq(nc_revocation_map_read(&seen, (uint32_t)second), 1002);
	nc_revocation_map_revoke(&map, (uint32_t)first, NC_REVOCATION_REVOKED);
	ck_assert_uint_eq(nc_revocation_map_read(&seen, (uint32_t)first), NC_REVOCATION_REVOKED);
	/* A revoked slot is not free: it is not assigned again. */
	for (unsigned i = 0; i < 200; i++)
		ck_assert_int_ne(nc_revocation_map_add(&map, 2000 + i), first);
	nc_revocation_map_free(&map, (uint32_t)first);
	ck_assert_uint_eq(nc_revocation_map_read(&seen, (uint32_t)first), NC_REVOCATION_DESTROYED);
	close_map(&seen);
}
END_TEST

START_TEST(test_full)
{
	static bool taken[NC_REVOCATION_MAP_SLOTS];
	struct nc_segment seen;
	uint64_t state = 3;

	memset(taken, 0, sizeof(taken));
	open_map(&seen);
	for (uint32_t i = 0; i < NC_REVOCATION_MAP_SLOTS; i++) {
		int slot = nc_revocation_map_add(&map, 10 + i);

		expect(slot >= 0 && slot < (int)NC_REVOCATION_MAP_SLOTS && !taken[slot]);
		taken[slot] = true;
	}
	ck_assert_int_eq(nc_revocation_map_add(&map, 7), -ENOSPC);
	for (unsigned i = 0; i < scaled(5000); i++) {
		uint32_t slot = (uint32_t)random_next(&state) % NC_REVOCATION_MAP_SLOTS;

		/* The only free slot is assigned. */
		nc_revocation_map_free(&map, slot);
		expect(nc_revocation_map_add(&map, 99) == (int)slot);
		expect(nc_revocation_map_read(&seen, slot) == 99);
		expect(nc_revocation_map_add(&map, 7) == -ENOSPC);
	}
	close_map(&seen);
}
END_TEST

/* For any way in which a member opens it. */
static void check_unwritable(int fd)
{
	char byte = 'x';
	void *base;

	ck_assert_int_lt(write(fd, &byte, 1), 0);
	ck_assert_int_lt(pwrite(fd, &byte, 1, 8), 0);
	ck_assert_int_lt(ftruncate(fd, 0), 0);
	ck_assert_int_lt(ftruncate(fd, 1 << 20), 0);
	ck_assert_int_lt(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
	ck_assert_int_lt(fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, 4096), 0);
	ck_assert_ptr_eq(
		mmap(NULL, NC_REVOCATION_MAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
		MAP_FAILED);
	base = mmap(NULL, NC_REVOCATION_MAP_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(base, MAP_FAILED);
	ck_assert_int_lt(mprotect(base, NC_REVOCATION_MAP_SIZE, PROT_READ | PROT_WRITE), 0);
	ck_assert_int_lt(madvise(base, NC_REVOCATION_MAP_SIZE, MADV_REMOVE), 0);
	munmap(base, NC_REVOCATION_MAP_SIZE);
}

START_TEST(test_members_cannot_write)
{
	struct nc_segment seen;
	char path[64];
	int again, slot;

	open_map(&seen);
	slot = nc_revocation_map_add(&map, 1234);
	check_unwritable(seen.fd);
	ck_assert(!writable(seen.base));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", seen.fd);
	again = open(path, O_RDWR | O_CLOEXEC);
	if (again >= 0) {
		check_unwritable(again);
		close(again);
	}
	ck_assert_int_lt(open(path, O_RDWR | O_TRUNC | O_CLOEXEC), 0);
	/* The owner is not affected. */
	ck_assert_uint_eq(nc_revocation_map_read(&seen, (uint32_t)slot), 1234);
	ck_assert_int_ge(nc_revocation_map_add(&map, 4321), 0);
	nc_revocation_map_revoke(&map, (uint32_t)slot, NC_REVOCATION_REVOKED);
	ck_assert_uint_eq(nc_revocation_map_read(&seen, (uint32_t)slot), NC_REVOCATION_REVOKED);
	close_map(&seen);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_slots);
	tcase_add_test(tcase, test_full);
	tcase_add_test(tcase, test_members_cannot_write);
}

RUN_SUITE("revocation-map", fill)
