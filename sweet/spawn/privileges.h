/* SPDX-License-Identifier: MIT */
/*
 * privileges.h - what a server that was started by root gives up: its user,
 * its groups, its capabilities, and the way back; and what one gives up that
 * stays root.  Main thread, before there are others.
 */
#ifndef SWEET_PRIVILEGES_H
#define SWEET_PRIVILEGES_H

#include <stdbool.h>
#include <sys/types.h>

/* Who to become. */
struct privileges {
	bool user, group; /* are given */
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* the user's others, gid among them */
	int group_count;
};

/*
 * Names or numbers, or NULL: as it is.  Without a group it is the user's.
 * False: *why is one line (g_free).
 */
bool privileges_find(struct privileges *privileges, const char *user, const char *group,
		     char **why);
void privileges_clear(struct privileges *privileges);

/* A regular file of ours becomes the user's, to be opened again later; not one of two names. */
void privileges_give(const struct privileges *privileges, int fd);

/* False, with one line in *why (g_free): not all of it is done, and nothing may go on. */
bool privileges_drop(const struct privileges *privileges, char **why);

/*
 * Leaves of the capabilities, those of root too, and of what programs can have,
 * no more than a server of files and programs has a use for.  0 or -errno.
 */
int privileges_trim(void);

/* As many descriptors as the hard limit allows. */
void privileges_raise_limits(void);

/*
 * No program that is started from here on gets more than this one has, and none
 * of the same user looks into this one's memory.  0 or -errno.
 */
int privileges_seal(void);

#endif
