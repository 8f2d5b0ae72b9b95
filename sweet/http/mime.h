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

struct mime_options {
	const char *path;      /* a file in the format of /etc/mime.types; NULL: none */
	char *const *lines;    /* "TYPE EXTENSION...", before those of the file; NULL: none */
	const char *charset;   /* of text types; NULL: none is named */
	const char *otherwise; /* the type of other names; NULL: application/octet-stream */
};

/*
 * Reads the file.  A small built-in list adds missing types of the web (html, css,
 * js, json, svg, png, jpg, gif, webp, txt, wasm, ...).  Of two entries for an
 * extension the first one counts.  If the file is unreadable, only the others are
 * used.  Never returns NULL (glib aborts without memory).
 */
struct mime *mime_open(const struct mime_options *options);
struct mime *mime_ref(struct mime *mime);
void mime_close(struct mime *mime);

/* Whether a text is "TYPE/SUBTYPE", and "TYPE/SUBTYPE EXTENSION...". */
bool mime_is_type(const char *text);
bool mime_is_line(const char *text);

/* Returns true if both know the same types (compares their number and a hash of all). */
bool mime_equal(const struct mime *a, const struct mime *b);

/*
 * Returns the type for the last extension of name (ASCII case ignored), or the one
 * for all others; text types with "; charset=CHARSET". name may have
 * directories; a leading dot does not begin an extension.  The string lives as long
 * as the table.
 */
const char *mime_type(const struct mime *mime, const char *name);

#endif
