/* SPDX-License-Identifier: MIT */
/*
 * test-piece.c - unit tests of piece.h: each kind of piece has its length, and none is left when it
 * is forgotten.
 */
#include <check.h>
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "event/piece.h"
#include "event/loop.h"

#include "suite.h"

static const struct NC_range ranges[] = {{.id = 7, .length = 300}, {.id = 8, .length = 30}};
static const struct NC_hold holds[2];

static const struct {
	struct piece piece;
	uint64_t length;
} kinds[] = {
	{{.range = {.id = 7, .offset = 10, .length = 100}}, 100},
	{{.ranges = ranges, .range_count = 2, .holds = holds, .hold_count = 2}, 330},
	{{.ranges = ranges, .range_count = 1, .holds = holds, .hold_count = 1}, 300},
	{{.data = "bytes", .data_length = 5}, 5},
	{{.file = {.fd = 3, .offset = 1, .length = 1000}}, 1000},
	{{.text = "text"}, 0}, /* its length is that of the response */
};

START_TEST(test_kinds)
{
	struct piece piece = kinds[_i].piece;

	ck_assert(!piece_is_empty(&piece));
	ck_assert_uint_eq(piece_length(&piece), kinds[_i].length);
	piece_forget(&piece);
	ck_assert(piece_is_empty(&piece));
	ck_assert_uint_eq(piece_length(&piece), 0);
}
END_TEST

START_TEST(test_none)
{
	struct piece piece = {.lead = "lead", .lead_length = 4, .live = true};

	ck_assert(piece_is_empty(&piece));
	ck_assert_uint_eq(piece_length(&piece), 0);
}
END_TEST

START_TEST(test_holds)
{
	struct piece one = kinds[0].piece, each = kinds[1].piece, all = kinds[1].piece;

	all.hold_count = 1;
	ck_assert_ptr_eq(piece_hold(&one, 0), &one.hold);
	ck_assert_ptr_eq(piece_hold(&each, 1), &holds[1]);
	ck_assert_ptr_eq(piece_hold(&all, 1), &holds[0]);
}
END_TEST

/* How a piece is sent, and whose hold is released, does not depend on what it refers to. */
START_TEST(test_refer)
{
	struct piece piece = {.lead = "lead", .lead_length = 4, .live = true, .settle = true},
		     before = piece;

	memset(&piece.hold, 1, sizeof(piece.hold));
	memcpy(&before.hold, &piece.hold, sizeof(piece.hold));
	piece_refer(&piece, &kinds[_i].piece);
	ck_assert_uint_eq(piece_length(&piece), kinds[_i].length);
	ck_assert_mem_eq(&piece.hold, &before.hold, sizeof(piece.hold));
	ck_assert_ptr_eq(piece.lead, before.lead);
	ck_assert_uint_eq(piece.lead_length, 4);
	ck_assert(piece.live && piece.settle);
	piece_forget(&piece);
	ck_assert(piece_is_empty(&piece) && piece.live && piece.settle);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_kinds, 0, sizeof(kinds) / sizeof(kinds[0]));
	tcase_add_test(tcase, test_none);
	tcase_add_test(tcase, test_holds);
	tcase_add_loop_test(tcase, test_refer, 0, sizeof(kinds) / sizeof(kinds[0]));
}

RUN_SUITE("piece", fill)
