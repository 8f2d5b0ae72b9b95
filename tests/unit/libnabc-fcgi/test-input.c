/* SPDX-License-Identifier: MIT */
/*
 * test-input.c - unit tests of input.c: a body in pieces, bytes that are put back, bodies that are
 * not read to their end.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <nabc-worker.h>
#include <nabc.h>

#include "fcgi-link-fixture.h"
#include "input.h"
#include "layout.h"
#include "nabc-fixture.h"
#include "suite.h"

static struct NC_request request;
static struct fcgi_input input;
static struct fcgi_stream in;

static void open_all(void)
{
	open_cache(16 * MIB);
	fcgi_input_open(&in, &input, &request);
}

static void close_all(void)
{
	fcgi_input_close(&in);
	ck_assert(in.is_closed);
	/* No unit is held any more. */
	for (unsigned i = 0; i < answer.count; i++) {
		ck_assert_int_eq(NC_destroy(NULL, answer.pieces[i].id), 0);
	}
	link_reset();
	close_cache();
}

/* As programs read: with the stream's pointers. */
static int next(void)
{
	if (in.read_next == in.stop)
		in.fill(&in);
	return in.read_next == in.stop ? -1 : *in.read_next++;
}

START_TEST(test_pieces)
{
	static const size_t lengths[] = {1, 5000, 70000, 1};
	unsigned char *body = must_alloc(70000);
	size_t at = 0;

	for (unsigned i = 0; i < 4; i++) {
		pattern_fill(body, 3, at, lengths[i]);
		link_give(body, lengths[i]);
		at += lengths[i];
	}
	free(body);
	for (size_t i = 0; i < at; i++)
		expect(next() == pattern_at(3, i));
	ck_assert_int_eq(in.is_closed, 0);
	ck_assert_int_eq(next(), -1);
	ck_assert_int_eq(next(), -1);
	ck_assert_int_eq(in.is_closed, 1);
	ck_assert_int_eq(in.error, 0);
}
END_TEST

START_TEST(test_no_body)
{
	ck_assert_int_eq(next(), -1);
	ck_assert_int_eq(in.is_closed, 1);
}
END_TEST

START_TEST(test_part)
{
	link_give("part of a unit", 14);
	answer.pieces[0].offset = 5;
	answer.pieces[0].length = 2;
	ck_assert_int_eq(next(), 'o');
	ck_assert_int_eq(next(), 'f');
	ck_assert_int_eq(next(), -1);
}
END_TEST

/* The memory is the server's, and cannot be written: it is copied first. */
START_TEST(test_replace)
{
	link_give("abcdef", 6);
	link_give("gh", 2);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(next(), 'a' + (int)i);
	ck_assert_int_eq(fcgi_input_replace(&in, 'X'), 0);
	ck_assert_int_eq(fcgi_input_replace(&in, 'Y'), 0);
	ck_assert_ptr_eq(in.stop_unget + 1, in.read_next);
	ck_assert_int_eq(next(), 'Y');
	ck_assert_int_eq(next(), 'X');
	for (unsigned i = 3; i < 8; i++)
		ck_assert_int_eq(next(), 'a' + (int)i);
	ck_assert_int_eq(next(), -1);
}
END_TEST

START_TEST(test_client_leaves)
{
	link_give("abc", 3);
	answer.body_error = ECANCELED;
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_ge(next(), 0);
	ck_assert_int_eq(next(), -1);
	ck_assert_int_eq(in.error, ECANCELED);
}
END_TEST

START_TEST(test_not_read)
{
	link_give("abc", 3);
	link_give("def", 3);
	ck_assert_int_eq(next(), 'a');
}
END_TEST

START_TEST(test_forget)
{
	link_give("abc", 3);
	ck_assert_int_eq(next(), 'a');
	fcgi_input_forget(&in);
	ck_assert_int_eq(next(), -1);
	ck_assert_int_eq(in.error, EACCES);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, open_all, close_all);
	tcase_add_test(tcase, test_pieces);
	tcase_add_test(tcase, test_no_body);
	tcase_add_test(tcase, test_part);
	tcase_add_test(tcase, test_replace);
	tcase_add_test(tcase, test_client_leaves);
	tcase_add_test(tcase, test_not_read);
	tcase_add_test(tcase, test_forget);
}

RUN_SUITE("fcgi-input", fill)
