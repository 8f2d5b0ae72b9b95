/* SPDX-License-Identifier: MIT */
/*
 * dav-properties.h - the properties that clients give to files and folders ("dead" ones: RFC 4918,
 * section 4.2), as extended attributes: they move with the file, and end with it.
 *
 * The name of an attribute is a hash of the property's, which may be longer; its value has both.
 */
#ifndef SWEET_DAV_PROPERTIES_H
#define SWEET_DAV_PROPERTIES_H

#include <glib.h>

#define DAV_PROPERTY_MAX ((size_t)16 << 10) /* bytes of a property, with its name */

/* fd: of the file or folder, open for reading.  They return 0 or -errno, and may block. */

/* -ENOTSUP: the file system has no such attributes; -E2BIG, -ENOSPC: no room. */
int dav_property_set(int fd, const char *space, const char *local, const char *xml);

/* Returns 0, too, if there is none. */
int dav_property_remove(int fd, const char *space, const char *local);

/* Returns the element as XML, which the caller frees, or NULL. */
char *dav_property_get(int fd, const char *space, const char *local);

/* Calls see() for each one. */
void dav_properties_each(int fd,
			 void (*see)(const char *space, const char *local, const char *xml,
				     void *context),
			 void *context);

/* Where there are no such attributes, nothing is copied. */
int dav_properties_copy(int from, int to);

#endif
