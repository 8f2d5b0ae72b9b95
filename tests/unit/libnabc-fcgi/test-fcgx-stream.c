/* SPDX-License-Identifier: MIT */
/*
 * test-fcgx-stream.c - unit tests of fcgx-stream.c: the calls of fcgiapp.h on a request's streams.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nabc-worker.h>
#include <nabc.h>

#include "fcgi-link-fixture.h"
#include "input.h"
#include "interface.h"
#include "layout.h"
#include "mode.h"
#include "nabc-fixture.h"
#include "output.h"
#include "suite.h"

static struct NC_request request;
static struct fcgi_input input;
static struct fcgi_output output;
static struct fcgi_stream in, out;

static void open_all(void)
{
	fcgi_is_worker = true;
	open_cache(16 * MIB);
	fcgi_input_open(&in, &input, &request);
	fcgi_output_open(&out, &output, &request, &in);
}

static void close_all(void)
{
	fcgi_input_close(&in);
	fcgi_output_abort(&out);
	link_drop_spare();
	link_reset();
	close_cache();
}

static void check_body(const char *text)
{
	ck_assert_uint_eq(answer.length, strlen(text));
	ck_assert_int_eq(memcmp(answer.body, text, strlen(text)), 0);
}

START_TEST(test_read)
{
	char line[8];

	link_give("one\ntwo and", 11);
	link_give(" more", 5);
	ck_assert_int_eq(FCGX_HasSeenEOF(&in), 0);
	ck_assert_str_eq(FCGX_GetLine(line, sizeof(line), &in), "one\n");
	ck_assert_int_eq(FCGX_GetChar(&in), 't');
	ck_assert_int_eq(FCGX_UnGetChar('t', &in), 't');
	ck_assert_str_eq(FCGX_GetLine(line, sizeof(line), &in), "two and");
	ck_assert_int_eq(FCGX_UnGetChar('X', &in), 'X');
	ck_assert_int_eq(FCGX_UnGetChar(EOF, &in), EOF);
	ck_assert_int_eq(FCGX_GetStr(line, 4, &in), 4);
	ck_assert_int_eq(memcmp(line, "X mo", 4), 0);
	ck_assert_int_eq(FCGX_GetStr(line, sizeof(line), &in), 2);
	ck_assert_int_eq(FCGX_HasSeenEOF(&in), EOF);
	ck_assert_int_eq(FCGX_GetStr(line, sizeof(line), &in), 0);
	ck_assert_ptr_null(FCGX_GetLine(line, sizeof(line), &in));
	ck_assert_int_eq(FCGX_GetChar(&in), EOF);
	ck_assert_int_eq(FCGX_UnGetChar('a', &in), EOF);
}
END_TEST

START_TEST(test_write)
{
	ck_assert_int_eq(FCGX_PutS("X: 1\n", &out), 5);
	ck_assert_int_eq(FCGX_PutChar('\n', &out), '\n');
	ck_assert_int_eq(FCGX_PutChar(0x1ff, &out), 0xff);
	ck_assert_int_eq(FCGX_PutStr("abcdef", 3, &out), 3);
	ck_assert_int_eq(FCGX_PutStr("", 0, &out), 0);
	ck_assert_int_eq(FCGX_FPrintF(&out, "%d-%s%%", 42, "text"), 8);
	ck_assert_int_eq(FCGX_FFlush(&out), 0);
	ck_assert_int_eq(FCGX_FClose(&out), 0);
	ck_assert_int_eq(FCGX_FClose(&out), 0);
	check_body("\xff"
		   "abc42-text%");
	ck_assert_int_eq(FCGX_PutChar('a', &out), EOF);
	ck_assert_int_eq(FCGX_PutS("a", &out), EOF);
	ck_assert_int_eq(FCGX_FPrintF(&out, "a"), EOF);
	ck_assert_int_eq(FCGX_FFlush(&out), EOF);
}
END_TEST

/* Longer than what is left of the memory that the stream shows. */
START_TEST(test_print_much)
{
	char *text = must_alloc(100001);

	memset(text, 'z', 100000);
	text[100000] = '\0';
	ck_assert_int_eq(FCGX_PutS("X: 1\n\n", &out), 6);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(FCGX_FPrintF(&out, "%s", text), 100000);
	ck_assert_int_eq(FCGX_FClose(&out), 0);
	ck_assert_uint_eq(answer.length, 300000);
	ck_assert(consists_of((char *)answer.body, answer.length, 'z'));
	free(text);
}
END_TEST

START_TEST(test_errors)
{
	ck_assert_int_eq(FCGX_PutS("no head", &out), 7);
	ck_assert_int_eq(FCGX_FClose(&out), EOF);
	ck_assert_int_eq(FCGX_GetError(&out), EPROTO);
	FCGX_ClearError(&out);
	ck_assert_int_eq(FCGX_GetError(&out), 0);
	/* A reader is no writer, nor the other way round. */
	ck_assert_int_eq(FCGX_PutChar('a', &in), EOF);
	ck_assert_int_eq(FCGX_GetChar(&out), EOF);
	ck_assert_int_eq(FCGX_UnGetChar('a', &out), EOF);
	ck_assert_int_eq(FCGX_FFlush(&in), 0);
	ck_assert_int_eq(FCGX_FClose(&in), 0);
	ck_assert_int_eq(FCGX_GetChar(&in), EOF);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, open_all, close_all);
	tcase_add_test(tcase, test_read);
	tcase_add_test(tcase, test_write);
	tcase_add_test(tcase, test_print_much);
	tcase_add_test(tcase, test_errors);
}

RUN_SUITE("fcgi-stream", fill)
