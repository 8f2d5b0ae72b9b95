/* SPDX-License-Identifier: MIT */
/*
 * filehead.h - the header lines of a file's version, generated once and sent many
 * times.
 */
#ifndef SWEET_FILEHEAD_H
#define SWEET_FILEHEAD_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/slice.h"
#include "http/etag.h"

struct file_version;

#define FILEHEAD_MAX 352 /* bytes */

struct filehead {
	char text[FILEHEAD_MAX];
	unsigned short length; /* of all lines */
	unsigned short own;    /* of Content-Type and Content-Length, which come first */
	unsigned short etag_at;
	time_t modified;  /* as in Last-Modified */
	bool capped;	  /* the file's own time is later */
	const char *mime; /* the uncut type; the caller's */
};

/*
 * Writes Content-Type and Content-Length, then the lines that a 206 and a 304 have
 * too: Last-Modified, ETag, Accept-Ranges.  Cuts the type at 128 bytes; type must
 * last as long as the head. now: no later time is sent as Last-Modified (RFC 9110,
 * section 8.8.2.1).
 */
void filehead_write(struct filehead *head, const struct file_version *version, enum etag_kind kind,
		    const char *type, time_t now);

/* Writes the head of a compressed variant of that version, of that length; coded: see etag.h. */
void filehead_write_coded(struct filehead *head, const struct file_version *version,
			  enum etag_kind kind, uint64_t length, uint64_t coded, const char *type,
			  time_t now);

static inline struct slice filehead_etag(const struct filehead *head)
{
	return (struct slice){head->text + head->etag_at, ETAG_LENGTH};
}

/* Returns the lines that do not depend on the part of the file that is sent. */
static inline struct slice filehead_common(const struct filehead *head)
{
	return (struct slice){head->text + head->own, (size_t)(head->length - head->own)};
}

#endif
