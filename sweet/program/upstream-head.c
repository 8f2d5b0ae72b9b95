/* SPDX-License-Identifier: MIT */
/*
 * upstream-head.c - see upstream-head.h.  No state, no allocation: any thread may call it.
 *
 * A server behind this one may be under an attacker's influence, or a proxy itself.  If it and this
 * server disagree on the end of a response, the rest becomes the response to another client's
 * request (response splitting).  So whatever two readers could read in two ways is refused.
 */

#include <stdbool.h>
#include <string.h>

#include "base/slice.h"
#include "base/syntax.h"
#include "http/field.h"
#include "http/fields.h"
#include "program/upstream-head.h"

static const char version[] = "HTTP/1."; /* a digit and a space follow */

#define VERSION (sizeof(version) - 1)
#define STATUS_LINE (VERSION + 2 + 3) /* the least, with three digits */

/* What the lines have said so far. */
struct said {
	bool minor; /* HTTP/1.1, not 1.0 */
	unsigned fields;
	bool length, coding, close, keep_alive, upgrade;
	unsigned upgrades; /* lines */
	struct slice phrase;
};

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

const char *upstream_head_check(struct slice begin)
{
	size_t most = begin.length < VERSION ? begin.length : VERSION;

	if (memcmp(begin.at, version, most) != 0)
		return "does not speak HTTP/1.1";
	if (begin.length > VERSION && !is_digit(begin.at[VERSION]))
		return "does not speak HTTP/1.1";
	return NULL;
}

/* Removes the first line from *rest.  The reason phrase may be missing. */
static const char *take_status_line(struct upstream_head *head, struct said *said,
				    struct slice *rest)
{
	const char *at = rest->at, *end = memchr(at, '\n', rest->length);
	const char *wrong = upstream_head_check(*rest);
	size_t length;

	if (wrong)
		return wrong;
	length = end ? (size_t)(end - at) : 0;
	if (length < STATUS_LINE + 1 || at[length - 1] != '\r')
		return "a malformed status line";
	length--;
	for (size_t i = VERSION + 1; i < length; i++)
		if (!syntax_is_value(at[i]))
			return "a control character in its status line";
	for (size_t i = STATUS_LINE - 3; i < STATUS_LINE; i++)
		if (!is_digit(at[i]))
			return "a malformed status line";
	if (at[VERSION + 1] != ' ' || (length > STATUS_LINE && at[STATUS_LINE] != ' '))
		return "a malformed status line";
	/* A later minor version is read as the latest that is known (RFC 9110, section 2.5). */
	said->minor = at[VERSION] != '0';
	head->status = (at[STATUS_LINE - 3] - '0') * 100 + (at[STATUS_LINE - 2] - '0') * 10 +
		       (at[STATUS_LINE - 1] - '0');
	if (head->status < 100 || head->status > 599)
		return "a status that is not from 100 to 599";
	if (length > STATUS_LINE)
		said->phrase =
			field_trim((struct slice){at + STATUS_LINE + 1, length - STATUS_LINE - 1});
	rest->length -= (size_t)(end + 1 - at);
	rest->at = end + 1;
	return NULL;
}

static void note_connection(struct said *said, struct slice value)
{
	struct slice option;

	while (field_part(&value, ',', &option)) {
		said->close |= slice_is(option, "close");
		said->keep_alive |= slice_is(option, "keep-alive");
		said->upgrade |= slice_is(option, "upgrade");
	}
}

static const char *note_coding(struct upstream_head *head, struct said *said, struct slice value)
{
	if (said->coding)
		return "two Transfer-Encoding lines";
	said->coding = true;
	head->chunked = slice_is(value, "chunked");
	return head->chunked ? NULL : "a transfer coding other than chunked";
}

static const char *note(struct upstream_head *head, struct said *said, const struct field *field)
{
	switch (field->id) {
	case FIELD_CONTENT_LENGTH:
		said->length = true;
		return NULL;
	case FIELD_CONNECTION:
		note_connection(said, field->value);
		return NULL;
	case FIELD_UPGRADE:
		said->upgrades++;
		head->upgrade = field->value;
		return NULL;
	case FIELD_TRANSFER_ENCODING:
		return note_coding(head, said, field->value);
	default:
		return NULL;
	}
}

/* Stricter than field_next(): a line ends with CRLF. */
static const char *take_line(struct upstream_head *head, struct said *said, struct slice *rest)
{
	struct field field;

	if (syntax_is_blank(rest->at[0]))
		return "a folded header line";
	if (++said->fields > UPSTREAM_FIELDS_MAX)
		return "more than 256 header lines";
	if (!field_next(rest, &field))
		return "a malformed header line";
	if (field.line.at[field.line.length] != '\r')
		return "a header line that ends without CR";
	return note(head, said, &field);
}

/* RFC 9112, section 6. */
static const char *finish(struct upstream_head *head, const struct said *said)
{
	const char *wrong;

	if (said->coding && said->length)
		return "both a Content-Length and a Transfer-Encoding";
	if (said->coding && !said->minor)
		return "a Transfer-Encoding in a response of HTTP/1.0";
	/* A 204 has no body, whatever it says (RFC 9112, section 6.3): the connection ends there. */
	if (said->coding && head->status < 200)
		return "a Transfer-Encoding in an interim response";
	if (said->length && head->status < 200)
		return "a Content-Length in an interim response";
	head->keep_alive = !said->close && (said->minor || said->keep_alive);
	if (!said->upgrade || said->upgrades != 1)
		head->upgrade = (struct slice){0};
	if (head->status < 200 && head->status != 101)
		return NULL;
	wrong = cgihead_read_http(&head->fields, head->status, head->lines);
	head->fields.phrase = said->phrase;
	return wrong;
}

const char *upstream_head_parse(struct upstream_head *head, struct slice text)
{
	struct slice rest = text;
	struct said said = {0};
	const char *wrong, *from;

	*head = (struct upstream_head){0};
	wrong = take_status_line(head, &said, &rest);
	from = rest.at;
	while (!wrong && rest.length && !field_line_end(rest.at, rest.length))
		wrong = take_line(head, &said, &rest);
	if (wrong)
		return wrong;
	if (rest.length != 2)
		return "a header line that ends without CR";
	head->lines = (struct slice){from, (size_t)(rest.at - from)};
	return finish(head, &said);
}
