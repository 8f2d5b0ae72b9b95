/* SPDX-License-Identifier: MIT */
/*
 * config-file.c - see config-file.h.  GKeyFile reads the values; this code finds
 * what it does not report: line numbers and repetitions.  The files of the key include are one text
 * with the file.
 */
#include <errno.h>
#include <glob.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "config/config-file.h"

struct config_file {
	char *path;
	GKeyFile *keys;
	GHashTable *places; /* "group" or "group\nkey" to "FILE:LINE" */
};

static void complain(GPtrArray *errors, const char *place, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void complain(GPtrArray *errors, const char *place, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = g_strdup_vprintf(format, arguments);
	va_end(arguments);
	g_ptr_array_add(errors, g_strdup_printf("%s: %s", place, text));
	g_free(text);
}

/* Remembers the line of a name; complains if the name is repeated. */
static void note(struct config_file *file, char *name, const char *place, GPtrArray *errors)
{
	const char *before = g_hash_table_lookup(file->places, name);
	const char *key = strchr(name, '\n');

	if (before) {
		complain(errors, place, "%s%s%s is given twice, first at %s", key ? "" : "[",
			 key ? key + 1 : name, key ? "" : "]", before);
		g_free(name);
		return;
	}
	g_hash_table_insert(file->places, name, g_strdup(place));
}

static void scan_line(struct config_file *file, char *line, const char *place, char **group,
		      GPtrArray *errors)
{
	char *end = strchr(line, '=');

	if (!g_utf8_validate(line, -1, NULL)) {
		complain(errors, place, "not UTF-8 text");
	} else if (*line == '[') {
		end = strchr(line, ']');
		if (!end || end[1]) {
			complain(errors, place, "a group is written [name]");
			/* So that its keys cause no further errors. */
			g_free(*group);
			*group = g_strdup("");
			return;
		}
		*end = '\0';
		g_free(*group);
		*group = g_strdup(line + 1);
		note(file, g_strdup(*group), place, errors);
	} else if (!end || end == line) {
		complain(errors, place, "\"%s\": must be KEY=VALUE, [GROUP] or # comment", line);
	} else if (!*group) {
		complain(errors, place, "\"%s\" comes before the first group: move it into [sweet]",
			 line);
	} else {
		*end = '\0';
		g_strchomp(line);
		note(file, g_strdup_printf("%s\n%s", *group, line), place, errors);
	}
}

static void scan(struct config_file *file, const char *path, const char *text, GPtrArray *errors)
{
	char **lines = g_strsplit(text, "\n", -1), *group = NULL;

	for (unsigned i = 0; lines[i]; i++) {
		char *line = g_strstrip(lines[i]);
		char *place = g_strdup_printf("%s:%u", path, i + 1);

		if (*line && *line != '#')
			scan_line(file, line, place, &group, errors);
		g_free(place);
	}
	g_free(group);
	g_strfreev(lines);
}

/* Checks a file, and appends it to the text of all. */
static void add(struct config_file *file, const char *path, GString *all, GPtrArray *errors)
{
	GError *error = NULL;
	char *text = NULL;
	gsize length;

	if (!g_file_get_contents(path, &text, &length, &error)) {
		/* GLib's message names the file. */
		g_ptr_array_add(errors, g_strdup(error->message));
	} else if (strlen(text) != length) {
		complain(errors, path, "not a text: it has a NUL byte");
	} else {
		scan(file, path, text, errors);
		g_string_append(all, text);
		g_string_append_c(all, '\n');
	}
	g_clear_error(&error);
	g_free(text);
}

static void load(struct config_file *file, const GString *all, GPtrArray *errors)
{
	GError *error = NULL;

	if (all->len > 1 &&
	    !g_key_file_load_from_data(file->keys, all->str, all->len, G_KEY_FILE_NONE, &error))
		complain(errors, file->path, "%s", error->message);
	g_clear_error(&error);
}

/* Adds the files that match, in the order of their names. */
static void include(struct config_file *file, const char *pattern, GString *all, GPtrArray *errors)
{
	const char *place = config_file_place(file, "sweet", "include");
	char *folder = g_path_get_dirname(file->path);
	char *whole = *pattern == '/' ? g_strdup(pattern) : g_build_filename(folder, pattern, NULL);
	glob_t found;
	int error = glob(whole, GLOB_ERR, NULL, &found);

	for (size_t i = 0; error == 0 && i < found.gl_pathc; i++)
		add(file, found.gl_pathv[i], all, errors);
	/* A folder without sites is none. */
	if (error == GLOB_NOMATCH && !strpbrk(pattern, "*?["))
		complain(errors, place, "include \"%s\": there is no such file", pattern);
	else if (error && error != GLOB_NOMATCH)
		complain(errors, place, "include \"%s\": cannot be read: %s", pattern,
			 error == GLOB_NOSPACE ? "no memory" : strerror(errno));
	if (error == 0)
		globfree(&found);
	g_free(whole);
	g_free(folder);
}

/*
 * Replaces ${NAME} by that variable of the environment, and $${ by ${.  Returns NULL if one is not
 * set, and sets *unset to its name (g_free()).
 */
static char *expand(const char *text, char **unset)
{
	GString *out = g_string_new(NULL);
	const char *at;

	while ((at = strstr(text, "${"))) {
		const char *end = strchr(at, '}'), *value;
		char *name;

		g_string_append_len(out, text, at - text);
		if (at > text && at[-1] == '$') {
			g_string_append_c(out, '{');
			text = at + 2;
			continue;
		}
		name = g_strndup(at + 2, end ? (gsize)(end - at - 2) : strlen(at + 2));
		value = end ? g_getenv(name) : NULL;
		if (!value) {
			*unset = name;
			g_string_free(out, TRUE);
			return NULL;
		}
		g_string_append(out, value);
		g_free(name);
		text = end + 1;
	}
	g_string_append(out, text);
	return g_string_free(out, FALSE);
}

/* Returns false after a complaint. */
static bool expand_all(const struct config_file *file, const char *group, const char *key,
		       char **values, GPtrArray *errors)
{
	for (unsigned i = 0; values[i]; i++) {
		char *unset = NULL, *text = expand(values[i], &unset);

		if (!text) {
			complain(errors, config_file_place(file, group, key),
				 "%s: ${%s} is not set in the environment; $${ is written for ${",
				 key, unset);
			g_free(unset);
			return false;
		}
		g_free(values[i]);
		values[i] = text;
	}
	return true;
}

struct config_file *config_file_read(const char *path, GPtrArray *errors)
{
	struct config_file *file = g_new0(struct config_file, 1);
	GString *all = g_string_new(NULL);
	unsigned before = errors->len;
	char **patterns = NULL;

	file->path = g_strdup(path);
	file->keys = g_key_file_new();
	file->places = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	add(file, path, all, errors);
	if (errors->len == before)
		load(file, all, errors);
	/* An invalid value is reported when it is read as all others. */
	if (errors->len == before)
		patterns = g_key_file_get_string_list(file->keys, "sweet", "include", NULL, NULL);
	if (patterns && !expand_all(file, "sweet", "include", patterns, errors))
		g_clear_pointer(&patterns, g_strfreev);
	for (unsigned i = 0; patterns && patterns[i]; i++)
		include(file, patterns[i], all, errors);
	if (errors->len == before && patterns)
		load(file, all, errors);
	g_strfreev(patterns);
	g_string_free(all, TRUE);
	if (errors->len == before)
		return file;
	config_file_free(file);
	return NULL;
}

void config_file_free(struct config_file *file)
{
	if (!file)
		return;
	g_hash_table_destroy(file->places);
	g_key_file_free(file->keys);
	g_free(file->path);
	g_free(file);
}

char **config_file_groups(const struct config_file *file)
{
	return g_key_file_get_groups(file->keys, NULL);
}

char **config_file_keys(const struct config_file *file, const char *group)
{
	return g_key_file_get_keys(file->keys, group, NULL, NULL);
}

const char *config_file_place(const struct config_file *file, const char *group, const char *key)
{
	char *name = key ? g_strdup_printf("%s\n%s", group, key) : g_strdup(group);
	const char *place = g_hash_table_lookup(file->places, name);

	g_free(name);
	return place ? place : file->path;
}

char **config_file_values(const struct config_file *file, const char *group, const char *key,
			  gboolean list, GPtrArray *errors)
{
	GError *error = NULL;
	char **values = NULL, *text;

	if (list) {
		values = g_key_file_get_string_list(file->keys, group, key, NULL, &error);
	} else {
		text = g_key_file_get_string(file->keys, group, key, &error);
		if (text) {
			values = g_new0(char *, 2);
			values[0] = text;
		}
	}
	/* For an unknown escape, GLib returns both a text and an error. */
	if (error) {
		complain(errors, config_file_place(file, group, key), "%s: %s", key,
			 g_error_matches(error, G_KEY_FILE_ERROR, G_KEY_FILE_ERROR_INVALID_VALUE)
				 ? "has an unknown escape: a backslash is written \\\\"
				 : error->message);
		g_error_free(error);
		g_strfreev(values);
		return NULL;
	}
	if (values && !expand_all(file, group, key, values, errors))
		g_clear_pointer(&values, g_strfreev);
	return values;
}
