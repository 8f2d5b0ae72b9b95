/* SPDX-License-Identifier: MIT */
/*
 * spool-folder.h - the folder of all spools, and files in it.  Private to spool.c.
 */
#ifndef SWEET_SPOOL_FOLDER_H
#define SWEET_SPOOL_FOLDER_H

#include <stdbool.h>

struct spools_options;

/*
 * Opens the operator's folder, or the first usable one of the defaults.  Returns a
 * descriptor and its path (g_free); -1 with a line in *why (g_free).
 */
int spool_open_folder(const struct spools_options *options, char **path, char **why);

/* Whether it was deleted; file systems say so with different errors. */
bool spool_folder_is_gone(int folder);

/*
 * The folder was deleted: lets the descriptor be of the one that has its path now.  That must have the
 * same owner, and be on a disk unless memory.  Other threads may use the descriptor meanwhile.  Returns
 * 0 or -errno: -EPERM: another owner; -EMEDIUMTYPE: in memory.
 */
int spool_renew_folder(int folder, const char *path, bool memory);

/* Creates a file without a name.  Returns its descriptor, or -errno. */
int spool_make_file(int folder);

#endif
