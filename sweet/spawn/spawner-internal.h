/* SPDX-License-Identifier: MIT */
/*
 * spawner-internal.h - the spawner and its channels, for spawner.c, which opens
 * them, and spawner-channel.c, which uses one.
 */
#ifndef SWEET_SPAWNER_INTERNAL_H
#define SWEET_SPAWNER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "event/loop.h"
#include "spawn/spawner-wire.h"

struct spawner_channel {
	int fd; /* -1: the spawner and its monitor have ended */
	struct loop *loop;
	struct loop_watch watch;
	struct loop_task task; /* reports the news */
	bool posted;
	struct start *places[SPAWNER_PLACES];
	unsigned asked; /* requests not yet answered */
	bool signals;	/* some signals could not be sent */
	bool again;	/* retry: memory was short */
	bool first;	/* the first channel, which logs for all */
	bool mark;	/* a MARK must be sent */
	uint32_t renewals;
	struct list waiting; /* starts that are not yet sent */
	struct list news;    /* those with news */
};

struct spawner {
	pid_t pid; /* of the monitor */
	unsigned count;
	struct spawner_channel channels[];
};

/* The channel is readable; callback of its watch. */
void spawner_channel_ready(struct loop_watch *watch);

#endif
