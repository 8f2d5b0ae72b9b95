/* SPDX-License-Identifier: MIT */
/*
 * spawner-internal.h - the spawner and its channels as spawner.c, which opens
 * them, and spawner-channel.c, which uses one, see them.
 */
#ifndef SWEET_SPAWNER_INTERNAL_H
#define SWEET_SPAWNER_INTERNAL_H

#include "spawn/spawner.h"

struct spawner_channel {
	int fd; /* -1: the spawner is gone, and its monitor */
	struct loop *loop;
	struct loop_watch watch;
	struct loop_task task; /* tells the news */
	bool posted;
	struct start *places[SPAWNER_PLACES];
	unsigned asked; /* and not answered */
	bool signals;	/* some could not be sent */
	bool again;	/* memory was short: try once more */
	bool first;	/* of all, and speaks for them */
	bool mark;	/* one is to be sent */
	uint32_t renewals;
	struct start *waiting, **last_waiting; /* to be asked */
	struct start *news, **last_news;
};

struct spawner {
	pid_t pid; /* of the monitor */
	unsigned count;
	struct spawner_channel channels[];
};

/* Something has come on the channel; of its watch. */
void spawner_channel_ready(struct loop_watch *watch);

#endif
