/* SPDX-License-Identifier: MIT */
/*
 * test-request-memory.c - unit tests of the memory of heads: what is remembered and when, that it
 * is what was parsed, and that it stays as long as it is used.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "core/request-memory.h"
#include "http/request-list.h"
#include "http/request.h"
#include "request-fixture.h"
#include "suite.h"

static struct request_memory *memory;

static struct remembered *find(const char *head, size_t length)
{
	return request_memory_find(memory, (struct slice){head, length}, false);
}

/* Parses a head as a connection does, from memory that does not last. */
static struct remembered *come(const char *head, size_t length)
{
	char *data = copy(head, length);
	struct remembered *known = find(data, length);

	if (!known) {
		ck_assert_int_eq(request_parse(&request, data, length), 0);
		known = request_memory_note(memory, &request);
	}
	memset(data, 'x', length);
	free(data);
	return known;
}

static struct remembered *comes(const char *head)
{
	return come(head, strlen(head));
}

/* Puts it at once. */
static bool is_known(const char *head)
{
	struct remembered *known = comes(head);

	if (known)
		request_memory_put(known);
	return known != NULL;
}

static void same(struct slice got, struct slice wanted)
{
	ck_assert_uint_eq(got.length, wanted.length);
	ck_assert_mem_eq(got.at, wanted.at, wanted.length);
}

/* What is remembered is what a parser would say. */
static void check(const struct request *got, const char *head)
{
	ck_assert_int_eq(request_parse(&request, head, strlen(head)), 0);
	ck_assert_int_eq(got->method, request.method);
	ck_assert_uint_eq(got->minor, request.minor);
	ck_assert(got->keep_alive == request.keep_alive);
	ck_assert(got->conditional == request.conditional);
	same(got->head, request.head);
	same(got->method_name, request.method_name);
	same(got->target, request.target);
	same(got->path, request.path);
	same(got->query, request.query);
	same(got->host, request.host);
	ck_assert_uint_eq(got->header_count, request.header_count);
	for (unsigned i = 0; i < request.header_count; i++) {
		same(got->headers[i].name, request.headers[i].name);
		same(got->headers[i].value, request.headers[i].value);
	}
}

static void open_memory(void)
{
	memory = request_memory_new();
	ck_assert_ptr_nonnull(memory);
}

static void close_memory(void)
{
	request_memory_free(memory);
}

static const char *const kept[] = {
	"GET / HTTP/1.1\r\n" H E,
	"GET /a?b HTTP/1.0\r\nConnection: keep-alive\r\n" E,
	"HEAD http://x:80/a/%41 HTTP/1.1\r\n" H "Range: bytes=0-1\r\nConnection: close\r\n" E,
	"\r\nGET "
	"/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa "
	"HTTP/1.1\r\n" H "User-Agent: \r\nAccept: */*\r\nIf-None-Match: \"x\"\r\n" E,
};

START_TEST(test_second)
{
	for (unsigned i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		struct remembered *known;

		ck_assert(!is_known(kept[i]));
		for (unsigned time = 0; time < 3; time++) {
			known = comes(kept[i]);
			ck_assert_ptr_nonnull(known);
			ck_assert_uint_eq(known->users, 1);
			ck_assert_uint_eq(known->config_number, time ? 7 : 0);
			check(known->request, kept[i]);
			/* There is room for the path. */
			memset(known->path, 'p', known->request->target.length + 1);
			known->config_number = 7;
			request_memory_put(known);
		}
	}
}
END_TEST

/* Of two heads that differ anywhere, none is taken for the other. */
START_TEST(test_others)
{
	char head[512], other[512];
	size_t length;

	snprintf(head, sizeof(head), "GET /%0100d HTTP/1.1\r\n" H "A: %0100d\r\n" E, 1, 2);
	length = strlen(head);
	(void)is_known(head);
	ck_assert(is_known(head));
	for (size_t i = 0; i < length; i++) {
		strcpy(other, head);
		other[i] ^= 1;
		ck_assert_ptr_null(find(other, length));
		ck_assert_ptr_null(find(head, i));
	}
	strcpy(other, head);
	strcat(other, "\n");
	ck_assert_ptr_null(find(other, length + 1));
	ck_assert(is_known(head));
}
END_TEST

/* A list is remembered, too, but not as text of the same bytes. */
START_TEST(test_list)
{
	const struct slice name = SLICE("host"), value = SLICE("h");
	char list[64], *end = request_list_put(list, SLICE("GET"), SLICE("/a"));
	struct slice head = {list, 0};
	struct remembered *known = NULL;

	head.length = (size_t)(request_list_put(end, name, value) - list);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_ptr_null(request_memory_find(memory, head, true));
		ck_assert_int_eq(request_parse_list(&request, head.at, head.length), 0);
		known = request_memory_note(memory, &request);
	}
	ck_assert_ptr_nonnull(known);
	ck_assert(known->request->listed);
	ck_assert(slice_equals(known->request->path, SLICE("/a")));
	request_memory_put(known);
	ck_assert_ptr_null(find(list, head.length));
	known = request_memory_find(memory, head, true);
	ck_assert_ptr_nonnull(known);
	request_memory_put(known);
}
END_TEST

START_TEST(test_never)
{
	static const char *const heads[] = {
		"GET / HTTP/1.1\r\n" H "Cookie: a\r\n" E,
		"GET / HTTP/1.1\r\n" H "authorization: Basic x\r\n" E,
		"GET / HTTP/1.1\r\n" H "Proxy-Authorization: x\r\n" E,
		"GET / HTTP/1.1\r\n" H "Content-Length: 1\r\n" E,
		"GET / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n" E,
		"GET / HTTP/1.1\r\n" H "Expect: 100-continue\r\n" E,
		"POST / HTTP/1.1\r\n" H E,
		"OPTIONS * HTTP/1.1\r\n" H E,
		"OTHER / HTTP/1.1\r\n" H E,
	};

	for (unsigned i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		for (unsigned times = 0; times < 4; times++)
			ck_assert(!is_known(heads[i]));
}
END_TEST

static void write_head(char *head, size_t bytes, unsigned fields)
{
	char *at = head + sprintf(head, "GET / HTTP/1.1\r\n" H);

	for (unsigned i = 1; i < fields; i++)
		at += sprintf(at, "A: b\r\n");
	if (bytes)
		at += sprintf(at, "A: %0*d\r\n", (int)(bytes - 7 - (size_t)(at - head)), 0);
	strcpy(at, E);
}

START_TEST(test_limits)
{
	char head[2 * REQUEST_MEMORY_HEAD];

	write_head(head, REQUEST_MEMORY_HEAD, 1);
	ck_assert_uint_eq(strlen(head), REQUEST_MEMORY_HEAD);
	(void)is_known(head);
	ck_assert(is_known(head));
	write_head(head, REQUEST_MEMORY_HEAD + 1, 1);
	(void)is_known(head);
	ck_assert(!is_known(head));
	write_head(head, 0, REQUEST_MEMORY_FIELDS);
	(void)is_known(head);
	ck_assert(is_known(head));
	write_head(head, 0, REQUEST_MEMORY_FIELDS + 1);
	(void)is_known(head);
	ck_assert(!is_known(head));
}
END_TEST

/* More heads than there are entries: each replaces others, but none that is used. */
START_TEST(test_same_hash)
{
	struct remembered *used;
	unsigned known = 0;
	char head[128];

	(void)comes(kept[0]);
	used = comes(kept[0]);
	ck_assert_ptr_nonnull(used);
	for (unsigned i = 0; i < 20 * REQUEST_MEMORY_HEADS; i++) {
		snprintf(head, sizeof(head), "GET /%u HTTP/1.1\r\n" H E, i);
		ck_assert(!is_known(head));
		known += is_known(head);
	}
	/* Only those with the hash of the one that is used were not. */
	ck_assert_uint_ge(known, 19 * REQUEST_MEMORY_HEADS);
	ck_assert_uint_lt(known, 20 * REQUEST_MEMORY_HEADS);
	check(used->request, kept[0]);
	request_memory_put(used);
	ck_assert(is_known(kept[0]));
	for (unsigned i = 0; i < 20 * REQUEST_MEMORY_HEADS; i++) {
		snprintf(head, sizeof(head), "GET /%u/ HTTP/1.1\r\n" H E, i);
		(void)is_known(head);
		(void)is_known(head);
	}
	ck_assert_ptr_null(find(kept[0], strlen(kept[0])));
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, open_memory, close_memory);
	tcase_add_test(tcase, test_second);
	tcase_add_test(tcase, test_others);
	tcase_add_test(tcase, test_list);
	tcase_add_test(tcase, test_never);
	tcase_add_test(tcase, test_limits);
	tcase_add_test(tcase, test_same_hash);
}

RUN_SUITE("request-memory", fill)
