/* SPDX-License-Identifier: MIT */
/*
 * message.h - a message (header + ranges) in transit: its units held, how far
 * it has come, and what is left of it as iovecs.
 *
 * A sender opens a message, sends what it plans, reports what went, and
 * closes it.  One thread at a time; no locks of its own.
 */
#ifndef NC_MESSAGE_H
#define NC_MESSAGE_H

#include <sys/uio.h>

#include "cache/index.h"

#define NC_SEND_FLAGS (NC_SEND_MORE | NC_SEND_CLOSE | NC_SEND_DONTWAIT | NC_SEND_COPY)

struct nc_message {
	struct nc_index *index;
	const struct NC_send *spec; /* the caller's; stays as it is till the close */
	struct nc_view *views;	    /* of its ranges, all held */
	size_t total;		    /* bytes of the message */
	size_t at;		    /* bytes gone, skipped ones included */
	unsigned range;		    /* the range that `at` lies in; range_count: none left */
	size_t within;		    /* bytes of that range gone */
	bool push;		    /* the last bytes need no MSG_MORE: the socket is corked */
};

/*
 * Checks the message, holds its units and goes to spec->skip.  views has
 * room for range_count (at most NC_RANGES_MAX) and lives as long as the
 * message.  brief: the message is closed while the spec's holds last, so that
 * their units need no other.  0; -EINVAL: a malformed spec, or a hold that is none;
 * -ERANGE: lengths that overflow, or a range past the end of its unit; errors of
 * nc_index_hold().  Nothing is held on failure.
 */
int nc_message_open(struct nc_message *message, struct nc_index *index, const struct NC_send *spec,
		    struct nc_view *views, bool brief);

/* Releases the units. */
void nc_message_close(struct nc_message *message);

/*
 * Describes what is left of the header and of the ranges before `end` in at
 * most max iovecs, in order.  Returns their number; *planned: their bytes.
 */
unsigned nc_message_plan(const struct nc_message *message, unsigned end, struct iovec *iov,
			 unsigned max, size_t *planned);

/*
 * Sees to it that what is left of the ranges before `end` is in memory, as
 * nc_message_plan() takes it to be.  0; errors of nc_index_fetch().
 */
int nc_message_fetch(const struct nc_message *message, unsigned end);

/* So many bytes more are gone. */
void nc_message_advance(struct nc_message *message, size_t bytes);

/* The same, and counts those of them that are not the header's; returns their number. */
size_t nc_message_moved(struct nc_message *message, enum NC_method method, size_t bytes);

/* Whether the last bytes wait for others: the next message's, or the FIN. */
static inline bool nc_message_holds_back(const struct nc_message *message)
{
	return !message->push && message->spec->flags & (NC_SEND_MORE | NC_SEND_CLOSE);
}

/* Whether more bytes come behind the next so many, so that these need not be pushed. */
static inline bool nc_message_more(const struct nc_message *message, size_t bytes)
{
	return message->at + bytes < message->total || nc_message_holds_back(message);
}

/* Bytes left of the range that is under way. */
static inline size_t nc_message_piece(const struct nc_message *message)
{
	return message->spec->ranges[message->range].length - message->within;
}

#endif
