/* SPDX-License-Identifier: MIT */
/*
 * test-request-rule.c - unit tests of rules for fields of requests that programs get.  Changed
 * heads are parsed again: both must be the same request.  Single-threaded.
 */
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/request.h"
#include "rules/request-rule.h"
#include "rules/template.h"

#include "suite.h"

#define RULES_MAX 4

static struct request_rule rules[RULES_MAX];
static unsigned count;
static const char *user;
static struct request request, changed, again;

static struct request_rules all(void)
{
	return (struct request_rules){rules, count};
}

static void forget(void)
{
	while (count)
		request_rule_free(&rules[--count]);
}

static const char *read_rule(const char *text)
{
	ck_assert_uint_lt(count, RULES_MAX);
	return request_rule_parse(&rules[count++], text);
}

static struct slice value(const void *context, enum template_variable variable, unsigned number,
			  const char *name)
{
	ck_assert_ptr_eq(context, rules);
	ck_assert_int_eq(variable, TEMPLATE_USER);
	(void)number;
	(void)name;
	return (struct slice){user, strlen(user)};
}

static void check_slice(struct slice got, const char *expected)
{
	ck_assert_uint_eq(got.length, strlen(expected));
	ck_assert(memcmp(got.at, expected, got.length) == 0);
}

/* expected: the fields, as lines. */
static void check_fields(const struct request *of, const char *expected)
{
	const char *at = expected;

	for (unsigned i = 0; i < of->header_count; i++) {
		const struct request_header *header = &of->headers[i];

		ck_assert(strncmp(at, header->name.at, header->name.length) == 0);
		at += header->name.length;
		ck_assert(strncmp(at, ": ", 2) == 0);
		at += 2;
		ck_assert(strncmp(at, header->value.at, header->value.length) == 0);
		at += header->value.length;
		ck_assert_int_eq(*at++, '\n');
	}
	ck_assert_str_eq(at, "");
}

static void check(const char *head, const char *expected)
{
	char *made, *copy;
	size_t length;

	ck_assert_int_eq(request_parse(&request, head, strlen(head)), 0);
	made = request_rules_apply(all(), &request, value, rules, &changed);
	ck_assert_ptr_nonnull(made);
	ck_assert_ptr_eq(changed.head.at, made);
	check_fields(&changed, expected);
	check_slice(changed.host, "h");
	ck_assert_int_eq(changed.conditional, strstr(expected, "If-") != NULL);
	/* Its exact size, so that memory checkers detect a read beyond. */
	length = changed.head.length;
	copy = must_alloc(length);
	memcpy(copy, made, length);
	g_free(made);
	ck_assert_uint_eq(request_head_length(copy, length, 0), length);
	ck_assert_int_eq(request_parse(&again, copy, length), 0);
	check_fields(&again, expected);
	ck_assert(slice_equals(again.target, request.target));
	ck_assert(slice_equals(again.method_name, request.method_name));
	ck_assert_uint_eq(again.minor, request.minor);
	ck_assert_uint_eq(again.content_length, request.content_length);
	free(copy);
}

START_TEST(test_apply)
{
	static const char head[] = "POST /a?b HTTP/1.1\r\nHost: h\r\nX-User: evil\r\ncookie:a\r\n"
				   "Content-Length:  3 \r\nx-user: more\r\n\r\n";

	user = "me\r\nX: y";
	ck_assert_ptr_null(read_rule("X-User: {user}"));
	check(head, "Host: h\ncookie: a\nContent-Length: 3\nX-User: me??X: y\n");
	ck_assert_ptr_null(read_rule("-Cookie"));
	ck_assert_ptr_null(read_rule("Accept:  {{}  "));
	check(head, "Host: h\nContent-Length: 3\nX-User: me??X: y\nAccept: {}\n");
	user = " \t";
	check(head, "Host: h\nContent-Length: 3\nAccept: {}\n");
	user = " a ";
	check("\r\nGET http://h/ HTTP/1.0\r\n\r\n", "X-User: a\nAccept: {}\n");
	ck_assert(request_rules_have(all(), SLICE("COOKIE")));
	ck_assert(!request_rules_have(all(), SLICE("COOKIES")));
	forget();
	ck_assert_ptr_null(read_rule("-range"));
	check("GET / HTTP/1.1\r\nHost: h\r\nRange: bytes=0-\r\n\r\n", "Host: h\n");
	ck_assert_ptr_null(read_rule("If-None-Match: *"));
	check("GET / HTTP/1.1\r\nHost: h\r\n\r\n", "Host: h\nIf-None-Match: *\n");
	forget();
	ck_assert(!request_rules_have(all(), SLICE("COOKIE")));
}
END_TEST

START_TEST(test_limits)
{
	static char longest[REQUEST_RULES_MAX + 1];
	char head[64 + REQUEST_HEADERS_MAX * 8];
	size_t length = (size_t)sprintf(head, "GET / HTTP/1.1\r\nHost: h\r\n");

	ck_assert_ptr_null(read_rule("A: {user}"));
	strcpy(head + length, "\r\n");
	ck_assert_int_eq(request_parse(&request, head, strlen(head)), 0);
	memset(longest, 'u', REQUEST_RULES_MAX - 4);
	user = longest;
	longest[REQUEST_RULES_MAX - 5] = '\0';
	g_free(request_rules_apply(all(), &request, value, rules, &changed));
	ck_assert_uint_eq(changed.header_count, 2);
	longest[REQUEST_RULES_MAX - 5] = 'u';
	ck_assert_ptr_null(request_rules_apply(all(), &request, value, rules, &changed));
	user = "a";
	for (unsigned i = 1; i < REQUEST_HEADERS_MAX; i++)
		length += (size_t)sprintf(head + length, "B: %u\r\n", i % 10);
	strcpy(head + length, "\r\n");
	ck_assert_int_eq(request_parse(&request, head, strlen(head)), 0);
	ck_assert_ptr_null(request_rules_apply(all(), &request, value, rules, &changed));
	/* All of that name are replaced by one. */
	forget();
	ck_assert_ptr_null(read_rule("B: {user}"));
	g_free(request_rules_apply(all(), &request, value, rules, &changed));
	ck_assert_uint_eq(changed.header_count, 2);
	forget();
}
END_TEST

START_TEST(test_parse)
{
	static const char *const wrong[] = {
		"",
		"Name",
		"Name value",
		": value",
		"-",
		"+A: b",
		"-Name: a",
		"--Name",
		"Na me: a",
		"A_B: c",
		"A: b\nC: d",
		"A: b\r\n",
		"A: \x7f",
		"A:",
		"A:  ",
		"Host: a",
		"content-length: 1",
		"-Connection",
		"-Transfer-Encoding",
		"-te",
		"Upgrade: a",
		"X-Forwarded-For: {client}",
		"-X-Request-Id",
		"traceparent: a",
		"A: {hots}",
		"A: {host",
		"A.B: c",
	};

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ck_assert_msg(read_rule(wrong[i]) != NULL, "%s", wrong[i]);
		forget();
	}
	ck_assert_ptr_null(read_rule("X-Real-IP: {client}"));
	ck_assert_ptr_null(read_rule("Authorization:\t\xc3\xa4 b"));
	ck_assert_str_eq(rules[1].name, "Authorization");
	forget();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_apply);
	tcase_add_test(tcase, test_limits);
	tcase_add_test(tcase, test_parse);
}

RUN_SUITE("request-rule", fill)
