/* SPDX-License-Identifier: MIT */
/*
 * starter-internal.h - the starter and its channels as starter.c, which opens
 * them, and starter-channel.c, which uses one, see them.
 */
#ifndef SWEET_STARTER_INTERNAL_H
#define SWEET_STARTER_INTERNAL_H

#include "spawn/starter.h"

struct starter_channel {
	int fd; /* -1: the starter is gone, and its keeper */
	struct loop *loop;
	struct loop_watch watch;
	struct loop_task task; /* tells the news */
	bool posted;
	struct start *places[STARTER_PLACES];
	unsigned asked; /* and not answered */
	bool signals;	/* some could not be sent */
	bool again;	/* memory was short: try once more */
	bool first;	/* of all, and speaks for them */
	bool mark;	/* one is to be sent */
	uint32_t renewals;
	struct start *waiting, **last_waiting; /* to be asked */
	struct start *news, **last_news;
};

struct starter {
	pid_t pid; /* of the keeper */
	unsigned count;
	struct starter_channel channels[];
};

/* Something has come on the channel; of its watch. */
void starter_channel_ready(struct loop_watch *watch);

#endif
