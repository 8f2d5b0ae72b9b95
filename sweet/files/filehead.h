/* SPDX-License-Identifier: MIT */
/*
 * filehead.h - what a version of a file says of itself in header lines, made
 * once and sent many times.
 */
#ifndef SWEET_FILEHEAD_H
#define SWEET_FILEHEAD_H

#include "base/slice.h"
#include "files/docroot.h"
#include "http/etag.h"

#define FILEHEAD_MAX 352 /* bytes */

struct filehead {
	char text[FILEHEAD_MAX];
	unsigned short length; /* of all lines */
	unsigned short own;    /* of Content-Type and Content-Length, which come first ... */
	unsigned short etag_at;
	time_t modified;  /* as Last-Modified says */
	const char *mime; /* the type, whole; its maker's */
};

/*
 * Writes Content-Type and Content-Length, and behind them the lines that a
 * 206 and a 304 have too: Last-Modified, ETag, Accept-Ranges.  A type is cut
 * at 128 bytes, and lasts as long as the head.  now: no file was modified later (RFC 9110, section 8.8.2.1).
 */
void filehead_write(struct filehead *head, const struct file_version *version, const char *type,
		    time_t now);

static inline struct slice filehead_etag(const struct filehead *head)
{
	return (struct slice){head->text + head->etag_at, ETAG_LENGTH};
}

/* The lines that do not depend on how much of the file is sent. */
static inline struct slice filehead_common(const struct filehead *head)
{
	return (struct slice){head->text + head->own, (size_t)(head->length - head->own)};
}

#endif
