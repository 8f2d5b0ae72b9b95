/* SPDX-License-Identifier: MIT */
/*
 * redirect.c - see redirect.h.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "http/redirect.h"
#include "http/uri.h"

/* The output so far, and its limit. */
struct field {
	char *out;
	size_t length, size;
	bool full;
};

static void add(struct field *field, const char *text, size_t length)
{
	if (field->size - field->length < length) {
		field->full = true;
		return;
	}
	memcpy(field->out + field->length, text, length);
	field->length += length;
}

static void add_path(struct field *field, const char *path)
{
	char escaped[3];

	for (; *path; path++)
		add(field, escaped, uri_escape(*path, escaped));
}

static size_t end(struct field *field, char joint, struct slice query)
{
	if (query.length) {
		add(field, &joint, 1);
		add(field, query.at, query.length);
	}
	add(field, "\r\n", 2);
	return field->full ? 0 : field->length;
}

size_t redirect_write(const char *target, const char *rest, struct slice query, char *out,
		      size_t out_size)
{
	struct field field = {.out = out, .size = out_size};
	size_t length = strlen(target);

	add(&field, "Location: ", strlen("Location: "));
	add(&field, target, length);
	if (length && target[length - 1] == '/')
		add_path(&field, *rest == '/' ? rest + 1 : rest);
	if (strchr(target, '#'))
		query.length = 0;
	return end(&field, strchr(target, '?') ? '&' : '?', query);
}

size_t redirect_write_tls(struct slice host, unsigned port, struct slice path, struct slice query,
			  char *out, size_t out_size)
{
	struct field field = {.out = out, .size = out_size};
	struct slice name = uri_without_port(host);
	char text[16] = "";

	add(&field, "Location: https://", strlen("Location: https://"));
	add(&field, name.at, name.length);
	if (port && name.length < host.length)
		add(&field, text, (size_t)snprintf(text, sizeof(text), ":%u", port));
	add(&field, path.at, path.length);
	return end(&field, '?', query);
}

size_t redirect_write_folder(const char *path, struct slice query, char *out, size_t out_size)
{
	struct field field = {.out = out, .size = out_size};

	add(&field, "Location: ", strlen("Location: "));
	add_path(&field, path);
	add(&field, "/", 1);
	return end(&field, '?', query);
}
