/* SPDX-License-Identifier: MIT */
/*
 * dav-tree.h - copies and removes files and whole folders.  Blocks as long as that takes.
 *
 * Members that fail are added to a list of failures; the rest is done (RFC 4918, sections 9.6.1 and
 * 9.8.5).
 */
#ifndef SWEET_DAV_TREE_H
#define SWEET_DAV_TREE_H

#include <stdatomic.h>
#include <stdbool.h>

#include <glib.h>

#include "files/docroot.h"

#define DAV_TREE_DEPTH_MAX 64u
#define DAV_FAILURES_MAX 100u /* that are listed */

struct dav_tree {
	const _Atomic bool *leaving; /* stop with -ECANCELED */
	bool hidden;		     /* copy names that begin with a dot */
	bool shallow;		     /* copy a folder without its members */
	bool replace;		     /* a file that has the name of the copy */
	struct docroot reads;	     /* for the links that are copied as files */
	GString *path;		     /* of the host: what is being changed, for failures */
	GString *file;		     /* the same below the root; of the source of a copy */
	GString *failures;	     /* of a multistatus; NULL: none yet */
	unsigned failed;
};

/* Removes that name of an open folder.  Returns 0; -errno: of itself; 1: some members failed. */
int dav_tree_remove(struct dav_tree *tree, int folder, const char *name);

/*
 * Copies an open file or folder to that name of another folder.  Returns the same; -EEXIST: it
 * is there.
 */
int dav_tree_copy(struct dav_tree *tree, int source, bool is_folder, int folder, const char *name);

#endif
