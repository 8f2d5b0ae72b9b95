/* SPDX-License-Identifier: MIT */
/*
 * response-head.c - see response-head.h.  Any thread may call it.
 *
 * SWEET has the rules of these functions, in a form of its own, for what its programs and workers
 * send: tests/unit/sweet/program/test-cgihead-library.c compares both.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "worker/response-head.h"

#define CONNECTION_NAMES_MAX 16u

struct span {
	const char *at;
	size_t length;
};

struct line {
	struct span name, value;
};

/* --- syntax ----------------------------------------------------------------------------------- */

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t';
}

/* In names: tchar of RFC 9110, section 5.6.2. */
static bool is_token(char byte)
{
	static const char marks[] = "!#$%&'*+-.^_`|~";
	char letter = byte | 0x20;

	return (letter >= 'a' && letter <= 'z') || is_digit(byte) ||
	       memchr(marks, byte, sizeof(marks) - 1);
}

/* In values: all but control characters other than HTAB. */
static bool is_value(char byte)
{
	return (unsigned char)byte >= 0x20 ? byte != 0x7f : byte == '\t';
}

static struct span trim(struct span span)
{
	while (span.length && is_blank(span.at[0])) {
		span.at++;
		span.length--;
	}
	while (span.length && is_blank(span.at[span.length - 1]))
		span.length--;
	return span;
}

static char lower(char byte)
{
	return byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte;
}

/* Ignores ASCII case, whatever the locale is. */
static bool is(struct span span, const char *text)
{
	size_t i = 0;

	while (i < span.length && text[i] && lower(span.at[i]) == lower(text[i]))
		i++;
	return i == span.length && !text[i];
}

/* Returns the bytes of a line end at the start of the text; 0: none. */
static size_t line_end(const char *at, const char *end)
{
	if (end - at >= 1 && at[0] == '\n')
		return 1;
	return end - at >= 2 && at[0] == '\r' && at[1] == '\n' ? 2 : 0;
}

/*
 * Gets the value between at and the end of the line, which CRLF or LF ends.  Returns what follows
 * the line, or NULL: there is another control character, or no end.
 */
static const char *take_value(const char *at, const char *end, struct span *value)
{
	const char *from = at;

	while (at < end && is_value(*at))
		at++;
	*value = trim((struct span){from, (size_t)(at - from)});
	return line_end(at, end) ? at + line_end(at, end) : NULL;
}

/* Returns what follows the first line, or NULL: it is not "Name: value". */
static const char *take_line(const char *at, const char *end, struct line *line)
{
	line->name.at = at;
	while (at < end && is_token(*at))
		at++;
	line->name.length = (size_t)(at - line->name.at);
	if (line->name.length == 0 || at == end || *at != ':')
		return NULL;
	return take_value(at + 1, end, &line->value);
}

/* Parses digits only; a number that does not fit becomes UINT64_MAX. */
static bool take_number(struct span digits, uint64_t *number)
{
	*number = 0;
	for (size_t i = 0; i < digits.length; i++) {
		unsigned digit = (unsigned)(digits.at[i] - '0');

		if (!is_digit(digits.at[i]))
			return false;
		*number = *number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *number * 10 + digit;
	}
	return digits.length > 0;
}

/* --- fields ----------------------------------------------------------------------------------- */

enum { ANYTHING, NUMBER, PATH, REFERENCE, STATUS };

enum { R_STATUS, R_LENGTH, R_UNIT, R_OFFSET, R_PART, R_LOCATION, RULES = 11 };

/* Fields that decide how the response continues: at most one line of each. */
static const struct rule {
	const char *name;
	int kind;
	uint64_t least, most; /* of a number */
} rules[RULES] = {
	[R_STATUS] = {"Status", STATUS, 0, 0},
	[R_LENGTH] = {"Content-Length", NUMBER, 0, INT64_MAX},
	[R_UNIT] = {"X-NABC-Cache-Id", NUMBER, 1, SIZE_MAX - 1},
	[R_OFFSET] = {"X-NABC-Offset", NUMBER, 0, INT64_MAX},
	[R_PART] = {"X-NABC-Length", NUMBER, 0, INT64_MAX},
	[R_LOCATION] = {"Location", REFERENCE, 0, 0},
	{"Content-Type", ANYTHING, 0, 0},
	{"X-Accel-Redirect", PATH, 0, 0},
	{"X-Sendfile", PATH, 0, 0},
	{"X-NABC-Max-Age", NUMBER, 0, UINT64_MAX},
	{"X-NABC-Tag", ANYTHING, 0, 0},
};

#define RULE(which) (1u << (which))
#define RULES_ALL (RULE(RULES) - 1)

/* What the lines have said so far. */
struct reading {
	unsigned rules; /* to be checked */
	unsigned seen;
	unsigned connection_names;
	int status;
	size_t status_at, status_length; /* the bytes of its line */
};

/* Visible bytes: a URL escapes all others. */
static bool is_reference(struct span value)
{
	for (size_t i = 0; i < value.length; i++)
		if ((unsigned char)value.at[i] <= 0x20 || value.at[i] == 0x7f)
			return false;
	return value.length > 0;
}

/* A number from 200 to 599; a phrase may follow. */
static bool take_status(struct reading *reading, struct span value)
{
	uint64_t status;

	if (value.length > 3 && !is_blank(value.at[3]))
		return false;
	if (value.length > 3)
		value.length = 3;
	if (!take_number(value, &status) || status < 200 || status > 599)
		return false;
	reading->status = (int)status;
	return true;
}

static bool obeys(struct reading *reading, const struct rule *rule, struct span value)
{
	uint64_t number;

	switch (rule->kind) {
	case NUMBER:
		return take_number(value, &number) && number >= rule->least && number <= rule->most;
	case PATH:
		return value.length && value.at[0] == '/';
	case REFERENCE:
		return is_reference(value);
	case STATUS:
		return take_status(reading, value);
	default:
		return true;
	}
}

static bool take_once(struct reading *reading, unsigned which, struct span value)
{
	if (reading->seen & RULE(which))
		return false;
	reading->seen |= RULE(which);
	return obeys(reading, &rules[which], value);
}

/* Returns the bytes before the comma that ends the first part; one in quotes does not. */
static size_t part_of(struct span value)
{
	bool quoted = false;
	size_t i;

	for (i = 0; i < value.length; i++) {
		if (quoted && value.at[i] == '\\')
			i++;
		else if (value.at[i] == '"')
			quoted = !quoted;
		else if (!quoted && value.at[i] == ',')
			return i;
	}
	return value.length;
}

/* Names of fields for this hop alone; false: too many. */
static bool take_connection(struct reading *reading, struct span value)
{
	for (;;) {
		size_t part = part_of(value);

		if (trim((struct span){value.at, part}).length &&
		    ++reading->connection_names > CONNECTION_NAMES_MAX)
			return false;
		if (part == value.length)
			return true;
		value = (struct span){value.at + part + 1, value.length - part - 1};
	}
}

static bool note(struct reading *reading, const struct line *line)
{
	if (is(line->name, "Connection"))
		return take_connection(reading, line->value);
	for (unsigned i = 0; i < RULES; i++)
		if (reading->rules & RULE(i) && is(line->name, rules[i].name))
			return take_once(reading, i, line->value);
	return true;
}

int nc_response_head_check(const char *headers, size_t length, size_t *wrong)
{
	struct reading reading = {.rules = RULE(R_LENGTH)};
	const char *at = headers, *end = headers + length;

	while (at < end) {
		struct line line;
		const char *next = take_line(at, end, &line);

		if (!next || !note(&reading, &line)) {
			*wrong = (size_t)(at - headers);
			return -EBADMSG;
		}
		at = next;
	}
	return 0;
}

/* --- heads ------------------------------------------------------------------------------------ */

/* Returns what follows the empty line; NULL: it has not come yet. */
static const char *head_end(const char *text, const char *end)
{
	const char *at = text;

	while (at && at < end && !line_end(at, end)) {
		at = memchr(at, '\n', (size_t)(end - at));
		at = at ? at + 1 : NULL;
	}
	return at && at < end ? at + line_end(at, end) : NULL;
}

/*
 * Reads a first line as HTTP has it, like "HTTP/1.1 200 OK", which some programs write (RFC 3875,
 * section 5).  Returns what follows; NULL: it is malformed.
 */
static char *take_status_line(struct reading *reading, char *text, const char *end)
{
	static const char version[] = "HTTP/1.";
	const size_t length = sizeof(version) - 1;
	struct span value;
	const char *next;

	/* A line end follows in any case. */
	if ((size_t)(end - text) <= length || memcmp(text, version, length) != 0)
		return text;
	if (!is_digit(text[length]) || text[length + 1] != ' ')
		return NULL;
	next = take_value(text + length + 1, end, &value);
	return next && take_once(reading, R_STATUS, value) ? text + (next - text) : NULL;
}

/* Reads the lines up to the empty one.  Returns their bytes, or -1: one is wrong. */
static ssize_t take_lines(struct reading *reading, const char *from, const char *end)
{
	const char *at = from, *next;

	for (; !line_end(at, end); at = next) {
		unsigned before = reading->seen;
		struct line line;

		next = take_line(at, end, &line);
		if (!next || !note(reading, &line))
			return -1;
		if ((before ^ reading->seen) == RULE(R_STATUS)) {
			reading->status_at = (size_t)(at - from);
			reading->status_length = (size_t)(next - at);
		}
	}
	return at - from;
}

/* RFC 3875, section 6.2.3; and a part of a unit needs the unit. */
static bool finish(struct reading *reading)
{
	if (!(reading->seen & RULE(R_STATUS)))
		reading->status = reading->seen & RULE(R_LOCATION) ? 302 : 200;
	return reading->seen & RULE(R_UNIT) || !(reading->seen & (RULE(R_OFFSET) | RULE(R_PART)));
}

ssize_t nc_response_head_parse(struct nc_response_head *head, char *text, size_t length)
{
	const size_t most = length < NC_BLOCK_MAX ? length : NC_BLOCK_MAX;
	struct reading reading = {.rules = RULES_ALL};
	const char *end = head_end(text, text + most);
	ssize_t lines;
	char *from;

	if (!end)
		return length < NC_BLOCK_MAX ? -EAGAIN : -EMSGSIZE;
	/* An empty line alone is no head. */
	if (line_end(text, end))
		return -EBADMSG;
	from = take_status_line(&reading, text, end);
	lines = from ? take_lines(&reading, from, end) : -1;
	if (lines < 0 || !finish(&reading))
		return -EBADMSG;
	/* The lines before the status take its place. */
	memmove(from + reading.status_length, from, reading.status_at);
	head->status = reading.status;
	head->headers = from + reading.status_length;
	head->headers_length = (size_t)lines - reading.status_length;
	return end - text;
}
