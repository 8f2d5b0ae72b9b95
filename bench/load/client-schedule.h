/* SPDX-License-Identifier: MIT */
/*
 * client-schedule.h - when the requests of an open load are due: at random instants of
 * a fixed rate, like those of many independent users (a Poisson process).  They do not
 * depend on the server.  Pure; one thread.
 */
#ifndef CLIENT_SCHEDULE_H
#define CLIENT_SCHEDULE_H

#include <stdint.h>

#include "surge.h"

struct schedule {
	struct surge numbers;
	double gap; /* microseconds, the mean */
	double at;  /* the last instant */
};

/* rate: per second.  The same seed makes the same instants, scaled by the rate. */
void schedule_begin(struct schedule *schedule, double rate, uint64_t seed);

/* Returns the next instant, in microseconds since the start. */
uint64_t schedule_next(struct schedule *schedule);

#endif
