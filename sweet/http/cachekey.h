/* SPDX-License-Identifier: MIT */
/*
 * cachekey.h - what tells one kept response from another: its URL, the place
 * where the request came in, and the values of the request's fields that Vary
 * names (RFC 9111, section 4.1).  Pure.
 *
 * A key is the URL's part, and behind that the place's: two sites may have the
 * same URL, at different addresses or one after the other.
 */
#ifndef SWEET_CACHEKEY_H
#define SWEET_CACHEKEY_H

#include "http/request.h"

#define CACHEKEY_HOST_MAX 260 /* bytes, with a port */
#define CACHEKEY_URL_MAX (CACHEKEY_HOST_MAX + 1 + REQUEST_TARGET_MAX + 1)
#define CACHEKEY_PLACE_MAX 1024 /* bytes */
#define CACHEKEY_MAX (CACHEKEY_URL_MAX + CACHEKEY_PLACE_MAX)
#define CACHEKEY_VALUES_MAX 4096 /* bytes of the values of varying fields */

/* Where a request came in, as others know it. */
struct cachekey_place {
	struct slice host; /* "192.0.2.1:8080", for a request that names none */
	struct slice text; /* of CACHEKEY_PLACE_MAX - 2 bytes at most */
};

/*
 * "host /path?query", the host in lower case as the client named it, or else
 * the one that is given, and the target as it was sent, since the program
 * behind sees both.  Writes at most CACHEKEY_URL_MAX bytes, no NUL; 0: no such
 * request has a key.
 */
size_t cachekey_write_url(const struct request *request, struct slice host, char *out);

/*
 * That, *url_length bytes, and behind it a zero byte and the place, of
 * CACHEKEY_MAX bytes at most.  One without a Host field is another than one
 * with the same host in it: a program sees the difference.
 */
size_t cachekey_write(const struct request *request, const struct cachekey_place *place, char *out,
		      size_t *url_length);

/*
 * The URL's part of a URL in text, "http://host/path?query"; without "http://host"
 * the key begins with the blank.  A '*' at the end is left out, and *prefix
 * set.  0: it is no such URL.
 */
size_t cachekey_of_url(struct slice url, char *out, bool *prefix);

/*
 * Writes the request's values of the fields of those names, each ended by a
 * NUL.  names as in struct cachecontrol_vary.  The bytes, or -1 when they are
 * more than CACHEKEY_VALUES_MAX.
 */
long cachekey_values(const struct request *request, struct slice names, char *out);

/* Whether another request has the same values. */
bool cachekey_matches(const struct request *request, struct slice names, const char *values);

#endif
