/* SPDX-License-Identifier: MIT */
/*
 * test-piece.c - unit tests of piece.h: each kind of piece has its length, and a piece of no bytes is
 * none.
 */
#include <check.h>
#include <nabc.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "event/piece.h"

#include "suite.h"

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

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_kinds);
}

RUN_SUITE("piece", fill)
