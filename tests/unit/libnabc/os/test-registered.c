/* SPDX-License-Identifier: MIT */
/*
 * test-registered.c - unit tests of registered.c: which blocks get a slot, whose is
 * taken away, what the kernel refuses, and that pins end with the segment.  Each test
 * owns its ring, its table and its segments; single-threaded.  Without io_uring, all are
 * skipped, with one line.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <nabc.h>

#include "os/registered.h"
#include "os/ring.h"
#include "os/segment.h"

#include "pinned.h"
#include "registered-fixture.h"
#include "ring-fixture.h"
#include "suite.h"

/* Blocks are registered once each, cut at their ends, and unpinned with their segment. */
START_TEST(test_blocks)
{
	size_t before = pinned();

	if (!may_pin() || !open_table(64 * MIB))
		return;
	create(5 * MIB);
	ck_assert_uint_eq(pinned(), before);
	ck_assert_uint_eq(take(100, PAGE), PAGE);
	ck_assert_uint_eq(pinned(), before + BLOCK);
	ck_assert_uint_eq(take(BLOCK - 100, PAGE), 100);
	ck_assert_uint_eq(take(0, 3 * BLOCK), BLOCK);
	ck_assert_uint_eq(counts().blocks, 1);
	/* The last one is shorter. */
	ck_assert_uint_eq(take(5 * MIB - 10, 10), 10);
	ck_assert_uint_eq(take(2 * BLOCK, BLOCK), MIB);
	ck_assert_uint_eq(take(5 * MIB, 1), 0);
	ck_assert_uint_eq(counts().blocks, 2);
	ck_assert_uint_eq(counts().bytes, BLOCK + MIB);
	ck_assert_uint_eq(pinned(), before + BLOCK + MIB);
	check_bytes(BLOCK + 77, 100000, 1);
	check_bytes(2 * BLOCK, 100000, 1);
	ck_assert_uint_eq(counts().bytes, 5 * MIB);
	nc_segment_close(&segment);
	await_pinned(before);
	ck_assert_uint_eq(counts().bytes, 0);
	ck_assert_uint_eq(counts().failed, 0);
	ck_assert_uint_eq(lines, 0);
	close_table();
}
END_TEST

/* The table ends first, while the ring's descriptor lives on in another process. */
START_TEST(test_table_ends_first)
{
	size_t before = pinned();
	int copy;

	if (!may_pin() || !open_table(64 * MIB))
		return;
	create(3 * MIB);
	ck_assert_uint_eq(take(0, PAGE), PAGE);
	ck_assert_uint_eq(take(BLOCK, PAGE), PAGE);
	copy = dup(nc_ring_fd(&ring));
	close_table();
	await_pinned(before);
	nc_segment_close(&segment);
	close(copy);
}
END_TEST

/* If the kernel fails to clear a slot, it is cleared before the next registration. */
START_TEST(test_cleared_later)
{
	size_t before = pinned();
	struct io_uring broken;

	if (!may_pin() || !open_table(64 * MIB))
		return;
	create(3 * MIB);
	ck_assert_uint_eq(take(0, PAGE), PAGE);
	ck_assert_uint_eq(take(BLOCK, PAGE), PAGE);
	broken = ring.uring;
	broken.ring_fd = broken.enter_ring_fd = -1;
	table->uring = &broken;
	nc_segment_close(&segment);
	table->uring = &ring.uring;
	ck_assert_uint_eq(counts().bytes, 3 * MIB);
	create(MIB);
	check_bytes(0, 1000, 1);
	ck_assert_uint_eq(counts().bytes, MIB);
	await_pinned(before + MIB);
	nc_segment_close(&segment);
	await_pinned(before);
	close_table();
}
END_TEST

/* Protected and sealed memory is registered, and stays protected. */
START_TEST(test_protected)
{
	int ends[2];

	if (!may_pin() || !open_table(64 * MIB))
		return;
	create(2 * BLOCK);
	/* The second block in part, as long as it is being filled. */
	ck_assert_int_eq(nc_segment_protect(&segment, 0, BLOCK + PAGE), 0);
	check_bytes(BLOCK, 100000, 1);
	ck_assert_int_eq(nc_segment_protect(&segment, 0, 2 * BLOCK), 0);
	ck_assert_int_eq(nc_segment_seal(&segment), 0);
	check_bytes(5000, 100000, 1);
	ck_assert_uint_eq(counts().blocks, 2);
	/* The kernel writes nothing through the mapping. */
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	ck_assert_int_eq(write(ends[1], "x", 1), 1);
	ck_assert_int_eq(read(ends[0], segment.base + 5000, 1), -1);
	ck_assert_int_eq(errno, EFAULT);
	close_pair(ends);
	ck_assert_uint_eq(pattern_match(segment.base, 1, 0, segment.size), segment.size);
	nc_segment_close(&segment);
	close_table();
}
END_TEST

/* What cannot be registered is tried once, with one line, and is no error. */
START_TEST(test_refused)
{
	struct nc_segment other;

	if (!may_pin() || !open_table(64 * MIB))
		return;
	create(MIB);
	ck_assert_int_eq(nc_segment_freeze(&segment), 0);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(take(0, PAGE), 0);
	ck_assert_uint_eq(counts().failed, 1);
	ck_assert_uint_eq(lines, 1);
	ck_assert_ptr_nonnull(strstr(line, "is not registered with io_uring"));
	/* Others are still registered. */
	ck_assert_int_eq(nc_segment_create(&other, MIB, false, false), 0);
	ck_assert_uint_eq(take_of(&other, 0, PAGE), PAGE);
	nc_segment_close(&other);
	ck_assert_int_eq(nc_segment_create_private(&other, MIB), 0);
	ck_assert_uint_eq(take_of(&other, 0, PAGE), 0);
	nc_segment_close(&other);
	nc_segment_close(&segment);
	ck_assert_uint_eq(counts().failed, 1);
	close_table();
	/* Without a ring, or switched off. */
	table = nc_registered_open(NULL, &budget, MIB, &diagnostics);
	create(MIB);
	ck_assert_uint_eq(take(0, PAGE), 0);
	nc_segment_close(&segment);
	nc_registered_close(table);
	ck_assert_uint_eq(lines, 1);
}
END_TEST

/* A kernel without sparse tables: one attempt, then none. */
START_TEST(test_no_table)
{
	if (!open_table(64 * MIB))
		return;
	create(2 * BLOCK);
	/* The ring has a table already. */
	ck_assert_int_eq(io_uring_register_buffers_sparse(&ring.uring, 1), 0);
	for (size_t at = 0; at < 2 * BLOCK; at += BLOCK)
		ck_assert_uint_eq(take(at, PAGE), 0);
	ck_assert_uint_eq(counts().failed, 1);
	ck_assert_uint_eq(lines, 1);
	nc_segment_close(&segment);
	close_table();
}
END_TEST

/* A block takes the slot that was not used for the longest time, or does without. */
START_TEST(test_oldest)
{
	struct nc_registered_use use;
	size_t before = pinned();

	if (!may_pin() || !open_table(64 * MIB))
		return;
	table->slot_count = 2;
	create(4 * BLOCK);
	ck_assert(nc_registered_take(table, &segment, 0, PAGE, &use));
	ck_assert_uint_eq(take(BLOCK, PAGE), PAGE);
	/* All were used a moment ago. */
	ck_assert_uint_eq(take(2 * BLOCK, PAGE), 0);
	ck_assert_uint_eq(counts().failed, 1);
	/* And nothing is tried for a while. */
	ck_assert_uint_eq(take(2 * BLOCK, PAGE), 0);
	ck_assert_uint_eq(counts().failed, 1);
	table->idle = 0;
	table->retry_at = 0;
	/* Not the first one, which is in use. */
	ck_assert_uint_eq(take(2 * BLOCK, PAGE), PAGE);
	ck_assert_uint_eq(counts().blocks, 3);
	ck_assert_uint_eq(pinned(), before + 2 * BLOCK);
	nc_registered_put(&use);
	nc_registered_ended(table, use.period);
	ck_assert_uint_eq(take(0, PAGE), PAGE);
	ck_assert_uint_eq(counts().blocks, 3);
	check_bytes(3 * BLOCK, 1000, 1);
	check_bytes(BLOCK, 1000, 1);
	check_bytes(0, 1000, 1);
	ck_assert_uint_eq(pinned(), before + 2 * BLOCK);
	ck_assert_uint_eq(lines, 0);
	nc_segment_close(&segment);
	close_table();
}
END_TEST

/*
 * As on older kernels: what is cleared while a send is in flight counts as pinned until
 * that and all others of its time have ended.
 */
START_TEST(test_kept)
{
	struct nc_registered_use slow, other;

	if (!may_pin() || !open_table(64 * MIB))
		return;
	budget.limit = 3 * BLOCK;
	table->idle = 0;
	create(2 * BLOCK);
	ck_assert(nc_registered_take(table, &segment, 0, PAGE, &slow));
	nc_registered_put(&slow);
	ck_assert_uint_eq(take(BLOCK, PAGE), PAGE);
	nc_segment_close(&segment);
	create(3 * BLOCK);
	/* Two blocks may still be pinned. */
	ck_assert(nc_registered_take(table, &segment, 0, PAGE, &other));
	nc_registered_put(&other);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_uint_eq(take(BLOCK, PAGE), 0);
		ck_assert_uint_le(counts().bytes, BLOCK);
	}
	nc_registered_ended(table, slow.period);
	/* And the third, since this one was in flight when it was cleared. */
	for (unsigned i = 0; i < 4; i++)
		(void)take(i % 3 * BLOCK, PAGE);
	ck_assert_uint_le(counts().bytes, 3 * BLOCK);
	nc_registered_ended(table, other.period);
	for (size_t at = 0; at < 3 * BLOCK; at += BLOCK)
		ck_assert_uint_eq(take(at, PAGE), PAGE);
	ck_assert_uint_eq(counts().bytes, 3 * BLOCK);
	ck_assert_uint_eq(counts().failed, 0);
	ck_assert_uint_eq(lines, 0);
	nc_segment_close(&segment);
	close_table();
}
END_TEST

/* A block is registered if it is sent from often, and has small pages. */
START_TEST(test_when_it_pays)
{
	if (!may_pin() || !open_table(64 * MIB))
		return;
	table->after = 3;
	create(MIB);
	for (unsigned i = 0; i < 3 * 4; i++)
		ck_assert_uint_eq(take(0, MIB / 4), 0);
	ck_assert_uint_eq(take(0, MIB / 4), MIB / 4);
	nc_segment_close(&segment);
	ck_assert_int_eq(nc_segment_create(&segment, BLOCK, true, false), 0);
	if (nc_segment_collapse(&segment, 0) == 0)
		for (unsigned i = 0; i < 10; i++)
			ck_assert_uint_eq(take(0, BLOCK), 0);
	nc_segment_close(&segment);
	ck_assert_uint_eq(counts().blocks, 1);
	ck_assert_uint_eq(counts().failed, 0);
	close_table();
}
END_TEST

/* Only zero-copy sends within the bytes that were taken. */
START_TEST(test_bind)
{
	struct nc_registered_use use;
	struct io_uring_sqe sqe, was;

	if (!may_pin() || !open_table(64 * MIB))
		return;
	create(MIB);
	ck_assert(nc_registered_take(table, &segment, PAGE, PAGE, &use));
	for (unsigned i = 0; i < 6; i++) {
		struct nc_registered_use bad = use;

		memset(&sqe, 0, sizeof(sqe));
		io_uring_prep_send_zc(&sqe, 1, segment.base, PAGE, 0, 0);
		if (i == 0)
			sqe.opcode = IORING_OP_READ_FIXED;
		else if (i == 1)
			sqe.opcode = IORING_OP_WRITE_FIXED;
		else if (i == 2)
			sqe.len++;
		else if (i == 3)
			sqe.flags = IOSQE_BUFFER_SELECT;
		else if (i == 4)
			bad.address -= 2 * PAGE;
		else
			bad.address += MIB - 2 * PAGE + 1;
		was = sqe;
		ck_assert_int_eq(nc_registered_bind(&bad, &sqe), -EINVAL);
		ck_assert_mem_eq(&sqe, &was, sizeof(sqe));
	}
	io_uring_prep_send_zc(&sqe, 1, segment.base, PAGE, 0, 0);
	ck_assert_int_eq(nc_registered_bind(&use, &sqe), 0);
	ck_assert_uint_eq(sqe.buf_index, use.slot);
	ck_assert(sqe.ioprio & IORING_RECVSEND_FIXED_BUF);
	nc_registered_put(&use);
	nc_segment_close(&segment);
	/* A send may end after its table. */
	close_table();
	nc_registered_ended(use.table, use.period);
}
END_TEST

/*
 * Another process punches a hole where its pages are registered, and fills it again: the
 * registered buffer shows the old pages until the slot is cleared.  It hits the bytes of
 * the process that did it, and nobody else's.
 */
START_TEST(test_hole)
{
	size_t before = pinned();
	char *other;

	if (!may_pin() || !open_table(64 * MIB))
		return;
	ck_assert_int_eq(nc_segment_create(&segment, BLOCK, false, true), 0);
	pattern_fill(segment.base, 1, 0, BLOCK);
	check_bytes(0, 100000, 1);
	other = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, segment.fd, 0);
	ck_assert_ptr_ne(other, MAP_FAILED);
	ck_assert_int_eq(
		fallocate(segment.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)BLOCK),
		0);
	ck_assert_int_eq(segment.base[5000], 0);
	pattern_fill(other, 2, 0, BLOCK);
	munmap(other, BLOCK);
	ck_assert_uint_eq(pattern_match(segment.base, 2, 0, BLOCK), BLOCK);
	check_bytes(0, 100000, 1);
	ck_assert_uint_eq(counts().blocks, 1);
	nc_segment_close(&segment);
	await_pinned(before);
	close_table();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_blocks);
	tcase_add_test(tcase, test_table_ends_first);
	tcase_add_test(tcase, test_cleared_later);
	tcase_add_test(tcase, test_protected);
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_no_table);
	tcase_add_test(tcase, test_oldest);
	tcase_add_test(tcase, test_kept);
	tcase_add_test(tcase, test_when_it_pays);
	tcase_add_test(tcase, test_bind);
	tcase_add_test(tcase, test_hole);
}

RUN_SUITE("registered", fill)
