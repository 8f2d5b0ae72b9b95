/* SPDX-License-Identifier: MIT */
/*
 * test-upstream-request.c - unit tests of the heads of requests to HTTP servers behind this one: a
 * table of requests, and what each becomes.  Single-threaded; output buffers are heap blocks of
 * their exact size, so that memory checkers detect a write beyond.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/request.h"
#include "program/upstream-request.h"
#include "http/uri.h"

#include "suite.h"

#define GET(target) "GET " target " HTTP/1.1\r\n"
#define HOST "Host: h\r\n"
#define TO "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: h\r\n"

static const struct {
	const char *request; /* without the empty line */
	const char *path;    /* NULL: that of the request, decoded */
	const char *sent;
} cases[] = {
	{GET("/") HOST, NULL, GET("/") HOST TO},
	{GET("/a?b=c&d") HOST, NULL, GET("/a?b=c&d") HOST TO},
	{GET("/a%20b%7e~%C3%a4?%zz") HOST, NULL, GET("/a%20b%7e~%C3%a4?%zz") HOST TO},
	{GET("http://h/a?b") "Host: other\r\n", NULL, GET("/a?b") HOST TO},
	/* paths that the rules see in another form */
	{GET("/a/../b?c") HOST, NULL, GET("/b?c") HOST TO},
	{GET("//a/./%2e%2E/b") HOST, NULL, GET("/b") HOST TO},
	{GET("/a//./b%3A") HOST, NULL, GET("/a/b:") HOST TO},
	{GET("/a%3a/b%41//%2e%2e") HOST, NULL, GET("/a:/") HOST TO},
	/* but for slashes */
	{GET("/a//b%3A///%7e") HOST, NULL, GET("/a//b%3A///%7e") HOST TO},
	{GET("/http%3A//h//?//") HOST, NULL, GET("/http%3A//h//?//") HOST TO},
	{GET("//h/%41") HOST, NULL, GET("/h/%41") HOST TO},
	{GET("///") HOST, NULL, GET("/") HOST TO},
	{GET("/a//.b/..c//...") HOST, NULL, GET("/a//.b/..c//...") HOST TO},
	/* a rule that changes the end only */
	{GET("/a//b") HOST, "/a/b/", GET("/a/b/") HOST TO},
	{GET("/a//b/") HOST, "/a/b", GET("/a/b") HOST TO},
	{GET("/old/x%20y?q") HOST, "/new/x y?\xc3\xa4", GET("/new/x%20y%3F%C3%A4?q") HOST TO},
	{GET("/a") HOST, "/ab", GET("/ab") HOST TO},
	{GET("/ab") HOST, "/a", GET("/a") HOST TO},
	/* fields */
	{GET("/") HOST "A: b\r\nCookie: c=d\r\nA: e\r\n", NULL,
	 GET("/") HOST "A: b\r\nCookie: c=d\r\nA: e\r\n" TO},
	{GET("/") "a:b\r\n" HOST "C:  d \r\n", NULL, GET("/") HOST "a: b\r\nC: d\r\n" TO},
	{GET("/") HOST "Connection: keep-alive, X-One,cookie\r\nX-One: 1\r\nCookie: a\r\nB: c\r\n",
	 NULL, GET("/") HOST "B: c\r\n" TO},
	{GET("/") HOST "Keep-Alive: 5\r\nTE: trailers\r\nTrailer: a\r\nUpgrade: h2c\r\n"
		       "HTTP2-Settings: x\r\nProxy: x\r\nProxy-Connection: x\r\n"
		       "Proxy-Authorization: x\r\nExpect: 100-continue\r\n",
	 NULL, GET("/") HOST TO},
	{GET("/") HOST "X_Forwarded_For: a\r\nA.b: c\r\nA-b9: c\r\n", NULL,
	 GET("/") HOST "A-b9: c\r\n" TO},
	{GET("/") HOST "X-Forwarded-For: 1.2.3.4\r\nx-forwarded-proto: https\r\n"
		       "X-Forwarded-Host: evil\r\nForwarded: for=a\r\nX-Real-IP: 1.2.3.4\r\n"
		       "X-Forwarded-Port: 1\r\n",
	 NULL, GET("/") HOST TO},
	{GET("/") HOST "Authorization: Basic x\r\n", NULL, GET("/") HOST TO},
	/* bodies: the framing is not of this source */
	{"POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Type: a/b\r\n", NULL,
	 "POST / HTTP/1.1\r\n" HOST "Content-Type: a/b\r\n" TO},
	{"PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n", NULL,
	 "PUT / HTTP/1.1\r\n" HOST TO},
	/* no host */
	{"GET / HTTP/1.0\r\n", NULL,
	 GET("/") "Host: [2001:db8::1]\r\n"
		  "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\n"},
};

static struct upstream_request_context context = {.remote_addr = "192.0.2.1",
						  .server_addr = "2001:db8::1"};

static void parse(struct request *request, char *head, const char *text, char *path, size_t size)
{
	size_t length = (size_t)sprintf(head, "%s\r\n", text);

	ck_assert_int_eq(request_parse(request, head, length), 0);
	ck_assert_int_ge(uri_decode_path(request->path, URI_SLASH_REFUSE, path, size), 0);
}

START_TEST(test_requests)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char head[1024], path[256];
		size_t length = strlen(cases[i].sent);
		char *out = must_alloc(length);
		struct request request;

		parse(&request, head, cases[i].request, path, sizeof(path));
		context.path = cases[i].path ? cases[i].path : path;
		context.query = request.query;
		ck_assert_msg(upstream_request_write(&request, &context, out, length) ==
				      (long)length,
			      "%s", cases[i].request);
		ck_assert_msg(memcmp(out, cases[i].sent, length) == 0, "%.*s", (int)length, out);
		/* If it does not fit, nothing is cut off. */
		for (size_t room = 0; room < length; room++)
			ck_assert_int_eq(upstream_request_write(&request, &context, out, room), -1);
		free(out);
	}
}
END_TEST

/* An escaped slash is sent as the rules have seen it. */
START_TEST(test_escaped_slash)
{
	static const struct {
		const char *path, *line;
	} cases[] = {
		{"/a/b", "GET /a/b?q HTTP/1.1\r\n"},
		{"/a%2Fb", "GET /a%2fb?q HTTP/1.1\r\n"},
		{"/c", "GET /c?q HTTP/1.1\r\n"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char head[256], path[16], out[512];
		struct request request;

		parse(&request, head, GET("/a?q") HOST, path, sizeof(path));
		request.path = SLICE("/a%2fb");
		context.path = cases[i].path;
		context.query = request.query;
		ck_assert_int_gt(upstream_request_write(&request, &context, out, sizeof(out)), 0);
		ck_assert_mem_eq(out, cases[i].line, strlen(cases[i].line));
	}
	context.query = (struct slice){0};
}
END_TEST

/* The query of a rule cannot end the line. */
START_TEST(test_other_query)
{
	static const char sent[] = GET("/?a=b%20c%23%0D%0A%C3%A4") HOST TO;
	char head[256], path[16], out[512];
	struct request request;

	parse(&request, head, GET("/?q") HOST, path, sizeof(path));
	context.path = path;
	context.query = SLICE("a=b c#\r\n\xc3\xa4");
	ck_assert_int_eq(upstream_request_write(&request, &context, out, sizeof(out)),
			 (long)sizeof(sent) - 1);
	ck_assert_mem_eq(out, sent, sizeof(sent) - 1);
	context.query = (struct slice){0};
}
END_TEST

START_TEST(test_https_and_authorization)
{
	static const char sent[] =
		GET("/") HOST "Authorization: Basic x\r\nX-Forwarded-For: 192.0.2.1\r\n"
			      "X-Forwarded-Proto: https\r\nX-Forwarded-Host: h\r\n";
	struct upstream_request_context other = context;
	char head[256], path[16], out[512];
	struct request request;
	long length;

	parse(&request, head, GET("/") HOST "Authorization: Basic x\r\n", path, sizeof(path));
	other.path = path;
	other.https = other.authorization = true;
	length = upstream_request_write(&request, &other, out, sizeof(out));
	ck_assert_int_eq(length, (long)sizeof(sent) - 1);
	ck_assert_mem_eq(out, sent, (size_t)length);
}
END_TEST

/* The server's own id and trace replace the client's. */
START_TEST(test_trace)
{
	static const char fields[] =
		GET("/") HOST "X-Request-Id: a\r\nTraceparent: b\r\ntracestate: c\r\n";
	static const char kept[] =
		GET("/") HOST "X-Request-Id: a\r\nTraceparent: b\r\ntracestate: c\r\n" TO;
	static const char continued[] =
		GET("/") HOST "tracestate: c\r\n" TO "X-Request-Id: id\r\ntraceparent: 00-1\r\n";
	static const char begun[] = GET("/") HOST TO "X-Request-Id: id\r\ntraceparent: 00-1\r\n";
	const char *const sent[] = {kept, continued, begun};
	struct upstream_request_context other = context;
	char head[256], path[16], out[512];
	struct request request;

	parse(&request, head, fields, path, sizeof(path));
	other.path = path;
	for (unsigned i = 0; i < 3; i++) {
		long length = (long)strlen(sent[i]);

		other.request_id = i ? "id" : "";
		other.traceparent = i ? "00-1" : "";
		other.trace_begins = i != 1;
		ck_assert_int_eq(upstream_request_write(&request, &other, out, sizeof(out)),
				 length);
		ck_assert_mem_eq(out, sent[i], (size_t)length);
	}
}
END_TEST

static const struct {
	const char *request;
	const char *protocol; /* NULL: none */
} upgrades[] = {
	{GET("/") HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n", "websocket"},
	{GET("/") HOST "connection: keep-alive, UPGRADE\r\nupgrade: WebSocket\r\n", "websocket"},
	{GET("/") HOST "Connection: a\r\nConnection: upgrade\r\nUpgrade: other\r\n", "other"},
	{GET("/") HOST "Upgrade: websocket\r\n", NULL},
	{GET("/") HOST "Connection: Upgrade\r\n", NULL},
	{GET("/") HOST "Connection: Upgrade\r\nUpgrade: h2c\r\n", NULL},
	{GET("/") HOST "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n", NULL},
	{GET("/") HOST "Connection: Upgrade\r\nUpgrade: other\r\nUpgrade: other\r\n", NULL},
	{GET("/") HOST "Connection: Upgrade\r\nUpgrade: other\r\nContent-Length: 1\r\n", NULL},
	{GET("/") HOST "Connection: Upgrade\r\nUpgrade: other\r\nTransfer-Encoding: chunked\r\n",
	 NULL},
	{"POST / HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n", NULL},
	{"GET / HTTP/1.0\r\n" HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n", NULL},
};

START_TEST(test_upgrades)
{
	static const char sent[] =
		GET("/") HOST TO UPSTREAM_REQUEST_UPGRADE "Upgrade: websocket\r\n";
	char *protocols[] = {"websocket", "other", NULL}, *none[] = {NULL};
	char head[512], path[16], out[512];
	struct upstream_request_context other = context;
	struct request request;

	for (size_t i = 0; i < sizeof(upgrades) / sizeof(upgrades[0]); i++) {
		const char *found;

		parse(&request, head, upgrades[i].request, path, sizeof(path));
		found = upstream_request_upgrade(&request, protocols);
		ck_assert_msg(found ? upgrades[i].protocol && !strcmp(found, upgrades[i].protocol)
				    : !upgrades[i].protocol,
			      "%s", upgrades[i].request);
		ck_assert_ptr_null(upstream_request_upgrade(&request, none));
		ck_assert_ptr_null(upstream_request_upgrade(&request, NULL));
	}
	parse(&request, head, upgrades[0].request, path, sizeof(path));
	other.path = path;
	other.upgrade = "websocket";
	ck_assert_int_eq(upstream_request_write(&request, &other, out, sizeof(out)),
			 (long)sizeof(sent) - 1);
	ck_assert_mem_eq(out, sent, sizeof(sent) - 1);
}
END_TEST

START_TEST(test_many_options)
{
	char text[256], head[512], path[16], out[512];
	struct request request;

	for (unsigned count = 15; count < 19; count++) {
		size_t length = (size_t)sprintf(text, GET("/") HOST "Connection: a");

		for (unsigned i = 1; i < count; i++)
			length += (size_t)sprintf(text + length, ",a");
		sprintf(text + length, "\r\n");
		parse(&request, head, text, path, sizeof(path));
		context.path = path;
		ck_assert_int_eq(upstream_request_write(&request, &context, out, sizeof(out)) > 0,
				 count <= 16);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_requests);
	tcase_add_test(tcase, test_escaped_slash);
	tcase_add_test(tcase, test_other_query);
	tcase_add_test(tcase, test_https_and_authorization);
	tcase_add_test(tcase, test_trace);
	tcase_add_test(tcase, test_upgrades);
	tcase_add_test(tcase, test_many_options);
}

RUN_SUITE("upstream-request", fill)
