/* SPDX-License-Identifier: MIT */
/*
 * choice.h - which of a few ways to send costs the least CPU time for each byte.
 *
 * Each way is measured with a few messages.  Then the cheapest sends, and remains measured.  The
 * others are tried again with a few messages, less and less often while they cost more: at most
 * one message in 16, and in the end one in a thousand, is sent by another way than the cheapest.
 * A way costs what its calls cost, and the further calls if a socket takes only a part.
 *
 * Time plays no part, so that learning does not depend on the load.  Any thread; without locks:
 * a sample may be lost or split when threads meet.
 */
#ifndef NC_CHOICE_H
#define NC_CHOICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NC_WAYS 3u

struct nc_way {
	_Atomic uint32_t cost;	    /* picoseconds for each byte, on average; 0: not known */
	_Atomic uint32_t picks;	    /* at the start, and of the present trial */
	_Atomic uint32_t level;	    /* of its trials: each higher one is half as often */
	_Atomic uint32_t due;	    /* turn of its next trial */
	_Atomic uint64_t ns, bytes; /* of the present sample */
};

/* All zeros: nothing is known. */
struct nc_choice {
	struct nc_way ways[NC_WAYS];
	_Atomic uint32_t turn;	/* messages for which there was a choice */
	_Atomic uint32_t best;	/* the cheapest way + 1; 0: not known */
	_Atomic uint32_t since; /* the turn in which it became the best */
};

struct nc_pick {
	unsigned way;
	bool measure; /* nc_choice_measured() wants to know its CPU time */
};

/*
 * Picks the way of the next message.  candidates: the ways that can send it, as bits, at least
 * one; first: the one to begin with.  Counts the turn.
 */
struct nc_pick nc_choice_pick(struct nc_choice *choice, unsigned candidates, unsigned first);

/*
 * Whether the next message may as well be sent by that way without being measured.  If so, counts
 * the turn; otherwise nc_choice_pick() is to be asked.
 */
bool nc_choice_settled(struct nc_choice *choice, unsigned candidates, unsigned way);

/*
 * Reports calls: their CPU time, and the bytes that they sent, of messages of `whole` bytes.
 * Several calls may be needed for a sample.
 */
void nc_choice_measured(struct nc_choice *choice, unsigned way, uint64_t ns, size_t bytes,
			size_t whole);

/* Returns the cheapest way of the candidates; first if that is not known. */
unsigned nc_choice_best(const struct nc_choice *choice, unsigned candidates, unsigned first);

/* Forgets everything. */
void nc_choice_forget(struct nc_choice *choice);

static inline uint32_t nc_choice_cost(const struct nc_choice *choice, unsigned way)
{
	return atomic_load_explicit(&choice->ways[way].cost, memory_order_relaxed);
}

static inline uint32_t nc_choice_turns(const struct nc_choice *choice)
{
	return atomic_load_explicit(&choice->turn, memory_order_relaxed);
}

#endif
