/* SPDX-License-Identifier: MIT */
/*
 * cgihead.c - see cgihead.h.  No state, no allocation: any thread may call it.
 *
 * A field that decides how the response continues may occur only once, so that no
 * two readers choose differently. response_filter_headers() decides what is sent to
 * the client.
 */

#include <stdbool.h>
#include <string.h>

#include "base/syntax.h"
#include "program/cgihead.h"
#include "http/field.h"
#include "http/fields.h"

enum own { OWN_ID, OWN_OFFSET, OWN_LENGTH, OWN_MAX_AGE, OWN_TAG, OWNS };

/* What was parsed, beside the values in the head. */
struct seen {
	bool own[OWNS], status, location;
	bool other; /* a field that a client would receive */
};

size_t cgihead_length(const char *data, size_t length, size_t seen)
{
	size_t empty = field_line_end(data, length);

	/* The bytes seen may end with "\n\r", whose newline was missing. */
	return empty ? empty : field_section_end(data, length, seen > 2 ? seen - 2 : 0);
}

static const char *note_status(struct cgihead *head, struct seen *seen, struct slice value)
{
	uint64_t status;

	if (seen->status)
		return "two Status lines";
	seen->status = true;
	if (value.length > 3 && !syntax_is_blank(value.at[3]))
		return "an invalid Status";
	if (value.length > 3) {
		head->phrase = field_trim((struct slice){value.at + 4, value.length - 4});
		value.length = 3;
	}
	if (!field_number(value, &status) || status < 200 || status > 599)
		return "an invalid Status";
	head->status = (int)status;
	return NULL;
}

/* Accepts visible bytes: a URL escapes all others. */
static bool is_reference(struct slice value)
{
	for (size_t i = 0; i < value.length; i++) {
		if ((unsigned char)value.at[i] <= 0x20 || value.at[i] == 0x7f)
			return false;
	}
	return value.length > 0;
}

static const char *note_location(struct cgihead *head, struct seen *seen, struct slice value)
{
	if (seen->location)
		return "two Location lines";
	seen->location = true;
	if (!is_reference(value))
		return "an invalid Location";
	head->location = value;
	return NULL;
}

/* A path of this server, or of its files. */
static const char *note_accel(struct slice *field, struct slice value)
{
	if (field->length)
		return "two X-Accel-Redirect or X-Sendfile lines";
	if (value.length == 0 || value.at[0] != '/')
		return "an invalid X-Accel-Redirect or X-Sendfile, which must be a path";
	*field = value;
	return NULL;
}

static const char *note_length(struct cgihead *head, struct slice value)
{
	if (head->has_length)
		return "two Content-Length lines";
	head->has_length = true;
	if (!field_number(value, &head->length) || head->length > INT64_MAX)
		return "an invalid Content-Length";
	return NULL;
}

static const char *note_type(struct cgihead *head)
{
	if (head->has_type)
		return "two Content-Type lines";
	head->has_type = true;
	return NULL;
}

/* clang-format off */
#define OWN(name, least, most) {name, "two " name " lines", "an invalid " name, least, most}
/* clang-format on */

/* X-NABC-NAME: fields for the server only. */
static const struct own_field {
	const char *name, *twice, *malformed;
	uint64_t least, most;
} own_fields[] = {
	[OWN_ID] = OWN("X-NABC-Cache-Id", 1, SIZE_MAX - 1),
	[OWN_OFFSET] = OWN("X-NABC-Offset", 0, INT64_MAX),
	[OWN_LENGTH] = OWN("X-NABC-Length", 0, INT64_MAX),
	[OWN_MAX_AGE] = OWN("X-NABC-Max-Age", 0, UINT64_MAX),
	[OWN_TAG] = OWN("X-NABC-Tag", 0, 0),
#undef OWN
};

static const char *note_own(struct cgihead *head, struct seen *seen, struct slice name,
			    struct slice value)
{
	const struct own_field *field;
	uint64_t number;
	unsigned i;

	for (i = 0; i < OWNS && !slice_is(name, own_fields[i].name); i++)
		;
	if (i == OWNS)
		return NULL;
	field = &own_fields[i];
	if (seen->own[i])
		return field->twice;
	seen->own[i] = true;
	if (i == OWN_TAG) {
		head->tag = value;
		return NULL;
	}
	if (!field_number(value, &number) || number < field->least || number > field->most)
		return field->malformed;
	if (i == OWN_ID)
		head->unit = number;
	else if (i == OWN_OFFSET)
		head->unit_offset = number;
	else if (i == OWN_LENGTH)
		head->unit_length = number;
	else
		head->max_age = number < CACHECONTROL_SECONDS_MAX ? (uint32_t)number
								  : CACHECONTROL_SECONDS_MAX;
	return NULL;
}

static bool is_own(struct slice name)
{
	return name.length > 7 && slice_is((struct slice){name.at, 7}, "X-NABC-");
}

/* A field that only a CGI or FastCGI program, or a worker, can address to the server. */
static bool is_for_server(const struct field *field)
{
	return field->id == FIELD_STATUS || field->id == FIELD_LOCATION ||
	       (is_own(field->name) && field->id != FIELD_X_NABC_TAG);
}

/* Those that a client may receive. */
static const char *note_other(struct cgihead *head, struct seen *seen, const struct field *field)
{
	seen->other = true;
	switch (field->id) {
	case FIELD_CONTENT_TYPE:
		return note_type(head);
	case FIELD_CACHE_CONTROL:
		cachecontrol_add(&head->control, field->value);
		return NULL;
	case FIELD_VARY:
		cachecontrol_vary_add(&head->vary, field->value);
		return NULL;
	case FIELD_SET_COOKIE:
		head->sets_cookie = true;
		return NULL;
	default:
		return NULL;
	}
}

static const char *note(struct cgihead *head, struct seen *seen, const struct field *field)
{
	if (head->http && is_for_server(field))
		return NULL;
	switch (field->id) {
	case FIELD_STATUS:
		return note_status(head, seen, field->value);
	case FIELD_LOCATION:
		return note_location(head, seen, field->value);
	case FIELD_X_ACCEL_REDIRECT:
		return note_accel(&head->accel, field->value);
	case FIELD_X_SENDFILE:
		return note_accel(&head->sendfile, field->value);
	case FIELD_CONTENT_LENGTH:
		return note_length(head, field->value);
	case FIELD_CONNECTION:
		return field_options_add(&head->hop, field->value)
			       ? NULL
			       : "a Connection field with too many names";
	default:
		break;
	}
	if (is_own(field->name))
		return note_own(head, seen, field->name, field->value);
	return field_is_withheld(field) ? NULL : note_other(head, seen, field);
}

/* RFC 3875, section 6.2.  A local path has no fragment; two slashes begin another host. */
static const char *finish(struct cgihead *head, const struct seen *seen)
{
	bool path = seen->location && head->location.at[0] == '/' &&
		    !(head->location.length > 1 && head->location.at[1] == '/') &&
		    !memchr(head->location.at, '#', head->location.length);

	head->has_type &= !field_options_have(&head->hop, SLICE("Content-Type"));
	head->has_unit_length = seen->own[OWN_LENGTH];
	if (!head->unit && (seen->own[OWN_OFFSET] || head->has_unit_length))
		return "an X-NABC-Offset or X-NABC-Length without X-NABC-Cache-Id";
	if (seen->location && !seen->status)
		head->status = 302;
	/* If the head says anything else, the client follows the redirect. */
	head->local_redirect = path && !seen->status && !seen->other && !head->unit &&
			       !(head->has_length && head->length);
	return NULL;
}

/*
 * Reads a first line as HTTP has it, like "HTTP/1.1 200 OK", which some programs write (RFC 3875,
 * section 5).
 */
static const char *take_status_line(struct cgihead *head, struct seen *seen, struct slice *rest)
{
	static const char version[] = "HTTP/1.";
	const char *end = memchr(rest->at, '\n', rest->length);
	struct slice value = {rest->at + sizeof(version), 0};
	const char *wrong;

	if (rest->length < sizeof(version) || memcmp(rest->at, version, sizeof(version) - 1) != 0)
		return NULL;
	/* Behind the minor version. */
	if (!end || end <= value.at || value.at[-1] < '0' || value.at[-1] > '9' ||
	    value.at[0] != ' ')
		return "a malformed status line";
	value.length = (size_t)(end - value.at);
	for (size_t i = 0; i < value.length; i++)
		if (!syntax_is_value(value.at[i]) &&
		    !(value.at[i] == '\r' && i == value.length - 1))
			return "a malformed status line";
	if (value.at[value.length - 1] == '\r')
		value.length--;
	wrong = note_status(head, seen, field_trim(value));
	rest->length -= (size_t)(end + 1 - rest->at);
	rest->at = end + 1;
	return wrong;
}

static void init(struct cgihead *head)
{
	*head = (struct cgihead){.status = 200, .max_age = CACHECONTROL_UNSAID};
	cachecontrol_init(&head->control);
}

static const char *read_lines(struct cgihead *head, struct seen *seen, struct slice rest)
{
	const char *from = rest.at, *wrong;

	while (rest.length && !field_line_end(rest.at, rest.length)) {
		struct field field;

		if (!field_next(&rest, &field))
			return "a malformed header line";
		wrong = note(head, seen, &field);
		if (wrong)
			return wrong;
	}
	head->lines = (struct slice){from, (size_t)(rest.at - from)};
	return NULL;
}

const char *cgihead_parse(struct cgihead *head, struct slice text)
{
	struct seen seen = {0};
	struct slice rest = text;
	const char *wrong;

	init(head);
	if (rest.length == 0 || field_line_end(rest.at, rest.length))
		return "no header line";
	wrong = take_status_line(head, &seen, &rest);
	if (!wrong)
		wrong = read_lines(head, &seen, rest);
	return wrong ? wrong : finish(head, &seen);
}

const char *cgihead_read_http(struct cgihead *head, int status, struct slice lines)
{
	struct seen seen = {0};
	const char *wrong;

	init(head);
	head->http = true;
	head->status = status;
	wrong = read_lines(head, &seen, lines);
	return wrong ? wrong : finish(head, &seen);
}
