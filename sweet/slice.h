/* SPDX-License-Identifier: MIT */
/*
 * slice.h - a run of bytes that somebody else owns; not NUL-terminated.
 */
#ifndef SWEET_SLICE_H
#define SWEET_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

struct slice {
	const char *at;
	size_t length;
};

/* Equal to a literal, ASCII case ignored. */
static inline bool slice_is(struct slice slice, const char *text)
{
	size_t length = strlen(text);

	return slice.length == length && strncasecmp(slice.at, text, length) == 0;
}

#endif
