/* SPDX-License-Identifier: MIT */
/*
 * file-path.h - from a request's path to that of a file below the folder of a scope.
 */
#ifndef SWEET_FILE_PATH_H
#define SWEET_FILE_PATH_H

#include <stdbool.h>

#include "config/configuration.h"

/* Returns the end of a path of that scope, relative to the folder that has its files. */
static inline const char *file_path_of(const struct scope *scope, const char *path)
{
	return path + (scope->alias ? scope->alias_skip : 0);
}

/*
 * Returns true if a name of the path begins with a dot, unless the scope serves these.  That of
 * RFC 8615 is served.
 */
bool file_path_is_hidden(const struct scope *scope, const char *path);

#endif
