/* SPDX-License-Identifier: MIT */
/*
 * readonly.h - a process that can read the file system as before, and write
 * only below a few folders.  What it starts is bound as well.  Main thread,
 * before there are others; descriptors that are open stay as they are.
 */
#ifndef SWEET_READONLY_H
#define SWEET_READONLY_H

#include <stdbool.h>
#include <stddef.h>

/* One way to do it.  writable: folders, NULL ends; those that are not there are left out. */
struct readonly_method {
	const char *name;
	int (*enter)(const char *const *writable); /* 0 or -errno */
};

/* The best first; a row without a name ends. */
extern const struct readonly_method readonly_methods[];

/*
 * By the first method that works.  how gets its name, or, when false is
 * returned, every reason why not.
 */
bool readonly_enter(const char *const *writable, char *how, size_t size);

#endif
