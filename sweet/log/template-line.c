/* SPDX-License-Identifier: MIT */
/*
 * template-line.c - see template-line.h.  Pure; any thread.
 *
 * Whatever a client sends stays within its value: outside of quotes, blanks are escaped as well, and
 * a value without bytes is '-', so that the number of words in a line never changes.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/slice.h"
#include "http/fields.h"
#include "log/access-line.h"
#include "log/log-format.h"
#include "log/template-line.h"

#define TIME_ROOM 96 /* bytes of a time */

struct value {
	enum { ABSENT, TEXT, PLAIN, NUMBER } kind; /* PLAIN: needs no escapes */
	struct slice text;
	size_t most; /* bytes of a longer text that are written */
	uint64_t number;
};

static struct value text_value(struct slice text, size_t most)
{
	return (struct value){text.at ? TEXT : ABSENT, text, most, 0};
}

static struct value string_value(const char *text)
{
	return text_value((struct slice){text, text ? strlen(text) : 0}, ACCESS_NAME_MAX);
}

static struct value number_value(uint64_t number)
{
	return (struct value){.kind = NUMBER, .number = number};
}

static struct value measured_value(uint64_t number)
{
	struct value none = {0};

	return number == ACCESS_UNKNOWN ? none : number_value(number);
}

/* Returns the part of the target before its query, or after the question mark. */
static struct slice part_of_target(struct slice target, bool query)
{
	const char *mark = target.length ? memchr(target.at, '?', target.length) : NULL;
	size_t before = mark ? (size_t)(mark - target.at) : target.length;

	if (!query)
		return (struct slice){target.at, before};
	if (!mark)
		return (struct slice){0};
	return (struct slice){mark + 1, target.length - before - 1};
}

/* Finds the value of the first line of that name. */
static struct slice find_field(struct slice lines, struct slice name)
{
	struct field field;

	while (field_next(&lines, &field))
		if (slice_same(field.name, name))
			return field.value;
	return (struct slice){0};
}

static struct value time_of(const struct access_clock *clock, uint64_t now_ns, char *room)
{
	char *end = access_clock_write(room, clock, now_ns);

	return (struct value){PLAIN, {room, (size_t)(end - room)}, TIME_ROOM, 0};
}

/* room: for a text that is made here; without a clock, only the length counts. */
static struct value value_of(const struct log_part *part, const struct access_line *line,
			     const struct access_request *request, const struct access_clock *clock,
			     uint64_t now_ns, char *room)
{
	switch (part->variable) {
	case LOG_CLIENT:
		return string_value(line->remote);
	case LOG_CLIENT_PORT:
		return number_value(line->remote_port);
	case LOG_USER:
		return text_value(line->user, ACCESS_USER_MAX);
	case LOG_TIME:
		return time_of(clock, now_ns, room);
	case LOG_TIME_LOCAL:
		return (struct value){PLAIN, {clock->local, strlen(clock->local)}, TIME_ROOM, 0};
	case LOG_REQUEST:
		return text_value(line->request, ACCESS_REQUEST_MAX);
	case LOG_METHOD:
		return text_value(request->method, ACCESS_REQUEST_MAX);
	case LOG_TARGET:
		return text_value(request->target, ACCESS_REQUEST_MAX);
	case LOG_PATH:
		return text_value(part_of_target(request->target, false), ACCESS_REQUEST_MAX);
	case LOG_QUERY:
		return text_value(part_of_target(request->target, true), ACCESS_REQUEST_MAX);
	case LOG_PROTOCOL:
		return text_value(request->protocol, ACCESS_REQUEST_MAX);
	case LOG_HOST:
		return text_value(line->host, ACCESS_HOST_MAX);
	case LOG_STATUS:
		return number_value((uint64_t)(line->status < 0 ? 0 : line->status));
	case LOG_BYTES:
		return number_value(line->bytes);
	case LOG_HEAD_BYTES:
		return number_value(line->head_bytes);
	case LOG_TIME_TOTAL:
		return measured_value(line->microseconds);
	case LOG_TIME_QUEUE:
		return measured_value(line->queue_us);
	case LOG_TIME_PROGRAM:
		return measured_value(line->program_us);
	case LOG_TIME_SEND:
		return measured_value(line->send_us);
	case LOG_TLS_VERSION:
		return string_value(line->tls_version);
	case LOG_TLS_CIPHER:
		return string_value(line->tls_cipher);
	case LOG_POOL:
		return string_value(line->pool);
	case LOG_CACHE:
		return string_value(line->cache);
	case LOG_REQUEST_ID:
		return string_value(line->request_id);
	case LOG_TRACE_ID:
		return text_value(line->trace_id, ACCESS_NAME_MAX);
	case LOG_REQUEST_FIELD:
		return part->field < line->field_count
			       ? text_value(line->fields[part->field], ACCESS_FIELD_MAX)
			       : (struct value){0};
	case LOG_RESPONSE_FIELD:
		return text_value(find_field(line->head, part->text), ACCESS_FIELD_MAX);
	case LOG_LITERAL:
		break;
	}
	return (struct value){0};
}

static size_t least(size_t one, size_t other)
{
	return one < other ? one : other;
}

size_t template_line_most(const struct log_format *format, const struct access_line *line)
{
	struct access_clock clock = {.local = "", .utc = ""};
	struct access_request request;
	size_t bytes = 1;
	char room[TIME_ROOM];

	access_request_split(&request, line->request);
	for (unsigned i = 0; i < format->part_count; i++) {
		const struct log_part *part = &format->parts[i];
		struct value value;

		if (part->variable == LOG_LITERAL) {
			bytes += part->text.length;
			continue;
		}
		value = value_of(part, line, &request, &clock, 0, room);
		/* A time is not made yet. */
		bytes += least(value.text.length, value.most) * ESCAPE_MOST + TIME_ROOM;
	}
	return least(bytes, TEMPLATE_LINE_MAX);
}

static char *append(char *to, struct slice text)
{
	memcpy(to, text.at, text.length);
	return to + text.length;
}

/* For lines of words. */
static char *write_word(char *to, const struct value *value, struct slice text, bool quoted)
{
	if (value->kind == NUMBER)
		return decimal_write(to, value->number);
	if (value->kind == ABSENT || (!quoted && !text.length))
		return append(to, SLICE("-"));
	if (value->kind == PLAIN)
		return append(to, text);
	return quoted ? escape_quoted(to, text) : escape_word(to, text);
}

/* For JSON: within the template's own quotes, or with quotes here. */
static char *write_json(char *to, const struct value *value, struct slice text, bool quoted)
{
	if (value->kind == NUMBER)
		return decimal_write(to, value->number);
	if (value->kind == ABSENT)
		return quoted ? to : append(to, SLICE("null"));
	if (quoted)
		return escape_json(to, text);
	*to++ = '"';
	to = escape_json(to, text);
	*to++ = '"';
	return to;
}

char *template_line_write(char *to, const struct log_format *format, const struct access_line *line,
			  const struct access_clock *clock, uint64_t now_ns)
{
	/* The longest word that is not escaped, and the newline, always fit. */
	const char *end = to + TEMPLATE_LINE_MAX - DECIMAL_MAX - 1;
	struct access_request request;
	char room[TIME_ROOM];

	access_request_split(&request, line->request);
	for (unsigned i = 0; i < format->part_count && to < end; i++) {
		const struct log_part *part = &format->parts[i];
		size_t left = (size_t)(end - to);
		struct value value;
		struct slice text;

		if (part->variable == LOG_LITERAL) {
			to = append(to,
				    (struct slice){part->text.at, least(part->text.length, left)});
			continue;
		}
		value = value_of(part, line, &request, clock, now_ns, room);
		text = value.text;
		text.length = least(least(text.length, value.most), left / ESCAPE_MOST);
		to = format->kind == ACCESS_JSON_TEMPLATE
			     ? write_json(to, &value, text, part->quoted)
			     : write_word(to, &value, text, part->quoted);
	}
	*to++ = '\n';
	return to;
}
