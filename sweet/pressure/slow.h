/* SPDX-License-Identifier: MIT */
/*
 * slow.h - keeps slow clients from holding the units of their responses while others need the memory.
 */
#ifndef SWEET_SLOW_H
#define SWEET_SLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct leaving;
struct loop_send;
struct output;
struct slow;
struct thread;
struct unsent;

/* What the response that waits is a part of. */
struct slow_owner {
	/*
	 * Stops its send, and leaves it to the transaction to continue.  Returns false if it cannot be
	 * stopped now.
	 */
	bool (*stop)(struct slow *slow);
	/* Resets the client, which reads too slowly; why: for the log.  May free this. */
	void (*reset)(struct slow *slow, const char *why);
};

/* Of one response after the other: a part of who sends it, with zeros but for the first members. */
struct slow {
	const struct slow_owner *owner;
	struct thread *thread;
	struct loop_send *send;
	struct unsent *socket;	 /* that the send is for; NULL: none of its own */
	struct output *output;	 /* the response that waits */
	size_t id;		 /* the unit that it is counted for; 0: none */
	uint64_t since_ms;	 /* when it began to wait */
	struct list_node node;	 /* in the thread's list */
	struct leaving *leaving; /* NULL: the response stays with its unit */
};

/* The response waits for its client, with what its send has. */
void slow_waits(struct slow *slow, struct output *output);

/* The send, or the response, has ended. */
void slow_keeps_up(struct slow *slow);

/* Whether the output must not be closed yet, since its data is being read; it is closed later. */
bool leave_keeps_output(struct slow *slow);

#endif
