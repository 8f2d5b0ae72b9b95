/* SPDX-License-Identifier: MIT */
/*
 * gw-lane-withdraw.c - calls that a worker has not begun with: they are taken back
 * from it, for another one, or when it has ended.
 */
#include "backend/gw-lane-inside.h"

/* The number of those that it took back, 0 or 1. */
static unsigned withdraw(struct gw_lane *lane, unsigned most, unsigned *left)
{
	int count = NC_exchange_withdraw(lane->exchange, lane->server->number, most, left);

	if (count >= 0)
		return (unsigned)count;
	gw_process_kill(lane->process, "broke the protocol of the queues");
	*left = 0;
	return 0;
}

unsigned gw_lane_waiting(struct gw_lane *lane)
{
	unsigned left;

	(void)withdraw(lane, 0, &left);
	return left;
}

static struct gw_pending *find_number(struct gw_lane *lane, uint64_t number)
{
	for (uint32_t i = 0; i < GW_IN_FLIGHT; i++) {
		struct gw_pending *pending = &lane->pending[i];

		if ((pending->call || pending->deserted) && pending->number == number)
			return pending->heard ? NULL : pending;
	}
	return NULL;
}

/* The worker has no more to do with the body. */
static void revoke_upload(struct gw_lane *lane, const struct transaction *transaction)
{
	if (transaction->upload)
		(void)NC_revoke(NULL, transaction->upload, NC_PROCESS_FD,
				(id_t)NC_exchange_pidfd(lane->exchange));
}

bool gw_lane_withdraw(struct gw_lane *lane)
{
	struct gw_call *call = NULL;
	unsigned left;

	while (!call && withdraw(lane, 1, &left)) {
		struct gw_pending *pending = find_number(lane, lane->submitted - left);

		/* It answered what it says it has not begun with. */
		if (!pending) {
			gw_process_kill(lane->process, "broke the protocol of the queues");
			return false;
		}
		call = pending->call;
		gw_lane_vacate(lane, pending);
		gw_process_loses(lane->process);
	}
	if (!call)
		return false;
	revoke_upload(lane, call->transaction);
	gw_move(call);
	return true;
}

/*
 * The slots of the calls that the worker never began with, in their order, by
 * its own word.  That counts if it fits what is known here: those are the last
 * ones, and nothing was heard of any.
 */
static unsigned find_untaken(struct gw_lane *lane, uint32_t slots[GW_IN_FLIGHT])
{
	int told = NC_exchange_untaken(lane->exchange, lane->server->number), found = 0;
	uint64_t begun = lane->submitted - (uint64_t)told;

	if (told >= 0 && (unsigned)told <= lane->in_flight) {
		for (uint32_t i = 0; i < GW_IN_FLIGHT; i++) {
			const struct gw_pending *pending = &lane->pending[i];

			if ((!pending->call && !pending->deserted) || pending->heard ||
			    pending->number <= begun)
				continue;
			slots[pending->number - begun - 1] = i;
			found++;
		}
	}
	if (found == told)
		return (unsigned)told;
	gw_lane_complain(lane, "what it told of its requests cannot be: all fail");
	return 0;
}

void gw_lane_take_back(struct gw_lane *lane)
{
	uint32_t slots[GW_IN_FLIGHT];
	unsigned count = lane->in_flight ? find_untaken(lane, slots) : 0;

	/* The first one comes to the head of the queue last. */
	while (count--) {
		struct gw_pending *pending = &lane->pending[slots[count]];
		struct gw_call *call = pending->call;

		/* Who cannot go on fails with the others, and nobody waits for the rest. */
		if (call && gw_take_back(call))
			gw_lane_leave(lane, pending);
	}
}
