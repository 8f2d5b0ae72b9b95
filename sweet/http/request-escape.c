/* SPDX-License-Identifier: MIT */
/*
 * request-escape.c - see request-escape.h.  No state: any thread may call it.
 *
 * Nothing after the parser sees the raw bytes: rules, logs and programs get one form of the target.
 */
#include <stdbool.h>
#include <string.h>

#include "http/request-escape.h"
#include "http/uri.h"

static bool is_raw(char byte)
{
	return (unsigned char)byte >= 0x80;
}

/* Finds the target: between the first two blanks of the first line that is not empty. */
static const char *find_target(const char *head, size_t length, size_t *bytes)
{
	const char *end = head + length, *start, *stop;

	while (head < end && (*head == '\r' || *head == '\n'))
		head++;
	stop = memchr(head, '\r', (size_t)(end - head));
	end = stop ? stop : end;
	start = memchr(head, ' ', (size_t)(end - head));
	stop = start ? memchr(start + 1, ' ', (size_t)(end - start - 1)) : NULL;
	if (!stop)
		return NULL;
	*bytes = (size_t)(stop - start - 1);
	return start + 1;
}

GString *request_escape(const char *head, size_t length)
{
	size_t bytes = 0, raw = 0;
	const char *target = find_target(head, length, &bytes);
	GString *text;

	for (size_t i = 0; i < bytes; i++)
		raw += is_raw(target[i]);
	if (!raw || !g_utf8_validate(target, (gssize)bytes, NULL))
		return NULL;
	text = g_string_sized_new(length + 2 * raw);
	g_string_append_len(text, head, target - head);
	for (size_t i = 0; i < bytes; i++) {
		char escaped[3] = {target[i]};

		g_string_append_len(text, escaped,
				    is_raw(target[i]) ? (gssize)uri_escape(target[i], escaped) : 1);
	}
	g_string_append_len(text, target + bytes, head + length - target - (gssize)bytes);
	return text;
}
