/* SPDX-License-Identifier: MIT */
/*
 * config-file.c - see config-file.h.  GKeyFile reads the values; this code finds
 * what it does not report: line numbers and repetitions.  The files of the key include are one text
 * with the file, of all lines that are valid.
 */
#include <errno.h>
#include <glob.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "config/config-file.h"
#include "config/config-key.h"

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

/* Remembers the line of a name; returns false after a complaint that the name is repeated. */
static bool note(struct config_file *file, char *name, const char *place, GPtrArray *errors)
{
	const char *before = g_hash_table_lookup(file->places, name);
	const char *key = strchr(name, '\n');

	if (before) {
		complain(errors, place, "%s%s%s is given twice, first at %s", key ? "" : "[",
			 key ? key + 1 : name, key ? "" : "]", before);
		g_free(name);
		return false;
	}
	g_hash_table_insert(file->places, name, g_strdup(place));
	return true;
}

/* Whether GLib accepts the line, in a group. */
static bool is_accepted(const char *group, const char *line)
{
	GKeyFile *probe = g_key_file_new();
	char *text = g_strdup_printf("[%s]\n%s\n", group, line);
	bool good = g_key_file_load_from_data(probe, text, strlen(text), G_KEY_FILE_NONE, NULL);

	g_free(text);
	g_key_file_free(probe);
	return good;
}

/* What has been read so far. */
struct scan {
	struct config_file *file;
	GPtrArray *errors;
	GString *valid; /* the lines that count */
	char *group;	/* the current one; NULL: none yet, "": its name is unknown */
	bool outside;	/* no group has begun in this file */
};

static void enter_group(struct scan *scan, const char *name)
{
	g_free(scan->group);
	scan->group = g_strdup(name);
	if (*name)
		g_string_append_printf(scan->valid, "[%s]\n", name);
}

/* Remembers a line that is probably meant so; that it is invalid is said already. */
static bool guess(struct config_file *file, char *name, const char *place)
{
	if (g_hash_table_contains(file->places, name)) {
		g_free(name);
		return false;
	}
	g_hash_table_insert(file->places, name, g_strdup(place));
	return true;
}

/* "[name]"; the keys of a group that is not known cause no further errors. */
static void scan_group(struct scan *scan, char *line, const char *place)
{
	char *end = strchr(line, ']');
	bool good = end && !end[1];

	scan->outside = false;
	if (end)
		*end = '\0';
	line++;
	good = good && is_accepted(line, "");
	if (!good) {
		complain(scan->errors, place, "a group is written [name]");
		line = g_strstrip(line);
	}
	if (!is_accepted(line, ""))
		line = (char *)"";
	enter_group(scan, line);
	if (good)
		(void)note(scan->file, g_strdup(line), place, scan->errors);
	else if (*line)
		(void)guess(scan->file, g_strdup(line), place);
}

/* "KEY VALUE" or "KEY: VALUE" of a key that exists. */
static void guess_key(struct scan *scan, const char *line, const char *place)
{
	size_t length = strcspn(line, ": \t");
	char *key = g_strndup(line, length);

	if (line[length] && key_find(key, ~0u) >= 0 &&
	    guess(scan->file, g_strdup_printf("%s\n%s", scan->group, key), place))
		g_string_append_printf(scan->valid, "%s=%s\n", key,
				       line + length + strspn(line + length, ": \t"));
	g_free(key);
}

static void scan_key(struct scan *scan, const char *raw, const char *line, const char *place)
{
	const char *end = strchr(line, '=');
	bool good = end && end > line && is_accepted("group", line);
	char *key;

	if (!good)
		complain(scan->errors, place, "\"%s\": must be KEY=VALUE, [GROUP] or # comment",
			 line);
	else if (scan->outside)
		complain(scan->errors, place,
			 "\"%s\" comes before the first group: move it into [sweet]", line);
	/* Its keys are probably meant so. */
	if (!scan->group)
		enter_group(scan, "sweet");
	if (!*scan->group)
		return;
	if (!good) {
		guess_key(scan, line, place);
		return;
	}
	key = g_strndup(line, (gsize)(end - line));
	if (note(scan->file, g_strdup_printf("%s\n%s", scan->group, g_strchomp(key)), place,
		 scan->errors))
		g_string_append_printf(scan->valid, "%s\n", raw);
	g_free(key);
}

static void scan_bytes(struct scan *scan, char first, const char *place)
{
	complain(scan->errors, place, "not UTF-8 text");
	if (first == '[')
		enter_group(scan, "");
	scan->outside &= first != '[';
}

static void scan_text(struct scan *scan, const char *path, const char *text)
{
	char **lines = g_strsplit(text, "\n", -1);

	g_clear_pointer(&scan->group, g_free);
	scan->outside = true;
	for (unsigned i = 0; lines[i]; i++) {
		char *raw = g_strdup(lines[i]), *line = g_strstrip(lines[i]);
		char *place = g_strdup_printf("%s:%u", path, i + 1);

		if (!*line || *line == '#')
			;
		else if (!g_utf8_validate(line, -1, NULL))
			scan_bytes(scan, *line, place);
		else if (*line == '[')
			scan_group(scan, line, place);
		else
			scan_key(scan, raw, line, place);
		g_free(place);
		g_free(raw);
	}
	g_strfreev(lines);
}

/* Adds what is valid of a file; returns false after a complaint that it cannot be read. */
static bool add(struct scan *scan, const char *path)
{
	GError *error = NULL;
	char *text = NULL;
	bool good = false;
	gsize length;

	if (!g_file_get_contents(path, &text, &length, &error)) {
		/* GLib's message names the file. */
		g_ptr_array_add(scan->errors, g_strdup(error->message));
	} else if (strlen(text) != length) {
		complain(scan->errors, path, "not a text: it has a NUL byte");
	} else {
		scan_text(scan, path, text);
		good = true;
	}
	g_clear_error(&error);
	g_free(text);
	return good;
}

static void load(struct scan *scan)
{
	GError *error = NULL;

	if (scan->valid->len &&
	    !g_key_file_load_from_data(scan->file->keys, scan->valid->str, scan->valid->len,
				       G_KEY_FILE_NONE, &error))
		complain(scan->errors, scan->file->path, "%s", error->message);
	g_clear_error(&error);
}

/* Adds the files that match, in the order of their names. */
static void include(struct scan *scan, const char *pattern)
{
	const struct config_file *file = scan->file;
	const char *place = config_file_place(file, "sweet", "include");
	char *folder = g_path_get_dirname(file->path);
	char *whole = *pattern == '/' ? g_strdup(pattern) : g_build_filename(folder, pattern, NULL);
	glob_t found;
	int error = glob(whole, GLOB_ERR, NULL, &found);

	for (size_t i = 0; error == 0 && i < found.gl_pathc; i++)
		(void)add(scan, found.gl_pathv[i]);
	/* A folder without sites is none. */
	if (error == GLOB_NOMATCH && !strpbrk(pattern, "*?["))
		complain(scan->errors, place, "include \"%s\": there is no such file", pattern);
	else if (error && error != GLOB_NOMATCH)
		complain(scan->errors, place, "include \"%s\": cannot be read: %s", pattern,
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

/* Returns false after a complaint; errors: NULL for none. */
static bool expand_all(const struct config_file *file, const char *group, const char *key,
		       char **values, GPtrArray *errors)
{
	for (unsigned i = 0; values[i]; i++) {
		char *unset = NULL, *text = expand(values[i], &unset);

		if (!text) {
			if (errors)
				complain(errors, config_file_place(file, group, key),
					 "%s: ${%s} is not set in the environment; $${ is written "
					 "for ${",
					 key, unset);
			g_free(unset);
			return false;
		}
		g_free(values[i]);
		values[i] = text;
	}
	return true;
}

struct config_file *config_file_read(const char *path, bool go_on, GPtrArray *errors)
{
	struct config_file *file = g_new0(struct config_file, 1);
	struct scan scan = {.file = file, .errors = errors, .valid = g_string_new(NULL)};
	unsigned before = errors->len;
	char **patterns = NULL;

	file->path = g_strdup(path);
	file->keys = g_key_file_new();
	file->places = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	go_on = add(&scan, path) && go_on;
	/* Not the defaults, which serve another folder at another address. */
	if (errors->len == before && !scan.group)
		complain(errors, path,
			 "no section, such as [sweet]: the file is empty, or not written to its "
			 "end");
	load(&scan);
	/* An invalid value is reported when it is read as all others. */
	if (errors->len == before || go_on)
		patterns = g_key_file_get_string_list(file->keys, "sweet", "include", NULL, NULL);
	if (patterns && !expand_all(file, "sweet", "include", patterns, go_on ? NULL : errors))
		g_clear_pointer(&patterns, g_strfreev);
	for (unsigned i = 0; patterns && patterns[i]; i++)
		include(&scan, patterns[i]);
	if (patterns)
		load(&scan);
	g_strfreev(patterns);
	g_string_free(scan.valid, TRUE);
	g_free(scan.group);
	if (errors->len == before || go_on)
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
