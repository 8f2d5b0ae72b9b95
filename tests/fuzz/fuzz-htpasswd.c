/* SPDX-License-Identifier: MIT */
/*
 * fuzz-htpasswd.c - files of users (sweet/auth/htpasswd.c): a file is accepted or the
 * invalid line is reported, and each user in it is found.
 */
#include <glib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/htpasswd.h"

#include "fuzz.h"

static unsigned lines_of(const uint8_t *data, size_t size)
{
	unsigned lines = 1;

	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	return lines;
}

/* Checks the name before the colon of the first line. */
static void check_first(const struct htpasswd *file, const char *text, size_t size)
{
	char name[HTPASSWD_USER_MAX + 1];
	size_t length = strcspn(text, ":\n");

	if (length == 0 || length > HTPASSWD_USER_MAX || *text == '#' || length == size ||
	    text[length] != ':')
		return;
	memcpy(name, text, length);
	name[length] = '\0';
	MUST(htpasswd_find(file, name));
	MUST(htpasswd_any(file));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = exact_copy(data, size), *why = NULL, *ended;
	struct htpasswd *file = htpasswd_parse("file", text, size, &why);
	unsigned line = 0;

	MUST(!file == !!why);
	if (file) {
		ended = g_strndup(text, size);
		check_first(file, ended, size);
		g_free(ended);
		MUST(!htpasswd_find(file, ""));
		htpasswd_release(file);
	} else {
		MUST(sscanf(why, "file:%u: ", &line) == 1);
		MUST(line >= 1 && line <= lines_of(data, size));
	}
	g_free(why);
	free(text);
	return 0;
}
