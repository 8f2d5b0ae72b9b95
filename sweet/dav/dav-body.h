/* SPDX-License-Identifier: MIT */
/*
 * dav-body.h - what the bodies of PROPFIND, PROPPATCH and LOCK ask for (RFC 4918, section 14).
 * Elements that are not known are ignored (section 17).
 */
#ifndef SWEET_DAV_BODY_H
#define SWEET_DAV_BODY_H

#include <stdbool.h>
#include <stddef.h>

#include <glib.h>

#define DAV_BODY_MAX ((size_t)64 << 10) /* bytes */
#define DAV_PROPERTIES_MAX 256		/* of a request */

/* A property, by its name; and what PROPPATCH does with it. */
struct dav_property {
	char *space, *local; /* space "": none */
	bool remove;
	char *xml; /* to set: the element as XML */
};

enum dav_find { DAV_FIND_ALL, DAV_FIND_NAMES, DAV_FIND_SOME };

struct dav_body {
	enum dav_find find;
	GPtrArray *properties; /* struct dav_property */
	bool shared;	       /* the wanted lock */
	char *owner;	       /* its element as XML; NULL: none */
};

/*
 * Read a body; return 0 and a body for dav_body_clear(), or a status: 400: malformed XML, or beyond
 * a limit; 422: XML that is not what the method expects.
 */
int dav_body_propfind(const char *data, size_t length, struct dav_body *body);
int dav_body_proppatch(const char *data, size_t length, struct dav_body *body);
int dav_body_lock(const char *data, size_t length, struct dav_body *body);
void dav_body_clear(struct dav_body *body);

#endif
