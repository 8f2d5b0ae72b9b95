/* SPDX-License-Identifier: MIT */
/*
 * syntax.h - the classes of bytes that HTTP's grammars are made of (RFC 9110,
 * section 5; RFC 3986).
 */
#ifndef SWEET_SYNTAX_H
#define SWEET_SYNTAX_H

#include <stdbool.h>
#include <stdint.h>

enum syntax_class {
	SYNTAX_TOKEN = 1,  /* tchar: of a method, a field name, a parameter */
	SYNTAX_TARGET = 2, /* visible ASCII, but '#': fragments are not sent */
	SYNTAX_VALUE = 4,  /* of a field value, blanks included */
	SYNTAX_HOST = 8,   /* of a host name: RFC 3986 unreserved */
};

/* '\n' has no class at all: every loop over a class ends at a line's end. */
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
