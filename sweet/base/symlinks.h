/* SPDX-License-Identifier: MIT */
/*
 * symlinks.h - which symbolic links are followed below a folder that is served.
 */
#ifndef SWEET_SYMLINKS_H
#define SWEET_SYMLINKS_H

/* In the order of the values of "symlinks". */
enum symlinks {
	SYMLINKS_INSIDE, /* those that do not leave the folder */
	SYMLINKS_FOLLOW, /* all */
	SYMLINKS_OWNER,	 /* those whose owner owns what they lead to */
	SYMLINKS_DENY,	 /* none */
};

#endif
