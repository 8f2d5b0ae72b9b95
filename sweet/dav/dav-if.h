/* SPDX-License-Identifier: MIT */
/*
 * dav-if.h - the field If of WebDAV (RFC 4918, section 10.4): lists of lock tokens and entity tags,
 * of which one must hold as a whole.
 */
#ifndef SWEET_DAV_IF_H
#define SWEET_DAV_IF_H

#include <stdbool.h>

#include "base/slice.h"

#define DAV_IF_LISTS_MAX 32
#define DAV_IF_CONDITIONS_MAX 128

struct dav_if_condition {
	bool negated;
	bool is_etag;
	struct slice text; /* an entity tag with its quotes, or a token without its brackets */
};

struct dav_if_list {
	struct slice resource; /* of the tag before it; at NULL: the request's own */
	unsigned first, count; /* of the conditions */
};

/* Points into the field's value. */
struct dav_if {
	unsigned list_count, condition_count;
	struct dav_if_list lists[DAV_IF_LISTS_MAX];
	struct dav_if_condition conditions[DAV_IF_CONDITIONS_MAX];
};

/* Returns false if the value is malformed, or has more lists or conditions than the maximum. */
bool dav_if_parse(struct slice value, struct dav_if *parsed);

/*
 * Returns true if all conditions of one list hold.  holds() says whether a resource has the token
 * or tag; at NULL: the request's.
 */
bool dav_if_evaluate(const struct dav_if *parsed,
		     bool (*holds)(struct slice resource, const struct dav_if_condition *condition,
				   void *context),
		     void *context);

#endif
