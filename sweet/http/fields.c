/* SPDX-License-Identifier: MIT */
/*
 * fields.c - see fields.h.  No state: any thread may call it.
 *
 * A program's lines are as untrusted as a client's: a line that could end the head early, or that
 * clients could read in two ways, is not read.
 */
#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/scan.h"
#include "base/slice.h"
#include "base/syntax.h"
#include "http/field.h"
#include "http/fields.h"

/* --- names ------------------------------------------------------------------------------------ */

static const struct known {
	struct slice name, lower;
} known[FIELD_IDS] = {
#define NAME(id, written, lower) [FIELD_##id] = {SLICE_OF(written), SLICE_OF(lower)}
	NAME(TE, "TE", "te"),
	NAME(AGE, "Age", "age"),
	NAME(DATE, "Date", "date"),
	NAME(ETAG, "ETag", "etag"),
	NAME(VARY, "Vary", "vary"),
	NAME(ALLOW, "Allow", "allow"),
	NAME(DIGEST, "Digest", "digest"),
	NAME(SERVER, "Server", "server"),
	NAME(STATUS, "Status", "status"),
	NAME(EXPIRES, "Expires", "expires"),
	NAME(TRAILER, "Trailer", "trailer"),
	NAME(UPGRADE, "Upgrade", "upgrade"),
	NAME(LOCATION, "Location", "location"),
	NAME(CACHE_TAG, "Cache-Tag", "cache-tag"),
	NAME(CONNECTION, "Connection", "connection"),
	NAME(KEEP_ALIVE, "Keep-Alive", "keep-alive"),
	NAME(SET_COOKIE, "Set-Cookie", "set-cookie"),
	NAME(X_NABC_TAG, "X-NABC-Tag", "x-nabc-tag"),
	NAME(X_SENDFILE, "X-Sendfile", "x-sendfile"),
	NAME(CONTENT_MD5, "Content-MD5", "content-md5"),
	NAME(REPR_DIGEST, "Repr-Digest", "repr-digest"),
	NAME(RETRY_AFTER, "Retry-After", "retry-after"),
	NAME(CONTENT_TYPE, "Content-Type", "content-type"),
	NAME(X_NABC_PURGE, "X-NABC-Purge", "x-nabc-purge"),
	NAME(X_REQUEST_ID, "X-Request-Id", "x-request-id"),
	NAME(ACCEPT_RANGES, "Accept-Ranges", "accept-ranges"),
	NAME(CACHE_CONTROL, "Cache-Control", "cache-control"),
	NAME(CONTENT_RANGE, "Content-Range", "content-range"),
	NAME(LAST_MODIFIED, "Last-Modified", "last-modified"),
	NAME(SURROGATE_KEY, "Surrogate-Key", "surrogate-key"),
	NAME(CONTENT_DIGEST, "Content-Digest", "content-digest"),
	NAME(CONTENT_LENGTH, "Content-Length", "content-length"),
	NAME(CONTENT_ENCODING, "Content-Encoding", "content-encoding"),
	NAME(CONTENT_LOCATION, "Content-Location", "content-location"),
	NAME(WWW_AUTHENTICATE, "WWW-Authenticate", "www-authenticate"),
	NAME(X_ACCEL_REDIRECT, "X-Accel-Redirect", "x-accel-redirect"),
	NAME(TRANSFER_ENCODING, "Transfer-Encoding", "transfer-encoding"),
	NAME(X_NABC_SOFT_PURGE, "X-NABC-Soft-Purge", "x-nabc-soft-purge"),
#undef NAME
};

/* The names of each length: the first one, and the one after the last. */
static const struct names {
	unsigned char from, to;
} of_length[] = {
	[2] = {FIELD_TE, FIELD_AGE},
	[3] = {FIELD_AGE, FIELD_DATE},
	[4] = {FIELD_DATE, FIELD_ALLOW},
	[5] = {FIELD_ALLOW, FIELD_DIGEST},
	[6] = {FIELD_DIGEST, FIELD_EXPIRES},
	[7] = {FIELD_EXPIRES, FIELD_LOCATION},
	[8] = {FIELD_LOCATION, FIELD_CACHE_TAG},
	[9] = {FIELD_CACHE_TAG, FIELD_CONNECTION},
	[10] = {FIELD_CONNECTION, FIELD_CONTENT_MD5},
	[11] = {FIELD_CONTENT_MD5, FIELD_CONTENT_TYPE},
	[12] = {FIELD_CONTENT_TYPE, FIELD_ACCEPT_RANGES},
	[13] = {FIELD_ACCEPT_RANGES, FIELD_CONTENT_DIGEST},
	[14] = {FIELD_CONTENT_DIGEST, FIELD_CONTENT_ENCODING},
	[16] = {FIELD_CONTENT_ENCODING, FIELD_TRANSFER_ENCODING},
	[17] = {FIELD_TRANSFER_ENCODING, FIELD_IDS},
};

enum field_id field_id(struct slice name)
{
	struct names names;

	if (name.length >= G_N_ELEMENTS(of_length))
		return FIELD_OTHER;
	names = of_length[name.length];
	/* The last letters differ more than the first ones. */
	for (unsigned id = names.from; id < names.to; id++)
		if ((name.at[name.length - 1] | 0x20) == known[id].lower.at[name.length - 1] &&
		    (memcmp(name.at, known[id].name.at, name.length) == 0 ||
		     slice_same(name, known[id].lower)))
			return (enum field_id)id;
	return FIELD_OTHER;
}

static bool begins_with(struct slice slice, struct slice prefix)
{
	return slice.length >= prefix.length &&
	       slice_same((struct slice){slice.at, prefix.length}, prefix);
}

bool field_is_withheld(const struct field *field)
{
	static const field_set names =
		FIELD_BIT(FIELD_CONNECTION) | FIELD_BIT(FIELD_KEEP_ALIVE) | FIELD_BIT(FIELD_TE) |
		FIELD_BIT(FIELD_TRAILER) | FIELD_BIT(FIELD_TRANSFER_ENCODING) |
		FIELD_BIT(FIELD_UPGRADE) | FIELD_BIT(FIELD_CONTENT_LENGTH) | FIELD_BIT(FIELD_DATE) |
		FIELD_BIT(FIELD_SERVER) | FIELD_BIT(FIELD_STATUS) | FIELD_BIT(FIELD_X_SENDFILE) |
		FIELD_BIT(FIELD_X_ACCEL_REDIRECT) | FIELD_BIT(FIELD_X_NABC_TAG) |
		FIELD_BIT(FIELD_X_NABC_PURGE) | FIELD_BIT(FIELD_X_NABC_SOFT_PURGE) |
		/* Tags, for the response cache alone. */
		FIELD_BIT(FIELD_SURROGATE_KEY) | FIELD_BIT(FIELD_CACHE_TAG);

	if (field->id != FIELD_OTHER)
		return field_is_in(field, names);
	return begins_with(field->name, SLICE("Proxy-")) ||
	       begins_with(field->name, SLICE("X-NABC-")) ||
	       begins_with(field->name, SLICE("X-Accel-"));
}

struct slice field_name(enum field_id id)
{
	return known[id].name;
}

struct slice field_lower_name(enum field_id id)
{
	return known[id].lower;
}

/* --- lines ------------------------------------------------------------------------------------ */

bool field_next(struct slice *rest, struct field *field)
{
	/* It is in no class, and ends each scan. */
	const char *end = rest->length ? memchr(rest->at, '\n', rest->length) : NULL, *at;

	if (!end)
		return false;
	at = scan_token(rest->at, end);
	field->name = (struct slice){rest->at, (size_t)(at - rest->at)};
	if (field->name.length == 0 || *at != ':')
		return false;
	field->value.at = ++at;
	at = scan_value(at, end);
	if (at != end && (*at != '\r' || at + 1 != end))
		return false;
	field->id = field_id(field->name);
	field->value.length = (size_t)(at - field->value.at);
	field->value = field_trim(field->value);
	field->line = (struct slice){rest->at, (size_t)(at - rest->at)};
	rest->length -= (size_t)(end + 1 - rest->at);
	rest->at = end + 1;
	return true;
}

size_t field_size(const struct field *field)
{
	return (field->line.length ? field->line.length
				   : field->name.length + strlen(": ") + field->value.length) +
	       strlen("\r\n");
}

static char *put(char *at, struct slice text)
{
	/* The pointer of an empty slice may be NULL. */
	if (text.length)
		memcpy(at, text.at, text.length);
	return at + text.length;
}

char *field_write(const struct field *field, char *at)
{
	if (field->line.length)
		at = put(at, field->line);
	else
		at = put(put(put(at, field->name), SLICE(": ")), field->value);
	return put(at, SLICE("\r\n"));
}

size_t field_filter(struct slice lines, field_set set, bool listed, char *out)
{
	struct field field;
	char *at = out;

	while (field_next(&lines, &field)) {
		size_t length = (size_t)(lines.at - field.line.at);

		if (field_is_in(&field, set) != listed)
			continue;
		memmove(at, field.line.at, length);
		at += length;
	}
	return (size_t)(at - out);
}

/* --- lists ------------------------------------------------------------------------------------ */

static bool grow(struct fields *fields)
{
	size_t room = 2 * fields->room;
	struct field *at = g_try_renew(struct field, fields->allocated, room);

	if (!at)
		return false;
	if (!fields->allocated)
		memcpy(at, fields->at, fields->count * sizeof(*at));
	fields->at = fields->allocated = at;
	fields->room = room;
	return true;
}

void fields_free_memory(struct fields *fields)
{
	g_free(fields->allocated);
}

bool fields_reserve(struct fields *fields, size_t more)
{
	while (!fields->failed && fields->count + more > fields->room)
		fields->failed = !grow(fields);
	return !fields->failed;
}

/* Returns the place of one more field; NULL: no memory. */
static inline struct field *append(struct fields *fields)
{
	if (fields->count == fields->room && !grow(fields)) {
		fields->failed = true;
		return NULL;
	}
	return &fields->at[fields->count];
}

void fields_add(struct fields *fields, struct field field)
{
	struct field *place = append(fields);

	if (!place)
		return;
	*place = field;
	fields->count++;
}

/*
 * Finds a usual name, which the server writes in that case, at the start of a line of `left` bytes.
 * The compiler compares texts of a known length as numbers.
 */
static inline enum field_id find_usual(const char *line, size_t left)
{
#define TRY(id, written)                                                                           \
	if (left > sizeof(written) && memcmp(line, written ":", sizeof(written)) == 0)             \
	return FIELD_##id
	switch (line[0]) {
	case 'A':
		TRY(ACCEPT_RANGES, "Accept-Ranges");
		break;
	case 'C':
		TRY(CONTENT_LENGTH, "Content-Length");
		TRY(CONTENT_TYPE, "Content-Type");
		TRY(CACHE_CONTROL, "Cache-Control");
		TRY(CONTENT_ENCODING, "Content-Encoding");
		TRY(CONTENT_RANGE, "Content-Range");
		break;
	case 'E':
		TRY(ETAG, "ETag");
		break;
	case 'L':
		TRY(LAST_MODIFIED, "Last-Modified");
		break;
	case 'S':
		TRY(SET_COOKIE, "Set-Cookie");
		break;
	case 'V':
		TRY(VARY, "Vary");
		break;
	}
#undef TRY
	return FIELD_OTHER;
}

/* As field_next(), of a line that is valid. */
static inline bool next_valid(struct slice *rest, struct field *field)
{
	const char *end = rest->length ? memchr(rest->at, '\n', rest->length) : NULL, *colon;
	const char *stop = end;

	if (!end)
		return false;
	field->id = find_usual(rest->at, (size_t)(end - rest->at));
	field->name.at = rest->at;
	field->name.length = known[field->id].name.length;
	if (field->id == FIELD_OTHER) {
		colon = memchr(rest->at, ':', (size_t)(end - rest->at));
		if (!colon)
			return false;
		field->name.length = (size_t)(colon - rest->at);
		field->id = field_id(field->name);
	}
	colon = rest->at + field->name.length + 1;
	if (stop > colon && stop[-1] == '\r')
		stop--;
	field->line = (struct slice){rest->at, (size_t)(stop - rest->at)};
	while (colon < stop && syntax_is_blank(*colon))
		colon++;
	while (stop > colon && syntax_is_blank(stop[-1]))
		stop--;
	field->value = (struct slice){colon, (size_t)(stop - colon)};
	rest->length -= (size_t)(end + 1 - rest->at);
	rest->at = end + 1;
	return true;
}

void fields_read(struct fields *fields, struct slice lines)
{
	struct field *place;

	while ((place = append(fields)) && next_valid(&lines, place))
		fields->count++;
}

const struct field *fields_find(const struct fields *fields, enum field_id id)
{
	for (size_t i = 0; i < fields->count; i++)
		if (fields->at[i].id == id)
			return &fields->at[i];
	return NULL;
}

void fields_remove(struct fields *fields, field_set set)
{
	size_t count = 0;

	for (size_t i = 0; i < fields->count; i++)
		if (!field_is_in(&fields->at[i], set))
			fields->at[count++] = fields->at[i];
	fields->count = count;
}

void fields_remove_name(struct fields *fields, enum field_id id, struct slice name)
{
	size_t count = 0;

	for (size_t i = 0; i < fields->count; i++)
		if (!field_has_name(&fields->at[i], id, name))
			fields->at[count++] = fields->at[i];
	fields->count = count;
}

static bool has(const struct fields *fields, const struct field *wanted)
{
	for (size_t i = 0; i < fields->count; i++)
		if (field_has_name(&fields->at[i], wanted->id, wanted->name))
			return true;
	return false;
}

void fields_replace(struct fields *fields, const struct fields *added, field_set stay)
{
	size_t count = 0;

	for (size_t i = 0; i < fields->count; i++)
		if (field_is_in(&fields->at[i], stay) || !has(added, &fields->at[i]))
			fields->at[count++] = fields->at[i];
	fields->count = count;
	for (size_t i = 0; i < added->count; i++)
		if (!field_is_in(&added->at[i], stay))
			fields_add(fields, added->at[i]);
	fields->failed |= added->failed;
}

/* A type of parts is that of the body which was made, whatever the type of the whole is. */
static bool has_parts(const struct fields *fields)
{
	const struct field *type = fields_find(fields, FIELD_CONTENT_TYPE);

	return type && begins_with(type->value, SLICE("multipart/byteranges"));
}

void fields_merge(struct fields *fields, struct slice lines)
{
	struct fields added;

	fields_init(&added);
	fields_read(&added, lines);
	fields_replace(fields, &added, has_parts(fields) ? FIELD_BIT(FIELD_CONTENT_TYPE) : 0);
	fields_free(&added);
}

size_t fields_size(const struct fields *fields)
{
	size_t size = 0;

	for (size_t i = 0; i < fields->count; i++)
		size += field_size(&fields->at[i]);
	return size;
}

char *fields_write(const struct fields *fields, char *at)
{
	for (size_t i = 0; i < fields->count; i++)
		at = field_write(&fields->at[i], at);
	return at;
}
