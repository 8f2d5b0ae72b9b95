/* SPDX-License-Identifier: MIT */
/*
 * spool-folder.h - the folder of all spools, and files in it.  Private to spool.c.
 */
#ifndef SWEET_SPOOL_FOLDER_H
#define SWEET_SPOOL_FOLDER_H

struct spools_options;

/*
 * Opens the operator's folder, or the first usable one of the defaults.  Returns a
 * descriptor and its path (g_free); -1 with a line in *why (g_free).
 */
int spool_open_folder(const struct spools_options *options, char **path, char **why);

/* Creates a file without a name.  Returns its descriptor, or -errno. */
int spool_make_file(int folder);

#endif
