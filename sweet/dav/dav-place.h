/* SPDX-License-Identifier: MIT */
/*
 * dav-place.h - where a request of WebDAV reads and writes: a path of the host, the file that it
 * names, and the rules that apply there.
 *
 * Writing follows no symbolic link: what a client changes lies in the folder that is served, under
 * the name by which it is locked.
 */
#ifndef SWEET_DAV_PLACE_H
#define SWEET_DAV_PLACE_H

#include <stdbool.h>

#include "base/slice.h"
#include "files/docroot.h"

struct config_ref;
struct scope;
struct site_scope;
struct transaction;

struct dav_place {
	const struct scope *scope;     /* NULL: the place is not set */
	const struct site_scope *open; /* for the scope */
	char *path;	  /* decoded, of the host, without a slash at its end; "": all */
	bool slash;	  /* the client wrote one */
	const char *file; /* the end of path, below the root, without a slash before it */
	char *key;	  /* the absolute path of the file, for locks */
	char *parent;	  /* the folder of file, below the root; "." */
	char *parent_key;
	const char *name; /* the last part of file; "": the root */
};

/*
 * Sets a place of the scope, which is of that configuration.  Returns 0; 403: a hidden name, or the root of the scope or of its
 * files, with change.
 */
int dav_place_set(struct dav_place *place, const struct config_ref *ref, const struct scope *scope,
		  const char *path, bool change);
void dav_place_clear(struct dav_place *place);

/*
 * Finds the place of a URL in a field (Destination, If) of the transaction's request.  Returns 0 or
 * a status: 400: malformed; 502: another host; 403: the client must not write there.  Call it on
 * the transaction's thread.
 */
int dav_place_find(struct dav_place *place, struct transaction *transaction, struct slice url,
		   bool change);

/* Returns true if the place is, or lies below, the other. */
bool dav_place_lies_in(const struct dav_place *place, const struct dav_place *other);

/*
 * Returns true if all paths below the place have the same rules: else a folder cannot be changed as
 * a whole.
 */
bool dav_place_is_uniform(const struct dav_place *place, const struct transaction *transaction);

/* The root for reading, with the links that the operator permits, and for writing. */
struct docroot dav_place_reads(const struct dav_place *place);
struct docroot dav_place_writes(const struct dav_place *place);

/* Opens the folder that has it, for calls as openat(); returns a descriptor or -errno. */
int dav_place_open_parent(const struct dav_place *place);

/* Looks at what a reader gets there.  Returns 0, or -errno. */
int dav_place_look(const struct dav_place *place, bool *folder, struct file_version *version);

/* Returns a status for an error of a file. */
int dav_status(int error);

#endif
