/* SPDX-License-Identifier: MIT */
/*
 * escape.c - see escape.h.  Pure; any thread.
 *
 * Most text that clients send needs no escape, so plain text is checked and copied
 * eight bytes at a time.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/escape.h"

#define ONES UINT64_C(0x0101010101010101)
#define HIGHS (ONES * 0x80)

/* Returns true if a byte of the word is zero. */
static bool has_zero(uint64_t word)
{
	return (word - ONES) & ~word & HIGHS;
}

/* Returns true if all eight bytes are printable ASCII, without quote and backslash. */
static bool plain_word(uint64_t word)
{
	return !(word & HIGHS) && !((word - ONES * 0x20) & HIGHS) && !has_zero(word ^ ONES * '"') &&
	       !has_zero(word ^ ONES * '\\') && !has_zero(word ^ ONES * 0x7f);
}

static bool plain_byte(unsigned char byte)
{
	return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

/* Copies the plain bytes from index at; returns the index of the first other byte. */
static size_t copy_plain(char **to, struct slice text, size_t at)
{
	char *end = *to;
	uint64_t word;

	while (text.length - at >= sizeof(word)) {
		memcpy(&word, text.at + at, sizeof(word));
		if (!plain_word(word))
			break;
		memcpy(end, &word, sizeof(word));
		end += sizeof(word);
		at += sizeof(word);
	}
	while (at < text.length && plain_byte((unsigned char)text.at[at]))
		*end++ = text.at[at++];
	*to = end;
	return at;
}

static char *write_hex(char *to, const char *prefix, size_t length, unsigned char byte)
{
	static const char digits[] = "0123456789abcdef";

	memcpy(to, prefix, length);
	to[length] = digits[byte >> 4];
	to[length + 1] = digits[byte & 15];
	return to + length + 2;
}

char *escape_quoted(char *to, struct slice text)
{
	for (size_t at = 0; (at = copy_plain(&to, text, at)) < text.length; at++)
		to = write_hex(to, "\\x", 2, (unsigned char)text.at[at]);
	return to;
}

char *escape_word(char *to, struct slice text)
{
	for (size_t at = 0; at < text.length; at++) {
		unsigned char byte = (unsigned char)text.at[at];

		if (plain_byte(byte) && byte != ' ')
			*to++ = (char)byte;
		else
			to = write_hex(to, "\\x", 2, byte);
	}
	return to;
}

/*
 * Returns the length of the character that at points to if it is well-formed
 * non-ASCII UTF-8 (RFC 3629: shortest form, no surrogates, up to U+10FFFF) and no
 * control character; else 0.
 */
static size_t utf8_length(const unsigned char *at, size_t left)
{
	unsigned char lowest = 0x80, highest = 0xbf;
	size_t length;

	if (at[0] >= 0xc2 && at[0] <= 0xdf)
		length = 2;
	else if (at[0] >= 0xe0 && at[0] <= 0xef)
		length = 3;
	else if (at[0] >= 0xf0 && at[0] <= 0xf4)
		length = 4;
	else
		return 0;
	if (at[0] == 0xc2 || at[0] == 0xe0)
		lowest = 0xa0; /* no U+0080 to U+009F; no overlong form */
	else if (at[0] == 0xed)
		highest = 0x9f;
	else if (at[0] == 0xf0)
		lowest = 0x90;
	else if (at[0] == 0xf4)
		highest = 0x8f;
	if (left < length || at[1] < lowest || at[1] > highest)
		return 0;
	for (size_t i = 2; i < length; i++)
		if (at[i] < 0x80 || at[i] > 0xbf)
			return 0;
	return length;
}

static size_t copy_utf8(char **to, struct slice text, size_t at)
{
	size_t length = utf8_length((const unsigned char *)text.at + at, text.length - at);

	memcpy(*to, text.at + at, length);
	*to += length;
	return length;
}

/*
 * Keeps well-formed UTF-8; writes other bytes in hex, but a quote or backslash as
 * mark and itself.
 */
static char *escape_text(char *to, struct slice text, const char *prefix, const char *mark)
{
	const size_t prefix_length = strlen(prefix), mark_length = strlen(mark);

	for (size_t at = 0; (at = copy_plain(&to, text, at)) < text.length;) {
		unsigned char byte = (unsigned char)text.at[at];
		size_t length = copy_utf8(&to, text, at);

		at += length ? length : 1;
		if (length)
			continue;
		if (byte == '"' || byte == '\\') {
			memcpy(to, mark, mark_length);
			to += mark_length;
			*to++ = (char)byte;
		} else {
			to = write_hex(to, prefix, prefix_length, byte);
		}
	}
	return to;
}

char *escape_json(char *to, struct slice text)
{
	return escape_text(to, text, "\\u00", "\\");
}

char *escape_message(char *to, struct slice text)
{
	return escape_text(to, text, "\\x", "");
}
