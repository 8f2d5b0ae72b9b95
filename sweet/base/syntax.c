/* SPDX-License-Identifier: MIT */
/*
 * syntax.c - see syntax.h.  One table lookup for each byte of a head, because the
 * server parses a head for every request.
 */
#include "base/syntax.h"

#define TOKEN SYNTAX_TOKEN
#define VALUE SYNTAX_VALUE
#define TEXT (SYNTAX_TARGET | SYNTAX_VALUE)
#define ALL (SYNTAX_TOKEN | SYNTAX_TARGET | SYNTAX_VALUE | SYNTAX_HOST)

const uint8_t syntax_classes[256] = {
	['\t'] = VALUE,	       [' '] = VALUE,
	['!'] = TOKEN | TEXT,  ['"'] = TEXT,
	['#'] = TOKEN | VALUE, ['$' ... '\''] = TOKEN | TEXT,
	['(' ... ')'] = TEXT,  ['*' ... '+'] = TOKEN | TEXT,
	[','] = TEXT,	       ['-' ... '.'] = ALL,
	['/'] = TEXT,	       ['0' ... '9'] = ALL,
	[':' ... '@'] = TEXT,  ['A' ... 'Z'] = ALL,
	['[' ... ']'] = TEXT,  ['^'] = TOKEN | TEXT,
	['_'] = ALL,	       ['`'] = TOKEN | TEXT,
	['a' ... 'z'] = ALL,   ['{'] = TEXT,
	['|'] = TOKEN | TEXT,  ['}'] = TEXT,
	['~'] = ALL,	       [0x80 ... 0xff] = VALUE,
};
