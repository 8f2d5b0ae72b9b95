/* SPDX-License-Identifier: MIT */
/*
 * dav-live.h - the properties that the server makes ("live" ones: RFC 4918, section 15).
 */
#ifndef SWEET_DAV_LIVE_H
#define SWEET_DAV_LIVE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "files/docroot.h"
#include "http/etag.h"

struct dav;
struct site_scope;

/* A file or folder whose properties are read. */
struct dav_resource {
	struct dav *dav; /* whose locks it has */
	char *path;	 /* of the host; a folder's ends with a slash */
	char *key;	 /* of its locks */
	bool folder;
	int fd; /* for dav-properties.h; -1: not wanted, or no right to read it */
	struct file_version version;
	const char *type; /* media type; of a file */
	enum etag_kind etag;
	int64_t created; /* seconds since 1970; 0: not known */
};

/*
 * open: for the scope of path, which is decoded, of the host; file: the same below the root.  Returns 0
 * or -errno; may block.
 */
int dav_resource_open(struct dav_resource *resource, const struct site_scope *open,
		      const char *path, const char *file, bool with_fd);
void dav_resource_close(struct dav_resource *resource);

/* Whether the property of the namespace "DAV:" is one of these, even if the resource has none. */
bool dav_live_knows(const char *local);

/* Appends the property; returns false if the resource has none of that name. */
bool dav_live_write(GString *to, const struct dav_resource *resource, const char *local);

/* Appends all that it has, or their names. */
void dav_live_write_all(GString *to, const struct dav_resource *resource, bool names);

/* Appends lockdiscovery. */
void dav_live_write_locks(GString *to, struct dav *dav, const char *key);

#endif
