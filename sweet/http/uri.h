/* SPDX-License-Identifier: MIT */
/*
 * uri.h - the path of a request target, decoded and normalised (RFC 3986).
 */
#ifndef SWEET_URI_H
#define SWEET_URI_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

/* What an escaped slash is; in the order of the values of "escaped-slash". */
enum uri_slash {
	URI_SLASH_REFUSE,
	URI_SLASH_DECODE, /* a slash, which separates segments */
	URI_SLASH_KEEP,	  /* data: it stays "%2F" */
};

/*
 * Decodes raw (begins with '/', no query) into out: decodes percent-escapes once,
 * merges runs of slashes, then removes "." and ".." segments (RFC 3986 section
 * 5.2.4), however they were written; NUL-terminated.  Returns the length; -400 if
 * raw does not begin with '/', has a broken escape, an escaped slash that is refused, a control
 * character (also NUL and DEL, escaped or not), or climbs above the root; -414 if
 * out_size is too small for the path before its ".." are removed: raw.length + 1 is
 * always enough. out must not overlap raw, and is invalid after an error.
 */
int uri_decode_path(struct slice raw, enum uri_slash slash, char *out, size_t out_size);

/*
 * Whether a decoded path has a segment "." or ".." with a parameter, as in "/..;a/b".  It is a name
 * here, but a dot segment for servers that remove parameters first, as those of Java do.
 */
bool uri_has_dot_parameter(const char *path);

/*
 * Copies a decoded path without the parameters of its segments, as "/a;b/c" is "/a/c" for such
 * servers, and without runs of slashes; out has room for strlen(path) + 1 bytes.  Returns false if
 * there are none.
 */
bool uri_without_parameters(const char *path, char *out);

/* Writes a byte of a decoded path, escaped if it has to be; returns 1 or 3 bytes. */
size_t uri_escape(char byte, char out[3]);

/* Returns the host without a port; colons in brackets belong to an address. */
struct slice uri_without_port(struct slice host);

#endif
