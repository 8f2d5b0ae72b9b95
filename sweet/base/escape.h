/* SPDX-License-Identifier: MIT */
/*
 * escape.h - escapes untrusted bytes for the logs that an operator reads.
 *
 * All functions write into memory of at least ESCAPE_MOST bytes for each byte of
 * the text, and return the end of what they wrote.
 */
#ifndef SWEET_ESCAPE_H
#define SWEET_ESCAPE_H

#include "base/slice.h"

#define ESCAPE_MOST 6

/*
 * For text within quotes: writes non-printable and non-ASCII bytes, the quote and
 * the backslash as \x and two digits.
 */
char *escape_quoted(char *to, struct slice text);

/* For a field that ends at a space: escapes the space as well. */
char *escape_word(char *to, struct slice text);

/*
 * For text within a JSON string (RFC 8259, section 7).  Keeps UTF-8; writes control
 * characters, and bytes that are not UTF-8, as \u00XX.
 */
char *escape_json(char *to, struct slice text);

/*
 * For a line that people read: writes control characters and bytes that are not
 * UTF-8 as \x and two digits.
 */
char *escape_message(char *to, struct slice text);

#endif
