/* SPDX-License-Identifier: MIT */
/*
 * names.h - the owner's directory of names: which unit each name stands for.
 *
 * A name does not hold its unit.  When that has ended, the name is free, and its entry is
 * removed at a later call.  Names come from clients, so the order of the tree, not a hash that
 * they could guess, bounds the time of a lookup.
 */
#ifndef NC_NAMES_H
#define NC_NAMES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define NC_NAMES_MAX 65536u		  /* names */
#define NC_NAMES_BYTES ((size_t)16 << 20) /* of all names */

struct nc_name;

struct nc_names {
	bool (*stands)(void *context,
		       size_t id); /* whether the unit exists; called with the lock */
	void *context;
	pthread_mutex_t lock; /* protects all below */
	void *tree;	      /* of tsearch(3) */
	struct nc_name *hand; /* the next entry to look at, in a ring of all */
	unsigned count;
	size_t bytes;
};

void nc_names_init(struct nc_names *names, bool (*stands)(void *context, size_t id), void *context);
void nc_names_fini(struct nc_names *names);

/*
 * Gives the name to a unit; added: only if it is free.  Returns 0, -EEXIST (added, and another
 * unit has it), -ENOSPC (too many names, or bytes in them), or -ENOMEM.
 */
int nc_names_set(struct nc_names *names, const char *name, size_t id, bool added);

/* Sets *id to the unit that has the name, which may have ended.  Returns 0 or -ENOENT. */
int nc_names_find(struct nc_names *names, const char *name, size_t *id);

/* Frees the name of the unit; id 0: of any.  Returns 0, or -ENOENT: it has not that unit. */
int nc_names_remove(struct nc_names *names, const char *name, size_t id);

#endif
