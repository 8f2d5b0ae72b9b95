/* SPDX-License-Identifier: MIT */
/*
 * request-fixture.h - shared by the tests of the request head: parsing of heap
 * copies of the exact size, so that memory checkers detect reads beyond the end;
 * and what must hold for every accepted request.
 */
#ifndef REQUEST_FIXTURE_H
#define REQUEST_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/request.h"

#include "suite.h"

#define L "GET / HTTP/1.1\r\n" /* a request line */
#define H "Host: h\r\n"	       /* required by a request */
#define E "\r\n"	       /* the end */

static struct request request;

static inline char *copy(const char *bytes, size_t length)
{
	char *result = malloc(length + !length);

	if (!result)
		ck_abort_msg("no memory");
	memcpy(result, bytes, length);
	return result;
}

static inline void check_slice(struct slice slice, const char *head, size_t length)
{
	expect(slice.at);
	expect(slice.at >= head && slice.at <= head + length);
	expect(slice.length <= (size_t)(head + length - slice.at));
}

/* Asserts what must hold for every accepted request. */
static inline void check_request(const char *head, size_t length)
{
	unsigned i;

	expect(request.method <= METHOD_OTHER);
	expect(request.minor <= 1);
	expect(request.header_count <= REQUEST_HEADERS_MAX);
	check_slice(request.method_name, head, length);
	check_slice(request.target, head, length);
	check_slice(request.path, head, length);
	check_slice(request.query, head, length);
	check_slice(request.host, head, length);
	expect(request.method_name.length > 0);
	expect(request.path.length > 0);
	expect(request.path.at[0] == '/' || request.path.at[0] == '*');
	for (i = 0; i < request.header_count; i++) {
		struct slice name = request.headers[i].name;
		struct slice value = request.headers[i].value;

		check_slice(name, head, length);
		check_slice(value, head, length);
		expect(name.length > 0);
		expect(!memchr(name.at, ' ', name.length));
		expect(!memchr(value.at, '\0', value.length));
		expect(!memchr(value.at, '\r', value.length));
		expect(!memchr(value.at, '\n', value.length));
		if (value.length > 0) {
			char first = value.at[0], last = value.at[value.length - 1];

			expect(first != ' ' && first != '\t' && last != ' ' && last != '\t');
		}
	}
}

static inline int parse(const char *bytes, size_t length)
{
	char *head = copy(bytes, length);
	int status;

	memset(&request, 0x5a, sizeof(request));
	status = request_parse(&request, head, length);
	if (status == 0)
		check_request(head, length);
	free(head);
	return status;
}

#endif
