/* SPDX-License-Identifier: MIT */
/*
 * mime.c - the table of content types by file name extension.
 *
 * The owner opens it while the server starts and closes it after all threads have
 * ended; in between, any thread may read it.  The strings live in a chunk that is
 * freed with the table.
 */
#include <stdbool.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "http/mime.h"

#define EXTENSION_MAX 32 /* bytes with the NUL; longer extensions are unknown */
#define TYPE_MAX 128	 /* bytes; limits the size of a response head */
#define UNKNOWN_TYPE "application/octet-stream"
#define CHARSET_MAX 64

struct mime {
	_Atomic unsigned references;
	unsigned digest;   /* of all entries, in any order */
	GHashTable *types; /* lower case extension -> type, both in strings */
	char *charset;	   /* NULL: none */
	const char *otherwise;
	GStringChunk *strings;
};

static const struct {
	const char *extension;
	const char *type;
} built_in[] = {
	{"html", "text/html"},
	{"htm", "text/html"},
	{"xhtml", "application/xhtml+xml"},
	{"css", "text/css"},
	{"js", "text/javascript"},
	{"mjs", "text/javascript"},
	{"json", "application/json"},
	{"map", "application/json"},
	{"webmanifest", "application/manifest+json"},
	{"xml", "application/xml"},
	{"txt", "text/plain"},
	{"md", "text/markdown"},
	{"csv", "text/csv"},
	{"ics", "text/calendar"},
	{"svg", "image/svg+xml"},
	{"png", "image/png"},
	{"jpg", "image/jpeg"},
	{"jpeg", "image/jpeg"},
	{"gif", "image/gif"},
	{"webp", "image/webp"},
	{"avif", "image/avif"},
	{"ico", "image/vnd.microsoft.icon"},
	{"woff", "font/woff"},
	{"woff2", "font/woff2"},
	{"ttf", "font/ttf"},
	{"otf", "font/otf"},
	{"mp3", "audio/mpeg"},
	{"ogg", "audio/ogg"},
	{"wav", "audio/x-wav"},
	{"mp4", "video/mp4"},
	{"webm", "video/webm"},
	{"pdf", "application/pdf"},
	{"wasm", "application/wasm"},
	{"zip", "application/zip"},
	{"gz", "application/gzip"},
	{"tar", "application/x-tar"},
};

/* Converts the extension to lower case; returns false if it is empty or too long. */
static bool fold(const char *extension, char *out)
{
	size_t i;

	for (i = 0; extension[i]; i++) {
		if (i == EXTENSION_MAX - 1)
			return false;
		out[i] = g_ascii_tolower(extension[i]);
	}
	out[i] = '\0';
	return i > 0;
}

/* Accepts only "token/token", because the type is copied into response heads. */
bool mime_is_type(const char *type)
{
	const char *slash = strchr(type, '/');
	const char *at;

	if (!slash || slash == type || !slash[1] || strlen(type) > TYPE_MAX)
		return false;
	for (at = type; *at; at++) {
		if (at != slash && !g_ascii_isalnum(*at) && !strchr("!#$%&'*+-.^_`|~", *at))
			return false;
	}
	return true;
}

bool mime_is_line(const char *text)
{
	char **words = g_strsplit_set(text, " \t", -1), key[EXTENSION_MAX];
	bool good = words[0] && mime_is_type(words[0]) && words[1];

	for (unsigned i = 1; good && words[i]; i++)
		good = !*words[i] || fold(words[i], key);
	g_strfreev(words);
	return good;
}

/* Adds the charset to the type of a text. */
static const char *complete(struct mime *mime, const char *type)
{
	char value[TYPE_MAX + CHARSET_MAX];
	bool text = mime->charset && g_ascii_strncasecmp(type, "text/", 5) == 0;

	snprintf(value, sizeof(value), "%s%s%s", type, text ? "; charset=" : "",
		 text ? mime->charset : "");
	return g_string_chunk_insert_const(mime->strings, value);
}

/* The first entry of an extension counts. */
static void add(struct mime *mime, const char *extension, const char *type)
{
	char key[EXTENSION_MAX];
	const char *value;

	if (!fold(extension, key) || g_hash_table_contains(mime->types, key))
		return;
	value = complete(mime, type);
	mime->digest += g_str_hash(key) * 31 + g_str_hash(value);
	g_hash_table_insert(mime->types, g_string_chunk_insert(mime->strings, key),
			    (char *)(uintptr_t)value);
}

/* Adds one line: a type, then its extensions; '#' begins a comment. */
static void add_line(struct mime *mime, char *line)
{
	static const char blanks[] = " \t\r\n\f\v";
	char *rest = NULL;
	char *type, *extension;

	line[strcspn(line, "#")] = '\0';
	type = strtok_r(line, blanks, &rest);
	if (!type || !mime_is_type(type))
		return;
	while ((extension = strtok_r(NULL, blanks, &rest)))
		add(mime, extension, type);
}

static void add_file(struct mime *mime, const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;

	if (!file)
		return;
	while (getline(&line, &size, file) >= 0)
		add_line(mime, line);
	free(line);
	fclose(file);
}

struct mime *mime_open(const struct mime_options *options)
{
	struct mime *mime = g_new0(struct mime, 1);
	size_t i;

	atomic_init(&mime->references, 1);
	mime->types = g_hash_table_new(g_str_hash, g_str_equal);
	mime->strings = g_string_chunk_new(4096);
	mime->charset = g_strdup(options->charset);
	for (i = 0; options->lines && options->lines[i]; i++) {
		char *line = g_strdup(options->lines[i]);

		add_line(mime, line);
		g_free(line);
	}
	if (options->path)
		add_file(mime, options->path);
	mime->otherwise = complete(mime, options->otherwise ? options->otherwise : UNKNOWN_TYPE);
	mime->digest += g_str_hash(mime->otherwise);
	for (i = 0; i < G_N_ELEMENTS(built_in); i++)
		add(mime, built_in[i].extension, built_in[i].type);
	return mime;
}

struct mime *mime_ref(struct mime *mime)
{
	atomic_fetch_add_explicit(&mime->references, 1, memory_order_relaxed);
	return mime;
}

bool mime_equal(const struct mime *a, const struct mime *b)
{
	return a->digest == b->digest && g_hash_table_size(a->types) == g_hash_table_size(b->types);
}

void mime_close(struct mime *mime)
{
	if (!mime || atomic_fetch_sub_explicit(&mime->references, 1, memory_order_acq_rel) != 1)
		return;
	g_hash_table_destroy(mime->types);
	g_string_chunk_free(mime->strings);
	g_free(mime->charset);
	g_free(mime);
}

const char *mime_type(const struct mime *mime, const char *name)
{
	const char *slash = strrchr(name, '/');
	const char *base = slash ? slash + 1 : name;
	const char *dot = strrchr(base, '.');
	const char *type = NULL;
	char key[EXTENSION_MAX];

	/* A leading dot hides a file; it does not begin an extension. */
	if (dot && dot != base && fold(dot + 1, key))
		type = g_hash_table_lookup(mime->types, key);
	return type ? type : mime->otherwise;
}
