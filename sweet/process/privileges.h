/* SPDX-License-Identifier: MIT */
/*
 * privileges.h - what a server drops that was started by root: its user, its
 * groups, its capabilities, and any way to regain them; and what a server drops
 * that stays root.  Main thread, before there are other threads.
 */
#ifndef SWEET_PRIVILEGES_H
#define SWEET_PRIVILEGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The user and groups to become. */
struct privileges {
	bool user, group; /* configured */
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* all groups of the user, including gid */
	int group_count;
};

/*
 * user, group: names or numbers, or NULL: unchanged.  Without group it is the
 * user's.  Returns false with one line in *why (g_free).
 */
bool privileges_find(struct privileges *privileges, const char *user, const char *group,
		     char **why);
void privileges_clear(struct privileges *privileges);

/*
 * Makes a regular file of this user the new user's, so that it can be opened again
 * later; but not a file with several hard links.
 */
void privileges_give(const struct privileges *privileges, int fd);

/*
 * Returns false with one line in *why (g_free) if a step failed; then the process
 * must not continue.
 */
bool privileges_drop(const struct privileges *privileges, char **why);

/*
 * Drops all capabilities but its own and those that programs can have from it, one bit each
 * (capabilities(7)).  Returns 0 or -errno.
 */
int privileges_limit(uint64_t own, uint64_t programs);

/*
 * Drops all capabilities, root's too, and removes from the bounding set all that a
 * server of files and programs does not need.  Returns 0 or -errno.
 */
int privileges_trim(void);

/* Raises the limit of descriptors to the hard limit. */
void privileges_raise_limits(void);

/*
 * Programs started from here on get no more privileges than this process, and
 * processes of the same user cannot read its memory.  Returns 0 or -errno.
 */
int privileges_seal(void);

#endif
