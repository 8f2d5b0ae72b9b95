/* SPDX-License-Identifier: MIT */
/*
 * uri.c - decodes and normalises the path of a request target.
 *
 * One pass from the raw bytes to the caller's buffer; the caller owns both.  No
 * state, no allocation: any thread may call it.  Dot segments are removed after
 * decoding, so that "%2e%2e" is treated exactly as "..".
 */
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "http/uri.h"

static int hex_digit(char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	byte |= 0x20;
	if (byte >= 'a' && byte <= 'f')
		return byte - 'a' + 10;
	return -1;
}

static bool is_escaped_slash(const char *at, const char *end)
{
	return end - at >= 3 && at[0] == '%' && at[1] == '2' && (at[2] | 0x20) == 'f';
}

/* Returns the bytes of a slash that separates segments; 0: there is none. */
static size_t separator(const char *at, const char *end, enum uri_slash slash)
{
	if (*at == '/')
		return 1;
	return slash == URI_SLASH_DECODE && is_escaped_slash(at, end) ? 3 : 0;
}

/* Decodes one byte of a segment at *at and moves *at; returns -1 if it is not permitted. */
static int next_byte(const char **at, const char *end)
{
	const char *from = *at;
	int byte = (unsigned char)*from;
	int high, low;

	if (byte == '%') {
		if (end - from < 3)
			return -1;
		high = hex_digit(from[1]);
		low = hex_digit(from[2]);
		if (high < 0 || low < 0)
			return -1;
		byte = high << 4 | low;
		/*
		 * The sender may mean an escaped slash as data; open(2) would read it
		 * as a separator.
		 */
		if (byte == '/')
			return -1;
		from += 2;
	}
	if (byte < 0x20 || byte == 0x7f)
		return -1;
	*at = from + 1;
	return byte;
}

/* Returns 1 if out[start, length) is the segment ".", 2 if it is "..", else 0. */
static int dots(const char *out, size_t start, size_t length)
{
	size_t bytes = length - start;

	if (bytes == 1 && out[start] == '.')
		return 1;
	if (bytes == 2 && out[start] == '.' && out[start + 1] == '.')
		return 2;
	return 0;
}

int uri_decode_path(struct slice raw, enum uri_slash slash, char *out, size_t out_size)
{
	const char *at = raw.at;
	const char *end = raw.at + raw.length;
	size_t length = 0; /* out[0, length) is written */
	size_t start;	   /* start of the current segment in out, after its slash */
	size_t step = 0;   /* bytes of the slash behind the segment */
	int byte;

	if (raw.length == 0 || *at != '/')
		return -400;
	if (out_size > INT_MAX)
		out_size = INT_MAX;
	if (out_size < 2)
		return -414;
	out[length++] = '/';
	at++;

	/* Here out always ends with the slash before the next segment. */
	while (at < end) {
		start = length;
		while (at < end && !(step = separator(at, end, slash))) {
			if (slash == URI_SLASH_KEEP && is_escaped_slash(at, end)) {
				if (length + 3 >= out_size)
					return -414;
				memcpy(out + length, "%2F", 3);
				length += 3;
				at += 3;
				continue;
			}
			byte = next_byte(&at, end);
			if (byte < 0)
				return -400;
			if (length + 1 >= out_size)
				return -414;
			out[length++] = (char)byte;
		}
		switch (dots(out, start, length)) {
		case 2:
			if (start == 1)
				return -400;
			/* Go back before the slash, then before the previous segment. */
			length = start - 1;
			while (out[length - 1] != '/')
				length--;
			break;
		case 1:
			length = start;
			break;
		}
		if (at == end)
			break;
		at += step;
		if (out[length - 1] != '/') {
			if (length + 1 >= out_size)
				return -414;
			out[length++] = '/';
		}
	}
	out[length] = '\0';
	return (int)length;
}

bool uri_has_dot_parameter(const char *path)
{
	const char *at = path;

	while ((at = strstr(at, ".;"))) {
		const char *start = at;

		if (start > path && start[-1] == '.')
			start--;
		if (start > path && start[-1] == '/')
			return true;
		at += 2;
	}
	return false;
}

bool uri_without_parameters(const char *path, char *out)
{
	char last = '\0';

	if (!strchr(path, ';'))
		return false;
	while (*path) {
		if (*path == ';')
			path += strcspn(path, "/");
		else if (*path == '/' && last == '/')
			path++;
		else
			*out++ = last = *path++;
	}
	*out = '\0';
	return true;
}

/* pchar of RFC 3986 without '%', and the slash. */
static bool is_plain(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= '0' && byte <= '9') ||
	       (byte != '\0' && strchr("-._~!$&'()*+,;=:@/", byte) != NULL);
}

size_t uri_escape(char byte, char out[3])
{
	static const char digits[] = "0123456789ABCDEF";
	unsigned char value = (unsigned char)byte;

	if (is_plain(byte)) {
		out[0] = byte;
		return 1;
	}
	out[0] = '%';
	out[1] = digits[value >> 4];
	out[2] = digits[value & 15];
	return 3;
}

struct slice uri_without_port(struct slice host)
{
	size_t length = host.length;

	while (length && host.at[length - 1] >= '0' && host.at[length - 1] <= '9')
		length--;
	if (length && host.at[length - 1] == ':')
		host.length = length - 1;
	return host;
}
