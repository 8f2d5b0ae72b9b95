/* SPDX-License-Identifier: MIT */
/*
 * dav-multistatus.h - writes the XML of WebDAV's responses (RFC 4918, sections 13 and 14).
 */
#ifndef SWEET_DAV_MULTISTATUS_H
#define SWEET_DAV_MULTISTATUS_H

#include <stdbool.h>

#include <glib.h>

#define DAV_XML_TYPE "application/xml; charset=utf-8"

/* Appends a decoded path as a URL's path, escaped for XML too. */
void dav_write_href(GString *to, const char *path);

/* Begin and end the whole text. */
GString *dav_multistatus_begin(void);
void dav_multistatus_end(GString *to);

/* Appends a resource with a status; condition: the name of what it violates, or NULL. */
void dav_multistatus_add(GString *to, const char *path, int status, const char *condition);

/*
 * Appends a resource with its properties: those of each status, as XML.  An empty one is left out;
 * if all are empty, the first is there.
 */
struct dav_propstat {
	int status;
	const GString *properties;
};
void dav_multistatus_properties(GString *to, const char *path, const struct dav_propstat *stats,
				unsigned count);

/* Appends an empty element of that name: a property that is named, or has no value. */
void dav_write_name(GString *to, const char *space, const char *local);

/* Returns the body of an error: a condition that is violated, with the href of a resource or NULL. */
GString *dav_error_text(const char *condition, const char *path);

#endif
