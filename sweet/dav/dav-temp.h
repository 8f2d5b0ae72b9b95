/* SPDX-License-Identifier: MIT */
/*
 * dav-temp.h - a file that gets its name when it is complete, so that no reader sees a part of it, and
 * nothing is left of one that is not.  May block.
 */
#ifndef SWEET_DAV_TEMP_H
#define SWEET_DAV_TEMP_H

#include <stdbool.h>

struct dav_temp {
	int folder; /* the caller's, as of openat() */
	int fd;
	char name[32]; /* ""; or its name meanwhile, where a file cannot be without one */
};

/* Returns 0 or -errno. */
int dav_temp_open(struct dav_temp *temp, int folder);

/*
 * Gives it that name; with replace, instead of a file that has it.  The descriptor stays.  Returns
 * 0 or -errno: -EEXIST without replace.
 */
int dav_temp_commit(struct dav_temp *temp, const char *name, bool replace);

/* Closes it; without a commit, it is gone. */
void dav_temp_close(struct dav_temp *temp);

#endif
