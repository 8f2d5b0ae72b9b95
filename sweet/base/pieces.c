/* SPDX-License-Identifier: MIT */
/*
 * pieces.c - see pieces.h.
 *
 * A program may be at work longer than the request, which gives its unit back
 * when the next one is asked for, or at its end: so each is held here too.
 */
#include <assert.h>
#include <errno.h>

#include "base/pieces.h"

int pieces_add(struct pieces *pieces, size_t id, size_t length, bool more)
{
	assert(pieces->count < PIECES_MAX);
	if (id && length) {
		if (NC_hold(id) < 0)
			return -errno;
		pieces->line[pieces->count++] = (struct NC_range){.id = id, .length = length};
	}
	pieces->more = more;
	return 0;
}

struct NC_range pieces_next(const struct pieces *pieces, size_t bytes)
{
	struct NC_range range = {0};

	if (pieces->count)
		range = pieces->line[0];
	if (range.length > bytes)
		range.length = bytes;
	return range;
}

void pieces_written(struct pieces *pieces, size_t bytes)
{
	struct NC_range *first = &pieces->line[0];

	assert(pieces->count && bytes <= first->length);
	first->offset += bytes;
	first->length -= bytes;
	if (first->length)
		return;
	(void)NC_release(first->id);
	pieces->count--;
	for (unsigned i = 0; i < pieces->count; i++)
		pieces->line[i] = pieces->line[i + 1];
}

void pieces_clear(struct pieces *pieces)
{
	for (unsigned i = 0; i < pieces->count; i++)
		(void)NC_release(pieces->line[i].id);
	*pieces = (struct pieces){0};
}
