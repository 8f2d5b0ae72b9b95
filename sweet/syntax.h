/* SPDX-License-Identifier: MIT */
/*
 * syntax.h - the classes of bytes that HTTP's grammars are made of (RFC 9110,
 * section 5).  For what is not read for every request; request.c has a table.
 */
#ifndef SWEET_SYNTAX_H
#define SWEET_SYNTAX_H

#include <stdbool.h>
#include <string.h>

/* tchar: of a method, a field name, a parameter. */
static inline bool syntax_is_token(char byte)
{
	if ((byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
	    (byte >= 'a' && byte <= 'z'))
		return true;
	return byte != '\0' && strchr("!#$%&'*+-.^_`|~", byte) != NULL;
}

/* Of a field value, blanks included. */
static inline bool syntax_is_value(char byte)
{
	unsigned char code = (unsigned char)byte;

	return code == '\t' || (code >= 0x20 && code != 0x7f);
}

static inline bool syntax_is_blank(char byte)
{
	return byte == ' ' || byte == '\t';
}

#endif
