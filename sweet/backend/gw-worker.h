/* SPDX-License-Identifier: MIT */
/*
 * gw-worker.h - the protocol of NABC workers: heads by queues in shared
 * memory, bodies by cache id.
 *
 * A call goes to the lane (gw-lane.h) with the fewest in flight.
 */
#ifndef SWEET_GW_WORKER_H
#define SWEET_GW_WORKER_H

#include "backend/gw-lane.h"
#include "event/loop.h"

extern const struct gw_protocol gw_worker;

/* Of each server, once: wakes workers and looks for answers before a sleep. */
struct gw_hook {
	struct loop_hook hook;
	struct gw_lane *active;
};
void gw_hook_add(struct gw_hook *hook, struct server *server);

/* The lanes of a place of such a pool, one a thread; for the status. */
const struct gw_lane *gw_worker_lanes(const struct gw_process *process);

#endif
