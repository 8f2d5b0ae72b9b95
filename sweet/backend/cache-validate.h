/* SPDX-License-Identifier: MIT */
/*
 * cache-validate.h - an outdated response is validated: the request that would replace it asks
 * whether it has changed, and if not, it is stored again (RFC 9111, section 4.3).  No state.
 */
#ifndef SWEET_CACHE_VALIDATE_H
#define SWEET_CACHE_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/date.h"
#include "base/slice.h"

struct request;
struct respcache_view;

/*
 * Adds the condition to a request, which has none.  It refers to the entry and to date.  Returns
 * false if there is no room for another field.
 */
bool cache_validate_ask(struct request *request, const struct respcache_view *view,
			char date[DATE_LENGTH]);

/*
 * Returns true if the lines of a 304 are about the stored response: they have no other entity tag,
 * by weak comparison.
 */
bool cache_validate_matches(const struct respcache_view *view, struct slice lines);

/*
 * Returns the header lines of the stored response with those of a 304 instead of its own, except
 * those that describe a body, and its entity tag; to be freed.  NULL: no memory.
 */
char *cache_validate_merge(struct slice stored, struct slice lines, size_t *length);

#endif
