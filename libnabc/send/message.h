/* SPDX-License-Identifier: MIT */
/*
 * message.h - a message (header, ranges and the texts between them) in transit: its held
 * units, its progress, and the rest of it as iovecs.
 *
 * The caller opens a message, sends what nc_message_plan() describes, reports what
 * was sent, and closes it.  One thread at a time; it has no lock.
 */
#ifndef NC_MESSAGE_H
#define NC_MESSAGE_H

#include <nabc.h>
#include <stdbool.h>
#include <sys/uio.h>

struct iovec;
struct nc_index;
struct nc_view;

#define NC_SEND_FLAGS (NC_SEND_MORE | NC_SEND_CLOSE | NC_SEND_DONTWAIT | NC_SEND_COPY)

struct nc_message {
	struct nc_index *index;
	const struct NC_send *spec; /* the caller's; must not change until the close */
	struct nc_view *views;	    /* of its ranges, all held */
	size_t total;		    /* bytes of the message */
	size_t end;	/* of the bytes to send: total, or less if spec->limit cuts it */
	size_t at;	/* bytes sent or skipped */
	size_t memory;	/* bytes of header and texts to send before more of the range */
	unsigned range; /* the first that is not sent; range_count: none left */
	unsigned text;	/* the first behind that range's beginning */
	size_t within;	/* bytes of that range sent */
	bool push;	/* the last bytes need no MSG_MORE: the socket is corked */
	bool lent;	/* the plan is for the kernel, which reads without a copy */
};

/*
 * Checks the message, holds its units and advances to spec->skip.  views has space
 * for range_count elements (at most NC_RANGES_MAX) and lives as long as the
 * message.  The spec's holds suffice as long as the caller does not release them.
 * Returns 0, -EINVAL (a malformed spec, texts that make it too long, or a hold that was
 * released), -ERANGE (other lengths that overflow, or a range past the end of its unit), or
 * errors of nc_index_hold().
 * Nothing is held on failure.
 */
int nc_message_open(struct nc_message *message, struct nc_index *index, const struct NC_send *spec,
		    struct nc_view *views);

/*
 * Holds the units as long as the message, whatever becomes of the spec's holds.  Returns 0, or
 * errors of nc_index_keep(): then the message is to be closed.
 */
int nc_message_keep(struct nc_message *message);

/* Releases the units before the message is closed: their bytes are not needed any more. */
void nc_message_release_early(struct nc_message *message);

/* Releases the units. */
void nc_message_close(struct nc_message *message);

/*
 * Describes what is to be sent of the header, of the ranges before range `end`, and of the
 * texts before that, in at most max iovecs, in order.  Returns their number; *planned: their
 * bytes.
 */
unsigned nc_message_plan(const struct nc_message *message, unsigned end, struct iovec *iov,
			 unsigned max, size_t *planned);

/*
 * Ensures that the rest of the ranges before `end` is in memory, which
 * nc_message_plan() requires.  Returns 0, or errors of nc_index_fetch().
 */
int nc_message_fetch(const struct nc_message *message, unsigned end);

/* Counts that many more bytes as sent.  Returns how many of them are units'. */
size_t nc_message_advance(struct nc_message *message, size_t bytes);

/*
 * Counts that many more bytes as sent, and adds those of units to the counters of the
 * method; returns their number.
 */
size_t nc_message_moved(struct nc_message *message, enum NC_method method, size_t bytes);

/* Whether the last bytes wait for others: the next message's, or the FIN. */
static inline bool nc_message_holds_back(const struct nc_message *message)
{
	return !message->push && message->spec->flags & (NC_SEND_MORE | NC_SEND_CLOSE);
}

/* Whether more bytes follow the next `bytes`, so that those need not be pushed. */
static inline bool nc_message_more(const struct nc_message *message, size_t bytes)
{
	return message->at + bytes < message->total || nc_message_holds_back(message);
}

/* Whether the limit ends what is sent before the message ends. */
static inline bool nc_message_is_cut(const struct nc_message *message)
{
	return message->end < message->total;
}

/* The flags for the end of what is sent: more follows a part of the message. */
static inline unsigned nc_message_end_flags(const struct nc_message *message)
{
	return nc_message_is_cut(message) ? NC_SEND_MORE : message->spec->flags;
}

/* Returns the bytes left to send of the current range. */
static inline size_t nc_message_piece(const struct nc_message *message)
{
	size_t piece = message->spec->ranges[message->range].length - message->within;
	size_t left = message->end - message->at;

	left = left > message->memory ? left - message->memory : 0;
	return piece < left ? piece : left;
}

/* Returns the bytes of a range that a call sends at most, by which its method is selected. */
static inline size_t nc_message_share(const struct nc_message *message, unsigned range)
{
	const struct NC_send *spec = message->spec;
	size_t length = spec->ranges[range].length;

	return spec->limit && spec->limit < length ? spec->limit : length;
}

#endif
