/* SPDX-License-Identifier: MIT */
/*
 * slice.h - a run of bytes that another object owns; not NUL-terminated.
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

/* A slice of a literal, with its length known at compile time; SLICE_OF is for tables. */
#define SLICE(literal) ((struct slice)SLICE_OF(literal))
/* clang-format off */
#define SLICE_OF(literal) {literal, sizeof(literal) - 1}
/* clang-format on */

/* Compares every byte; an empty one may be NULL. */
static inline bool slice_equals(struct slice a, struct slice b)
{
	return a.length == b.length && (!a.length || memcmp(a.at, b.at, a.length) == 0);
}

/* Compares, ignoring ASCII case. */
static inline bool slice_same(struct slice a, struct slice b)
{
	return a.length == b.length && (!a.length || strncasecmp(a.at, b.at, a.length) == 0);
}

/* Compares with a string, ignoring ASCII case. */
static inline bool slice_is(struct slice slice, const char *text)
{
	return slice_same(slice, (struct slice){text, strlen(text)});
}

/* Returns true if the slice equals one of the table, ignoring ASCII case. */
static inline bool slice_is_one_of(struct slice slice, const struct slice *table, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (slice_same(slice, table[i]))
			return true;
	}
	return false;
}

#endif
