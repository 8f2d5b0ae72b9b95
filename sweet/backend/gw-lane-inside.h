/* SPDX-License-Identifier: MIT */
/*
 * gw-lane-inside.h - a call in a lane as gw-lane.c, which sees to the records,
 * gw-lane-answer.c, which takes the answers, and gw-lane-withdraw.c, which takes
 * calls back, see it; and nobody else.
 */
#ifndef SWEET_GW_LANE_INSIDE_H
#define SWEET_GW_LANE_INSIDE_H

#include "backend/gw-call.h"
#include "backend/gw-lane.h"
#include "backend/gw-parts.h"

/* In a call's own part. */
struct lane_call {
	struct gw_lane *lane; /* NULL: not, or not any more */
	uint32_t slot;
	struct gw_parts parts;
	struct body_budget *shared; /* of the parts */
	size_t held;		    /* id of an answer's only unit */
	uint64_t page;		    /* bytes of that, in pages */
	struct page_memory *pages;  /* of the process */
	unsigned kept;	 /* pieces whose place in the worker's window is not given back */
	unsigned excess; /* of those, pieces of which nothing is sent: their places stay taken */
	uint64_t left;	 /* bytes of the answer that may still come */
	uint64_t given;	 /* bytes of the request's body that the worker has had */
	bool has_piece;	 /* the worker is at work on one that more follows */
	bool owed;	 /* a piece of the body, which a full queue keeps back */
	bool late;	 /* it has used up its time */
	bool wanted;	 /* the connection waits for the next piece */
	bool failed;	 /* what was begun breaks off */
};

static inline struct lane_call *gw_lane_call(struct gw_call *call)
{
	return (struct lane_call *)(void *)call->own;
}

static inline uint64_t gw_lane_tag(const struct gw_lane *lane, uint32_t slot)
{
	return (uint64_t)lane->pending[slot].generation << 32 | slot;
}

/* --- gw-lane.c --- */

/* Tells the log what the lane's worker has done. */
void gw_lane_complain(const struct gw_lane *lane, const char *what);

/* Nobody waits for it any more: the worker goes on, or sees that there is no need to. */
void gw_lane_desert(struct gw_call *call);

/*
 * No record for it comes any more: its slot is free.  leave: the last one has come, or
 * the worker is gone, and the process has a request less.
 */
void gw_lane_vacate(struct gw_lane *lane, struct gw_pending *pending);
void gw_lane_leave(struct gw_lane *lane, struct gw_pending *pending);

/* --- gw-lane-answer.c --- */

/* The first record for a call; it has left the lane if that is the only one. */
void gw_lane_answer(struct gw_lane *lane, struct gw_call *call, const struct NC_response *response);

/* A further one. */
void gw_lane_piece(struct gw_call *call, const struct NC_response *response);

/* No more of an answer comes, or it is of no use. */
void gw_lane_break_off(struct gw_call *call, int status, const char *detail);

#endif
