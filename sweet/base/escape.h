/* SPDX-License-Identifier: MIT */
/*
 * escape.h - bytes of strangers in what an operator reads: logs.
 *
 * All functions write to memory that has room for ESCAPE_MOST bytes for each
 * byte of the text, and return the end of what they have written.
 */
#ifndef SWEET_ESCAPE_H
#define SWEET_ESCAPE_H

#include "base/slice.h"

#define ESCAPE_MOST 6

/*
 * Within quotes: all but printable ASCII, the quote and the backslash as \x
 * and two digits.
 */
char *escape_quoted(char *to, struct slice text);

/* A field that ends at a space: that is escaped as well. */
char *escape_word(char *to, struct slice text);

/*
 * Within a JSON string (RFC 8259, section 7).  UTF-8 stays; control characters
 * are written as \u00XX, and so is each byte that is no UTF-8.
 */
char *escape_json(char *to, struct slice text);

/* A line for people: control characters and what is no UTF-8 as \x and two digits. */
char *escape_message(char *to, struct slice text);

#endif
