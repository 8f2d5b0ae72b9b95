/* SPDX-License-Identifier: MIT */
/*
 * worker-channel-withdraw.c - withdraws calls that a worker has not begun with: to move them to
 * another worker, or because the worker has ended.
 */
#include "backend/worker-channel-internal.h"

/* Returns how many calls were withdrawn, 0 or 1. */
static unsigned withdraw(struct worker_channel *channel, unsigned most, unsigned *left)
{
	int count = NC_backend_withdraw(channel->backend, channel->thread->number, most, left);

	if (count >= 0)
		return (unsigned)count;
	pool_process_kill(channel->process, "broke the queue protocol");
	*left = 0;
	return 0;
}

unsigned worker_channel_waiting(struct worker_channel *channel)
{
	unsigned left;

	(void)withdraw(channel, 0, &left);
	return left;
}

static struct channel_slot *find_number(struct worker_channel *channel, uint64_t number)
{
	for (uint32_t i = 0; i < WORKER_IN_FLIGHT; i++) {
		struct channel_slot *pending = &channel->pending[i];

		if ((pending->call || pending->orphaned) && pending->number == number)
			return pending->heard ? NULL : pending;
	}
	return NULL;
}

/* The worker may no longer read the body. */
static void revoke_upload(struct worker_channel *channel, const struct transaction *transaction)
{
	if (transaction->upload)
		(void)NC_revoke(NULL, transaction->upload, NC_PROCESS_FD,
				(id_t)NC_backend_pidfd(channel->backend));
}

bool worker_channel_withdraw(struct worker_channel *channel)
{
	struct backend_call *call = NULL;
	unsigned left;

	while (!call && withdraw(channel, 1, &left)) {
		struct channel_slot *pending = find_number(channel, channel->submitted - left);

		/* The worker has responded to a call that it reports as not begun. */
		if (!pending) {
			pool_process_kill(channel->process, "broke the queue protocol");
			return false;
		}
		call = pending->call;
		worker_channel_vacate(channel, pending);
		pool_process_loses(channel->process);
	}
	if (!call)
		return false;
	revoke_upload(channel, call->transaction);
	call_queue_move(call);
	return true;
}

/*
 * Finds the slots of the calls that the worker reports as not begun, in their order.  The report is
 * valid only if it agrees with the state here: these must be the last calls, and none may have a
 * record.
 */
static unsigned find_untaken(struct worker_channel *channel, uint32_t slots[WORKER_IN_FLIGHT])
{
	int reported = NC_backend_untaken(channel->backend, channel->thread->number), found = 0;
	uint64_t begun = channel->submitted - (uint64_t)reported;

	if (reported >= 0 && (unsigned)reported <= channel->in_flight) {
		for (uint32_t i = 0; i < WORKER_IN_FLIGHT; i++) {
			const struct channel_slot *pending = &channel->pending[i];

			if ((!pending->call && !pending->orphaned) || pending->heard ||
			    pending->number <= begun)
				continue;
			slots[pending->number - begun - 1] = i;
			found++;
		}
	}
	if (found == reported)
		return (unsigned)reported;
	worker_channel_complain(
		channel, "its report of unprocessed requests is invalid: failing all its requests");
	return 0;
}

void worker_channel_take_back(struct worker_channel *channel)
{
	uint32_t slots[WORKER_IN_FLIGHT];
	unsigned count = channel->in_flight ? find_untaken(channel, slots) : 0;

	/* In reverse order, so that the oldest call is at the head of the queue. */
	while (count--) {
		struct channel_slot *pending = &channel->pending[slots[count]];
		struct backend_call *call = pending->call;

		/* A call that cannot be queued again fails later; orphaned ones need nothing. */
		if (call && call_queue_take_back(call))
			worker_channel_leave(channel, pending);
	}
}
