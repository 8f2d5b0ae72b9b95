/* SPDX-License-Identifier: MIT */
/*
 * endpoints.h - all addresses that the server listens on, and the step from
 * one configuration's to the next one's: what stays is not touched, what is
 * new is open before what is old is closed.  Main thread.
 */
#ifndef SWEET_ENDPOINTS_H
#define SWEET_ENDPOINTS_H

#include <glib.h>

#include "spawn/endpoint.h"

struct endpoints {
	unsigned threads;
	bool one_queue; /* of an address, for all threads */
	unsigned next_id;
	GPtrArray *all; /* struct endpoint */
};

/* What a change will do. */
struct endpoints_change {
	GPtrArray *fresh; /* opened; not yet in all */
	GPtrArray *gone;  /* in all, and still open */
	GPtrArray *moded; /* in all: struct endpoint, whose files get the mode of ... */
	GArray *modes;	  /* mode_t, one of each */
	bool in_use;	  /* it failed because addresses are taken, and for nothing else */
};

void endpoints_init(struct endpoints *endpoints, unsigned threads, bool one_queue);

/* Another process has their files to remove: this one only uses the sockets. */
void endpoints_disown(struct endpoints *endpoints);

/* Closes all. */
void endpoints_clear(struct endpoints *endpoints);

/* Takes a descriptor from a supervisor; endpoint_adopt()'s errors. */
int endpoints_adopt(struct endpoints *endpoints, int fd);

/*
 * Opens what listen (addresses as text, NULL ends) has more than there is.
 * Inherited ones stay in any case; where there are some, they stand for a
 * listen that nobody has given.  False: errors has a line for each mistake
 * (g_free), and nothing is to be done; of change only in_use means something.
 */
bool endpoints_plan(const struct endpoints *endpoints, char *const *listen, bool given,
		    struct endpoints_change *change, GPtrArray *errors);

/*
 * It is done: fresh ones belong to the set, gone ones and their files are no
 * more.  What threads have taken of these is theirs to close.
 */
void endpoints_commit(struct endpoints *endpoints, struct endpoints_change *change);

/* It is not: fresh ones are closed. */
void endpoints_abandon(struct endpoints_change *change);

#endif
