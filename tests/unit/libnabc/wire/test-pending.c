/* SPDX-License-Identifier: MIT */
/*
 * test-pending.c - unit tests of pending.c: requests that arrive and end, messages
 * about them, and those that are kept.  Single-threaded.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "base/hash-table.h"
#include "wire/pending.h"
#include "wire/wire.h"

#include "suite.h"

#define BODY 1000 /* the tag of a request with a body */

static struct nc_pending pending;

/* Adds a request whose variables are that many bytes, each the low byte of the tag. */
static struct nc_open_request *add_long(uint32_t channel, uint64_t tag, size_t length)
{
	struct nc_wire_request wire = {
		.tag = tag, .kind = NC_WIRE_REQUEST + (tag == BODY), .length = (uint32_t)length};

	ck_assert_int_eq(nc_pending_reserve(&pending), 0);
	memcpy(pending.blank->record, &wire, sizeof(wire));
	memset(pending.blank->record + sizeof(wire), (int)(tag & 0xff), length);
	return nc_pending_add(&pending, channel, &wire, sizeof(wire) + length);
}

static struct nc_open_request *add(uint32_t channel, uint64_t tag)
{
	struct nc_open_request *open = add_long(channel, tag, 0);

	ck_assert_ptr_nonnull(open);
	return open;
}

static void init(void)
{
	ck_assert_int_eq(nc_pending_init(&pending, 3), 0);
}

static int note(uint32_t channel, uint64_t tag, enum nc_wire_kind kind, uint32_t count)
{
	struct nc_wire_request wire = {.tag = tag, .kind = kind, .count = count};

	return nc_pending_note(&pending, channel, &wire, NULL);
}

static int note_piece(uint64_t tag, size_t id, bool last)
{
	struct NC_range range = {.id = id, .length = 2 * id};
	struct nc_wire_request wire = {.tag = tag,
				       .kind = last ? NC_WIRE_LAST : NC_WIRE_PIECE,
				       .length = id ? sizeof(range) : 0};

	return nc_pending_note(&pending, 0, &wire, id ? &range : NULL);
}

START_TEST(test_open)
{
	init();
	ck_assert_ptr_null(nc_pending_find(&pending, 0, 0));
	/* The same tag on two channels is two requests. */
	for (uint64_t tag = 0; tag < 100; tag++)
		for (uint32_t channel = 0; channel < 2; channel++)
			add(channel, tag);
	for (uint64_t tag = 0; tag < 100; tag += 3)
		nc_pending_remove(&pending, nc_pending_find(&pending, tag & 1, tag));
	for (uint64_t tag = 0; tag < 100; tag++) {
		for (uint32_t channel = 0; channel < 2; channel++) {
			struct nc_open_request *open = nc_pending_find(&pending, channel, tag);

			ck_assert_int_eq(!open, tag % 3 == 0 && channel == (tag & 1));
			if (open)
				ck_assert(open->entry.key == tag && open->channel == channel &&
					  !open->gone);
		}
	}
	ck_assert_ptr_null(nc_pending_find(&pending, 2, 1));
	ck_assert_ptr_null(nc_pending_find(&pending, 3, 1));
	nc_pending_fini(&pending);
}
END_TEST

START_TEST(test_notes)
{
	struct nc_open_request *open;

	init();
	add(1, 7);
	open = nc_pending_find(&pending, 1, 7);
	/* After its end, nothing more is recorded of a request. */
	ck_assert_int_eq(note(0, 7, NC_WIRE_CANCEL, 0), 0);
	ck_assert_int_eq(note(1, 8, NC_WIRE_SENT, 100), 0);
	ck_assert(!open->gone);
	open->unsent = 5;
	ck_assert_int_eq(note(1, 7, NC_WIRE_SENT, 4), 0);
	ck_assert_uint_eq(open->unsent, 1);
	ck_assert_int_eq(note(1, 7, NC_WIRE_SENT, 2), -EPROTO);
	ck_assert_int_eq(note(1, 7, NC_WIRE_SENT, UINT32_MAX), -EPROTO);
	ck_assert_uint_eq(open->unsent, 1);
	ck_assert_int_eq(note(1, 7, NC_WIRE_CANCEL, 0), 0);
	ck_assert(open->gone);
	nc_pending_fini(&pending);
}
END_TEST

START_TEST(test_bodies)
{
	struct nc_inbox *inbox;

	init();
	add(0, 1);
	add(0, BODY);
	ck_assert_int_eq(note_piece(1, 5, false), -EPROTO);
	ck_assert_int_eq(note_piece(2, 5, false), 0);
	inbox = nc_pending_find(&pending, 0, BODY)->inbox;
	ck_assert_ptr_nonnull(inbox);
	/* Across the end of the window. */
	inbox->first = NC_WORKER_WINDOW - 2;
	for (size_t id = 1; id <= NC_WORKER_WINDOW; id++)
		ck_assert_int_eq(note_piece(BODY, id, false), 0);
	for (size_t i = 0; i < NC_WORKER_WINDOW; i++) {
		size_t at = (NC_WORKER_WINDOW - 2 + i) % NC_WORKER_WINDOW;

		ck_assert_uint_eq(inbox->piece[at].id, i + 1);
		ck_assert_uint_eq(inbox->piece[at].length, 2 * (i + 1));
	}
	ck_assert_int_eq(note_piece(BODY, 9, false), -EPROTO);
	/* The end needs no space, but is accepted only once. */
	ck_assert_int_eq(note_piece(BODY, 0, true), 0);
	ck_assert(inbox->ended);
	inbox->count = 0;
	ck_assert_int_eq(note_piece(BODY, 1, false), -EPROTO);
	ck_assert_int_eq(note_piece(BODY, 0, true), -EPROTO);
	nc_pending_remove(&pending, nc_pending_find(&pending, 0, BODY));
	add(0, BODY);
	ck_assert_int_eq(note_piece(BODY, 1, true), 0);
	nc_pending_fini(&pending);
}
END_TEST

static void check_variables(const struct nc_open_request *open, size_t length)
{
	const char *variables = nc_pending_variables(open);

	ck_assert_uint_eq(nc_pending_variables_length(open), length);
	for (size_t i = 0; i < length; i++)
		ck_assert_int_eq((unsigned char)variables[i], (int)(open->entry.key & 0xff));
}

/* Every request has its variables until it is over, the longest ones too. */
START_TEST(test_variables)
{
	const size_t most = NC_WIRE_BLOCK_MAX;

	init();
	for (uint64_t tag = 0; tag < 100; tag++)
		ck_assert_ptr_nonnull(add_long(0, tag, tag == 50 ? most : 13 * tag));
	ck_assert_ptr_nonnull(add_long(0, BODY, 77));
	for (uint64_t tag = 0; tag < 100; tag += 2)
		nc_pending_remove(&pending, nc_pending_find(&pending, 0, tag + 1));
	for (uint64_t tag = 0; tag < 100; tag += 2)
		check_variables(nc_pending_find(&pending, 0, tag), tag == 50 ? most : 13 * tag);
	/* The pieces of a body are behind them. */
	for (size_t id = 1; id <= NC_WORKER_WINDOW; id++)
		ck_assert_int_eq(note_piece(BODY, id, false), 0);
	check_variables(nc_pending_find(&pending, 0, BODY), 77);
	nc_pending_fini(&pending);
}
END_TEST

START_TEST(test_kept)
{
	struct nc_open_request *kept;
	uint64_t put = 0, got = 0;

	init();
	for (unsigned round = 0; round < 3; round++) {
		/* As many as permitted, then some of them are taken out again. */
		while (!nc_pending_is_full(&pending)) {
			kept = add_long((uint32_t)(put % 3), put, 8 + put % 1000);
			nc_pending_keep(&pending, kept);
			put++;
		}
		ck_assert_uint_le(pending.kept_bytes, NC_PENDING_KEPT_MAX);
		ck_assert_uint_gt(pending.kept_bytes,
				  NC_PENDING_KEPT_MAX - 2 * NC_PENDING_RECORD_MAX);
		for (unsigned i = 0; i < 500; i++) {
			kept = pending.kept.first;
			ck_assert_ptr_nonnull(kept);
			ck_assert_uint_eq(kept->entry.key, got);
			ck_assert_uint_eq(kept->channel, got % 3);
			check_variables(kept, 8 + got % 1000);
			nc_pending_accept(&pending, kept);
			ck_assert_ptr_eq(nc_pending_find(&pending, (uint32_t)(got % 3), got), kept);
			got++;
		}
	}
	/* The end frees the rest. */
	nc_pending_fini(&pending);
}
END_TEST

static uint64_t take(uint32_t channel)
{
	struct nc_open_request *kept = nc_pending_oldest(&pending, channel);
	uint64_t tag = kept ? kept->entry.key : 0;

	if (kept)
		nc_pending_remove(&pending, kept);
	return tag;
}

static uint64_t next(void)
{
	struct nc_open_request *kept = pending.kept.first;

	if (!kept)
		return 0;
	nc_pending_accept(&pending, kept);
	return kept->entry.key;
}

/* Takes those of one channel from between those of another, the last one too. */
START_TEST(test_take)
{
	init();
	ck_assert_uint_eq(take(0), 0);
	for (uint64_t tag = 1; tag <= 6; tag++)
		nc_pending_keep(&pending, add(tag % 2 == 0, tag));
	ck_assert_uint_eq(next(), 1);
	ck_assert_uint_eq(take(1), 2);
	ck_assert_uint_eq(take(2), 0);
	ck_assert_uint_eq(take(1), 4);
	ck_assert_uint_eq(take(1), 6);
	ck_assert_uint_eq(take(1), 0);
	ck_assert_uint_eq(pending.kept_bytes, 2 * sizeof(struct nc_wire_request));
	nc_pending_keep(&pending, add(1, 7));
	ck_assert_uint_eq(next(), 3);
	ck_assert_uint_eq(next(), 5);
	ck_assert_uint_eq(take(1), 7);
	ck_assert_uint_eq(next(), 0);
	nc_pending_keep(&pending, add(0, 8));
	ck_assert_uint_eq(next(), 8);
	ck_assert_uint_eq(pending.kept_bytes, 0);
	nc_pending_fini(&pending);
}
END_TEST

/* A withdrawn request may return with its tag; one that the worker has may not. */
START_TEST(test_same_tag)
{
	struct nc_open_request *first, *second;

	init();
	first = add(0, 7);
	nc_pending_keep(&pending, first);
	second = add(0, 7);
	nc_pending_keep(&pending, second);
	ck_assert(first->replaced && !second->replaced);
	ck_assert_ptr_eq(nc_pending_find(&pending, 0, 7), second);
	ck_assert_ptr_eq(nc_pending_oldest(&pending, 0), first);
	nc_pending_remove(&pending, first);
	ck_assert_ptr_eq(nc_pending_find(&pending, 0, 7), second);
	nc_pending_accept(&pending, second);
	ck_assert_ptr_null(add_long(0, 7, 0));
	add(1, 7);
	nc_pending_fini(&pending);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_open);
	tcase_add_test(tcase, test_notes);
	tcase_add_test(tcase, test_bodies);
	tcase_add_test(tcase, test_variables);
	tcase_add_test(tcase, test_kept);
	tcase_add_test(tcase, test_take);
	tcase_add_test(tcase, test_same_tag);
}

RUN_SUITE("pending", fill)
