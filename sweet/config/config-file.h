/* SPDX-License-Identifier: MIT */
/*
 * config-file.h - a key file that knows its lines, so that a mistake can be
 * told with file and line.
 */
#ifndef SWEET_CONFIG_FILE_H
#define SWEET_CONFIG_FILE_H

#include <glib.h>

struct config_file;

/*
 * Reads the file.  What is wrong with its form (no such file, lines that are
 * none, groups or keys given twice) is added to errors (of g_free strings), a
 * message each; NULL if there was any.
 */
struct config_file *config_file_read(const char *path, GPtrArray *errors);
void config_file_free(struct config_file *file);

/* The groups in their order, and a group's keys (g_strfreev). */
char **config_file_groups(const struct config_file *file);
char **config_file_keys(const struct config_file *file, const char *group);

/* The values of a key: split at ';' if it is a list.  NULL with one more error. */
char **config_file_values(const struct config_file *file, const char *group, const char *key,
			  gboolean list, GPtrArray *errors);

/* "FILE:LINE" of a key, or of a group's head with key NULL; lives as long as the file. */
const char *config_file_place(const struct config_file *file, const char *group, const char *key);

#endif
