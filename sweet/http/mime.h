/* SPDX-License-Identifier: MIT */
/*
 * mime.h - content type by file name, from a mime.types file.
 *
 * The table is read once and then only looked at, so any thread may use it.
 */
#ifndef SWEET_MIME_H
#define SWEET_MIME_H

#include <stdbool.h>

struct mime;

/*
 * Reads a file in the format of /etc/mime.types; what it lacks for the web
 * (html, css, js, json, svg, png, jpg, gif, webp, txt, wasm, ...) a small
 * built-in list adds; of two entries for an extension the first one counts.
 * path NULL or unreadable: the built-in list alone.
 * Never NULL (glib aborts when memory ends).
 */
struct mime *mime_open(const char *path);
struct mime *mime_ref(struct mime *mime);
void mime_close(struct mime *mime);

/* Whether they know the same types (by their number and a hash of all). */
bool mime_equal(const struct mime *a, const struct mime *b);

/*
 * The type for the last extension of name (ASCII case ignored), text types
 * with "; charset=utf-8"; "application/octet-stream" when unknown.  name may
 * have directories; a leading dot does not begin an extension.  The string
 * lives as long as the table.
 */
const char *mime_type(const struct mime *mime, const char *name);

#endif
