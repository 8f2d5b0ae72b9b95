/* SPDX-License-Identifier: MIT */
/*
 * cachekey.h - what tells one kept response from another: host and target,
 * and the values of the request's fields that Vary names (RFC 9111, section
 * 4.1).  Pure.
 */
#ifndef SWEET_CACHEKEY_H
#define SWEET_CACHEKEY_H

#include <request.h>

#define CACHEKEY_HOST_MAX 260 /* bytes, with a port */
#define CACHEKEY_MAX (CACHEKEY_HOST_MAX + 1 + REQUEST_TARGET_MAX + 1)
#define CACHEKEY_VALUES_MAX 4096 /* bytes of the values of varying fields */

/*
 * "host /path?query", the host in lower case as the client named it, and the
 * target as it was sent, since the program behind sees both.  Writes at most
 * CACHEKEY_MAX bytes, no NUL; 0: no such request has a key.
 */
size_t cachekey_write(const struct request *request, char *out);

/*
 * The same of a URL in text, "http://host/path?query"; without "http://host"
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
