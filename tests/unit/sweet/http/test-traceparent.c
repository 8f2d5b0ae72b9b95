/* SPDX-License-Identifier: MIT */
/*
 * test-traceparent.c - unit tests of traceparent.c: which values continue a trace.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/slice.h"
#include "http/request.h"
#include "http/traceparent.h"

#include "suite.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define PARENT "b7ad6b7169203331"
#define VALID "00-" TRACE "-" PARENT "-01"

static bool find(const char *fields, struct slice *value)
{
	static struct request request;
	char head[512];

	snprintf(head, sizeof(head), "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", fields);
	ck_assert_int_eq(request_parse(&request, head, strlen(head)), 0);
	if (!traceparent_find(&request, value))
		return false;
	ck_assert_mem_eq(value->at + TRACEPARENT_TRACE, TRACE, TRACEPARENT_TRACE_LENGTH);
	ck_assert_mem_eq(value->at + TRACEPARENT_PARENT, PARENT, TRACEPARENT_PARENT_LENGTH);
	return true;
}

START_TEST(test_valid)
{
	static const char *const valid[] = {
		VALID,
		"00-" TRACE "-" PARENT "-00",
		"00-" TRACE "-" PARENT "-ff",
		/* Later versions. */
		"01-" TRACE "-" PARENT "-01",
		"cc-" TRACE "-" PARENT "-01-what-is-new",
	};
	struct slice value;

	for (size_t i = 0; i < sizeof(valid) / sizeof(*valid); i++) {
		char fields[200];

		snprintf(fields, sizeof(fields), "TraceParent: %s\r\n", valid[i]);
		ck_assert_msg(find(fields, &value), "%s", valid[i]);
	}
}
END_TEST

START_TEST(test_invalid)
{
	static const char *const invalid[] = {
		"",
		"00",
		"00-" TRACE "-" PARENT "-0",
		"00-" TRACE "-" PARENT,
		VALID "-",
		VALID "0",
		"cc-" TRACE "-" PARENT "-01.x",
		"ff-" TRACE "-" PARENT "-01",
		"0x-" TRACE "-" PARENT "-01",
		"00-" TRACE "-" PARENT "-0G",
		"00-0AF7651916CD43DD8448EB211C80319C-" PARENT "-01",
		"00-00000000000000000000000000000000-" PARENT "-01",
		"00-" TRACE "-0000000000000000-01",
		"00-" TRACE "-B7ad6b7169203331-01",
		"00_" TRACE "-" PARENT "-01",
		"00-" TRACE "_" PARENT "-01",
		"00-" TRACE "-" PARENT "_01",
	};
	struct slice value;

	for (size_t i = 0; i < sizeof(invalid) / sizeof(*invalid); i++) {
		char fields[200];

		snprintf(fields, sizeof(fields), "traceparent: %s\r\n", invalid[i]);
		ck_assert_msg(!find(fields, &value), "%s", invalid[i]);
	}
	ck_assert(!find("", &value));
	ck_assert(!find("traceparent: " VALID "\r\ntraceparent: " VALID "\r\n", &value));
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_valid);
	tcase_add_test(tcase, test_invalid);
}

RUN_SUITE("traceparent", fill)
