/* SPDX-License-Identifier: MIT */
/*
 * test-piece.c - unit tests of piece.h: each kind of piece has its length, a piece of no bytes is
 * none, and what a piece owns is released once.
 */
#include <check.h>
#include <errno.h>
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "event/piece.h"

#include "held-unit.h"
#include "suite.h"
#include "unit-holds.h"

static const struct NC_range ranges[] = {{.id = 7, .offset = 10, .length = 300},
					 {.id = 8, .length = 30}};
static const struct NC_hold holds[] = {{{1}}, {{2}}};

/* What each constructor makes of something, and of nothing. */
START_TEST(test_kinds)
{
	const struct {
		struct piece piece, none;
		enum piece_kind kind;
		uint64_t length;
	} made[] = {
		{piece_range(ranges[0], holds[0]), piece_range((struct NC_range){0}, holds[0]),
		 PIECE_RANGE, 300},
		{piece_ranges(ranges, 2, holds, 2), piece_ranges(ranges, 0, holds, 0), PIECE_RANGES,
		 330},
		{piece_bytes("bytes", 5), piece_bytes("bytes", 0), PIECE_BYTES, 5},
		{piece_file((struct loop_file){3, 1, 1000}),
		 piece_file((struct loop_file){3, 1, 0}), PIECE_FILE, 1000},
		/* Its length is that of the response. */
		{piece_text("text"), {0}, PIECE_TEXT, 0},
	};

	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
		ck_assert_int_eq(made[i].piece.kind, made[i].kind);
		ck_assert_uint_eq(made[i].piece.length, made[i].length);
		ck_assert_int_eq(made[i].none.kind, PIECE_NONE);
		ck_assert_uint_eq(made[i].none.length, 0);
	}
}
END_TEST

static unsigned released;

static void release_bytes(struct piece *piece)
{
	ck_assert_int_eq(piece->kind, PIECE_BYTES);
	ck_assert_str_eq(piece->data, "bytes");
	ck_assert_ptr_eq(piece->owner, &released);
	released++;
}

/* By who has the piece last, however often; one that owns nothing is only forgotten. */
START_TEST(test_release)
{
	struct piece piece = piece_bytes("bytes", 5), source, text = piece_text("text");

	piece.release = release_bytes;
	piece.owner = &released;
	piece.settle = true;
	piece.lead = "lead";
	piece.lead_length = 4;
	source = piece;
	piece = (struct piece){0};
	piece_release(&piece);
	ck_assert_uint_eq(released, 0);
	for (unsigned i = 0; i < 2; i++) {
		piece_release(&source);
		ck_assert_uint_eq(released, 1);
		ck_assert_int_eq(source.kind, PIECE_NONE);
		ck_assert_uint_eq(source.lead_length, 0);
		ck_assert(!source.settle);
	}
	piece_release(&text);
	ck_assert_int_eq(text.kind, PIECE_NONE);
}
END_TEST

static uint64_t count_holds(size_t id)
{
	struct NC_stat stat;

	ck_assert_int_eq(NC_stat(NULL, id, &stat, sizeof(stat)), 0);
	return stat.holds;
}

/* A hold of its own, or that of its maker. */
START_TEST(test_hold_range)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 8 << 20);
	NC_cache *cache = NC_cache_open(&options);
	struct NC_range range = held(100);
	struct piece own, of_maker = piece_range(range, hold_of_id(NULL, range.id)), none = {0};

	ck_assert_int_eq(piece_hold_range(&own, range), 0);
	ck_assert_int_eq(own.kind, PIECE_RANGE);
	ck_assert_uint_eq(own.length, 100);
	ck_assert_uint_eq(count_holds(range.id), 2);
	piece_release(&of_maker);
	ck_assert_uint_eq(count_holds(range.id), 2);
	piece_release(&own);
	piece_release(&own);
	ck_assert_uint_eq(count_holds(range.id), 1);
	ck_assert_int_eq(release_id(NULL, range.id), 0);
	ck_assert_int_eq(NC_destroy(NULL, range.id), 0);
	ck_assert_int_lt(piece_hold_range(&none, range), 0);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_int_eq(none.kind, PIECE_NONE);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_kinds);
	tcase_add_test(tcase, test_release);
	tcase_add_test(tcase, test_hold_range);
}

RUN_SUITE("piece", fill)
