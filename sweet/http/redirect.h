/* SPDX-License-Identifier: MIT */
/*
 * redirect.h - writes the Location field of a redirect (RFC 9110, section 10.2.2).
 * Pure.
 */
#ifndef SWEET_REDIRECT_H
#define SWEET_REDIRECT_H

#include <stddef.h>

#include "base/slice.h"

/*
 * Writes "Location: TARGET...\r\n", not NUL-terminated.  If target ends with '/',
 * rest (a decoded path) follows it, escaped.  Then follows the query, joined with
 * '&' if the target has one of its own, and omitted if the target has a fragment.
 * Returns the bytes, or 0 if they do not fit.
 */
size_t redirect_write(const char *target, const char *rest, struct slice query, char *out,
		      size_t out_size);

/*
 * Writes "Location: https://HOST[:PORT]PATH[?QUERY]\r\n" for a request with that Host field, and
 * path and query as in its target.  The field's own port is that of another address: it is left
 * out, or replaced by port if that is not 0.
 */
size_t redirect_write_tls(struct slice host, unsigned port, struct slice path, struct slice query,
			  char *out, size_t out_size);

/* Writes the Location of a folder's path with the slash that the request left out. */
size_t redirect_write_folder(const char *path, struct slice query, char *out, size_t out_size);

#endif
