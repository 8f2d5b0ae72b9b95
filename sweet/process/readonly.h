/* SPDX-License-Identifier: MIT */
/*
 * readonly.h - makes the file system read-only for this process and its children,
 * except below a few folders.  Main thread, before there are other threads; open
 * descriptors are not affected.
 */
#ifndef SWEET_READONLY_H
#define SWEET_READONLY_H

#include <stdbool.h>
#include <stddef.h>

/* One method. writable: folders, ends with NULL; missing ones are skipped. */
struct readonly_method {
	const char *name;
	int (*enter)(const char *const *writable); /* returns 0 or -errno */
};

/* The best first; the last row has no name. */
extern const struct readonly_method readonly_methods[];

/*
 * Uses the first method that works. how receives its name or, if it returns false,
 * the reason of each failure.
 */
bool readonly_enter(const char *const *writable, char *how, size_t size);

#endif
