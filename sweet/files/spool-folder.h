/* SPDX-License-Identifier: MIT */
/*
 * spool-folder.h - the folder of all spools, and files in it.  spool.c's.
 */
#ifndef SWEET_SPOOL_FOLDER_H
#define SWEET_SPOOL_FOLDER_H

#include "files/spool.h"

/*
 * The operator's folder, or the first of the usual ones that can be used.  A
 * descriptor, with its path (g_free); -1 with a line in *why (g_free).
 */
int spool_open_folder(const struct spools_options *options, char **path, char **why);

/* A file without a name.  Its descriptor, or -errno. */
int spool_make_file(int folder);

#endif
