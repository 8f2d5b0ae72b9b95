/* SPDX-License-Identifier: MIT */
/*
 * test-forwarded.c - unit tests of what trusted proxies say about a client.  Single-threaded.
 */
#include <arpa/inet.h>
#include <glib.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/peer-addresses.h"
#include "base/slice.h"
#include "http/forwarded.h"
#include "http/request.h"

#include "suite.h"

static struct request request;

static void parse(const char *fields)
{
	static char head[4096];

	snprintf(head, sizeof(head), "GET /a?b HTTP/1.1\r\nHost: here\r\n%s\r\n", fields);
	ck_assert_int_eq(request_parse(&request, head, strlen(head)), 0);
}

/* Proxies are 192.0.2.*, and 2001:db8::1. */
static bool is_proxy(const struct sockaddr *address, const void *context)
{
	struct sockaddr_storage copy = {0};
	struct peer_addresses text;

	ck_assert_ptr_null(context);
	memcpy(&copy, address,
	       address->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					     : sizeof(struct sockaddr_in6));
	peer_addresses_set(&text, &copy, NULL);
	return strncmp(text.remote, "192.0.2.", 8) == 0 || strcmp(text.remote, "2001:db8::1") == 0;
}

/* As "client scheme host", and what is wrong, if it is; "-": nothing; "?": an unknown client. */
static const char *says(enum forwarded_fields fields, const char *text)
{
	static char said[512];
	struct peer_addresses client = {.remote = "-"};
	struct forwarded forwarded;

	parse(text);
	forwarded_read(&forwarded, &request, fields, is_proxy, NULL);
	ck_assert(!forwarded.unknown || forwarded.client.ss_family == AF_UNSPEC);
	if (forwarded.unknown)
		strcpy(client.remote, "?");
	else if (forwarded.client.ss_family != AF_UNSPEC)
		peer_addresses_set(&client, &forwarded.client, NULL);
	snprintf(said, sizeof(said), "%s %.*s %.*s%s%.*s", client.remote,
		 forwarded.scheme.length ? (int)forwarded.scheme.length : 1,
		 forwarded.scheme.length ? forwarded.scheme.at : "-",
		 forwarded.host.length ? (int)forwarded.host.length : 1,
		 forwarded.host.length ? forwarded.host.at : "-",
		 forwarded.wrong.length ? " wrong: " : "", (int)forwarded.wrong.length,
		 forwarded.wrong.length ? forwarded.wrong.at : "");
	return said;
}

#define ck_x(fields, expected) ck_assert_str_eq(says(FORWARDED_X, fields), expected)
#define ck_standard(fields, expected) ck_assert_str_eq(says(FORWARDED_STANDARD, fields), expected)

START_TEST(test_x)
{
	ck_x("", "- - -");
	ck_x("X-Forwarded-For: 198.51.100.7\r\n", "198.51.100.7 - -");
	ck_x("x-forwarded-for: 10.0.0.1, 198.51.100.7, 192.0.2.1 ,192.0.2.2\r\n",
	     "198.51.100.7 - -");
	ck_x("X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 2.2.2.2,,\r\n", "2.2.2.2 - -");
	/* All of them are proxies: the first one is the client. */
	ck_x("X-Forwarded-For: 192.0.2.5, 192.0.2.1\r\n", "192.0.2.5 - -");
	ck_x("X-Forwarded-For: 198.51.100.7:8080\r\n", "198.51.100.7 - -");
	ck_x("X-Forwarded-For: 2001:db8::7\r\n", "2001:db8::7 - -");
	ck_x("X-Forwarded-For: [2001:db8::7]:1, 2001:db8::1\r\n", "2001:db8::7 - -");
	/* What is no address ends the list; the client is no proxy then. */
	ck_x("X-Forwarded-For: 198.51.100.7, unknown\r\n", "? - -");
	ck_x("X-Forwarded-For: 198.51.100.7, unknown, 192.0.2.1\r\n", "? - -");
	ck_x("X-Forwarded-For: 198.51.100.700\r\n", "? - - wrong: 198.51.100.700");
	ck_x("X-Forwarded-For: [2001:db8::7\r\n", "? - - wrong: [2001:db8::7");
	ck_x("X-Forwarded-For: [2001:db8::7]x\r\n", "? - - wrong: [2001:db8::7]x");
	/* There are no quoted strings. */
	ck_x("X-Forwarded-For: \", 203.0.113.9\r\n", "203.0.113.9 - -");
	ck_x("X-Forwarded-For: \"\\, 203.0.113.9, 192.0.2.1\r\n", "203.0.113.9 - -");
	ck_x("X-Forwarded-For: \"\r\nX-Forwarded-Proto: \", https\r\n"
	     "X-Forwarded-Host: \", a.example\r\n",
	     "? - - wrong: \"");
	ck_x("X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: \", https\r\n"
	     "X-Forwarded-Host: \", a.example\r\n",
	     "9.9.9.9 https a.example");
	ck_x("X-Forwarded-For: 11111111111111111111111111111111111111111111111111111\r\n",
	     "? - - wrong: 11111111111111111111111111111111111111111111111111111");
	ck_x("X-Forwarded-For: 198.51.100.7\r\nX-Forwarded-Proto: HTTPS\r\n"
	     "X-Forwarded-Host: a.example:8080\r\n",
	     "198.51.100.7 HTTPS a.example:8080");
	ck_x("X-Forwarded-For: 9.9.9.9, 8.8.8.8, 192.0.2.1\r\n"
	     "X-Forwarded-Proto: ftp, https, http\r\nX-Forwarded-Host: a, b\r\n",
	     "8.8.8.8 https b");
	ck_x("X-Forwarded-Proto: gopher\r\nX-Forwarded-Host: a/b\r\n", "- - -");
	/* The other family counts nothing. */
	ck_x("Forwarded: for=1.1.1.1;proto=https\r\n", "- - -");
}
END_TEST

START_TEST(test_wrong_x)
{
	/* Neither is what else the last hop says. */
	ck_x("X-Forwarded-For: 198.51.100.7, garbage\r\nX-Forwarded-Proto: https\r\n"
	     "X-Forwarded-Host: a.example\r\n",
	     "? - - wrong: garbage");
	ck_x("X-Forwarded-For: garbage, 192.0.2.1\r\nX-Forwarded-Proto: http, https\r\n"
	     "X-Forwarded-Host: a, b\r\n",
	     "? https b wrong: garbage");
	/* The client's own is not read. */
	ck_x("X-Forwarded-For: garbage, 198.51.100.7\r\nX-Forwarded-Proto: https\r\n",
	     "198.51.100.7 https -");
	/* A proxy may hide its client. */
	ck_x("X-Forwarded-For: unknown\r\nX-Forwarded-Proto: https\r\n", "? https -");
	/* Lists of different lengths: the last ones count. */
	ck_x("X-Forwarded-For: 9.9.9.9, 8.8.8.8, 192.0.2.1\r\nX-Forwarded-Proto: https, http\r\n"
	     "X-Forwarded-Host: a, b, c, d\r\n",
	     "8.8.8.8 http d");
}
END_TEST

START_TEST(test_standard)
{
	ck_standard("Forwarded: for=198.51.100.7;proto=https;host=a.example\r\n",
		    "198.51.100.7 https a.example");
	ck_standard("Forwarded: For=\"[2001:db8::7]:4711\", for=\"192.0.2.1:80\";Proto=http\r\n",
		    "2001:db8::7 - -");
	ck_standard(
		"Forwarded: for=9.9.9.9;proto=http\r\n"
		"Forwarded: by=x; for=8.8.8.8;proto=https;host=\"b\", for=192.0.2.1;proto=http\r\n",
		"8.8.8.8 https b");
	ck_standard("Forwarded: for=_hidden;proto=https\r\n", "? https -");
	ck_standard("Forwarded: for=unknown, for=192.0.2.1\r\n", "? - -");
	ck_standard("Forwarded: proto=https\r\n", "? https -");
	ck_standard("Forwarded: for=\"9.9.9.9\" ; by=\"a\\\"b,c\" , for=192.0.2.1\r\n",
		    "9.9.9.9 - -");
	ck_standard("X-Forwarded-For: 1.1.1.1\r\n", "- - -");
}
END_TEST

START_TEST(test_wrong_standard)
{
	ck_standard("Forwarded: for=garbage;proto=https;host=a\r\n",
		    "? - - wrong: for=garbage;proto=https;host=a");
	ck_standard("Forwarded: for=\"\";proto=https\r\n", "? - - wrong: for=\"\";proto=https");
	ck_standard("Forwarded: for=garbage;proto=http, for=192.0.2.1;proto=https\r\n",
		    "? https - wrong: for=garbage;proto=http");
	ck_standard("Forwarded: for=\"1.1.1.1\r\n", "? - - wrong: for=\"1.1.1.1");
	ck_standard("Forwarded: for\r\n", "? - - wrong: for");
	ck_standard("Forwarded: for=_\r\n", "? - - wrong: for=_");
	ck_standard("Forwarded: for=\"Unknown:80\";proto=https\r\n", "? https -");
	/* A client opens a quoted string, in front of what the proxy adds. */
	ck_standard("Forwarded: for=\"x, for=203.0.113.9\r\n",
		    "? - - wrong: for=\"x, for=203.0.113.9");
	ck_standard("Forwarded: for=127.0.0.1;by=\", for=203.0.113.9;proto=https\r\n",
		    "? - - wrong: for=127.0.0.1;by=\", for=203.0.113.9;proto=https");
	ck_standard("Forwarded: for=127.0.0.1;by=\", for=\"[2001:db8::9]\"\r\n",
		    "? - - wrong: for=127.0.0.1;by=\", for=\"[2001:db8::9]\"");
	ck_standard("Forwarded: for=127.0.0.1;by=\"\\, for=\"[2001:db8::9]\";by=\"a\"\r\n",
		    "? - - wrong: for=127.0.0.1;by=\"\\, for=\"[2001:db8::9]\";by=\"a\"");
	ck_standard("Forwarded: for=1.1.1.1\", for=2.2.2.2;by=\"\r\n",
		    "? - - wrong: for=1.1.1.1\", for=2.2.2.2;by=\"");
	ck_standard("Forwarded: for=\"x\r\nForwarded: for=203.0.113.9\r\n", "203.0.113.9 - -");
	ck_standard("Forwarded: for=\"x\r\nForwarded: for=192.0.2.1\r\n", "? - - wrong: for=\"x");
}
END_TEST

START_TEST(test_many_hops)
{
	char text[2000] = "X-Forwarded-For: 7.7.7.7";

	for (unsigned i = 0; i < FORWARDED_HOPS_MAX + 3; i++)
		strcat(text, ", 192.0.2.9");
	strcat(text, ", 192.0.2.1\r\n");
	/* The last ones count. */
	ck_x(text, "192.0.2.9 - -");
}
END_TEST

static void rewrites(const char *host, const char *fields, const char *expected)
{
	struct forwarded forwarded = {.host = {host, strlen(host)}};
	GString *text;

	parse(fields);
	text = forwarded_rewrite(&request, &forwarded);
	ck_assert_str_eq(text->str, expected);
	ck_assert_int_eq(request_parse(&request, text->str, text->len), 0);
	g_string_free(text, TRUE);
}

START_TEST(test_rewrite)
{
	static const char absolute[] = "GET http://there/x HTTP/1.0\r\nHost: here\r\n\r\n";
	struct forwarded forwarded = {.host = {"b", 1}};
	GString *text;

	rewrites(
		"",
		"A: b\r\nX-Forwarded-For: 1.1.1.1\r\nforwarded: for=x\r\nX-Forwarded: y\r\n"
		"X-FORWARDED-server: z\r\nx-real-ip: 1.1.1.1\r\nX-Forward: y\r\nX-Real-IPs: z\r\n",
		"GET /a?b HTTP/1.1\r\nHost: here\r\nA: b\r\nX-Forward: y\r\nX-Real-IPs: z\r\n\r\n");
	rewrites("b:1", "A: b\r\n", "GET /a?b HTTP/1.1\r\nHost: b:1\r\nA: b\r\n\r\n");
	rewrites("", "X-Forwarded: y\r\n", "GET /a?b HTTP/1.1\r\nHost: here\r\n\r\n");
	rewrites("", "X-Real-IP: y\r\n", "GET /a?b HTTP/1.1\r\nHost: here\r\n\r\n");
	parse("A: b\r\nX-Forward: y\r\n");
	ck_assert_ptr_null(forwarded_rewrite(&request, &(struct forwarded){0}));
	ck_assert_int_eq(request_parse(&request, absolute, strlen(absolute)), 0);
	text = forwarded_rewrite(&request, &forwarded);
	ck_assert_str_eq(text->str, "GET /x HTTP/1.0\r\nHost: b\r\n\r\n");
	g_string_free(text, TRUE);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_x);
	tcase_add_test(tcase, test_wrong_x);
	tcase_add_test(tcase, test_standard);
	tcase_add_test(tcase, test_wrong_standard);
	tcase_add_test(tcase, test_many_hops);
	tcase_add_test(tcase, test_rewrite);
}

RUN_SUITE("forwarded", fill)
