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

#include "wire/pending.h"
#include "wire/wire.h"

#include "suite.h"

#define BODY 1000 /* the tag of a request with a body */

static struct nc_pending pending;

static void add(uint32_t channel, uint64_t tag)
{
	struct nc_wire_request wire = {.tag = tag, .kind = NC_WIRE_REQUEST + (tag == BODY)};

	ck_assert_int_eq(nc_pending_reserve(&pending), 0);
	nc_pending_add(&pending, channel, &wire);
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
	nc_pending_init(&pending);
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
				ck_assert(open->tag == tag && open->channel == channel &&
					  !open->gone);
		}
	}
	ck_assert_ptr_null(nc_pending_find(&pending, 2, 1));
	nc_pending_fini(&pending);
}
END_TEST

START_TEST(test_notes)
{
	struct nc_open_request *open;

	nc_pending_init(&pending);
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

	nc_pending_init(&pending);
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

START_TEST(test_kept)
{
	const size_t length = 32 << 10;
	struct nc_kept *kept;
	uint64_t put = 0, got = 0;

	nc_pending_init(&pending);
	ck_assert_ptr_null(nc_pending_next(&pending));
	for (unsigned round = 0; round < 3; round++) {
		int error;

		/* As many as permitted, then some of them are taken out again. */
		while ((error = nc_pending_blank(&pending, length, &kept)) == 0) {
			/* An unfilled one is returned again. */
			struct nc_kept *same;

			ck_assert_int_eq(nc_pending_blank(&pending, length, &same), 0);
			ck_assert_ptr_eq(same, kept);
			memcpy(kept->record, &put, sizeof(put));
			memset(kept->record + sizeof(put), 'k', length - sizeof(put));
			nc_pending_keep(&pending, (uint32_t)(put % 3), 8 + put % 1000);
			put++;
		}
		ck_assert_int_eq(error, -ENOBUFS);
		for (unsigned i = 0; i < 500; i++) {
			kept = nc_pending_next(&pending);
			ck_assert_ptr_nonnull(kept);
			ck_assert_mem_eq(kept->record, &got, sizeof(got));
			ck_assert_uint_eq(kept->length, 8 + got % 1000);
			ck_assert_uint_eq(kept->channel, got % 3);
			got++;
		}
	}
	/* The end frees the rest. */
	ck_assert_int_eq(nc_pending_blank(&pending, length, &kept), 0);
	nc_pending_fini(&pending);
}
END_TEST

static void keep(uint32_t channel, char name)
{
	struct nc_kept *kept;

	ck_assert_int_eq(nc_pending_blank(&pending, 100, &kept), 0);
	kept->record[0] = name;
	nc_pending_keep(&pending, channel, 1);
}

static char take(uint32_t channel)
{
	struct nc_kept *kept = nc_pending_take(&pending, channel);
	char name = kept ? kept->record[0] : '-';

	free(kept);
	return name;
}

static char next(void)
{
	struct nc_kept *kept = nc_pending_next(&pending);

	return kept ? kept->record[0] : '-';
}

/* Takes those of one channel from between those of another, the last one too. */
START_TEST(test_take)
{
	nc_pending_init(&pending);
	ck_assert_int_eq(take(0), '-');
	for (const char *name = "aBcDeF"; *name; name++)
		keep(*name < 'a', *name);
	ck_assert_int_eq(next(), 'a');
	ck_assert_int_eq(take(1), 'B');
	ck_assert_int_eq(take(2), '-');
	ck_assert_int_eq(take(1), 'D');
	ck_assert_int_eq(take(1), 'F');
	ck_assert_int_eq(take(1), '-');
	ck_assert_uint_eq(pending.kept, 2);
	keep(1, 'G');
	ck_assert_int_eq(next(), 'c');
	ck_assert_int_eq(next(), 'e');
	ck_assert_int_eq(take(1), 'G');
	ck_assert_int_eq(next(), '-');
	keep(0, 'h');
	ck_assert_int_eq(next(), 'h');
	ck_assert_uint_eq(pending.kept, 0);
	nc_pending_fini(&pending);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_open);
	tcase_add_test(tcase, test_notes);
	tcase_add_test(tcase, test_bodies);
	tcase_add_test(tcase, test_kept);
	tcase_add_test(tcase, test_take);
}

RUN_SUITE("pending", fill)
