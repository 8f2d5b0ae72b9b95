/* SPDX-License-Identifier: MIT */
/*
 * piece.h - a piece of a response's body, by reference: a range of a unit, several ranges, bytes in
 * memory, or a range of a file.
 *
 * What a piece owns ends with piece_release(), by the function that its maker has set; a piece without
 * one refers to what its maker keeps until the end of the response.  The struct that has a piece
 * releases it once, when it was sent or is not needed, and need not know its maker: transaction_next()
 * and transaction_finish() release that of a transaction.  A piece that moves to another struct leaves
 * PIECE_NONE behind.
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

enum piece_kind {
	PIECE_NONE,   /* nothing, or only the text before it */
	PIECE_RANGE,  /* of a unit */
	PIECE_RANGES, /* of units */
	PIECE_BYTES,  /* in memory */
	PIECE_FILE,   /* a range of a file in the page cache */
	PIECE_TEXT,   /* a small body as a whole, of the response's length */
};

struct piece {
	enum piece_kind kind;
	/*
	 * The next piece may be asked for when the client has acknowledged everything sent: until
	 * then, a write to the file can change the bytes.
	 */
	bool settle;
	uint64_t length; /* bytes, without the text before it; 0: none, or a text */
	union {
		struct {
			struct NC_range range;
			struct NC_hold hold;	   /* of its unit */
			struct page_memory *pages; /* program memory with it; NULL: the cache */
		};
		struct {
			const struct NC_range *ranges;
			const struct NC_hold *holds; /* for each range, or one of their only unit */
			unsigned range_count, hold_count;
		};
		const void *data; /* or a text */
		struct loop_file file;
	};
	const char *lead;   /* text before the piece, included in the length of the response */
	size_t lead_length; /* its bytes, at most TRANSACTION_TEXT_MAX; the connection clears it */
	void (*release)(struct piece *piece); /* of what it owns; NULL: it owns nothing */
	void *owner;			      /* for that function */
};

/* Each makes a piece that owns nothing; without an id, ranges or bytes, none. */
static inline struct piece piece_range(struct NC_range range, struct NC_hold hold)
{
	return (struct piece){.kind = range.id ? PIECE_RANGE : PIECE_NONE,
			      .length = range.length,
			      .range = range,
			      .hold = hold};
}

static inline struct piece piece_ranges(const struct NC_range *ranges, unsigned range_count,
					const struct NC_hold *holds, unsigned hold_count)
{
	struct piece piece = {.kind = range_count ? PIECE_RANGES : PIECE_NONE,
			      .ranges = ranges,
			      .holds = holds,
			      .range_count = range_count,
			      .hold_count = hold_count};

	for (unsigned i = 0; i < range_count; i++)
		piece.length += ranges[i].length;
	return piece;
}

static inline struct piece piece_bytes(const void *data, size_t length)
{
	return (struct piece){
		.kind = length ? PIECE_BYTES : PIECE_NONE, .length = length, .data = data};
}

static inline struct piece piece_file(struct loop_file file)
{
	return (struct piece){
		.kind = file.length ? PIECE_FILE : PIECE_NONE, .length = file.length, .file = file};
}

static inline struct piece piece_text(const void *text)
{
	return (struct piece){.kind = PIECE_TEXT, .data = text};
}

/* The release() of a piece that has a hold of its own. */
static inline void piece_release_hold(struct piece *piece)
{
	(void)NC_release(&piece->hold);
}

/* Makes a piece of a range of a unit, and of a hold of that.  Returns 0, or -1 with errno. */
static inline int piece_hold_range(struct piece *piece, struct NC_range range)
{
	struct NC_hold hold;

	if (NC_hold(NULL, range.id, &hold) < 0)
		return -1;
	*piece = piece_range(range, hold);
	piece->release = piece_release_hold;
	return 0;
}

/*
 * Inserts the filled unit, and makes a piece of all of it, with a hold.  Returns 0, or -1 with
 * errno.
 */
static inline int piece_insert(struct piece *piece, NC_handle *handle, size_t length)
{
	struct NC_hold hold;
	struct NC_insert_options options = NC_INSERT_OPTIONS_INIT(.hold = &hold);

	if (NC_unit_insert_with(handle, length, &options) < 0)
		return -1;
	*piece = piece_range((struct NC_range){.id = NC_cache_id(handle), .length = length}, hold);
	piece->release = piece_release_hold;
	return 0;
}

/* Ends what the piece owns: afterwards it is none, and may be released again. */
static inline void piece_release(struct piece *piece)
{
	if (piece->release)
		piece->release(piece);
	*piece = (struct piece){0};
}

#endif
