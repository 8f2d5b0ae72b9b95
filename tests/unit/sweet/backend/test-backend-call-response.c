/* SPDX-License-Identifier: MIT */
/*
 * test-backend-call-response.c - unit tests of backend-call-response.c: the head that
 * is made from the lines of a program, with and without a known length, and the state
 * after an internal redirect.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend-call-internal.h"
#include "backend/backend-call.h"
#include "backend/pool.h"
#include "backend/protocol.h"
#include "base/slice.h"
#include "base/timer.h"
#include "core/transaction.h"
#include "http/request-keep.h"
#include "http/response.h"

#include "call-fixture.h"
#include "suite.h"

static struct slice text_of(const char *text)
{
	return (struct slice){text, strlen(text)};
}

static void check_head(const char *expected)
{
	ck_assert_msg(transactions[0].response.head_length == strlen(expected) &&
			      memcmp(transactions[0].response.head, expected, strlen(expected)) ==
				      0,
		      "\"%.*s\" for \"%s\"", (int)transactions[0].response.head_length,
		      transactions[0].response.head, expected);
}

#define TYPE "Content-Type: text/plain\r\n"
#define ANY_TYPE "Content-Type: application/octet-stream\r\n"
#define UNKNOWN TRANSACTION_UNKNOWN

static const struct {
	const char *lines;
	int status;
	bool has_body;
	uint64_t length;
	const char *head;
	bool bodiless;
} answers[] = {
	{TYPE, 200, true, 5, TYPE "Content-Length: 5\r\n", false},
	{"A: b\n", 200, true, 5, "A: b\r\n" ANY_TYPE "Content-Length: 5\r\n", false},
	{"", 200, false, 0, "Content-Length: 0\r\n", true},
	{"Server: x\r\n" TYPE, 200, true, UNKNOWN, TYPE, false},
	{"", 200, true, UNKNOWN, ANY_TYPE, false},
	{"", 204, false, 0, "", true},
	{"ETag: \"a\"\r\n", 304, false, 0, "ETag: \"a\"\r\n", true},
	/* An error without a body gets the server's page. */
	{"", 404, false, 0, "", false},
	{TYPE, 404, false, 0, TYPE "Content-Length: 0\r\n", true},
	{"", 500, true, 7, ANY_TYPE "Content-Length: 7\r\n", false},
	/* It is not known whether there is a body. */
	{"", 500, true, UNKNOWN, "", false},
};

START_TEST(test_answers)
{
	for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct response_facts facts = {0};
		struct backend_call *call;
		long length;

		begin();
		call = make_call(0);
		backend_call_keep_block(call, "A=b", 4);
		backend_call_start_timer(call);
		length = call_take_lines(call, text_of(answers[i].lines), &facts);
		ck_assert_int_ge(length, 0);
		call_answer(call, answers[i].status, (size_t)length, facts.has_type,
			    answers[i].has_body, answers[i].length);
		check_head(answers[i].head);
		ck_assert_msg(transactions[0].response.bodiless == answers[i].bodiless, "%u", i);
		ck_assert_int_eq(transactions[0].response.status, answers[i].status);
		ck_assert_uint_eq(transactions[0].response.length, answers[i].length);
		ck_assert_int_eq(call->state, CALL_ANSWERED);
		ck_assert(!timer_is_running(&call->timer));
		ck_assert_ptr_null(call->block);
		end();
	}
}
END_TEST

/* What an HTTP server says is all that is said. */
START_TEST(test_complete)
{
	static const struct backend_protocol complete = {.complete = true};
	static const struct {
		int status;
		uint64_t length, measured;
		const char *head;
		bool bodiless;
	} cases[] = {
		{200, 5, 5, "Content-Length: 5\r\n", false},
		{200, UNKNOWN, 5, "Content-Length: 5\r\n", false},
		{404, 0, 0, "Content-Length: 0\r\n", true},
		{500, UNKNOWN, 0, "Content-Length: 0\r\n", true},
		{503, UNKNOWN, 7, "Content-Length: 7\r\n", false},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct backend_call *call;
		const struct backend_protocol *before;

		begin();
		call = make_call(0);
		before = call->pool->protocol;
		call->pool->protocol = &complete;
		call_answer(call, cases[i].status, 0, false, true, cases[i].length);
		if (cases[i].length == UNKNOWN)
			call_measured(call, cases[i].measured);
		check_head(cases[i].head);
		ck_assert_msg(transactions[0].response.bodiless == cases[i].bodiless, "%u", i);
		call->pool->protocol = before;
		end();
	}
}
END_TEST

START_TEST(test_measured)
{
	static const struct {
		const char *lines;
		int status;
		uint64_t length;
		const char *head;
		bool bodiless;
	} measured[] = {
		{TYPE, 200, 9, TYPE "Content-Length: 9\r\n", false},
		{TYPE, 200, 0, TYPE "Content-Length: 0\r\n", true},
		{"", 500, 0, "", false},
		{TYPE, 500, 0, TYPE "Content-Length: 0\r\n", true},
	};

	for (unsigned i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
		struct response_facts facts = {0};
		struct backend_call *call;
		long length;

		begin();
		call = make_call(0);
		length = call_take_lines(call, text_of(measured[i].lines), &facts);
		call_answer(call, measured[i].status, (size_t)length, facts.has_type, true,
			    UNKNOWN);
		call_measured(call, measured[i].length);
		check_head(measured[i].head);
		ck_assert_uint_eq(transactions[0].response.length, measured[i].length);
		ck_assert_msg(transactions[0].response.bodiless == measured[i].bodiless, "%u", i);
		end();
	}
}
END_TEST

/* Lines that do not fit into the transaction get memory of their own. */
START_TEST(test_long_lines)
{
	char *lines = must_alloc(2 * CALL_LINES_MAX);
	struct response_facts facts = {0};
	struct backend_call *call;
	size_t length = 0;
	long taken;

	begin();
	call = make_call(0);
	while (length <= CALL_LINES_MAX)
		length += (size_t)sprintf(lines + length, "X-%zu:y\n", length);
	taken = call_take_lines(call, (struct slice){lines, length}, &facts);
	ck_assert_int_gt(taken, (long)length);
	ck_assert_ptr_nonnull(transactions[0].response.long_head);
	call_answer(call, 200, (size_t)taken, false, true, UINT64_MAX - 1);
	ck_assert_ptr_eq(transactions[0].response.head, transactions[0].response.long_head);
	ck_assert_mem_eq(transactions[0].response.head, "X-0:y\r\nX-6:y\r\n", 14);
	/* The next lines no longer need it. */
	ck_assert_int_eq(call_take_lines(call, text_of(TYPE), &facts), (long)strlen(TYPE));
	ck_assert_ptr_null(transactions[0].response.long_head);
	ck_assert_int_eq(call_take_lines(call, text_of("no colon\r\n"), &facts), -1);
	free(lines);
	end();
}
END_TEST

START_TEST(test_date)
{
	struct response_facts facts = {.dates = 1,
				       .date = text_of("Sun, 06 Nov 1994 08:49:37 GMT")};
	struct backend_call *call;

	begin();
	call = make_call(0);
	call_take_date(call, &facts);
	ck_assert_int_eq(transactions[0].response.date, 784111777);
	transactions[0].response.date = 0;
	/* None of two dates, no date in the future, and no other text. */
	facts.dates = 2;
	call_take_date(call, &facts);
	facts.dates = 1;
	facts.date = text_of("Fri, 06 Nov 2899 08:49:37 GMT");
	call_take_date(call, &facts);
	facts.date = text_of("yesterday");
	call_take_date(call, &facts);
	ck_assert_int_eq(transactions[0].response.date, 0);
	end();
}
END_TEST

static unsigned dropped, again_count;

static void drop_upload(struct transaction *transaction)
{
	(void)transaction;
	dropped++;
}

static void answer_again(struct transaction *transaction, const struct kept_request *kept,
			 struct slice target)
{
	ck_assert_ptr_eq(transaction, &transactions[0]);
	ck_assert_ptr_null(transaction->responder);
	ck_assert(slice_is((struct slice){kept->head, kept->length}, "the head"));
	ck_assert(slice_is(target, "/other?a"));
	again_count++;
}

static void finish(struct transaction *transaction)
{
	backend_call_of(transaction)->pool->protocol->finish(backend_call_of(transaction));
}

START_TEST(test_redirect)
{
	static const struct transaction_owner owner = {.drop_upload = drop_upload};
	static const struct transaction_router router = {.again = answer_again};
	static const struct transaction_responder responder = {.finish = finish};
	char target[] = "/other?a and more";
	struct backend_call *call;

	begin();
	call = make_call(0);
	call->kept = must_alloc(sizeof(*call->kept) + 8);
	call->kept->length = 8;
	memcpy(call->kept->head, "the head", 8);
	transactions[0].upload.has = true;
	transactions[0].owner = &owner;
	transactions[0].router = &router;
	transactions[0].responder = &responder;
	dropped = again_count = 0;
	call_redirect(call, (struct slice){target, 8});
	ck_assert_uint_eq(dropped, 1);
	ck_assert_uint_eq(again_count, 1);
	ck_assert_uint_eq(seen.finished, 1);
	ck_assert_ptr_null(call->kept);
	end();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_answers);
	tcase_add_test(tcase, test_complete);
	tcase_add_test(tcase, test_measured);
	tcase_add_test(tcase, test_long_lines);
	tcase_add_test(tcase, test_date);
	tcase_add_test(tcase, test_redirect);
}

RUN_SUITE("backend-call-response", fill)
