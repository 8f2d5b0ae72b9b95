/* SPDX-License-Identifier: MIT */
/*
 * fuzz-stream-head.c - the head of a request of HTTP/2 (sweet/conn/stream-head.c,
 * sweet/http/request-list.c): it is refused, or the request has exactly the method, target, host and
 * fields that came.  The parser of HTTP/1.1 decides the same about them as text.
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
#include "h2/stream-head.h"
#include "http/request-list.h"
#include "http/request.h"

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

static char *append(char *at, struct slice part)
{
	memcpy(at, part.at, part.length);
	return at + part.length;
}

static bool has_any(struct slice text, struct slice bytes)
{
	for (size_t i = 0; i < text.length; i++)
		if (memchr(bytes.at, text.at[i], bytes.length))
			return true;
	return false;
}

/*
 * Writes the head as text; returns its length.  *broken: parts of it have bytes that would end them
 * there.
 */
static size_t write_text(struct slice list, char *text, bool *broken)
{
	struct slice name, value;
	char *at = text;

	*broken = false;
	while (request_list_next(&list, &name, &value)) {
		bool line = at == text;

		*broken |= has_any(name, line ? SLICE(" \r\n") : SLICE(":\r\n")) ||
			   has_any(value, line ? SLICE(" \r\n") : SLICE("\r\n"));
		at = append(append(at, name), line ? SLICE(" ") : SLICE(": "));
		at = append(append(at, value), line ? SLICE(" HTTP/1.1\r\n") : SLICE("\r\n"));
	}
	MUST(list.length == 0);
	return (size_t)(append(at, SLICE("\r\n")) - text);
}

static void check_same(const struct request *request, const struct request *other)
{
	MUST(request->method == other->method && request->minor == other->minor);
	MUST(same(request->method_name, other->method_name));
	MUST(same(request->target, other->target) && same(request->path, other->path));
	MUST(same(request->query, other->query) && same(request->host, other->host));
	MUST(request->keep_alive == other->keep_alive && request->chunked == other->chunked);
	MUST(request->conditional == other->conditional && request->expect == other->expect);
	MUST(request->content_length == other->content_length);
	MUST(request->header_count == other->header_count);
	for (unsigned i = 0; i < request->header_count; i++)
		MUST(same(request->headers[i].name, other->headers[i].name) &&
		     same(request->headers[i].value, other->headers[i].value));
}

static void compare(struct slice list, const struct request *request, int status)
{
	char *text = malloc(2 * list.length + 64), *exact;
	struct request other;
	size_t length;
	bool broken;
	int got;

	MUST(text);
	length = write_text(list, text, &broken);
	exact = exact_copy(text, length);
	free(text);
	got = request_parse(&other, exact, length);
	MUST(!broken || status);
	MUST(broken || got == status);
	if (status == 0) {
		MUST(request_head_length(exact, length, 0) == length);
		check_same(request, &other);
	} else if (!broken) {
		MUST(strcmp(request->wrong, other.wrong) == 0);
	}
	free(exact);
}

static void judge(struct stream_head *head, bool body)
{
	struct slice made = stream_head_end(head, body);
	struct request request;
	char *list;
	int status;

	MUST(!head->error == !head->wrong);
	if (head->error)
		return;
	list = exact_copy(made.at, made.length);
	made.at = list;
	status = request_parse_list(&request, list, made.length);
	if (status == 0)
		check(&request, body);
	compare(made, &request, status);
	free(list);
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
