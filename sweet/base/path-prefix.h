/* SPDX-License-Identifier: MIT */
/*
 * path-prefix.h - whether a path is another one, or lies below it.
 */
#ifndef SWEET_PATH_PREFIX_H
#define SWEET_PATH_PREFIX_H

#include <stdbool.h>
#include <string.h>

/* folder: without a slash at its end; "" is above all paths. */
static inline bool path_lies_in(const char *path, const char *folder)
{
	size_t length = strlen(folder);

	return strncmp(path, folder, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

#endif
