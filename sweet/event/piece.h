/* SPDX-License-Identifier: MIT */
/*
 * piece.h - a piece of a response's body, by reference: a range of a unit, several ranges, bytes in
 * memory, or a range of a file.  Who makes a piece keeps what it refers to until the next one is
 * wanted, and releases its holds.
 */
#ifndef SWEET_PIECE_H
#define SWEET_PIECE_H

#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct page_memory;

/* A range of a file; length 0: none. */
struct loop_file {
	int fd;
	uint64_t offset; /* bytes */
	size_t length;	 /* bytes */
};

struct piece {
	struct NC_range range;	   /* id 0: none */
	struct NC_hold hold;	   /* of its unit */
	struct page_memory *pages; /* program memory with that unit; NULL: it is in the cache */
	/* Several ranges; with a hold for each, or one hold if all are of one unit. */
	const struct NC_range *ranges;
	const struct NC_hold *holds;
	unsigned range_count, hold_count;
	/* Bytes in memory. */
	const void *data;
	size_t data_length;
	struct loop_file file; /* a range of a file in the page cache */
	/* A small body as a whole, of the response's length. */
	const void *text;
	const char *lead;   /* text before the piece, included in the length of the response */
	size_t lead_length; /* its bytes, at most TRANSACTION_TEXT_MAX; the connection clears it */
	/*
	 * The next piece may be asked for when the client has acknowledged everything sent: until
	 * then, a write to the file can change the bytes.
	 */
	bool settle;
	bool live; /* send it at once: the next one does not exist yet */
};

/* Returns its bytes, without the text before it, and without a body that is a text. */
static inline uint64_t piece_length(const struct piece *piece)
{
	uint64_t bytes = 0;

	if (piece->data)
		return piece->data_length;
	if (piece->file.length)
		return piece->file.length;
	if (piece->range_count == 0)
		return piece->range.id ? piece->range.length : 0;
	for (unsigned i = 0; i < piece->range_count; i++)
		bytes += piece->ranges[i].length;
	return bytes;
}

static inline bool piece_is_empty(const struct piece *piece)
{
	return !piece->range.id && !piece->range_count && !piece->data && !piece->file.length &&
	       !piece->text;
}

/* Returns the hold of ranges[i]; if there is one range, i is 0. */
static inline const struct NC_hold *piece_hold(const struct piece *piece, unsigned i)
{
	return !piece->range_count	? &piece->hold
	       : piece->hold_count == 1 ? &piece->holds[0]
					: &piece->holds[i];
}

/* Forgets what it refers to, except the hold: that is released by who made the piece. */
static inline void piece_forget(struct piece *piece)
{
	piece->range = (struct NC_range){0};
	piece->pages = NULL;
	piece->ranges = NULL;
	piece->holds = NULL;
	piece->range_count = piece->hold_count = 0;
	piece->data = NULL;
	piece->data_length = 0;
	piece->file = (struct loop_file){0};
	piece->text = NULL;
}

/* Refers to what another piece refers to; the hold is that of the caller, and how it is sent stays. */
static inline void piece_refer(struct piece *piece, const struct piece *to)
{
	const struct piece before = *piece;

	*piece = *to;
	piece->hold = before.hold;
	piece->lead = before.lead;
	piece->lead_length = before.lead_length;
	piece->settle = before.settle;
	piece->live = before.live;
}

#endif
