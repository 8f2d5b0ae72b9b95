/* SPDX-License-Identifier: MIT */
/*
 * parts.c - see parts.h.  The end of a line does not show whether it is the last one:
 * a boundary may well end with "--".
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "parts.h"

void parts_begin(struct parts *parts, struct check *check)
{
	*parts = (struct parts){.check = check};
}

static bool wrong(struct parts *parts, const char *what)
{
	snprintf(parts->check->why, sizeof(parts->check->why),
		 "%s: part %u, bytes %zu-%zu/%zu: %.60s", what, parts->count, parts->first,
		 parts->last, parts->size, parts->line);
	return false;
}

static void read_field(struct parts *parts)
{
	if (sscanf(parts->line, "Content-Range: bytes %zu-%zu/%zu", &parts->first, &parts->last,
		   &parts->size) == 3)
		parts->has_range = true;
	if (sscanf(parts->line, "Content-Type: multipart/byteranges; boundary=%70s",
		   parts->boundary) == 1)
		parts->multipart = true;
}

/*
 * Reads up to the end of a line, which is stored without it; returns how many bytes.
 * Sets *whole if the end was read.
 */
static size_t take_line(struct parts *parts, const char *bytes, size_t length, bool *whole)
{
	const char *end = memchr(bytes, '\n', length);
	size_t part = end ? (size_t)(end - bytes) + 1 : length;
	size_t room = sizeof(parts->line) - 1 - parts->length, copy = part < room ? part : room;

	memcpy(parts->line + parts->length, bytes, copy);
	parts->length += (unsigned)copy;
	*whole = end != NULL;
	while (end && parts->length && strchr("\r\n", parts->line[parts->length - 1]))
		parts->length--;
	parts->line[parts->length] = '\0';
	return part;
}

void parts_head(struct parts *parts, const char *bytes, size_t length)
{
	bool whole;

	while (length) {
		size_t taken = take_line(parts, bytes, length, &whole);

		bytes += taken;
		length -= taken;
		if (whole) {
			read_field(parts);
			parts->length = 0;
		}
	}
}

/* Begins a part, of the announced range. */
static bool begin_part(struct parts *parts)
{
	if (!parts->has_range || parts->last >= parts->size || parts->first > parts->last)
		return wrong(parts, "a part without Content-Range");
	if (!check_part(parts->check, parts->first, parts->last, parts->size))
		return wrong(parts, "not asked for");
	parts->left = parts->last - parts->first + 1;
	parts->count++;
	parts->has_range = false;
	return true;
}

/* Handles a line between the parts. */
static bool read_line(struct parts *parts)
{
	size_t boundary = strlen(parts->boundary);
	bool goes_on = true;

	if (!parts->length && parts->has_range)
		goes_on = begin_part(parts);
	else if (strncmp(parts->line, "--", 2) != 0)
		read_field(parts);
	else if (strncmp(parts->line + 2, parts->boundary, boundary) != 0)
		goes_on = wrong(parts, "another boundary");
	else
		parts->over = strcmp(parts->line + 2 + boundary, "--") == 0;
	parts->length = 0;
	return goes_on;
}

bool parts_body(struct parts *parts, const char *bytes, size_t length)
{
	bool whole;

	if (!parts->multipart && !parts->count && !begin_part(parts))
		return false;
	while (length) {
		size_t part = parts->left < length ? parts->left : length;

		if (part) {
			if (!check_feed(parts->check, bytes, part))
				return false;
			parts->left -= part;
			if (!parts->left && !check_end(parts->check))
				return false;
		} else if (parts->over || !parts->multipart) {
			return wrong(parts, "bytes behind the last part");
		} else {
			part = take_line(parts, bytes, length, &whole);
			if (whole && !read_line(parts))
				return false;
		}
		bytes += part;
		length -= part;
	}
	return true;
}

bool parts_end(struct parts *parts)
{
	if (parts->left || !parts->count || parts->over != parts->multipart)
		return wrong(parts, "it ends early");
	return parts->count == check_parts(parts->check, parts->size) ||
	       wrong(parts, "another number of parts");
}
