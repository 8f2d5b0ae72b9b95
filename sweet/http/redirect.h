/* SPDX-License-Identifier: MIT */
/*
 * redirect.h - where a client is sent to: the Location field (RFC 9110,
 * section 10.2.2).  Pure.
 */
#ifndef SWEET_REDIRECT_H
#define SWEET_REDIRECT_H

#include "base/slice.h"

/*
 * Writes "Location: TARGET...\r\n", not NUL-terminated.  If target ends with
 * '/', rest (a decoded path) follows it, escaped; the query comes behind
 * that, joined by '&' to one of the target's own, and left out where the
 * target has a fragment.  Returns the bytes, 0 when they do not fit.
 */
size_t redirect_write(const char *target, const char *rest, struct slice query, char *out,
		      size_t out_size);

/* The same for a folder's path that lacks its slash. */
size_t redirect_write_folder(const char *path, struct slice query, char *out, size_t out_size);

#endif
