/* SPDX-License-Identifier: MIT */
/*
 * test-accept.c - unit tests of accept.c: tables of fields, and random ones.
 * Single-threaded; every value is a heap copy of its exact size, so that memory
 * checkers detect a read beyond.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/accept.h"
#include "http/request.h"

#include "suite.h"

#define FIELDS 3

static const enum coding usual[CODINGS] = {CODING_BR, CODING_ZSTD, CODING_GZIP};

/* A request with up to FIELDS fields of a name; NULL ends the list. */
static void make(struct request *request, const char *name, const char *const *values)
{
	memset(request, 0, sizeof(*request));
	request->headers[0].name = (struct slice){"Host", 4};
	request->headers[0].value = (struct slice){"gzip", 4};
	request->header_count = 1;
	for (unsigned i = 0; i < FIELDS && values[i]; i++) {
		struct request_header *header = &request->headers[request->header_count++];
		size_t length = strlen(values[i]);
		char *copy = must_alloc(length);

		memcpy(copy, values[i], length);
		header->name = (struct slice){name, strlen(name)};
		header->value = (struct slice){copy, length};
	}
}

static void clear(struct request *request)
{
	for (unsigned i = 1; i < request->header_count; i++)
		free((char *)request->headers[i].value.at);
}

static const struct {
	const char *values[FIELDS];
	const char *order; /* b, z and g */
} encodings[] = {
	/* Without the field, the client gets the plain file. */
	{{NULL}, ""},
	{{""}, ""},
	{{" "}, ""},
	{{","}, ""},
	{{"identity"}, ""},
	{{"deflate"}, ""},
	{{"compress, deflate, bzip2"}, ""},
	/* What browsers send. */
	{{"gzip"}, "g"},
	{{"gzip, deflate"}, "g"},
	{{"gzip, deflate, br"}, "bg"},
	{{"gzip, deflate, br, zstd"}, "bzg"},
	{{"br"}, "b"},
	{{"zstd"}, "z"},
	/* Names: any case, the old one, no names that only look similar. */
	{{"GZIP, Br, zStD"}, "bzg"},
	{{"x-gzip"}, "g"},
	{{"X-GZip;q=0.5, br;q=0.2"}, "gb"},
	{{"gzipp"}, ""},
	{{"gzi"}, ""},
	{{"g zip"}, ""},
	{{"xgzip, brotli, zst"}, ""},
	{{"\"gzip\""}, ""},
	{{"\"br, gzip\", zstd"}, "z"},
	/* Weights. */
	{{"gzip;q=1.0, br;q=0.5"}, "gb"},
	{{"gzip;q=0.001, br;q=0.002, zstd;q=0.003"}, "zbg"},
	{{"zstd;q=0.5, gzip;q=0.8, br;q=0.2"}, "gzb"},
	{{"br;q=0.5, zstd;q=0.5, gzip;q=0.5"}, "bzg"},
	{{"gzip;q=0"}, ""},
	{{"gzip;q=0.0, br;q=0.000, zstd"}, "z"},
	{{"gzip;q=1"}, "g"},
	{{"gzip;q=1.000"}, "g"},
	{{"gzip;q=0."}, ""},
	{{"gzip;q=1."}, "g"},
	{{"gzip ; q=0.5 ,\tbr\t;\tq=0.6"}, "bg"},
	{{"gzip;Q=0.5,br;Q=0"}, "g"},
	{{"gzip;level=9;q=0.4, br;q=0.3"}, "gb"},
	{{"gzip;q=0.3333333333333333333333333333333333333, br;q=0.333"}, "bg"},
	/* Invalid weights. */
	{{"gzip;q=2"}, ""},
	{{"gzip;q=1.001"}, ""},
	{{"gzip;q=-1"}, ""},
	{{"gzip;q="}, ""},
	{{"gzip;q=x"}, ""},
	{{"gzip;q=0,5"}, ""},
	{{"gzip;q=.5"}, ""},
	{{"gzip;q=0x1"}, ""},
	{{"gzip;q=1e0"}, ""},
	{{"gzip;q=10"}, ""},
	{{"gzip;q"}, "g"}, /* no weight at all */
	{{"gzip;"}, "g"},
	{{"gzip;;"}, "g"},
	/* Any other coding. */
	{{"*"}, "bzg"},
	{{"*;q=0"}, ""},
	{{"*;q=0.5, gzip"}, "gbz"},
	{{"*, br;q=0"}, "zg"},
	{{"gzip;q=0, *"}, "bz"},
	{{"*;q=0.5, gzip;q=0.1"}, "bz"},
	/* The plain file, if the client prefers it. */
	{{"identity, gzip;q=0.5"}, ""},
	{{"identity;q=0.5, gzip;q=0.5, br;q=0.4"}, "g"},
	{{"identity;q=0, gzip;q=0.1"}, "g"},
	{{"identity;q=0.3, *;q=0.5"}, "bzg"},
	{{"identity;q=0"}, ""},
	/* Several fields are one. */
	{{"gzip", "br"}, "bg"},
	{{"gzip;q=0.4", "", "zstd;q=0.5, identity;q=0.45"}, "z"},
	/* Odd lists. */
	{{",,gzip,,"}, "g"},
	{{" , gzip , "}, "g"},
	{{"gzip,gzip;q=0"}, ""},
	{{"gzip br"}, ""},
	{{"gzip;q=\"0\\\",br\", br"}, "b"},
	{{"\"\\"}, ""},
};

START_TEST(test_codings)
{
	static const char letters[CODINGS] = {'b', 'z', 'g'};

	for (unsigned i = 0; i < sizeof(encodings) / sizeof(encodings[0]); i++) {
		enum coding order[CODINGS];
		struct request request;
		char got[CODINGS + 1] = "";
		unsigned count;

		make(&request, i % 2 ? "Accept-Encoding" : "accept-encoding", encodings[i].values);
		count = accept_codings_by(&request, usual, order);
		ck_assert_uint_le(count, CODINGS);
		for (unsigned k = 0; k < count; k++)
			got[k] = letters[order[k]];
		ck_assert_msg(strcmp(got, encodings[i].order) == 0, "\"%s\": %s instead of %s",
			      encodings[i].values[0] ? encodings[i].values[0] : "(none)", got,
			      encodings[i].order);
		clear(&request);
	}
}
END_TEST

/* Among codings of equal weight, the server's order counts. */
START_TEST(test_own_order)
{
	static const enum coding own[CODINGS] = {CODING_GZIP, CODING_ZSTD, CODING_BR};
	static const struct {
		const char *values[FIELDS];
		enum coding first;
		unsigned count;
	} cases[] = {
		{{"br, zstd, gzip"}, CODING_GZIP, 3},
		{{"br, zstd"}, CODING_ZSTD, 2},
		{{"br, zstd;q=0.9, gzip;q=0.8"}, CODING_BR, 3},
		{{"*"}, CODING_GZIP, 3},
		{{"*, gzip;q=0"}, CODING_ZSTD, 2},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum coding order[CODINGS];
		struct request request;

		make(&request, "Accept-Encoding", cases[i].values);
		ck_assert_uint_eq(accept_codings_by(&request, own, order), cases[i].count);
		ck_assert_int_eq(order[0], cases[i].first);
		clear(&request);
	}
}
END_TEST

START_TEST(test_names)
{
	ck_assert_str_eq(coding_token(CODING_BR), "br");
	ck_assert_str_eq(coding_token(CODING_ZSTD), "zstd");
	ck_assert_str_eq(coding_token(CODING_GZIP), "gzip");
	ck_assert_str_eq(coding_suffix(CODING_BR), ".br");
	ck_assert_str_eq(coding_suffix(CODING_ZSTD), ".zst");
	ck_assert_str_eq(coding_suffix(CODING_GZIP), ".gz");
}
END_TEST

static const struct {
	const char *values[FIELDS];
	bool json;
} types[] = {
	{{NULL}, false},
	{{""}, false},
	{{"*/*"}, false},
	{{"text/html"}, false},
	{{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, false},
	{{"application/json"}, true},
	{{"Application/JSON"}, true},
	{{"application/json; charset=utf-8"}, true},
	{{"application/json, */*"}, false},
	{{"application/json, */*;q=0.5"}, true},
	{{"application/json, text/plain, */*;q=0.1"}, true},
	{{"application/*"}, true},
	{{"text/*"}, false},
	{{"text/*;q=0.1, application/*;q=0.2"}, true},
	{{"application/json;q=0.5, text/html;q=0.4"}, true},
	{{"application/json;q=0.5, text/html;q=0.5"}, false},
	{{"application/json;q=0"}, false},
	{{"application/json;q=0, */*"}, false},
	{{"text/html;q=0, */*;q=0.1"}, true},
	/* The most specific element counts, at any place. */
	{{"*/*, text/html;q=0.1"}, true},
	{{"text/html;q=0.1, */*"}, true},
	{{"text/*;q=0.1, text/html, application/json;q=0.9"}, false},
	{{"application/json", "text/html;q=0.3"}, true},
	{{"image/png"}, false},
	{{"application/jsonx"}, false},
	{{"application/ld+json"}, false},
	{{"json"}, false},
};

START_TEST(test_types)
{
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct request request;

		make(&request, "Accept", types[i].values);
		ck_assert_msg(accept_prefers_json(&request) == types[i].json, "\"%s\"",
			      types[i].values[0] ? types[i].values[0] : "(none)");
		clear(&request);
	}
}
END_TEST

/* Nothing is read beyond the end and no order names a coding twice. */
START_TEST(test_random)
{
	static const char *const words[] = {"gzip", "br",	 "zstd", "identity",
					    "*",    ";q=",	 "0",	 "1",
					    ".",    "5",	 ",",	 ";",
					    " ",    "\"",	 "\\",	 "\t",
					    "\xff", "text/html", "/",	 "application/json"};
	uint64_t state = 4711;

	for (unsigned i = 0; i < scaled(20000); i++) {
		const char *values[FIELDS] = {NULL};
		enum coding order[CODINGS];
		struct request request;
		char text[512] = "";
		unsigned count, seen = 0;

		for (unsigned k = random_next(&state) % 20; k > 0; k--)
			strcat(text, words[random_next(&state) % (sizeof(words) / sizeof(*words))]);
		values[0] = text;
		make(&request, "Accept-Encoding", values);
		count = accept_codings_by(&request, usual, order);
		expect(count <= CODINGS);
		for (unsigned k = 0; k < count; k++) {
			expect((unsigned)order[k] < CODINGS && !(seen & 1u << order[k]));
			seen |= 1u << order[k];
		}
		clear(&request);
		make(&request, "Accept", values);
		(void)accept_prefers_json(&request);
		clear(&request);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_codings);
	tcase_add_test(tcase, test_own_order);
	tcase_add_test(tcase, test_names);
	tcase_add_test(tcase, test_types);
	tcase_add_test(tcase, test_random);
}

RUN_SUITE("accept", fill)
