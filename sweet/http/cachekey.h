/* SPDX-License-Identifier: MIT */
/*
 * cachekey.h - the key of a stored response: its URL, the address and site that
 * received the request, and the values of the request's fields that Vary names (RFC
 * 9111, section 4.1).  Pure.
 *
 * A key is the part of the URL, then the part of the place: two sites may have the
 * same URL, at different addresses or one after the other.
 */
#ifndef SWEET_CACHEKEY_H
#define SWEET_CACHEKEY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "http/request.h"

#define CACHEKEY_HOST_MAX 260 /* bytes, with a port */
#define CACHEKEY_URL_MAX (CACHEKEY_HOST_MAX + 1 + REQUEST_TARGET_MAX + 1)
#define CACHEKEY_PLACE_MAX 1024 /* bytes */
#define CACHEKEY_MAX (CACHEKEY_URL_MAX + CACHEKEY_PLACE_MAX)
#define CACHEKEY_VALUES_MAX 4096 /* bytes of the values of varying fields */

/* Where a request arrived. */
struct cachekey_place {
	struct slice host; /* "192.0.2.1:8080", for requests without a host */
	struct slice text; /* at most CACHEKEY_PLACE_MAX - 2 bytes */
};

/*
 * Writes "host /path?query": the client's host, or else the given host, in lower
 * case, and the target as sent, because the program sees both.  Writes at most
 * CACHEKEY_URL_MAX bytes, no NUL; returns 0 if such a request has no key.
 */
size_t cachekey_write_url(const struct request *request, struct slice host, char *out);

/*
 * Writes the same, *url_length bytes, then a zero byte and the place; at most
 * CACHEKEY_MAX bytes in all.  A request without a Host field gets another key than
 * one that names the same host, because programs see the difference.
 */
size_t cachekey_write(const struct request *request, const struct cachekey_place *place, char *out,
		      size_t *url_length);

/*
 * Writes the URL part of the key for a URL, "http://host/path?query"; without
 * "http://host" it begins with the blank.  Omits a '*' at the end and sets *prefix.
 * Returns 0 if this is no such URL.
 */
size_t cachekey_of_url(struct slice url, char *out, bool *prefix);

/*
 * Writes the request's values of the fields in names (as in struct
 * cachecontrol_vary), each ended by a NUL.  Returns the bytes, or -1 if they exceed
 * CACHEKEY_VALUES_MAX.
 */
long cachekey_values(const struct request *request, struct slice names, char *out);

/* Returns true if another request has the same values. */
bool cachekey_matches(const struct request *request, struct slice names, const char *values);

#endif
