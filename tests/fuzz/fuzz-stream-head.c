/* SPDX-License-Identifier: MIT */
/*
 * fuzz-stream-head.c - the head of a request of HTTP/2 as text (sweet/conn/stream-head.c): it is
 * refused, or the parser of HTTP/1.1 reads exactly the method, target, host and fields that came.
 *
 * Input: a byte of options, then fields: the length of the name, or from 0x80 on the number of a
 * known name; the length of the value in two bytes; both texts.
 */
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "base/syntax.h"
#include "http/request.h"
#include "conn/stream-head.h"

#include "fuzz.h"

#define FIELDS_MAX 300u
#define BODY 1 /* options */
#define SMALL 2

struct field {
	struct slice name, value;
};

static const char *const known[] = {
	":method",
	":path",
	":authority",
	":scheme",
	"host",
	"cookie",
	"range",
	"content-length",
	"transfer-encoding",
	"connection",
	"if-none-match",
	"expect",
	"te",
	"x",
};

/* What came, without fields that the library refuses. */
static struct field fields[FIELDS_MAX];
static unsigned count;
static struct slice pseudo[HEAD_PSEUDOS];

static bool is(struct slice name, const char *text)
{
	return name.length == strlen(text) && memcmp(name.at, text, name.length) == 0;
}

static void drop(struct field *field)
{
	free((char *)(uintptr_t)field->name.at);
	free((char *)(uintptr_t)field->value.at);
}

/* Each pseudo-field comes once, before the fields, and is not empty; no others exist. */
static bool takes_pseudo(const struct field *field)
{
	static const char *const names[] = {":method", ":path", ":authority"};

	if (count || field->value.length == 0)
		return false;
	for (unsigned i = 0; i < HEAD_PSEUDOS; i++) {
		if (!is(field->name, names[i]))
			continue;
		if (pseudo[i].length)
			return false;
		pseudo[i] = field->value;
		return true;
	}
	return is(field->name, ":scheme");
}

/* Of what the library refuses, only what the text cannot show. */
static bool library_takes(const struct field *field, unsigned pseudos)
{
	if (!field->name.length ||
	    !nghttp2_check_header_name((const uint8_t *)field->name.at, field->name.length))
		return false;
	if (field->name.at[0] == ':')
		return pseudos <= HEAD_PSEUDOS && takes_pseudo(field);
	return count < FIELDS_MAX;
}

static bool next_field(struct input *input, struct field *field)
{
	size_t name = (size_t)input_number(input, 1), value = (size_t)input_number(input, 2);
	const void *at;

	if (!input->left)
		return false;
	if (name & 0x80) {
		const char *text = known[(name & 0x7f) % (sizeof(known) / sizeof(*known))];

		field->name = (struct slice){exact_copy(text, strlen(text)), strlen(text)};
	} else {
		at = input_bytes(input, &name);
		field->name = (struct slice){exact_copy(at, name), name};
	}
	at = input_bytes(input, &value);
	field->value = (struct slice){exact_copy(at, value), value};
	return true;
}

static struct slice trimmed(struct slice value)
{
	while (value.length && syntax_is_blank(value.at[0])) {
		value.at++;
		value.length--;
	}
	while (value.length && syntax_is_blank(value.at[value.length - 1]))
		value.length--;
	return value;
}

static bool same(struct slice a, struct slice b)
{
	return a.length == b.length && (a.length == 0 || memcmp(a.at, b.at, a.length) == 0);
}

/* The value of the Cookie field that all such fields become; freed by the caller. */
static struct slice join_cookies(void)
{
	size_t room = 1, used = 0;
	char *text;

	for (unsigned i = 0; i < count; i++)
		room += fields[i].value.length + 2;
	text = malloc(room);
	MUST(text);
	for (unsigned i = 0; i < count; i++) {
		if (!slice_is(fields[i].name, "cookie"))
			continue;
		if (used) {
			memcpy(text + used, "; ", 2);
			used += 2;
		}
		memcpy(text + used, fields[i].value.at, fields[i].value.length);
		used += fields[i].value.length;
	}
	return (struct slice){text, used};
}

static void check_next(const struct request *request, unsigned *at, struct slice name,
		       struct slice value)
{
	MUST(*at < request->header_count);
	MUST(same(request->headers[*at].name, name));
	MUST(same(request->headers[*at].value, trimmed(value)));
	(*at)++;
}

static void check_fields(const struct request *request, bool body)
{
	bool authority = pseudo[HEAD_AUTHORITY].length, length = false;
	struct slice cookies = join_cookies();
	unsigned at = 0;

	if (authority)
		check_next(request, &at, SLICE("Host"), pseudo[HEAD_AUTHORITY]);
	for (unsigned i = 0; i < count; i++) {
		const struct field *field = &fields[i];

		length |= slice_is(field->name, "content-length");
		if (slice_is(field->name, "cookie"))
			continue;
		if (authority && slice_is(field->name, "host"))
			MUST(slice_same(field->value, pseudo[HEAD_AUTHORITY]));
		else
			check_next(request, &at, field->name, field->value);
	}
	if (cookies.length)
		check_next(request, &at, SLICE("cookie"), cookies);
	if (body && !length)
		check_next(request, &at, SLICE("transfer-encoding"), SLICE("chunked"));
	MUST(at == request->header_count);
	free((char *)(uintptr_t)cookies.at);
}

static void check(const struct request *request, bool body)
{
	const struct slice *host = request_find(request, "Host");
	struct slice path = pseudo[HEAD_PATH], query = request->query;

	MUST(same(request->method_name, pseudo[HEAD_METHOD]));
	MUST(same(request->target, path));
	MUST(path.length >= request->path.length);
	MUST(memcmp(path.at, request->path.at, request->path.length) == 0);
	MUST(query.length == 0 || request->path.length + 1 + query.length == path.length);
	MUST(host && same(request->host, *host) && request->minor == 1);
	MUST(!body || request->chunked || request_find(request, "content-length"));
	check_fields(request, body);
}

static void judge(struct stream_head *head, bool body)
{
	struct slice made = stream_head_end(head, body);
	struct request request;
	char *text;

	MUST(!head->error == !head->wrong);
	if (head->error)
		return;
	/* It ends where the parser of a connection would find its end. */
	text = exact_copy(made.at, made.length);
	if (request_parse(&request, text, made.length) == 0) {
		MUST(request_head_length(text, made.length, 0) == made.length);
		check(&request, body);
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	unsigned options = (unsigned)input_number(&input, 1), pseudos = 0;
	struct stream_head head = {.most = options & SMALL ? 200 : 16384};
	struct field others[HEAD_PSEUDOS + 1], field;

	count = 0;
	memset(pseudo, 0, sizeof(pseudo));
	while (next_field(&input, &field)) {
		if (!library_takes(&field, pseudos)) {
			drop(&field);
			continue;
		}
		stream_head_add(&head, field.name, field.value);
		if (field.name.at[0] == ':')
			others[pseudos++] = field;
		else
			fields[count++] = field;
	}
	/* The library requires a path, except of a method that no request here has. */
	if (pseudo[HEAD_PATH].length)
		judge(&head, options & BODY);
	stream_head_free(&head);
	while (count)
		drop(&fields[--count]);
	while (pseudos)
		drop(&others[--pseudos]);
	return 0;
}
