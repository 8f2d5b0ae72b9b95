/* SPDX-License-Identifier: MIT */
/*
 * test-span-json.c - unit tests of span-json.c and span.c: what a collector gets, also of hostile
 * requests.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "base/random-id.h"
#include "log/span-json.h"
#include "log/span.h"

#include "suite.h"

#define AHEAD UINT64_C(1700000000000000000)

static struct span usual(const char *line)
{
	struct span span = {.trace = "0af7651916cd43dd8448eb211c80319c",
			    .id = "b7ad6b7169203331",
			    .status = 200,
			    .began_ns = 1000,
			    .ended_ns = 9000};

	span.texts[SPAN_LINE] = line;
	span.lengths[SPAN_LINE] = strlen(line);
	return span;
}

static void set(struct span *span, enum span_text which, const char *text)
{
	span->texts[which] = text;
	span->lengths[which] = strlen(text);
}

/* Returns the request of a copy whose original has gone. */
static char *written(struct span span)
{
	struct random_id ids = {0};
	size_t size = span_size(&span);
	char *copy = g_malloc(size);
	struct json json;

	span_copy(copy, &span);
	memset(&span, 0xff, sizeof(span));
	span_json_begin(&json, "web \"1\"");
	span_json_add(&json, (struct span *)(void *)copy, AHEAD, &ids);
	span_json_end(&json);
	g_free(copy);
	return g_string_free(json.text, FALSE);
}

static void has(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part), "%s is not in %s", part, text);
}

static void lacks(const char *text, const char *part)
{
	ck_assert_msg(!strstr(text, part), "%s is in %s", part, text);
}

#define TEXT(key, text) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" text "\"}}"
#define NUMBER(key, number) "{\"key\":\"" key "\",\"value\":{\"intValue\":\"" number "\"}}"

START_TEST(test_whole)
{
	char *text = written(usual("GET /a HTTP/1.1"));

	ck_assert_str_eq(
		text,
		"{\"resourceSpans\":[{\"resource\":{\"attributes\":[" TEXT(
			"service.name",
			"web \\\"1\\\"") "]},\"scopeSpans\":[{\"scope\":{"
					 "\"name\":\"sweet\",\"version\":\"" PACKAGE_VERSION
					 "\"},\"spans\":[{"
					 "\"traceId\":\"0af7651916cd43dd8448eb211c80319c\","
					 "\"spanId\":\"b7ad6b7169203331\",\"flags\":1,\"name\":"
					 "\"GET\",\"kind\":2,"
					 "\"startTimeUnixNano\":\"1700000000000001000\","
					 "\"endTimeUnixNano\":\"1700000000000009000\","
					 "\"attributes\":[" TEXT("http.request.method", "GET") "," TEXT(
						 "url.path",
						 "/a") "," TEXT("url.scheme",
								"http") "," TEXT("network.protocol."
										 "version",
										 "1.1") "," NUMBER("http.response.status_code",
												   "200") "]}]}]}]}\n");
	g_free(text);
}
END_TEST

START_TEST(test_parts)
{
	struct span span = usual("PUT /a HTTP/2.0");
	char *text;

	strcpy(span.parent, "00f067aa0ba902b7");
	set(&span, SPAN_POOL, "app");
	span.https = true;
	span.status = 503;
	span.ready_ns = 2000;
	span.submitted_ns = 3000;
	span.answered_ns = 10000; /* after the client had gone */
	text = written(span);
	has(text, "\"parentSpanId\":\"00f067aa0ba902b7\",\"flags\":1,\"name\":\"PUT\"");
	has(text, "\"status\":{\"code\":2}");
	has(text, TEXT("error.type", "503"));
	has(text, TEXT("sweet.pool", "app"));
	has(text, TEXT("url.scheme", "https"));
	has(text, TEXT("network.protocol.version", "2"));
	has(text, "\"parentSpanId\":\"b7ad6b7169203331\",\"flags\":1,\"name\":\"queue\",\"kind\":1,"
		  "\"startTimeUnixNano\":\"1700000000000002000\","
		  "\"endTimeUnixNano\":\"1700000000000003000\"}");
	has(text, "\"name\":\"program\",\"kind\":1,"
		  "\"startTimeUnixNano\":\"1700000000000003000\","
		  "\"endTimeUnixNano\":\"1700000000000009000\"}");
	lacks(text, "\"send\"");
	g_free(text);
}
END_TEST

/* Status 0: the response did not come to its end; whose fault that is, is not known. */
START_TEST(test_cut_off)
{
	struct span span = usual("GET / HTTP/1.0");
	char *text;

	span.status = 0;
	text = written(span);
	has(text, TEXT("error.type", "cut_off"));
	lacks(text, "status");
	g_free(text);
}
END_TEST

START_TEST(test_paths)
{
	static const struct {
		const char *line, *path;
	} cases[] = {
		{"GET /a?b=c HTTP/1.1", "/a"},
		{"GET /?/ HTTP/1.1", "/"},
		{"GET http://h/a?x=://h/secret HTTP/1.1", "/a"},
		{"GET http://h HTTP/1.1", "/"},
		{"GET http://h?q HTTP/1.1", "/"},
		{"OPTIONS * HTTP/1.1", "*"},
		{"GET a?x=://y/secret HTTP/1.1", "a"},
		{"nonsense?secret", "nonsense"},
	};

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		char *text = written(usual(cases[i].line));
		char *part = g_strdup_printf(TEXT("url.path", "%s"), cases[i].path);

		has(text, part);
		lacks(text, "secret");
		g_free(part);
		g_free(text);
	}
}
END_TEST

START_TEST(test_hosts)
{
	static const struct {
		const char *host, *part, *not_part;
	} cases[] = {
		{"example.org", TEXT("server.address", "example.org"), "server.port"},
		{"[2001:db8::1]:8443",
		 TEXT("server.address", "2001:db8::1") "," NUMBER("server.port", "8443"), "[2001"},
		{"a:99999", TEXT("server.address", "a"), "server.port"},
		{"a:", TEXT("server.address", "a"), "server.port"},
		{"", "url.path", "server"},
	};

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct span span = usual("GET / HTTP/1.1");
		char *text;

		set(&span, SPAN_HOST, cases[i].host);
		text = written(span);
		has(text, cases[i].part);
		lacks(text, cases[i].not_part);
		g_free(text);
	}
}
END_TEST

/* Any bytes become valid UTF-8 and JSON, and nothing of them ends a text. */
START_TEST(test_hostile)
{
	struct span span = usual("BR\"EW /\xff\xc3\xa4\xed\xa0\x80\\\x01\x7f HTTP/1.1\"}");
	char *text;

	set(&span, SPAN_AGENT, "\xf4\x90\x80\x80\"},{\"key\":\"x\t\n");
	span.texts[SPAN_CLIENT] = "a\0b"; /* a text ends at a NUL */
	span.lengths[SPAN_CLIENT] = 3;
	text = written(span);
	ck_assert(g_utf8_validate(text, -1, NULL));
	has(text, "\"name\":\"HTTP\"");
	has(text, TEXT("http.request.method", "_OTHER"));
	has(text, TEXT("http.request.method_original", "BR\\\"EW"));
	has(text, "/\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd");
	has(text, "\\\\\\u0001\\u007f");
	has(text, "\\\"},{\\\"key\\\":\\\"x\\u0009\\u000a\"");
	has(text, TEXT("client.address", "a"));
	g_free(text);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_whole);
	tcase_add_test(tcase, test_parts);
	tcase_add_test(tcase, test_cut_off);
	tcase_add_test(tcase, test_paths);
	tcase_add_test(tcase, test_hosts);
	tcase_add_test(tcase, test_hostile);
}

RUN_SUITE("span-json", fill)
