/* SPDX-License-Identifier: MIT */
/*
 * worker-channel-withdraw.c - calls that a worker has not begun with: they are taken back
 * from it, for another one, or when it has ended.
 */
#include "backend/worker-channel-internal.h"

/* The number of those that it took back, 0 or 1. */
static unsigned withdraw(struct worker_channel *channel, unsigned most, unsigned *left)
{
	int count = NC_backend_withdraw(channel->backend, channel->thread->number, most, left);

	if (count >= 0)
		return (unsigned)count;
	pool_process_kill(channel->process, "broke the protocol of the queues");
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

/* The worker has no more to do with the body. */
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

		/* It answered what it says it has not begun with. */
		if (!pending) {
			pool_process_kill(channel->process, "broke the protocol of the queues");
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
 * The slots of the calls that the worker never began with, in their order, by
 * its own word.  That counts if it fits what is known here: those are the last
 * ones, and nothing was heard of any.
 */
static unsigned find_untaken(struct worker_channel *channel, uint32_t slots[WORKER_IN_FLIGHT])
{
	int told = NC_backend_untaken(channel->backend, channel->thread->number), found = 0;
	uint64_t begun = channel->submitted - (uint64_t)told;

	if (told >= 0 && (unsigned)told <= channel->in_flight) {
		for (uint32_t i = 0; i < WORKER_IN_FLIGHT; i++) {
			const struct channel_slot *pending = &channel->pending[i];

			if ((!pending->call && !pending->orphaned) || pending->heard ||
			    pending->number <= begun)
				continue;
			slots[pending->number - begun - 1] = i;
			found++;
		}
	}
	if (found == told)
		return (unsigned)told;
	worker_channel_complain(channel, "what it told of its requests cannot be: all fail");
	return 0;
}

void worker_channel_take_back(struct worker_channel *channel)
{
	uint32_t slots[WORKER_IN_FLIGHT];
	unsigned count = channel->in_flight ? find_untaken(channel, slots) : 0;

	/* The first one comes to the head of the queue last. */
	while (count--) {
		struct channel_slot *pending = &channel->pending[slots[count]];
		struct backend_call *call = pending->call;

		/* Who cannot go on fails with the others, and nobody waits for the rest. */
		if (call && call_queue_take_back(call))
			worker_channel_leave(channel, pending);
	}
}
