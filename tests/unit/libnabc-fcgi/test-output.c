/* SPDX-License-Identifier: MIT */
/*
 * test-output.c - unit tests of output.c: what a program writes, in one call or byte by byte, is
 * the response, in one unit or in pieces.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <nabc-worker.h>
#include <nabc.h>

#include "fcgi-link-fixture.h"
#include "input.h"
#include "layout.h"
#include "nabc-fixture.h"
#include "output.h"
#include "suite.h"
#include "unit.h"

#define HEAD "Content-Type: text/plain\r\n\r\n"
#define SEED 47

static struct NC_request request;
static struct fcgi_output output;
static struct fcgi_input input;
static struct fcgi_stream in, out;

static void open_all(void)
{
	open_cache(64 * MIB);
	fcgi_input_open(&in, &input, &request);
	fcgi_output_open(&out, &output, &request, &in);
}

static void reopen(void)
{
	fcgi_output_abort(&out);
	fcgi_input_close(&in);
	link_reset();
	fcgi_input_open(&in, &input, &request);
	fcgi_output_open(&out, &output, &request, &in);
}

static void close_all(void)
{
	fcgi_output_abort(&out);
	fcgi_input_close(&in);
	link_drop_spare();
	link_reset();
	close_cache();
}

static void write_text(const char *text)
{
	ck_assert_int_eq(fcgi_output_write(&out, text, strlen(text)), 0);
}

static void write_body(size_t from, size_t length)
{
	unsigned char *body = must_alloc(length);

	pattern_fill(body, SEED, from, length);
	ck_assert_int_eq(fcgi_output_write(&out, (const char *)body, length), 0);
	free(body);
}

static void check_response(size_t length)
{
	ck_assert(answer.is_over && !answer.is_aborted);
	ck_assert_int_eq(answer.status, 200);
	ck_assert_str_eq(answer.headers, "Content-Type: text/plain\r\n");
	link_check_body(SEED, length);
}

static const size_t lengths[] = {
	0, 1, 1000, 4096, 16384 - sizeof(HEAD) + 1, 16384, 100000, (size_t)1 << 20, 3000000};

START_TEST(test_one_call)
{
	/* The second one is written into a unit of the first one's length. */
	for (unsigned i = 0; i < 2; i++) {
		write_text(HEAD);
		if (lengths[_i])
			write_body(0, lengths[_i]);
		ck_assert_int_eq(fcgi_output_close(&out), 0);
		check_response(lengths[_i]);
		if (i && lengths[_i] <= (size_t)1 << 20)
			ck_assert_uint_eq(answer.records, 1);
		reopen();
	}
}
END_TEST

/* As programs that know the structure do, and the calls themselves. */
START_TEST(test_in_place)
{
	write_text(HEAD);
	for (size_t i = 0; i < lengths[_i]; i++) {
		if (out.write_next == out.stop)
			out.empty(&out, 0);
		ck_assert_ptr_ne(out.write_next, out.stop);
		ck_assert_ptr_eq(out.read_next, out.stop);
		*out.write_next++ = pattern_at(SEED, i);
	}
	out.empty(&out, 1);
	check_response(lengths[_i]);
	ck_assert(out.is_closed);
}
END_TEST

/* Calls of all lengths, mixed with single bytes. */
START_TEST(test_mixed)
{
	uint64_t state = 5;
	size_t at = 0;

	write_text(HEAD);
	while (at < 2000000) {
		size_t length = random_next(&state) % 50000 + 1;

		write_body(at, length);
		at += length;
		if (out.write_next == out.stop)
			out.empty(&out, 0);
		*out.write_next++ = pattern_at(SEED, at++);
	}
	ck_assert_int_eq(fcgi_output_close(&out), 0);
	check_response(at);
}
END_TEST

START_TEST(test_flush)
{
	ck_assert_int_eq(fcgi_output_flush(&out), 0);
	write_text("Content-Type: text/plain\r\n");
	ck_assert_int_eq(fcgi_output_flush(&out), 0);
	ck_assert_uint_eq(answer.records, 0);
	write_text("\r\n");
	ck_assert_int_eq(fcgi_output_flush(&out), 0);
	ck_assert_int_eq(answer.status, 200);
	ck_assert(!answer.is_over);
	for (size_t at = 0; at < 300; at += 100) {
		write_body(at, 100);
		ck_assert_int_eq(fcgi_output_flush(&out), 0);
		ck_assert_uint_eq(answer.length, at + 100);
		ck_assert_int_eq(fcgi_output_flush(&out), 0);
	}
	ck_assert_uint_eq(answer.records, 4);
	ck_assert_int_eq(fcgi_output_close(&out), 0);
	check_response(300);
}
END_TEST

/* A head that does not fit the first unit, and one that never ends. */
START_TEST(test_long_head)
{
	char line[1001];

	memset(line, 'x', sizeof(line));
	memcpy(line, "X: ", 3);
	line[sizeof(line) - 1] = '\n';
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(fcgi_output_write(&out, line, sizeof(line)), 0);
	for (unsigned i = 0; i < 1000 && !out.is_closed; i++)
		(void)fcgi_output_write(&out, line, sizeof(line));
	ck_assert_int_eq(out.error, EMSGSIZE);
	ck_assert_int_eq(fcgi_output_close(&out), -1);
	ck_assert(answer.is_aborted);
}
END_TEST

/* The head is copied from a unit that is too small for it. */
START_TEST(test_head_longer_than_unit)
{
	write_text("Content-Type: text/plain\nX: ");
	for (size_t at = 0; at < 20000; at++)
		write_text("x");
	write_text("\n\n");
	ck_assert_uint_gt(output.unit->size, 20000);
	write_body(0, 1000);
	ck_assert_int_eq(fcgi_output_close(&out), 0);
	ck_assert_uint_eq(strlen(answer.headers),
			  20000 + strlen("Content-Type: text/plain\r\nX: \r\n"));
	link_check_body(SEED, 1000);
}
END_TEST

static const char *const wrong[] = {"", "text", "text\n\n", "Status: 99\n\n", "A: 1\n"};

START_TEST(test_no_head)
{
	write_text(wrong[_i]);
	ck_assert_int_eq(fcgi_output_close(&out), -1);
	ck_assert(answer.is_aborted && !answer.status);
	ck_assert_int_eq(out.error, EPROTO);
}
END_TEST

START_TEST(test_status)
{
	write_text("Status: 304 Not Modified\r\n\r\n");
	ck_assert_int_eq(fcgi_output_close(&out), 0);
	ck_assert_int_eq(answer.status, 304);
	ck_assert(answer.is_over);
	ck_assert_uint_eq(answer.records, 1);
}
END_TEST

static const struct {
	const char *head;
	const char *variables; /* of the request */
	unsigned records;
} announced[] = {
	{"Content-Length: 5\n\n", NULL, 1},
	/* The server compares the length with what comes, if that comes in pieces. */
	{"Content-Length: 3\n\n", NULL, 2},
	{"Content-Length: 10\nStatus: 304\n\n", NULL, 2},
	{"Content-Length: 10\n\n", "REQUEST_METHOD=HEAD", 2},
	{"Content-Length: 10\n\n", "REQUEST_METHOD=GET", 0},
};

START_TEST(test_announced_length)
{
	request.variables = announced[_i].variables;
	request.variables_length = request.variables ? strlen(request.variables) + 1 : 0;
	write_text(announced[_i].head);
	write_text("12345");
	ck_assert_int_eq(fcgi_output_close(&out), announced[_i].records ? 0 : -1);
	ck_assert_uint_eq(answer.records, announced[_i].records);
	ck_assert(announced[_i].records ? answer.is_over : answer.is_aborted);
}
END_TEST

/* Before the response begins, the rest of the request's body is taken: all of it, and once. */
START_TEST(test_body_is_saved)
{
	link_give("abc", 3);
	link_give("def", 3);
	in.fill(&in);
	ck_assert_int_eq(*in.read_next++, 'a');
	write_text(HEAD);
	ck_assert_int_eq(fcgi_output_flush(&out), 0);
	ck_assert_uint_eq(answer.given, 2);
	ck_assert_int_eq(in.stop - in.read_next, 5);
	ck_assert_int_eq(memcmp(in.read_next, "bcdef", 5), 0);
	write_text("x");
	ck_assert_int_eq(fcgi_output_flush(&out), 0);
	ck_assert_int_eq(in.stop - in.read_next, 5);
	in.read_next = in.stop;
	in.fill(&in);
	ck_assert_int_eq(in.is_closed, 1);
}
END_TEST

START_TEST(test_client_leaves)
{
	write_text(HEAD);
	ck_assert_int_eq(fcgi_output_flush(&out), 0);
	answer.send_error = ECANCELED;
	write_body(0, 1000);
	ck_assert_int_eq(fcgi_output_flush(&out), -1);
	ck_assert_int_eq(out.error, EPIPE);
	ck_assert_int_eq(fcgi_output_write(&out, "x", 1), -1);
	ck_assert_int_eq(fcgi_output_close(&out), -1);
}
END_TEST

/* As in a child that was forked: there is no memory of the unit. */
START_TEST(test_forget)
{
	struct fcgi_unit *unit;

	write_text(HEAD);
	unit = output.unit;
	fcgi_output_forget(&out);
	ck_assert_ptr_null(output.unit);
	ck_assert_ptr_eq(out.write_next, out.stop);
	ck_assert_int_eq(fcgi_output_write(&out, "x", 1), -1);
	ck_assert_int_eq(out.error, EACCES);
	fcgi_unit_put(unit);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, open_all, close_all);
	tcase_add_loop_test(tcase, test_one_call, 0, sizeof(lengths) / sizeof(lengths[0]));
	tcase_add_loop_test(tcase, test_in_place, 0, sizeof(lengths) / sizeof(lengths[0]));
	tcase_add_test(tcase, test_mixed);
	tcase_add_test(tcase, test_flush);
	tcase_add_test(tcase, test_long_head);
	tcase_add_test(tcase, test_head_longer_than_unit);
	tcase_add_loop_test(tcase, test_no_head, 0, sizeof(wrong) / sizeof(wrong[0]));
	tcase_add_test(tcase, test_status);
	tcase_add_loop_test(tcase, test_announced_length, 0,
			    sizeof(announced) / sizeof(announced[0]));
	tcase_add_test(tcase, test_body_is_saved);
	tcase_add_test(tcase, test_client_leaves);
	tcase_add_test(tcase, test_forget);
}

RUN_SUITE("fcgi-output", fill)
