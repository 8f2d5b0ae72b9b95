/* SPDX-License-Identifier: MIT */
/*
 * config-file.h - a key file with line numbers, so that errors can name file and
 * line.
 */
#ifndef SWEET_CONFIG_FILE_H
#define SWEET_CONFIG_FILE_H

#include <glib.h>
#include <stdbool.h>

struct config_file;

/*
 * Reads the file, and those that the key include of its group [sweet] names.
 * Adds a message to errors (of g_free strings) for each syntax error (missing file,
 * invalid lines, repeated groups or keys); returns NULL if there was any.  With go_on, returns the file
 * all the same, if it could be read: lines count as they were probably meant, or are left out, and of
 * keys that are repeated the first counts.
 */
struct config_file *config_file_read(const char *path, bool go_on, GPtrArray *errors);
void config_file_free(struct config_file *file);

/* Return the groups in their order, and a group's keys (g_strfreev). */
char **config_file_groups(const struct config_file *file);
char **config_file_keys(const struct config_file *file, const char *group);

/*
 * Returns the values of a key, split at ';' if it is a list; NULL and one more
 * error on failure.
 */
char **config_file_values(const struct config_file *file, const char *group, const char *key,
			  gboolean list, GPtrArray *errors);

/*
 * Returns "FILE:LINE" of a key, or of a group's head if key is NULL; lives as long
 * as the file.
 */
const char *config_file_place(const struct config_file *file, const char *group, const char *key);

#endif
