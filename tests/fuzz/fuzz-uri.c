/* SPDX-License-Identifier: MIT */
/*
 * fuzz-uri.c - the path of a target (sweet/http/uri.c), compared with a second decoder
 * that keeps a list of segments; and the redirect for a path, which must lead to the
 * same one (sweet/http/redirect.c).
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/redirect.h"
#include "http/uri.h"

#include "fuzz.h"

#define PATH_ROOM 8192
#define SEGMENTS_MAX 4096

static int hex(uint8_t byte)
{
	static const char digits[] = "0123456789abcdef";
	const char *at =
		byte ? strchr(digits, byte >= 'A' && byte <= 'F' ? byte + 32 : byte) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Decodes one segment into out; returns the number of its bytes, or -1. */
static int decode_segment(const uint8_t *raw, size_t length, char *out)
{
	int count = 0;

	for (size_t i = 0; i < length; i++) {
		int byte = raw[i];

		if (byte == '%') {
			if (length - i < 3 || hex(raw[i + 1]) < 0 || hex(raw[i + 2]) < 0)
				return -1;
			byte = hex(raw[i + 1]) * 16 + hex(raw[i + 2]);
			if (byte == '/')
				return -1;
			i += 2;
		}
		if (byte < ' ' || byte == 127)
			return -1;
		out[count++] = (char)byte;
	}
	return count;
}

/* The same as uri_decode_path() with enough memory, by a list of segments; -1: refused. */
static int decode_again(const uint8_t *raw, size_t length, char *out)
{
	size_t starts[SEGMENTS_MAX], depth = 0, at = 0, end = 0;
	bool folder = true; /* the path ends with a slash */

	if (length == 0 || raw[0] != '/')
		return -1;
	out[end++] = '/';
	while (at < length) {
		size_t stop = at + 1;
		int bytes;

		while (stop < length && raw[stop] != '/')
			stop++;
		bytes = decode_segment(raw + at + 1, stop - at - 1, out + end);
		if (bytes < 0)
			return -1;
		at = stop;
		folder = true;
		if (bytes == 0 || (bytes == 1 && out[end] == '.'))
			continue;
		if (bytes == 2 && out[end] == '.' && out[end + 1] == '.') {
			if (depth == 0)
				return -1;
			end = starts[--depth];
			continue;
		}
		MUST(depth < SEGMENTS_MAX);
		starts[depth++] = end;
		end += (size_t)bytes;
		out[end++] = '/';
		folder = false;
	}
	if (!folder)
		end--;
	return (int)end;
}

/* Writes raw as it would have to be for the same path if escaped slashes were refused. */
static size_t without_slashes(const uint8_t *raw, size_t length, enum uri_slash slash, uint8_t *out)
{
	size_t count = 0;

	for (size_t i = 0; i < length; i++) {
		bool escaped = raw[i] == '%' && length - i >= 3 && raw[i + 1] == '2' &&
			       (raw[i + 2] == 'f' || raw[i + 2] == 'F');

		/* The first one is a slash in any case. */
		if (escaped && slash == URI_SLASH_DECODE && i > 0) {
			out[count++] = '/';
			i += 2;
		} else if (escaped && slash == URI_SLASH_KEEP) {
			memcpy(out + count, "%252F", 5);
			count += 5;
			i += 2;
		} else if (raw[i] == '%' && length - i >= 3 && hex(raw[i + 1]) >= 0 &&
			   hex(raw[i + 2]) >= 0) {
			memcpy(out + count, raw + i, 3);
			count += 3;
			i += 2;
		} else {
			out[count++] = raw[i];
		}
	}
	return count;
}

static void check_decoded(const char *path, int length)
{
	MUST(length >= 1 && path[0] == '/' && path[length] == '\0');
	MUST(strlen(path) == (size_t)length);
	MUST(!strstr(path, "//"));
	for (const char *at = path; (at = strstr(at, "/.")); at++) {
		MUST(at[2] != '/' && at[2] != '\0');
		MUST(at[2] != '.' || (at[3] != '/' && at[3] != '\0'));
	}
	for (int i = 0; i < length; i++)
		MUST((unsigned char)path[i] >= 0x20 && path[i] != 0x7f);
}

/* Returns the target of a field, which contains nothing that ends its line. */
static struct slice target_of(const char *field, size_t length)
{
	const size_t before = strlen("Location: ");
	struct slice target = {field + before, length - before - 2};

	MUST(length > before + 2 && memcmp(field, "Location: ", before) == 0);
	MUST(memcmp(field + length - 2, "\r\n", 2) == 0);
	for (size_t i = 0; i < target.length; i++)
		MUST(target.at[i] > 0x20 && target.at[i] < 0x7f);
	return target;
}

/* Redirects to the same path, as a folder. */
static void check_folder(const char *path)
{
	static char field[4 * PATH_ROOM], back[PATH_ROOM];
	size_t length = redirect_write_folder(path, (struct slice){NULL, 0}, field, sizeof(field));
	struct slice target = target_of(field, length);
	int bytes;

	/* Two slashes would name another host. */
	MUST(target.length < 2 || target.at[1] != '/');
	bytes = uri_decode_path(target, URI_SLASH_REFUSE, back, sizeof(back));
	MUST(bytes > 0 && back[bytes - 1] == '/');
	MUST(strncmp(back, path, strlen(path)) == 0 && (size_t)bytes <= strlen(path) + 1);
	MUST(redirect_write_folder(path, SLICE("q"), field, length + 1) == 0);
}

/* Redirects to the same path elsewhere, with a query. */
static void check_moved(const char *path)
{
	static char field[4 * PATH_ROOM], back[PATH_ROOM];
	size_t length = redirect_write("/to/", path, SLICE("a=b"), field, sizeof(field));
	struct slice target = target_of(field, length);

	MUST(target.length > 4 && memcmp(target.at + target.length - 4, "?a=b", 4) == 0);
	target.length -= 4;
	MUST(!memchr(target.at, '?', target.length) && !memchr(target.at, '#', target.length));
	MUST(uri_decode_path(target, URI_SLASH_REFUSE, back, sizeof(back)) > 0);
	MUST(memcmp(back, "/to", 3) == 0 && strcmp(back + 3, path) == 0);
	MUST(redirect_write("/to/", path, SLICE("a=b"), field, length - 1) == 0);
}

static void check(const uint8_t *data, size_t size, enum uri_slash slash)
{
	static char expected[PATH_ROOM];
	static uint8_t plain[2 * PATH_ROOM];
	struct slice raw = {(const char *)data, size};
	char *out = malloc(size + 1), *tight;
	int length, again;

	MUST(out);
	length = uri_decode_path(raw, slash, out, size + 1);
	again = decode_again(plain, without_slashes(data, size, slash, plain), expected);
	MUST(length == -400 || length > 0);
	MUST((length > 0) == (again > 0));
	if (length > 0) {
		MUST(length == again && memcmp(out, expected, (size_t)length) == 0);
		check_decoded(out, length);
		if (out[length - 1] != '/')
			check_folder(out);
		check_moved(out);
		/* With less memory the result is the same, or an error reports the lack. */
		tight = malloc((size_t)length);
		MUST(tight);
		MUST(uri_decode_path(raw, slash, tight, (size_t)length) == -414);
		free(tight);
	}
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > PATH_ROOM / 2)
		return -1;
	check(data, size, URI_SLASH_REFUSE);
	check(data, size, URI_SLASH_DECODE);
	check(data, size, URI_SLASH_KEEP);
	return 0;
}
