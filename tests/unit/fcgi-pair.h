/* SPDX-License-Identifier: MIT */
/*
 * fcgi-pair.h - reads the names and values in FastCGI records: what the server writes, read by
 * other code than its own.
 */
#ifndef TESTS_FCGI_PAIR_H
#define TESTS_FCGI_PAIR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

static inline bool fcgi_take_length(struct slice *rest, size_t *length)
{
	const unsigned char *at = (const unsigned char *)rest->at;
	size_t size = rest->length && at[0] > 127 ? 4 : 1;

	if (rest->length < size)
		return false;
	*length = at[0];
	if (size == 4)
		*length = (size_t)(at[0] & 0x7f) << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 |
			  at[3];
	*rest = (struct slice){rest->at + size, rest->length - size};
	return true;
}

/* Splits the first pair off.  Returns false if there is none, or the rest is malformed. */
static inline bool fcgi_pair(struct slice *rest, struct slice *name, struct slice *value)
{
	struct slice left = *rest;
	size_t name_length, value_length;

	if (!fcgi_take_length(&left, &name_length) || !fcgi_take_length(&left, &value_length) ||
	    name_length > left.length || value_length > left.length - name_length)
		return false;
	*name = (struct slice){left.at, name_length};
	*value = (struct slice){left.at + name_length, value_length};
	*rest = (struct slice){left.at + name_length + value_length,
			       left.length - name_length - value_length};
	return true;
}

#endif
