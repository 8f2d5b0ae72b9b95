/* SPDX-License-Identifier: MIT */
/*
 * header-lines.c - see header-lines.h.  Pure.
 */

#include <string.h>

#include "http/header-lines.h"

bool header_next(struct slice *rest, struct slice *line, struct slice *name)
{
	const char *end, *colon;

	if (!rest->length)
		return false;
	end = memchr(rest->at, '\n', rest->length);
	*line = (struct slice){rest->at, end ? (size_t)(end - rest->at) + 1 : rest->length};
	colon = memchr(line->at, ':', line->length);
	*name = (struct slice){line->at, colon ? (size_t)(colon - line->at) : 0};
	rest->at += line->length;
	rest->length -= line->length;
	return true;
}

size_t header_filter(struct slice lines, const struct slice *names, size_t count, bool listed,
		     char *out)
{
	struct slice line, name;
	char *at = out;

	while (header_next(&lines, &line, &name))
		if (slice_is_one_of(name, names, count) == listed) {
			memmove(at, line.at, line.length);
			at += line.length;
		}
	return (size_t)(at - out);
}

static bool has(struct slice lines, struct slice wanted)
{
	struct slice line, name;

	while (header_next(&lines, &line, &name))
		if (slice_same(name, wanted))
			return true;
	return false;
}

static bool is_of_parts(struct slice line)
{
	static const char type[] = "Content-Type: multipart/byteranges";

	return line.length >= sizeof(type) &&
	       slice_is((struct slice){line.at, sizeof(type) - 1}, type);
}

size_t header_merge(struct slice lines, struct slice added, char *out)
{
	struct slice line, name;
	bool parts = false;
	char *at = out;

	while (header_next(&lines, &line, &name)) {
		bool stays = is_of_parts(line);

		parts |= stays;
		if (stays || !has(added, name)) {
			memcpy(at, line.at, line.length);
			at += line.length;
		}
	}
	while (header_next(&added, &line, &name))
		if (!parts || !slice_is(name, "Content-Type")) {
			memcpy(at, line.at, line.length);
			at += line.length;
		}
	return (size_t)(at - out);
}

size_t header_without_body(struct slice lines, char *out)
{
	static const struct slice names[] = {
		SLICE_OF("Accept-Ranges"), SLICE_OF("Content-Digest"), SLICE_OF("Content-Encoding"),
		SLICE_OF("Content-MD5"),   SLICE_OF("Content-Range"),  SLICE_OF("Digest"),
		SLICE_OF("ETag"),	   SLICE_OF("Last-Modified"),  SLICE_OF("Repr-Digest"),
	};

	return header_filter(lines, names, sizeof(names) / sizeof(names[0]), false, out);
}
