/* SPDX-License-Identifier: MIT */
/*
 * chunked.c - decodes the chunked transfer coding byte by byte; returns the content
 * in runs.
 *
 * A state machine without a buffer: the caller owns data and state, and may split
 * the data anywhere.  No allocation: any thread may call it.
 *
 * A front end that finds the end of a chunk elsewhere lets a request pass unseen
 * (request smuggling).  Therefore the parser is strict: lines end with CRLF, sizes
 * are hex digits only, blanks occur only where an extension may have them.
 * Extensions and trailers are checked and dropped.
 */

#include <stdbool.h>

#include "base/slice.h"
#include "base/syntax.h"
#include "http/chunked.h"

enum state {
	SIZE,	    /* digits of the next chunk's size */
	BLANK,	    /* after them or after an extension, before a semicolon */
	NAME_FIRST, /* of an extension, after its semicolon */
	NAME,
	NAME_BLANK,
	VALUE_FIRST, /* after its equals sign */
	VALUE,
	QUOTED,
	QUOTED_PAIR, /* after a backslash */
	QUOTED_END,  /* after the closing quote */
	SIZE_LF,     /* the end of the line */
	CONTENT,
	CONTENT_CR,
	CONTENT_LF,
	FIELD_FIRST, /* a trailer, or the end */
	FIELD_NAME,
	FIELD_VALUE,
	FIELD_LF,
	END_LF,
	OVER,
};

void chunked_init(struct chunked *chunked)
{
	*chunked = (struct chunked){.state = SIZE};
}

bool chunked_is_over(const struct chunked *chunked)
{
	return chunked->state == OVER;
}

uint64_t chunked_due(const struct chunked *chunked)
{
	/* Until the end of its line, the size may still grow. */
	return chunked->state == CONTENT ? chunked->left : 0;
}

static int digit_of(char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	byte |= 0x20;
	return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* What may follow a size or an extension; blanks only if another extension follows. */
static int after_size(char byte, bool blank)
{
	if (byte == ';')
		return NAME_FIRST;
	if (byte == '\r' && !blank)
		return SIZE_LF;
	return syntax_is_blank(byte) ? BLANK : -400;
}

static int on_size(struct chunked *chunked, char byte)
{
	int digit = digit_of(byte);

	if (digit < 0)
		return chunked->digits ? after_size(byte, false) : -400;
	if (chunked->digits++ == CHUNKED_DIGITS_MAX)
		return -400;
	chunked->left = chunked->left << 4 | (unsigned)digit;
	return SIZE;
}

/* Returns the next state within the extensions of a size line, or the negated status. */
static int on_extension(int state, char byte)
{
	switch (state) {
	case BLANK:
		return after_size(byte, true);
	case NAME_FIRST:
		return syntax_is_blank(byte) ? NAME_FIRST : syntax_is_token(byte) ? NAME : -400;
	case NAME:
		if (syntax_is_token(byte))
			return NAME;
		if (byte == '=')
			return VALUE_FIRST;
		return syntax_is_blank(byte) ? NAME_BLANK : after_size(byte, false);
	case NAME_BLANK:
		if (byte == '=')
			return VALUE_FIRST;
		return syntax_is_blank(byte) ? NAME_BLANK : after_size(byte, true);
	case VALUE_FIRST:
		if (byte == '"')
			return QUOTED;
		return syntax_is_blank(byte) ? VALUE_FIRST : syntax_is_token(byte) ? VALUE : -400;
	case VALUE:
		return syntax_is_token(byte) ? VALUE : after_size(byte, false);
	case QUOTED:
		if (byte == '"')
			return QUOTED_END;
		return byte == '\\' ? QUOTED_PAIR : syntax_is_value(byte) ? QUOTED : -400;
	case QUOTED_PAIR:
		return syntax_is_value(byte) ? QUOTED : -400;
	default: /* QUOTED_END */
		return after_size(byte, false);
	}
}

static int on_trailer(int state, char byte)
{
	switch (state) {
	case FIELD_FIRST:
		return byte == '\r' ? END_LF : syntax_is_token(byte) ? FIELD_NAME : -400;
	case FIELD_NAME:
		return byte == ':' ? FIELD_VALUE : syntax_is_token(byte) ? FIELD_NAME : -400;
	case FIELD_VALUE:
		return byte == '\r' ? FIELD_LF : syntax_is_value(byte) ? FIELD_VALUE : -400;
	case FIELD_LF:
		return byte == '\n' ? FIELD_FIRST : -400;
	default: /* END_LF */
		return byte == '\n' ? OVER : -400;
	}
}

/* Processes one byte that is not content. */
static int on_byte(struct chunked *chunked, char byte)
{
	int state = chunked->state;

	if (state == SIZE)
		return on_size(chunked, byte);
	if (state == SIZE_LF) {
		chunked->digits = 0;
		return byte != '\n' ? -400 : chunked->left ? CONTENT : FIELD_FIRST;
	}
	if (state == CONTENT_CR)
		return byte == '\r' ? CONTENT_LF : -400;
	if (state == CONTENT_LF)
		return byte == '\n' ? SIZE : -400;
	if (state < SIZE_LF)
		return chunked->extensions++ < CHUNKED_EXTENSIONS_MAX ? on_extension(state, byte)
								      : -431;
	return chunked->trailers++ < CHUNKED_TRAILERS_MAX ? on_trailer(state, byte) : -431;
}

ssize_t chunked_decode(struct chunked *chunked, const char *data, size_t length, struct slice *run)
{
	size_t at = 0;

	*run = (struct slice){data, 0};
	while (at < length && chunked->state != OVER) {
		int next;

		if (chunked->state == CONTENT) {
			size_t rest = length - at;

			*run = (struct slice){data + at,
					      chunked->left < rest ? (size_t)chunked->left : rest};
			chunked->left -= run->length;
			if (chunked->left == 0)
				chunked->state = CONTENT_CR;
			return (ssize_t)(at + run->length);
		}
		next = on_byte(chunked, data[at++]);
		if (next < 0)
			return next;
		chunked->state = (uint8_t)next;
	}
	return (ssize_t)at;
}
