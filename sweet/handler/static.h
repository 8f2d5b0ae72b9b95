/* SPDX-License-Identifier: MIT */
/*
 * static.h - responds with files below the root.
 */
#ifndef SWEET_STATIC_H
#define SWEET_STATIC_H

#include <stdbool.h>

#include "core/transaction.h"

struct scope;

/* Whether the path has a name that is not served because it begins with a dot. */
bool static_hides(const struct transaction *transaction);

/*
 * Whether the path names a file, or a folder, below the root.  Blocks as long as the file system
 * takes to look it up.
 */
bool static_finds(const struct transaction *transaction, bool folder);

/* Looks up the path as static_finds().  Returns 0 or -errno: -EISDIR or -ENOTDIR: it is the other one. */
int static_look(const struct transaction *transaction, bool folder);

/* Whether the path is a folder by the rules of that scope, which is not that of the request yet. */
bool static_has_folder(const struct transaction *transaction, const struct scope *scope);

enum respond static_respond(struct transaction *transaction);

#endif
