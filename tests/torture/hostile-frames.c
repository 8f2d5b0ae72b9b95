/* SPDX-License-Identifier: MIT */
/*
 * hostile-frames.c - sessions of HTTP/2 (RFC 9113) that are written as bytes, since no library
 * would.  Pure.
 */
#include <stdint.h>
#include <string.h>

#include "hostile-frames.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
/* GET, http, / or a path, and an authority (RFC 7541). */
#define ROOT "\x82\x86\x84\x01\x04test"
#define BIG "\x82\x86\x04\x04/big\x01\x04test"
#define STREAMS 2000 /* of a session; the server ends it before */
#define VALUE 4000   /* bytes of a field in the table */
#define NAMED 8000   /* times that a head names it */
#define HEADS 10
#define FRAME_HEAD 9

enum { HEADERS = 1, SETTINGS = 4, WINDOW = 8 };
enum { END_STREAM = 1, END_HEADERS = 4 };

static char *number(char *to, unsigned bytes, uint32_t value)
{
	while (bytes--)
		*to++ = (char)(value >> 8 * bytes);
	return to;
}

static char *frame(char *to, unsigned kind, unsigned flags, uint32_t stream, const char *payload,
		   size_t length)
{
	to = number(to, 3, (uint32_t)length);
	to = number(to, 1, kind);
	to = number(to, 1, flags);
	to = number(to, 4, stream);
	memcpy(to, payload, length);
	return to + length;
}

static char *hello(char *to)
{
	memcpy(to, PREFACE, sizeof(PREFACE) - 1);
	return frame(to + sizeof(PREFACE) - 1, SETTINGS, 0, 0, "", 0);
}

static char *request(char *to, uint32_t stream, const char *head, size_t length)
{
	return frame(to, HEADERS, END_STREAM | END_HEADERS, stream, head, length);
}

size_t frames_refused(char *text)
{
	char *to = hello(text);

	/* They stay, as nobody opens their windows. */
	for (uint32_t at = 0; at < STREAMS; at++)
		to = request(to, 2 * at + 1, BIG, sizeof(BIG) - 1);
	return (size_t)(to - text);
}

size_t frames_reset(char *text)
{
	static const char nothing[4];
	char *to = hello(text);

	for (uint32_t at = 0; at < STREAMS; at++) {
		to = request(to, 2 * at + 1, ROOT, sizeof(ROOT) - 1);
		to = frame(to, WINDOW, 0, 2 * at + 1, nothing, sizeof(nothing));
	}
	return (size_t)(to - text);
}

size_t frames_hpack(char *text)
{
	static char head[16384];
	char *to = hello(text), *end = head;

	memcpy(end, ROOT, sizeof(ROOT) - 1);
	end += sizeof(ROOT) - 1;
	/* A literal with a name of one byte, for the table; the length has a prefix of 7 bits. */
	memcpy(end,
	       "\x40\x01"
	       "a\x7f",
	       4);
	end += 4;
	*end++ = (char)((VALUE - 127) & 0x7f) | (char)0x80;
	*end++ = (char)((VALUE - 127) >> 7);
	memset(end, 'b', VALUE);
	end += VALUE;
	memset(end, 0xbe, NAMED);
	to = request(to, 1, head, (size_t)(end + NAMED - head));
	memset(head + sizeof(ROOT) - 1, 0xbe, NAMED);
	for (uint32_t at = 1; at < HEADS; at++)
		to = request(to, 2 * at + 1, head, sizeof(ROOT) - 1 + NAMED);
	return (size_t)(to - text);
}
