/* SPDX-License-Identifier: MIT */
/*
 * test-request-keep.c - unit tests of copies of requests: they do not depend on the first head, and
 * have all its fields.
 */
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/request-keep.h"
#include "http/request.h"

#include "request-fixture.h"
#include "suite.h"

#define HEAD "PUT /a?b HTTP/1.1\r\n" H "Content-Length: 3\r\nX: y\r\n" E

/* Parses a head; then others leave out its fields. */
static char *begin(void)
{
	char *head = copy(HEAD, strlen(HEAD));

	ck_assert_int_eq(request_parse(&request, head, strlen(HEAD)), 0);
	request.header_count = 0;
	return head;
}

/* The first head exists no more. */
static void end(char *head)
{
	memset(head, 'x', strlen(HEAD));
	free(head);
}

static void check(const struct request *got, const char *head)
{
	ck_assert_int_eq(got->method, METHOD_PUT);
	ck_assert_ptr_eq(got->head.at, head);
	ck_assert(slice_equals(got->head, SLICE(HEAD)));
	ck_assert(slice_equals(got->target, SLICE("/a?b")));
	ck_assert_uint_eq(got->content_length, 3);
	ck_assert_uint_eq(got->header_count, 3);
	ck_assert(slice_equals(got->headers[2].value, SLICE("y")));
	ck_assert(got->headers[2].value.at < head + strlen(HEAD));
}

START_TEST(test_keep)
{
	struct kept_request *kept;
	char *head = begin();

	kept = request_keep(&request);
	ck_assert_ptr_nonnull(kept);
	end(head);
	request_recall(&request, kept);
	check(&request, kept->head);
	free(kept);
}
END_TEST

START_TEST(test_copy)
{
	char *head = begin(), *memory = must_alloc(strlen(HEAD));
	struct request made;

	request_copy_head(&made, &request, memory);
	end(head);
	check(&made, memory);
	free(memory);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_keep);
	tcase_add_test(tcase, test_copy);
}

RUN_SUITE("request-keep", fill)
