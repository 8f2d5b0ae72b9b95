/* SPDX-License-Identifier: MIT */
/*
 * test-meta.c - unit tests of meta_write(): the variables that a CGI worker gets,
 * those that are withheld, and every size of the buffer.  Requests are parsed from
 * text.  Single-threaded.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/request.h"
#include "program/meta.h"

#include "suite.h"

#define OUT_SIZE 32768
#define GUARD 0x5a

static struct request request;
static char out[OUT_SIZE];
static long out_length;

static struct meta_context context = {
	.script_name = "/generate",
	.path_info = "/a b/c",
	.remote_addr = "192.0.2.7",
	.remote_port = 54321,
	.server_addr = "127.0.0.1",
	.server_port = 8080,
	.software = "SWEET/0.1",
};

static void write_meta(const char *head)
{
	ck_assert_int_eq(request_parse(&request, head, strlen(head)), 0);
	out_length = meta_write(&request, &context, out, sizeof(out));
	ck_assert_int_gt(out_length, 0);
	ck_assert_int_eq(out[out_length - 1], '\0');
}

/* Returns how many variables were written; name (with '='): only those with that prefix. */
static unsigned count(const char *name)
{
	const char *at;
	unsigned found = 0;

	for (at = out; at < out + out_length; at += strlen(at) + 1)
		found += strncmp(at, name, strlen(name)) == 0;
	return found;
}

/* Returns the value of the only variable of that name, NULL without it. */
static const char *value(const char *name)
{
	size_t length = strlen(name);
	const char *at, *found = NULL;

	for (at = out; at < out + out_length; at += strlen(at) + 1) {
		if (strncmp(at, name, length) == 0 && at[length] == '=') {
			ck_assert_msg(!found, "%s twice", name);
			found = at + length + 1;
		}
	}
	return found;
}

#define ck_value(name, expected) ck_assert_pstr_eq(value(name), expected)

START_TEST(test_all)
{
	write_meta("GET /generate/a%20b/c?x=1&y=%20 HTTP/1.1\r\n"
		   "Host: www.example.org:8080\r\n"
		   "User-Agent: test/1 (a; b)\r\n"
		   "Accept: */*\r\n"
		   "X-2nd-Name:   spaced out \t\r\n"
		   "Content-Type: text/plain; charset=x\r\n"
		   "Content-Length: 007\r\n"
		   "Empty:\r\n"
		   "\r\n");
	ck_value("GATEWAY_INTERFACE", "CGI/1.1");
	ck_value("PATH_INFO", "/a b/c");
	ck_value("QUERY_STRING", "x=1&y=%20");
	ck_value("REMOTE_ADDR", "192.0.2.7");
	ck_value("REMOTE_PORT", "54321");
	ck_value("REQUEST_METHOD", "GET");
	ck_value("REQUEST_URI", "/generate/a%20b/c?x=1&y=%20");
	ck_value("SCRIPT_NAME", "/generate");
	ck_value("SERVER_NAME", "www.example.org");
	ck_value("SERVER_PORT", "8080");
	ck_value("SERVER_PROTOCOL", "HTTP/1.1");
	ck_value("SERVER_SOFTWARE", "SWEET/0.1");
	ck_value("CONTENT_LENGTH", "7");
	ck_value("CONTENT_TYPE", "text/plain; charset=x");
	ck_value("HTTP_HOST", "www.example.org:8080");
	ck_value("HTTP_USER_AGENT", "test/1 (a; b)");
	ck_value("HTTP_ACCEPT", "*/*");
	ck_value("HTTP_X_2ND_NAME", "spaced out");
	ck_value("HTTP_EMPTY", "");
	ck_assert_uint_eq(count(""), 19);
}
END_TEST

START_TEST(test_least)
{
	write_meta("HEAD / HTTP/1.0\r\n\r\n");
	ck_value("REQUEST_METHOD", "HEAD");
	ck_value("REQUEST_URI", "/");
	ck_value("QUERY_STRING", "");
	ck_value("SERVER_PROTOCOL", "HTTP/1.0");
	ck_value("SERVER_NAME", "127.0.0.1");
	ck_value("CONTENT_LENGTH", NULL);
	ck_value("CONTENT_TYPE", NULL);
	ck_value("HTTP_HOST", NULL);
	ck_assert_uint_eq(count(""), 12);

	context.path_info = "";
	context.server_addr = "2001:db8::1";
	context.remote_port = 0;
	context.server_port = 65535;
	write_meta("GET /?a?b HTTP/1.0\r\nContent-Length: 0\r\n\r\n");
	ck_value("PATH_INFO", "");
	ck_value("QUERY_STRING", "a?b");
	ck_value("SERVER_NAME", "[2001:db8::1]");
	ck_value("REMOTE_PORT", "0");
	ck_value("SERVER_PORT", "65535");
	ck_value("CONTENT_LENGTH", "0");
	write_meta("GET / HTTP/1.0\r\nContent-Length: 9223372036854775807\r\n\r\n");
	ck_value("CONTENT_LENGTH", "9223372036854775807");
	context.server_addr = "[2001:db8::1]";
	write_meta("GET / HTTP/1.1\r\nHost:\r\n\r\n");
	ck_value("SERVER_NAME", "[2001:db8::1]");
	ck_value("HTTP_HOST", "");
	context.path_info = "/a b/c";
	context.server_addr = "127.0.0.1";
	context.remote_port = 54321;
	context.server_port = 8080;
}
END_TEST

START_TEST(test_user)
{
	static const char head[] = "GET / HTTP/1.1\r\nHost: h\r\nRemote-User: forged\r\n"
				   "Auth-Type: forged\r\n\r\n";

	write_meta(head);
	ck_value("REMOTE_USER", NULL);
	ck_value("AUTH_TYPE", NULL);
	context.remote_user = "";
	write_meta(head);
	ck_value("REMOTE_USER", NULL);
	context.remote_user = "anna";
	write_meta(head);
	ck_value("REMOTE_USER", "anna");
	ck_value("AUTH_TYPE", "Basic");
	context.remote_user = NULL;
}
END_TEST

static const struct meta_context for_programs = {
	.script_name = "/cgi-bin/a.cgi",
	.path_info = "/x y",
	.remote_addr = "192.0.2.7",
	.server_addr = "127.0.0.1",
	.software = "SWEET/0.1",
	.document_root = "/srv/www",
	.script_filename = "/srv/cgi/a.cgi",
	.request_scheme = "http",
	.local_addr = "::1",
	.redirect_status = 200,
	.server_pid = 4711,
};

/* Each variable that programs need, alone and with the others. */
START_TEST(test_programs)
{
	static const char head[] = "GET / HTTP/1.1\r\nHost: h\r\nX-Document-Root: forged\r\n"
				   "Nabc-Server-Pid: 1\r\n\r\n";
	static const char *const names[] = {"DOCUMENT_ROOT",  "PATH_TRANSLATED", "SCRIPT_FILENAME",
					    "REQUEST_SCHEME", "SERVER_ADDR",	 "REDIRECT_STATUS",
					    "NABC_SERVER_PID"};
	struct meta_context saved = context;

	write_meta(head);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ck_value(names[i], NULL);
	context = for_programs;
	write_meta(head);
	ck_value("DOCUMENT_ROOT", "/srv/www");
	ck_value("PATH_TRANSLATED", "/srv/www/x y");
	ck_value("SCRIPT_FILENAME", "/srv/cgi/a.cgi");
	ck_value("REQUEST_SCHEME", "http");
	ck_value("SERVER_ADDR", "::1");
	ck_value("REDIRECT_STATUS", "200");
	ck_value("NABC_SERVER_PID", "4711");
	ck_value("HTTPS", NULL);
	/* Only a path is translated, and only with a root. */
	context.path_info = "";
	write_meta(head);
	ck_value("PATH_TRANSLATED", NULL);
	ck_value("DOCUMENT_ROOT", "/srv/www");
	context.path_info = "/x";
	context.document_root = NULL;
	write_meta(head);
	ck_value("PATH_TRANSLATED", NULL);
	ck_value("DOCUMENT_ROOT", NULL);
	ck_value("SCRIPT_FILENAME", "/srv/cgi/a.cgi");
	/* Setting its own name does not set the others. */
	for (size_t i = 0; i < 3; i++) {
		context = saved;
		context.script_filename = i == 0 ? "/s" : NULL;
		context.redirect_status = i == 1 ? 200 : 0;
		context.server_pid = i == 2 ? 5 : 0;
		write_meta(head);
		ck_assert_uint_eq(count(""), 12 + 3 + 1);
	}
	context = saved;
}
END_TEST

START_TEST(test_hosts)
{
	write_meta("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
	ck_value("SERVER_NAME", "h");
	write_meta("GET / HTTP/1.1\r\nHost: h:1\r\n\r\n");
	ck_value("SERVER_NAME", "h");
	write_meta("GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n");
	ck_value("SERVER_NAME", "[::1]");
	write_meta("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n");
	ck_value("SERVER_NAME", "[::1]");
	ck_value("HTTP_HOST", "[::1]:80");
	/* An absolute target overrides the field, in both variables. */
	write_meta("GET http://real:81/p?q HTTP/1.1\r\nHost: fake\r\n\r\n");
	ck_value("SERVER_NAME", "real");
	ck_value("HTTP_HOST", "real:81");
	ck_value("REQUEST_URI", "/p?q");
	ck_value("QUERY_STRING", "q");
	write_meta("GET http://real HTTP/1.1\r\nHost: fake\r\n\r\n");
	ck_value("REQUEST_URI", "/");
	write_meta("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
	ck_value("REQUEST_URI", "*");
	ck_value("REQUEST_METHOD", "OPTIONS");
}
END_TEST

START_TEST(test_withheld)
{
	static const char *const names[] = {
		"Proxy",
		"proxy",
		"PROXY",
		"Authorization",
		"Proxy-Authorization",
		"Connection",
		"Keep-Alive",
		"Content-Type",
		"TE",
		"Trailer",
		"Upgrade",
		"Under_Score",
		"_",
		"X-Forwarded_For",
		"Content_Length",
		"Content_Type",
		"Dot.Name",
		"Tick'Name",
		"Bang!",
		"Hash#",
		"Dollar$",
		"Per%cent",
		"Amp&",
		"Star*",
		"Plus+",
		"Caret^",
		"Grave`",
		"Pipe|",
		"Tilde~",
	};
	char head[256];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(head, sizeof(head), "GET / HTTP/1.1\r\nHost: h\r\n%s: evil\r\n\r\n",
			 names[i]);
		write_meta(head);
		ck_assert_msg(count("HTTP_") == 1, "%s", names[i]);
		ck_value("HTTP_HOST", "h");
		ck_value("CONTENT_LENGTH", NULL);
	}
	/* The parser rejects Transfer-Encoding: therefore a request made by hand. */
	request.headers[0].name = (struct slice){"Transfer-Encoding", 17};
	request.headers[1].name = (struct slice){"content-length", 14};
	request.header_count = 2;
	out_length = meta_write(&request, &context, out, sizeof(out));
	ck_assert_int_gt(out_length, 0);
	ck_assert_uint_eq(count("HTTP_"), 0);
	/* A name similar to a withheld one is passed on. */
	write_meta("GET / HTTP/1.1\r\nHost: h\r\nProxy-Connection: a\r\nProx: b\r\nTEA: c\r\n\r\n");
	ck_value("HTTP_PROXY", NULL);
	ck_value("HTTP_PROXY_CONNECTION", "a");
	ck_value("HTTP_PROX", "b");
	ck_value("HTTP_TEA", "c");
}
END_TEST

/* The protocol that the program may switch to, whatever the client sends. */
START_TEST(test_upgrade)
{
	static const char head[] = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, x\r\n"
				   "Upgrade: forged\r\nSec-WebSocket-Key: k\r\n\r\n";

	context.upgrade = "websocket";
	write_meta(head);
	ck_assert_str_eq(value("HTTP_UPGRADE"), "websocket");
	ck_assert_str_eq(value("HTTP_CONNECTION"), "Upgrade");
	ck_assert_str_eq(value("HTTP_SEC_WEBSOCKET_KEY"), "k");
	context.upgrade = NULL;
	write_meta(head);
	ck_value("HTTP_UPGRADE", NULL);
	ck_value("HTTP_CONNECTION", NULL);
}
END_TEST

/* The server's id replaces the client's, whatever the case of its name. */
START_TEST(test_request_id)
{
	static const char head[] = "GET / HTTP/1.1\r\nHost: a\r\nx-request-ID: client\r\n"
				   "X_Request_Id: forged\r\n\r\n";

	write_meta(head);
	ck_assert_str_eq(value("HTTP_X_REQUEST_ID"), "client");
	context.request_id = "";
	write_meta(head);
	ck_assert_str_eq(value("HTTP_X_REQUEST_ID"), "client");
	context.request_id = "server";
	write_meta(head);
	ck_assert_str_eq(value("HTTP_X_REQUEST_ID"), "server");
	context.request_id = NULL;
}
END_TEST

/* The server's traceparent replaces the client's; tracestate belongs to the client's trace. */
START_TEST(test_trace)
{
	static const char head[] = "GET / HTTP/1.1\r\nHost: a\r\nTraceparent: client\r\n"
				   "tracestate: a=1\r\n\r\n";

	write_meta(head);
	ck_assert_str_eq(value("HTTP_TRACEPARENT"), "client");
	context.traceparent = "server";
	write_meta(head);
	ck_assert_str_eq(value("HTTP_TRACEPARENT"), "server");
	ck_assert_str_eq(value("HTTP_TRACESTATE"), "a=1");
	context.trace_begins = true;
	write_meta(head);
	ck_assert_str_eq(value("HTTP_TRACEPARENT"), "server");
	ck_assert_ptr_null(value("HTTP_TRACESTATE"));
	context.traceparent = NULL;
	context.trace_begins = false;
}
END_TEST

START_TEST(test_authorization)
{
	context.authorization = true;
	write_meta("GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Basic YTpi\r\n"
		   "Proxy-Authorization: x\r\n\r\n");
	ck_value("HTTP_AUTHORIZATION", "Basic YTpi");
	ck_value("HTTP_PROXY_AUTHORIZATION", NULL);
	context.authorization = false;
}
END_TEST

/* They replace those of the server and of clients. */
START_TEST(test_variables)
{
	char *path[] = {"HTTPS=on", "HTTP_X_USER=", "A=path", NULL};
	char *pool[] = {"DOCUMENT_ROOT=/app", "A=pool", "AB=1", "REMOTE_USER=anybody", NULL};

	context.variables[1] = pool;
	context.document_root = "/srv";
	context.remote_user = "user";
	write_meta("GET / HTTP/1.1\r\nHost: h\r\nX-User: root\r\nX-User: more\r\nA: b\r\n\r\n");
	ck_value("A", "pool");
	ck_value("HTTP_X_USER", "root, more");
	context.variables[0] = path;
	write_meta("GET / HTTP/1.1\r\nHost: h\r\nX-User: root\r\nX-User: more\r\nA: b\r\n\r\n");
	ck_value("HTTPS", "on");
	ck_value("HTTP_X_USER", "");
	ck_value("A", "path");
	ck_value("AB", "1");
	ck_value("HTTP_A", "b");
	ck_value("DOCUMENT_ROOT", "/app");
	ck_value("PATH_TRANSLATED", "/srv/a b/c");
	ck_value("REMOTE_USER", "anybody");
	ck_value("AUTH_TYPE", "Basic");
	context.variables[0] = context.variables[1] = NULL;
	context.document_root = context.remote_user = NULL;
}
END_TEST

START_TEST(test_joined)
{
	write_meta("GET / HTTP/1.1\r\n"
		   "X-List: a\r\n"
		   "Cookie: c0=0\r\n"
		   "Cookie: c1=1\r\n"
		   "Host: h\r\n"
		   "x-list: b\r\n"
		   "COOKIE: c2=2\r\n"
		   "cookie: c3=3\r\n"
		   "X-LIST:\r\n"
		   "X-Lis: other\r\n"
		   "X-List: d\r\n"
		   "Content-Type: text/first\r\n"
		   "Content-Type: text/second\r\n"
		   "\r\n");
	ck_value("HTTP_X_LIST", "a, b, , d");
	ck_value("HTTP_COOKIE", "c0=0; c1=1; c2=2; c3=3");
	ck_value("HTTP_X_LIS", "other");
	ck_value("CONTENT_TYPE", "text/first");
	ck_assert_uint_eq(count("HTTP_"), 4);
}
END_TEST

START_TEST(test_many)
{
	char head[8192];
	size_t at = 0;
	int i;

	at += (size_t)snprintf(head, sizeof(head), "GET / HTTP/1.1\r\nHost: h\r\n");
	for (i = 1; i < REQUEST_HEADERS_MAX; i++)
		at += (size_t)snprintf(head + at, sizeof(head) - at, "X-%d: v%d\r\n", i, i);
	snprintf(head + at, sizeof(head) - at, "\r\n");
	write_meta(head);
	ck_assert_uint_eq(count("HTTP_X_"), REQUEST_HEADERS_MAX - 1);
	ck_value("HTTP_X_1", "v1");
	ck_value("HTTP_X_63", "v63");
}
END_TEST

START_TEST(test_sizes)
{
	static unsigned char small[OUT_SIZE];
	size_t needed, size, i;

	context = for_programs;
	write_meta("POST /generate?q HTTP/1.1\r\nHost: h:1\r\nCookie: a\r\nX-Y: z\r\nCookie: b\r\n"
		   "Content-Length: 3\r\nContent-Type: a/b\r\n\r\n");
	needed = (size_t)out_length;
	ck_value("NABC_SERVER_PID", "4711");
	for (size = 0; size <= needed; size++) {
		long got;

		memset(small, GUARD, needed + 64);
		got = meta_write(&request, &context, (char *)small, size);
		ck_assert_int_eq(got, size < needed ? -1 : (long)needed);
		for (i = size; i < needed + 64; i++)
			if (small[i] != GUARD)
				ck_abort_msg("%zu: byte %zu written", size, i);
	}
	ck_assert_mem_eq(small, out, needed);
}
END_TEST

START_TEST(test_find)
{
	static const char bytes[] = "AB=1\0A=\0EMPTY\0PATH=/a=b\0";
	const struct slice block = {bytes, sizeof(bytes) - 1};

	ck_assert_str_eq(meta_find(block, "AB").at, "1");
	ck_assert_str_eq(meta_find(block, "PATH").at, "/a=b");
	ck_assert_uint_eq(meta_find(block, "PATH").length, 4);
	ck_assert_uint_eq(meta_find(block, "A").length, 0);
	ck_assert_str_eq(meta_find(block, "EMPTY").at, "");
	ck_assert_str_eq(meta_find(block, "P").at, "");
	ck_assert_str_eq(meta_find((struct slice){bytes, 0}, "AB").at, "");
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, test_find);
	tcase_add_test(tcase, test_all);
	tcase_add_test(tcase, test_least);
	tcase_add_test(tcase, test_user);
	tcase_add_test(tcase, test_programs);
	tcase_add_test(tcase, test_hosts);
	tcase_add_test(tcase, test_withheld);
	tcase_add_test(tcase, test_authorization);
	tcase_add_test(tcase, test_upgrade);
	tcase_add_test(tcase, test_request_id);
	tcase_add_test(tcase, test_trace);
	tcase_add_test(tcase, test_variables);
	tcase_add_test(tcase, test_joined);
	tcase_add_test(tcase, test_many);
	tcase_add_test(tcase, test_sizes);
}

RUN_SUITE("meta", fill)
