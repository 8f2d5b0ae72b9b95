/* SPDX-License-Identifier: MIT */
/*
 * file-path.c - see file-path.h.
 */
#include <nabc.h>
#include <stdbool.h>
#include <string.h>

#include "core/file-path.h"

bool file_path_is_hidden(const struct scope *scope, const char *whole)
{
	static const char known[] = "/.well-known";
	const char *path = file_path_of(scope, whole);

	if (scope->hidden)
		return false;
	if (path == whole && path[0] == '/' && path[1] == '.' &&
	    strncmp(path, known, sizeof(known) - 1) == 0 &&
	    (path[sizeof(known) - 1] == '/' || path[sizeof(known) - 1] == '\0'))
		path += sizeof(known) - 1;
	while ((path = strchr(path, '/')))
		if (*++path == '.')
			return true;
	return false;
}
