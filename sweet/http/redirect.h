/* SPDX-License-Identifier: MIT */
/*
 * redirect.h - writes the Location field of a redirect (RFC 9110, section 10.2.2).
 * Pure.
 */
#ifndef SWEET_REDIRECT_H
#define SWEET_REDIRECT_H

#include "base/slice.h"

/*
 * Writes "Location: TARGET...\r\n", not NUL-terminated.  If target ends with '/',
 * rest (a decoded path) follows it, escaped.  Then follows the query, joined with
 * '&' if the target has one of its own, and omitted if the target has a fragment.
 * Returns the bytes, or 0 if they do not fit.
 */
size_t redirect_write(const char *target, const char *rest, struct slice query, char *out,
		      size_t out_size);

/* The same, to add the missing slash to a folder's path. */
size_t redirect_write_folder(const char *path, struct slice query, char *out, size_t out_size);

#endif
