/* SPDX-License-Identifier: MIT */
/*
 * dav-request.h - what a request of WebDAV says, kept after its head is gone.
 */
#ifndef SWEET_DAV_REQUEST_H
#define SWEET_DAV_REQUEST_H

#include <stdbool.h>

#include "base/slice.h"
#include "dav/dav-if.h"
#include "http/conditional.h"

struct request;

enum dav_method {
	DAV_PUT,
	DAV_DELETE,
	DAV_MKCOL,
	DAV_COPY,
	DAV_MOVE,
	DAV_PROPFIND,
	DAV_PROPPATCH,
	DAV_LOCK,
	DAV_UNLOCK,
	DAV_METHODS,
};

enum dav_depth { DAV_DEPTH_0, DAV_DEPTH_1, DAV_DEPTH_INFINITY };

#define DAV_TIMEOUT_S 600u	/* of a lock whose client does not say */
#define DAV_TIMEOUT_MAX_S 3600u /* longer ones are cut */

struct dav_request {
	enum dav_method method;
	enum dav_depth depth; /* infinity is the default */
	bool overwrite;
	unsigned timeout_s;
	struct slice destination; /* at NULL: none */
	struct slice lock_token;  /* the same */
	bool has_if;
	struct dav_if condition;
	struct slice tokens[DAV_IF_CONDITIONS_MAX]; /* of that field */
	unsigned token_count;
	struct conditions conditions;
	char *text; /* what the slices point into */
};

/* Returns the method, or DAV_METHODS. */
enum dav_method dav_method_of(const struct request *request);

/* Returns 0 and a request for dav_request_clear(), or a status with its reason for the log. */
int dav_request_read(struct dav_request *read, const struct request *request, const char **reason);
void dav_request_clear(struct dav_request *read);

#endif
