/* SPDX-License-Identifier: MIT */
/*
 * request-escape.c - see request-escape.h.  No state: any thread may call it.
 *
 * Nothing after the parser sees the raw bytes: rules, logs and programs get one form of the target.
 */
#include <stdbool.h>
#include <string.h>

#include "base/slice.h"
#include "http/request-escape.h"
#include "http/request-list.h"
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

/* Returns the target with its raw bytes escaped; NULL as the functions below. */
static GString *escape_target(struct slice target)
{
	size_t raw = 0;
	GString *text;

	for (size_t i = 0; i < target.length; i++)
		raw += is_raw(target.at[i]);
	if (!raw || !g_utf8_validate(target.at, (gssize)target.length, NULL))
		return NULL;
	text = g_string_sized_new(target.length + 2 * raw);
	for (size_t i = 0; i < target.length; i++) {
		char escaped[3] = {target.at[i]};

		g_string_append_len(text, escaped,
				    is_raw(target.at[i]) ? (gssize)uri_escape(target.at[i], escaped)
							 : 1);
	}
	return text;
}

GString *request_escape(const char *head, size_t length)
{
	size_t bytes = 0;
	const char *target = find_target(head, length, &bytes);
	GString *text = escape_target((struct slice){target, bytes});

	if (!text)
		return NULL;
	g_string_prepend_len(text, head, target - head);
	g_string_append_len(text, target + bytes, head + length - target - (gssize)bytes);
	return text;
}

GString *request_escape_list(const char *list, size_t length)
{
	struct slice rest = {list, length}, method, target;
	GString *escaped, *text;

	if (!request_list_next(&rest, &method, &target))
		return NULL;
	escaped = escape_target(target);
	if (!escaped)
		return NULL;
	target = (struct slice){escaped->str, escaped->len};
	text = g_string_sized_new(request_list_size(method, target) + rest.length);
	g_string_set_size(text, request_list_size(method, target));
	(void)request_list_put(text->str, method, target);
	g_string_append_len(text, rest.at, (gssize)rest.length);
	g_string_free(escaped, TRUE);
	return text;
}
