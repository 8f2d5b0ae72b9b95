/* SPDX-License-Identifier: MIT */
/*
 * field.h - header lines, and what stands in the values of fields (RFC 9110,
 * section 5).
 */
#ifndef SWEET_FIELD_H
#define SWEET_FIELD_H

#include <stdint.h>

#include "base/slice.h"

/* The bytes of a line's end, CRLF or LF, that data begins with; 0: none (yet). */
size_t field_line_end(const char *data, size_t length);

/*
 * Where lines are over that go on at data[at]: the offset behind their empty
 * line, or 0 when it is not there yet.
 */
size_t field_section_end(const char *data, size_t length, size_t at);

/*
 * Splits the first line off *rest: its name, and the whole line without its
 * end, CRLF or LF.  False when it is not safe to be sent: not a token, a colon
 * and a value without control characters but HTAB.
 */
bool field_line(struct slice *rest, struct slice *name, struct slice *line);

/* The value of such a line, without blanks around it. */
struct slice field_value(struct slice name, struct slice line);

/* Not a program's to set: it concerns one hop alone, or is for the server's eyes. */
bool field_is_withheld(struct slice name);

/* What the field Connection names: options, and fields that are for one hop alone. */
#define FIELD_OPTIONS_MAX 16u

struct field_options {
	unsigned count;
	struct slice names[FIELD_OPTIONS_MAX];
};

/* Adds those of one line's value; zeros are none.  False: they are more than there is room for. */
bool field_options_add(struct field_options *options, struct slice value);

/* Whether the field is for one hop alone. */
static inline bool field_options_have(const struct field_options *options, struct slice name)
{
	return slice_is_one_of(name, options->names, options->count);
}

/* Without blanks around it. */
struct slice field_trim(struct slice value);

/*
 * Splits the part before the next separator off *rest, trimmed; false when
 * there is no more.  A separator in a quoted string is none.
 */
bool field_part(struct slice *rest, char separator, struct slice *part);

/* Digits alone, at least one; what does not fit is UINT64_MAX. */
bool field_number(struct slice digits, uint64_t *value);

#endif
