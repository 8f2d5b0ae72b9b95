/* SPDX-License-Identifier: MIT */
/*
 * mime.h - content types by file name, from a mime.types file.
 *
 * The table is read once and is constant from then on, so any thread may use it.
 */
#ifndef SWEET_MIME_H
#define SWEET_MIME_H

#include <stdbool.h>

struct mime;

/*
 * Reads a file in the format of /etc/mime.types.  A small built-in list adds
 * missing types of the web (html, css, js, json, svg, png, jpg, gif, webp, txt,
 * wasm, ...).  Of two entries for an extension the first one counts.  If path is
 * NULL or unreadable, only the built-in list is used.  Never returns NULL (glib
 * aborts without memory).
 */
struct mime *mime_open(const char *path);
struct mime *mime_ref(struct mime *mime);
void mime_close(struct mime *mime);

/* Returns true if both know the same types (compares their number and a hash of all). */
bool mime_equal(const struct mime *a, const struct mime *b);

/*
 * Returns the type for the last extension of name (ASCII case ignored); text types
 * with "; charset=utf-8"; "application/octet-stream" if unknown. name may have
 * directories; a leading dot does not begin an extension.  The string lives as long
 * as the table.
 */
const char *mime_type(const struct mime *mime, const char *name);

#endif
