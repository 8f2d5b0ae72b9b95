/* SPDX-License-Identifier: MIT */
/*
 * passage.h - a message (header + ranges) on its way: its units held, how far
 * it has come, and what is left of it as iovecs.
 *
 * Whoever sends opens a passage, sends what it plans, tells it what went, and
 * closes it.  One thread at a time; no locks of its own.
 */
#ifndef NC_PASSAGE_H
#define NC_PASSAGE_H

#include <sys/uio.h>

#include "cache/index.h"

#define NC_SEND_FLAGS                                                                              \
	(NC_SEND_MORE | NC_SEND_CLOSE | NC_SEND_DONTWAIT | NC_SEND_HELD | NC_SEND_COPY)

struct nc_passage {
	struct nc_index *index;
	const struct NC_send *message; /* the caller's; stays as it is till the close */
	struct nc_view *views;	       /* of its ranges, all held */
	size_t total;		       /* bytes of the message */
	size_t at;		       /* bytes gone, skipped ones included */
	unsigned range;		       /* the range that `at` lies in; range_count: none left */
	size_t within;		       /* bytes of that range gone */
	bool push;		       /* the last bytes need no MSG_MORE: the socket is corked */
};

/*
 * Checks the message, holds its units and goes to message->skip.  views has
 * room for range_count (at most NC_RANGES_MAX) and lives as long as the
 * passage.  brief: the passage is closed while the holds last that the message
 * speaks of (NC_SEND_HELD), so that they do.  0; -EINVAL: a malformed message;
 * -ERANGE: lengths that overflow, or a range past the end of its unit; errors of
 * nc_index_hold().  Nothing is held on failure.
 */
int nc_passage_open(struct nc_passage *passage, struct nc_index *index,
		    const struct NC_send *message, struct nc_view *views, bool brief);

/* Releases the units. */
void nc_passage_close(struct nc_passage *passage);

/*
 * Describes what is left of the header and of the ranges before `end` in at
 * most max iovecs, in order.  Returns their number; *planned: their bytes.
 */
unsigned nc_passage_plan(const struct nc_passage *passage, unsigned end, struct iovec *iov,
			 unsigned max, size_t *planned);

/*
 * Sees to it that what is left of the ranges before `end` is in memory, as
 * nc_passage_plan() takes it to be.  0; errors of nc_index_fetch().
 */
int nc_passage_fetch(const struct nc_passage *passage, unsigned end);

/* So many bytes more are gone. */
void nc_passage_advance(struct nc_passage *passage, size_t bytes);

/* The same, and counts those of them that are not the header's; returns their number. */
size_t nc_passage_moved(struct nc_passage *passage, enum NC_method method, size_t bytes);

/* Whether the last bytes wait for others: the next message's, or the FIN. */
static inline bool nc_passage_holds_back(const struct nc_passage *passage)
{
	return !passage->push && passage->message->flags & (NC_SEND_MORE | NC_SEND_CLOSE);
}

/* Whether more bytes come behind the next so many, so that these need not be pushed. */
static inline bool nc_passage_more(const struct nc_passage *passage, size_t bytes)
{
	return passage->at + bytes < passage->total || nc_passage_holds_back(passage);
}

/* Bytes left of the range that is under way. */
static inline size_t nc_passage_piece(const struct nc_passage *passage)
{
	return passage->message->ranges[passage->range].length - passage->within;
}

#endif
