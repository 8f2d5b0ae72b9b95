/* SPDX-License-Identifier: MIT */
/*
 * epoch.h - what a way to send costs where its calls do not say so: within this machine.
 *
 * Over a loopback, much of the work for a message is done after the call that sends it, when
 * the peer reads and acknowledges.  So a way sends all messages of one kind for a while, an
 * epoch, and the CPU time of the whole thread counts.  What else the thread does for a message
 * is the same in all epochs.  For struct nc_choice an epoch is one message: the ways begin with
 * six epochs each, then the cheapest sends, and the others get epochs now and then.
 *
 * An epoch is not measured before messages that another way began are finished, nor if the
 * thread also sends many large messages of other kinds.
 *
 * Each thread has its own, without locks.
 */
#ifndef NC_EPOCH_H
#define NC_EPOCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "send/choice.h"

/* Messages that are not measured at the start, then the least number that is. */
#define NC_EPOCH_SETTLE 16u
#define NC_EPOCH_LEAST 32u

/* All zeros: there is none. */
struct nc_epoch {
	/* Whose messages it counts; compared only, since its route may be forgotten. */
	const struct nc_choice *choice;
	unsigned way;
	bool measure;
	unsigned messages; /* so far */
	unsigned settled;  /* of these, since others of another way were last seen */
	unsigned others;   /* of other choices */
	uint64_t bytes;	   /* measured */
	uint64_t began;	   /* the thread's CPU time then, ns */
};

/*
 * Returns the way of the thread's next message, and counts it.  candidates, first: see
 * nc_choice_pick(); bytes: of the message; cpu_ns: returns the CPU time of the thread.
 */
unsigned nc_epoch_way(struct nc_epoch *epoch, struct nc_choice *choice, unsigned candidates,
		      unsigned first, size_t bytes, uint64_t (*cpu_ns)(void));

/* A message of that choice that began earlier, by that way, is continued. */
void nc_epoch_continues(struct nc_epoch *epoch, const struct nc_choice *choice, unsigned way);

#endif
