/* SPDX-License-Identifier: MIT */
/*
 * test-upstream-reply.c - unit tests of responses of HTTP servers behind this one, as they arrive:
 * a table of responses, each whole, byte by byte and in every division into three pieces.
 * Single-threaded; pieces are heap copies of their exact size, so that memory checkers detect a
 * read beyond.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "program/upstream-head.h"
#include "program/upstream-reply.h"

#include "suite.h"

#define OK "HTTP/1.1 200 OK\r\n"
#define SWITCH "HTTP/1.1 101 x\r\nConnection: Upgrade\r\n"
#define MOST 128 /* bytes of a head */

/* The response, as "status:body|what ended it". */
struct outcome {
	char text[512];
	size_t used;
	const char *fault;
	bool over;
};

/* clang-format off */
#define GOOD(raw, says) {raw, sizeof(raw) - 1, false, NULL, says, NULL}
#define TO_HEAD(raw, says) {raw, sizeof(raw) - 1, true, NULL, says, NULL}
#define BAD(raw, wrong) {raw, sizeof(raw) - 1, false, NULL, NULL, wrong}
#define UPGRADE(raw, says, wrong) {raw, sizeof(raw) - 1, false, "websocket", says, wrong}
/* clang-format on */

static const struct {
	const char *raw;
	size_t length;
	bool head_only;
	const char *upgrade;
	const char *says; /* '.': complete, '+': and kept, '$': complete when it closes */
	const char *wrong;
} cases[] = {
	GOOD(OK "Content-Length: 3\r\n\r\nabc", "200:abc+"),
	GOOD(OK "Content-Length: 0\r\n\r\n", "200:+"),
	GOOD(OK "Content-Length: 3\r\nConnection: close\r\n\r\nabc", "200:abc."),
	GOOD(OK "\r\nabc", "200:abc$"),
	GOOD(OK "\r\n", "200:$"),
	GOOD("HTTP/1.0 200 OK\r\n\r\nabc", "200:abc$"),
	GOOD("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nabc", "200:abc$"),
	GOOD(OK "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "200:abc+"),
	GOOD(OK "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\nX: y\r\n\r\n",
	     "200:ab+"),
	/* without a body */
	GOOD("HTTP/1.1 204 x\r\n\r\n", "204:+"),
	GOOD("HTTP/1.1 204 x\r\nContent-Length: 3\r\n\r\n", "204:."),
	GOOD("HTTP/1.1 204 x\r\nTransfer-Encoding: chunked\r\n\r\n", "204:."),
	GOOD("HTTP/1.1 304 x\r\nContent-Length: 3\r\n\r\n", "304:+"),
	GOOD("HTTP/1.1 304 x\r\nTransfer-Encoding: chunked\r\n\r\n", "304:+"),
	TO_HEAD(OK "Content-Length: 3\r\n\r\n", "200:+"),
	TO_HEAD(OK "Transfer-Encoding: chunked\r\n\r\n", "200:+"),
	TO_HEAD(OK "\r\n", "200:+"),
	/* a later minor version */
	GOOD("HTTP/1.2 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", "200:a+"),
	/* interim responses */
	GOOD("HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 1\r\n\r\na", "200:a+"),
	GOOD("HTTP/1.1 103 E\r\nA: b\r\n\r\nHTTP/1.1 102 P\r\n\r\nHTTP/1.1 204 x\r\n\r\n", "204:+"),
	TO_HEAD("HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 1\r\n\r\n", "200:+"),
	/* another protocol */
	UPGRADE(SWITCH "Upgrade: WebSocket\r\n\r\nabc", "101:abc$", NULL),
	UPGRADE(SWITCH "Upgrade: websocket\r\n\r\n", "101:$", NULL),
	UPGRADE("HTTP/1.1 100 C\r\n\r\n" SWITCH "Upgrade: websocket\r\n\r\na", "101:a$", NULL),
	UPGRADE(OK "Content-Length: 1\r\n\r\na", "200:a+", NULL),
	UPGRADE(SWITCH "Upgrade: h2c\r\n\r\nabc", NULL, "another protocol"),
	UPGRADE(SWITCH "Upgrade: websocket, h2c\r\n\r\nabc", NULL, "another protocol"),
	UPGRADE(SWITCH "Upgrade: websocket\r\nUpgrade: websocket\r\n\r\n", NULL, "another"),
	UPGRADE(SWITCH "\r\nabc", NULL, "another protocol"),
	UPGRADE("HTTP/1.1 101 x\r\nUpgrade: websocket\r\n\r\n", NULL, "another protocol"),
	/* incomplete */
	BAD("", "ended before the answer"),
	BAD("HTTP/1.1 200", "middle of its response head"),
	BAD(OK "A: b\r\n", "middle of its response head"),
	BAD("HTTP/1.1 100 Continue\r\n\r\n", "ended before the answer"),
	BAD(OK "Content-Length: 3\r\n\r\nab", "announced length"),
	BAD(OK "Transfer-Encoding: chunked\r\n\r\n3\r\nab", "chunked body"),
	BAD(OK "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", "chunked body"),
	/* wrong */
	BAD("HTTP/1.1 101 x\r\nUpgrade: h2c\r\n\r\n", "switched protocols"),
	BAD(OK "Transfer-Encoding: chunked\r\n\r\nx", "malformed chunk"),
	BAD(OK "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd", "malformed chunk"),
	BAD(OK "Transfer-Encoding: chunked\r\n\r\n3\nabc", "malformed chunk"),
	BAD("hello, this is no HTTP", "not speak HTTP"),
	BAD(OK "A: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	       "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n\r\n",
	    "too long"),
#undef GOOD
#undef TO_HEAD
#undef UPGRADE
#undef BAD
};

static void note(struct outcome *outcome, const struct upstream_reply *reply,
		 const struct upstream_found *found)
{
	char *at = outcome->text + outcome->used;

	if (found->event == UPSTREAM_HEAD) {
		ck_assert_uint_gt(found->head.lines.length + 1, 0);
		outcome->used += (size_t)sprintf(at, "%d:", found->head.status);
	} else if (found->event == UPSTREAM_BODY) {
		ck_assert_uint_gt(found->run.length, 0);
		memcpy(at, found->run.at, found->run.length);
		outcome->used += found->run.length;
	} else if (found->event == UPSTREAM_END) {
		outcome->used += (size_t)sprintf(at, "%s", reply->keep_alive ? "+" : ".");
		outcome->over = true;
	}
}

static void feed(struct upstream_reply *reply, struct outcome *outcome, const char *data,
		 size_t length)
{
	char *copy = must_alloc(length);
	size_t at = 0;

	memcpy(copy, data, length);
	while (!outcome->over && !outcome->fault) {
		struct upstream_found found;
		ssize_t used = upstream_reply_read(reply, copy + at, length - at, &found);

		if (used < 0) {
			outcome->fault = found.fault;
			break;
		}
		at += (size_t)used;
		note(outcome, reply, &found);
		if (at == length && !upstream_reply_is_over(reply))
			break;
	}
	if (outcome->over)
		ck_assert_uint_eq(at, length);
	free(copy);
}

static void run(size_t i, const size_t *cuts, unsigned count)
{
	struct upstream_reply reply = {0};
	struct outcome outcome = {0};
	size_t at = 0;

	upstream_reply_init(&reply, cases[i].head_only, MOST);
	reply.upgrade = cases[i].upgrade;
	for (unsigned cut = 0; cut < count; cut++) {
		feed(&reply, &outcome, cases[i].raw + at, cuts[cut] - at);
		at = cuts[cut];
	}
	if (!outcome.over && !outcome.fault) {
		outcome.fault = upstream_reply_ended(&reply);
		strcpy(outcome.text + outcome.used, "$");
	}
	if (cases[i].says) {
		ck_assert_msg(!outcome.fault, "%s: %s", cases[i].raw, outcome.fault);
		ck_assert_str_eq(outcome.text, cases[i].says);
	} else {
		ck_assert_msg(outcome.fault && strstr(outcome.fault, cases[i].wrong), "%s: %s",
			      cases[i].raw, outcome.fault ? outcome.fault : "accepted");
	}
	upstream_reply_clear(&reply);
}

START_TEST(test_whole)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		run(i, &cases[i].length, 1);
}
END_TEST

START_TEST(test_cut_anywhere)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t first = 0; first <= cases[i].length; first++)
			for (size_t second = first; second <= cases[i].length; second++)
				run(i, (size_t[]){first, second, cases[i].length}, 3);
}
END_TEST

START_TEST(test_byte_by_byte)
{
	size_t cuts[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_uint_lt(cases[i].length, 256);
		for (size_t at = 0; at < cases[i].length; at++)
			cuts[at] = at + 1;
		run(i, cuts, (unsigned)cases[i].length);
	}
}
END_TEST

/* What follows a complete response is not read. */
START_TEST(test_bytes_after)
{
	static const char text[] = OK "Content-Length: 1\r\n\r\nabc";
	struct upstream_reply reply = {0};
	struct upstream_found found;
	size_t at = 0;

	upstream_reply_init(&reply, false, MOST);
	do {
		ssize_t used =
			upstream_reply_read(&reply, text + at, sizeof(text) - 1 - at, &found);

		ck_assert_int_ge(used, 0);
		at += (size_t)used;
	} while (found.event != UPSTREAM_END);
	ck_assert_uint_eq(at, sizeof(text) - 1 - 2);
	upstream_reply_clear(&reply);
}
END_TEST

/* Each of them may be followed by another one, or by the response. */
START_TEST(test_many_interims)
{
	static const char interim[] = "HTTP/1.1 102 x\r\nA: b\r\n\r\n";
	static const char last[] = "HTTP/1.1 200 x\r\nContent-Length: 0\r\n\r\n";
	struct upstream_reply reply = {0};
	struct upstream_found found;

	upstream_reply_init(&reply, false, MOST);
	for (unsigned i = 0; i < 1000; i++) {
		ck_assert_int_eq(upstream_reply_read(&reply, interim, sizeof(interim) - 1, &found),
				 sizeof(interim) - 1);
		ck_assert_int_eq(found.event, UPSTREAM_NOTHING);
	}
	ck_assert_int_eq(upstream_reply_read(&reply, last, sizeof(last) - 1, &found),
			 sizeof(last) - 1);
	ck_assert_int_eq(found.event, UPSTREAM_HEAD);
	ck_assert(upstream_reply_is_over(&reply) && reply.keep_alive);
	upstream_reply_clear(&reply);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_whole);
	tcase_add_test(tcase, test_cut_anywhere);
	tcase_add_test(tcase, test_byte_by_byte);
	tcase_add_test(tcase, test_bytes_after);
	tcase_add_test(tcase, test_many_interims);
}

RUN_SUITE("upstream-reply", fill)
