/* SPDX-License-Identifier: MIT */
/*
 * test-dav-request.c - unit tests of dav-request.c: the fields of WebDAV's requests.
 */
#include <glib.h>
#include <stdbool.h>
#include <string.h>

#include "base/slice.h"
#include "dav/dav-if.h"
#include "dav/dav-request.h"
#include "http/request.h"

#include "suite.h"

static const struct {
	const char *method, *fields;
	int status;
	enum dav_depth depth;
	bool overwrite;
	unsigned timeout_s;
} cases[] = {
	{"PROPFIND", "", 0, DAV_DEPTH_INFINITY, true, DAV_TIMEOUT_S},
	{"PROPFIND", "Depth: 0\r\n", 0, DAV_DEPTH_0, true, DAV_TIMEOUT_S},
	{"PROPFIND", "Depth: 1\r\n", 0, DAV_DEPTH_1, true, DAV_TIMEOUT_S},
	{"PROPFIND", "Depth: Infinity\r\n", 0, DAV_DEPTH_INFINITY, true, DAV_TIMEOUT_S},
	{"PROPFIND", "Depth: 2\r\n", 400, 0, 0, 0},
	{"PROPFIND", "Depth:\r\n", 400, 0, 0, 0},
	{"LOCK", "Depth: 1\r\n", 400, 0, 0, 0},
	{"LOCK", "Timeout: Second-60\r\n", 0, DAV_DEPTH_INFINITY, true, 60},
	{"LOCK", "Timeout: second-60, Infinite\r\n", 0, DAV_DEPTH_INFINITY, true, 60},
	{"LOCK", "Timeout: Infinite, Second-60\r\n", 0, DAV_DEPTH_INFINITY, true,
	 DAV_TIMEOUT_MAX_S},
	{"LOCK", "Timeout: Second-99999999999999999999\r\n", 0, DAV_DEPTH_INFINITY, true,
	 DAV_TIMEOUT_MAX_S},
	{"LOCK", "Timeout: Second-x\r\n", 0, DAV_DEPTH_INFINITY, true, DAV_TIMEOUT_S},
	{"LOCK", "Timeout: Second-0\r\n", 0, DAV_DEPTH_INFINITY, true, DAV_TIMEOUT_S},
	{"COPY", "", 400, 0, 0, 0},
	{"COPY", "Destination: /a\r\n", 0, DAV_DEPTH_INFINITY, true, DAV_TIMEOUT_S},
	{"COPY", "Destination: /a\r\nOverwrite: F\r\n", 0, DAV_DEPTH_INFINITY, false,
	 DAV_TIMEOUT_S},
	{"MOVE", "Destination: /a\r\nOverwrite: x\r\n", 400, 0, 0, 0},
	{"COPY", "Destination: /a\r\nDepth: 1\r\n", 400, 0, 0, 0},
	{"UNLOCK", "", 400, 0, 0, 0},
	{"UNLOCK", "Lock-Token: <a:b>\r\n", 0, DAV_DEPTH_INFINITY, true, DAV_TIMEOUT_S},
	{"UNLOCK", "Lock-Token: a:b\r\n", 400, 0, 0, 0},
	{"UNLOCK", "Lock-Token: <>\r\n", 400, 0, 0, 0},
	{"PUT", "Content-Range: bytes 0-1/2\r\n", 400, 0, 0, 0},
	{"PUT", "If: (<a:b>)\r\n", 0, DAV_DEPTH_INFINITY, true, DAV_TIMEOUT_S},
	{"PUT", "If: (\r\n", 400, 0, 0, 0},
	{"PUT", "If: (<a:b>)\r\nIf: (<a:c>)\r\n", 400, 0, 0, 0},
};

static char *head_of(const char *method, const char *fields, struct request *request)
{
	char *head = g_strdup_printf("%s /x HTTP/1.1\r\nHost: h\r\n%s\r\n", method, fields);

	ck_assert_int_eq(request_parse(request, head, strlen(head)), 0);
	return head;
}

START_TEST(test_fields)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct request request;
		struct dav_request read;
		const char *reason;
		char *head = head_of(cases[i].method, cases[i].fields, &request);
		int status = dav_request_read(&read, &request, &reason);

		ck_assert_msg(status == cases[i].status, "%s", cases[i].fields);
		ck_assert(!reason == !status);
		if (!status) {
			ck_assert_int_eq(read.depth, cases[i].depth);
			ck_assert(read.overwrite == cases[i].overwrite);
			ck_assert_uint_eq(read.timeout_s, cases[i].timeout_s);
		}
		dav_request_clear(&read);
		g_free(head);
	}
}
END_TEST

/* What is kept does not need the head any more. */
START_TEST(test_kept)
{
	struct request request;
	struct dav_request read;
	const char *reason;
	char *head = head_of("MOVE",
			     "Destination: /a\r\nLock-Token: <u:t>\r\n"
			     "If: </b> (<u:1> [\"e\"] Not <u:2>)\r\n",
			     &request);

	ck_assert_int_eq(dav_request_read(&read, &request, &reason), 0);
	memset(head, 'x', strlen(head));
	g_free(head);
	ck_assert_int_eq(read.method, DAV_MOVE);
	ck_assert(slice_is(read.destination, "/a"));
	ck_assert(slice_is(read.lock_token, "u:t"));
	ck_assert(slice_is(read.condition.lists[0].resource, "/b"));
	ck_assert(slice_is(read.condition.conditions[1].text, "\"e\""));
	ck_assert_uint_eq(read.token_count, 2);
	ck_assert(slice_is(read.tokens[0], "u:1") && slice_is(read.tokens[1], "u:2"));
	dav_request_clear(&read);
}
END_TEST

START_TEST(test_methods)
{
	static const char *const others[] = {"GET", "HEAD", "POST", "move", "SEARCH"};
	struct request request;

	for (unsigned i = 0; i < G_N_ELEMENTS(others); i++) {
		char *head = head_of(others[i], "", &request);

		ck_assert_int_eq(dav_method_of(&request), DAV_METHODS);
		g_free(head);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_fields);
	tcase_add_test(tcase, test_kept);
	tcase_add_test(tcase, test_methods);
}

RUN_SUITE("dav-request", fill)
