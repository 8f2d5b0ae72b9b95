/* SPDX-License-Identifier: MIT */
/*
 * field.h - the ends of header lines, and the syntax of field values (RFC 9110, section 5).
 */
#ifndef SWEET_FIELD_H
#define SWEET_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* Returns the bytes of the line end, CRLF or LF, at the start of data; 0: none (yet). */
size_t field_line_end(const char *data, size_t length);

/*
 * Returns the offset after the empty line that ends the lines in data, searching
 * from data[at]; 0 if there is none yet.
 */
size_t field_section_end(const char *data, size_t length, size_t at);

/*
 * Returns true if programs that make variables of fields could take the name for another one, as an
 * underscore for a hyphen: it has other bytes than letters, digits and hyphens.
 */
bool field_is_ambiguous(struct slice name);

/* The names in the field Connection: options, and fields that concern one hop only. */
#define FIELD_OPTIONS_MAX 16u

struct field_options {
	unsigned count;
	struct slice names[FIELD_OPTIONS_MAX];
};

/* Adds the names of one line's value; zeros: none.  Returns false if there are too many. */
bool field_options_add(struct field_options *options, struct slice value);

/* Returns true if the field concerns one hop only. */
static inline bool field_options_have(const struct field_options *options, struct slice name)
{
	return slice_is_one_of(name, options->names, options->count);
}

/* Returns the value without surrounding blanks. */
struct slice field_trim(struct slice value);

/*
 * Splits the trimmed part before the next separator off *rest; returns false at the
 * end.  Ignores separators in quoted strings.
 */
bool field_part(struct slice *rest, char separator, struct slice *part);

/* Parses digits only, at least one; a number that does not fit becomes UINT64_MAX. */
bool field_number(struct slice digits, uint64_t *value);

#endif
