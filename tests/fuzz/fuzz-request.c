/* SPDX-License-Identifier: MIT */
/*
 * fuzz-request.c - the head of a request (sweet/http/request.c): its end is found at
 * the same byte for any division, and an accepted head is unambiguous: written again
 * from its parts it is the same request.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "base/syntax.h"
#include "http/request.h"

#include "fuzz.h"

/* Finds the end at once and in several pieces, divided as the bytes themselves say. */
static size_t check_cuts(const char *data, size_t length)
{
	size_t whole = request_head_length(data, length, 0), seen = 0, at = 0, found = 0;

	MUST(whole <= length);
	while (at < length && !found) {
		at += 1 + ((unsigned char)data[at] & 31);
		if (at > length)
			at = length;
		found = request_head_length(data, at, seen);
		MUST(!found || found <= at);
		seen = at;
	}
	MUST(found == whole);
	return whole;
}

static void check_inside(struct slice whole, struct slice part)
{
	MUST(part.at >= whole.at && part.at <= whole.at + whole.length);
	MUST(part.length <= (size_t)(whole.at + whole.length - part.at));
}

static void check_class(struct slice text, unsigned classes)
{
	for (size_t i = 0; i < text.length; i++)
		MUST(syntax_is(text.at[i], classes));
}

static bool is_condition(struct slice name)
{
	return slice_is(name, "Range") ||
	       (name.length > 3 && slice_is((struct slice){name.at, 3}, "If-") &&
		(slice_is(name, "If-Match") || slice_is(name, "If-None-Match") ||
		 slice_is(name, "If-Range") || slice_is(name, "If-Modified-Since") ||
		 slice_is(name, "If-Unmodified-Since")));
}

static void check_headers(const struct request *request)
{
	MUST(request->header_count <= REQUEST_HEADERS_MAX);
	for (unsigned i = 0; i < request->header_count; i++) {
		const struct request_header *header = &request->headers[i];

		check_inside(request->head, header->name);
		check_inside(request->head, header->value);
		MUST(header->name.length > 0);
		check_class(header->name, SYNTAX_TOKEN);
		check_class(header->value, SYNTAX_VALUE);
		MUST(header->value.length == 0 ||
		     (!syntax_is_blank(header->value.at[0]) &&
		      !syntax_is_blank(header->value.at[header->value.length - 1])));
		MUST(request->conditional || !is_condition(header->name));
	}
}

static void check_parts(const struct request *request)
{
	check_inside(request->head, request->method_name);
	check_inside(request->head, request->target);
	check_inside(request->target, request->query);
	check_inside(request->head, request->path);
	MUST(request->method_name.length > 0 && request->path.length > 0);
	check_class(request->method_name, SYNTAX_TOKEN);
	check_class(request->target, SYNTAX_TARGET);
	MUST(request->target.length <= REQUEST_TARGET_MAX);
	MUST(request->path.at[0] == '/' || slice_is(request->path, "*"));
	MUST(!memchr(request->path.at, '?', request->path.length));
	if (request->host.length)
		check_inside(request->head, request->host);
	MUST(request->minor <= 1 && request->content_length <= INT64_MAX);
	/* The length of a body is defined in one way only. */
	MUST(!request->chunked || (request->minor == 1 && request->content_length == 0));
	MUST(request->minor == 1 || request->expect == EXPECT_NOTHING);
	/* And so is the host, which an HTTP/1.1 client must send. */
	MUST(request->minor == 0 || request->host.length || request_find(request, "Host"));
	check_headers(request);
}

static char *put(char *to, struct slice text)
{
	if (text.length)
		memcpy(to, text.at, text.length);
	return to + text.length;
}

/* Each field gets a blank before its value, and a plain line end. */
static size_t write_again(const struct request *request, char *out)
{
	char *at = put(out, request->method_name);

	at = put(at, SLICE(" "));
	at = put(at, request->target);
	at = put(at, request->minor ? SLICE(" HTTP/1.1\r\n") : SLICE(" HTTP/1.0\r\n"));
	for (unsigned i = 0; i < request->header_count; i++) {
		at = put(at, request->headers[i].name);
		at = put(at, SLICE(": "));
		at = put(at, request->headers[i].value);
		at = put(at, SLICE("\r\n"));
	}
	return (size_t)(put(at, SLICE("\r\n")) - out);
}

static bool same(struct slice a, struct slice b)
{
	return a.length == b.length && (a.length == 0 || memcmp(a.at, b.at, a.length) == 0);
}

static void check_same(const struct request *a, const struct request *b)
{
	MUST(a->method == b->method && same(a->method_name, b->method_name));
	MUST(same(a->target, b->target) && same(a->path, b->path) && same(a->query, b->query));
	MUST(same(a->host, b->host) && a->minor == b->minor);
	MUST(a->keep_alive == b->keep_alive && a->chunked == b->chunked);
	MUST(a->conditional == b->conditional && a->content_length == b->content_length);
	MUST(a->expect == b->expect && a->header_count == b->header_count);
	for (unsigned i = 0; i < a->header_count; i++)
		MUST(same(a->headers[i].name, b->headers[i].name) &&
		     same(a->headers[i].value, b->headers[i].value));
}

static void check_again(const struct request *request)
{
	/* Its own line ends, and a blank for each field without one. */
	char *text = malloc(request->head.length + 64 + 3 * REQUEST_HEADERS_MAX), *again;
	struct request second;
	size_t length;

	MUST(text);
	length = write_again(request, text);
	again = exact_copy(text, length);
	MUST(request_head_length(again, length, 0) == length);
	MUST(request_parse(&second, again, length) == 0);
	check_same(request, &second);
	free(again);
	free(text);
}

static bool is_answer(int status)
{
	return status == -400 || status == -414 || status == -431 || status == -501 ||
	       status == -505;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t length = check_cuts((const char *)data, size);
	struct request request;
	char *head;
	int status;

	/* A head without an end is never parsed, but the parser must survive it. */
	head = exact_copy(data, length ? length : size);
	status = request_parse(&request, head, length ? length : size);
	MUST(status == 0 || is_answer(status));
	if (status == 0) {
		check_parts(&request);
		check_again(&request);
	}
	free(head);
	return 0;
}
