/* SPDX-License-Identifier: MIT */
/*
 * fields.h - the fields of a response's head as data: read once from the lines of a program or of
 * the server, changed, and written once.
 *
 * Names and values are slices of the caller's memory, which must last as long.  Names that the
 * server knows have an id, so that they are compared and selected as numbers.
 */
#ifndef SWEET_FIELDS_H
#define SWEET_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* By length, then by name: fields.c searches those of one length. */
enum field_id {
	FIELD_OTHER, /* a name that is not known */
	FIELD_TE,
	FIELD_AGE,
	FIELD_DATE,
	FIELD_ETAG,
	FIELD_VARY,
	FIELD_ALLOW,
	FIELD_DIGEST,
	FIELD_SERVER,
	FIELD_STATUS,
	FIELD_EXPIRES,
	FIELD_TRAILER,
	FIELD_UPGRADE,
	FIELD_LOCATION,
	FIELD_CACHE_TAG,
	FIELD_CONNECTION,
	FIELD_KEEP_ALIVE,
	FIELD_SET_COOKIE,
	FIELD_X_NABC_TAG,
	FIELD_X_SENDFILE,
	FIELD_CONTENT_MD5,
	FIELD_REPR_DIGEST,
	FIELD_RETRY_AFTER,
	FIELD_CONTENT_TYPE,
	FIELD_X_NABC_PURGE,
	FIELD_X_REQUEST_ID,
	FIELD_ACCEPT_RANGES,
	FIELD_CACHE_CONTROL,
	FIELD_CONTENT_RANGE,
	FIELD_LAST_MODIFIED,
	FIELD_SURROGATE_KEY,
	FIELD_CONTENT_DIGEST,
	FIELD_CONTENT_LENGTH,
	FIELD_CONTENT_ENCODING,
	FIELD_CONTENT_LOCATION,
	FIELD_WWW_AUTHENTICATE,
	FIELD_X_ACCEL_REDIRECT,
	FIELD_TRANSFER_ENCODING,
	FIELD_X_NABC_SOFT_PURGE,
	FIELD_IDS
};

/* A set of known names. */
typedef uint64_t field_set;

#define FIELD_BIT(id) (UINT64_C(1) << (id))

struct field {
	enum field_id id;
	struct slice name;
	struct slice value; /* without surrounding blanks */
	struct slice line;  /* as it was read, without its end; no bytes: it was not */
};

enum field_id field_id(struct slice name);

/* Return the name of an id but FIELD_OTHER, as HTTP/1.1 and as HTTP/2 usually write it. */
struct slice field_name(enum field_id id);
struct slice field_lower_name(enum field_id id);

/* Returns a field of a known name. */
static inline struct field field_of(enum field_id id, struct slice value)
{
	return (struct field){.id = id, .name = field_name(id), .value = value};
}

/* Returns true if a program may not set the field: it concerns one hop, or only the server. */
bool field_is_withheld(const struct field *field);

/* FIELD_OTHER is in no set. */
static inline bool field_is_in(const struct field *field, field_set set)
{
	return (set & ~FIELD_BIT(FIELD_OTHER)) >> field->id & 1;
}

static inline bool field_has_name(const struct field *field, enum field_id id, struct slice name)
{
	return field->id == id && (id != FIELD_OTHER || slice_same(field->name, name));
}

/*
 * Reads the first of the lines, which CRLF or LF ends, and removes it from *rest.  Returns false at
 * the end, and at a line that is not safe to send, which then stays in *rest: it is not a token, a
 * colon and a value without control characters other than HTAB.
 */
bool field_next(struct slice *rest, struct field *field);

/* Returns the bytes of the field's line, with CRLF. */
size_t field_size(const struct field *field);

/* Writes that line, as it was read if it was; returns its end. */
char *field_write(const struct field *field, char *at);

/*
 * Copies the lines whose names are in the set, or the others, with their ends.  Returns the bytes;
 * out has space for all, and may be the lines' own memory.
 */
size_t field_filter(struct slice lines, field_set set, bool listed, char *out);

/* --- lists ------------------------------------------------------------------------------------ */

#define FIELDS_USUAL 16u /* of a head; more need memory */

/* fields_init() makes it empty. */
struct fields {
	struct field *at;
	size_t count, room;
	struct field *allocated;
	bool failed; /* there was no memory for a field: the list is not complete */
	struct field few[FIELDS_USUAL];
};

static inline void fields_init(struct fields *fields)
{
	fields->at = fields->few;
	fields->count = 0;
	fields->room = FIELDS_USUAL;
	fields->allocated = NULL;
	fields->failed = false;
}

void fields_free_memory(struct fields *fields);

/* Makes it empty. */
static inline void fields_free(struct fields *fields)
{
	if (fields->allocated)
		fields_free_memory(fields);
	fields_init(fields);
}

/* Makes room for that many more; returns false if fields are missing, or without memory. */
bool fields_reserve(struct fields *fields, size_t more);

/* Appends a field. */
void fields_add(struct fields *fields, struct field field);

/*
 * Appends the fields of valid lines: the server has written each one, or field_next() has accepted
 * it, which is not checked again.
 */
void fields_read(struct fields *fields, struct slice lines);

/* Returns the first field of a known name, or NULL. */
const struct field *fields_find(const struct fields *fields, enum field_id id);

/* Removes the fields whose names are in the set. */
void fields_remove(struct fields *fields, field_set set);

/* Removes the fields of one name, known or FIELD_OTHER. */
void fields_remove_name(struct fields *fields, enum field_id id, struct slice name);

/*
 * Removes the fields whose names `added` has, and appends that; but those of the names in `stay`
 * stay as they are, and are not appended.
 */
void fields_replace(struct fields *fields, const struct fields *added, field_set stay);

/*
 * Puts the lines of another responder into a head: they replace its fields of their names, but a
 * type that describes the parts of its body (multipart/byteranges) stays.
 */
void fields_merge(struct fields *fields, struct slice lines);

/* Returns the bytes of all lines. */
size_t fields_size(const struct fields *fields);

/* Writes the lines of HTTP/1.1; returns their end. */
char *fields_write(const struct fields *fields, char *at);

#endif
