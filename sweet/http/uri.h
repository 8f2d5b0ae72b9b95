/* SPDX-License-Identifier: MIT */
/*
 * uri.h - the path of a request target, decoded and normalised (RFC 3986).
 */
#ifndef SWEET_URI_H
#define SWEET_URI_H

#include "base/slice.h"

/*
 * Decodes raw (begins with '/', no query) into out: percent-escapes decoded
 * once, runs of slashes merged, then "." and ".." segments removed (RFC 3986
 * section 5.2.4), however they were written; NUL-terminated.  Returns the
 * length, or -400 when raw does not begin with '/', has a broken escape, an
 * escaped slash, a control character (NUL and DEL too, escaped or not), or
 * climbs above the root; -414 when out_size is too small for the path before
 * its ".." are removed: raw.length + 1 is always enough.  out must not overlap
 * raw, and holds nothing of use after an error.
 */
int uri_decode_path(struct slice raw, char *out, size_t out_size);

#endif
