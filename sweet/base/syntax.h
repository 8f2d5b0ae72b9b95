/* SPDX-License-Identifier: MIT */
/*
 * syntax.h - the character classes of HTTP's grammars (RFC 9110, section 5; RFC
 * 3986).
 */
#ifndef SWEET_SYNTAX_H
#define SWEET_SYNTAX_H

#include <stdbool.h>
#include <stdint.h>

enum syntax_class {
	SYNTAX_TOKEN = 1,  /* tchar: in methods, field names, parameters */
	SYNTAX_TARGET = 2, /* visible ASCII but '#': clients do not send fragments */
	SYNTAX_VALUE = 4,  /* in field values, with blanks */
	SYNTAX_HOST = 8,   /* in host names: RFC 3986 unreserved */
};

/* '\n' is in no class: every loop over a class stops at the end of a line. */
extern const uint8_t syntax_classes[256];

static inline bool syntax_is(char byte, unsigned classes)
{
	return syntax_classes[(unsigned char)byte] & classes;
}

static inline bool syntax_is_token(char byte)
{
	return syntax_is(byte, SYNTAX_TOKEN);
}

static inline bool syntax_is_value(char byte)
{
	return syntax_is(byte, SYNTAX_VALUE);
}

static inline bool syntax_is_blank(char byte)
{
	return byte == ' ' || byte == '\t';
}

#endif
