/* SPDX-License-Identifier: MIT */
/*
 * worker-channel-slot.c - the slots of a channel: assigns and frees them, and watches orphaned
 * calls, which the worker has to end within the timeout.
 */

#include <glib.h>
#include <nabc-worker.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend-call.h"
#include "backend/pool.h"
#include "base/container.h"
#include "base/counter.h"
#include "base/timer.h"
#include "config/pool-config.h"
#include "core/client-calls.h"
#include "core/page-memory.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "gateway/pool-process.h"
#include "gateway/worker-channel-internal.h"
#include "gateway/worker-channel.h"
#include "log/log.h"

#define SLOT_NONE UINT32_MAX

bool worker_channel_grow(struct worker_channel *channel)
{
	uint32_t first = channel->slots;
	struct channel_slot *pending =
		realloc(channel->pending, (first + WORKER_IN_FLIGHT) * sizeof(*pending));

	if (!pending)
		return false;
	memset(pending + first, 0, WORKER_IN_FLIGHT * sizeof(*pending));
	channel->pending = pending;
	channel->slots += WORKER_IN_FLIGHT;
	for (uint32_t i = first; i < channel->slots; i++)
		pending[i].next = i + 1 < channel->slots ? i + 1 : SLOT_NONE;
	channel->free = first;
	return true;
}

bool worker_channel_has_slot(struct worker_channel *channel)
{
	return channel->free != SLOT_NONE || worker_channel_grow(channel);
}

void worker_channel_free(struct worker_channel *channel)
{
	free(channel->pending);
	channel->pending = NULL;
	channel->slots = 0;
}

void worker_channel_reset(struct worker_channel *channel, NC_backend *backend)
{
	channel->backend = backend;
	channel->dirty = channel->retiring = channel->notify_pending = false;
	channel->in_flight = channel->tunnels = channel->orphaned = 0;
	channel->submitted = 0;
	channel->free = 0;
	for (uint32_t i = 0; i < channel->slots; i++) {
		struct channel_slot *pending = &channel->pending[i];

		pending->call = NULL;
		client_calls_over(g_steal_pointer(&pending->calls));
		pending->orphaned = pending->cancel_pending = pending->tunnel = false;
		pending->next = i + 1 < channel->slots ? i + 1 : SLOT_NONE;
	}
}

void worker_channel_set_streams(struct worker_channel *channel, struct channel_slot *pending,
				bool streams)
{
	struct pool_process *process = channel->process;

	if (pending->streams == streams)
		return;
	pending->streams = streams;
	if (streams) {
		atomic_fetch_add_explicit(&process->streams, 1, memory_order_relaxed);
		return;
	}
	atomic_store_explicit(&process->streamed_ms, loop_now_ms(channel->thread->loop),
			      memory_order_relaxed);
	/*
	 * Who sees that none is left sees when it ended.  Pairs with the acquire in
	 * worker_channel_is_behind_another().
	 */
	atomic_fetch_sub_explicit(&process->streams, 1, memory_order_release);
}

/* A request less: others may get its place and its memory. */
static void leave_process(struct worker_channel *channel)
{
	struct pool_process *process = channel->process;

	pool_process_leaves(process, loop_now_ms(channel->thread->loop));
	/* Even if it releases no page: one request less needs less memory. */
	if (page_memory_must_notify(&process->pool->pages[process->number]))
		call_queue_room_everywhere(process->pool);
}

void worker_channel_set_tunnel(struct worker_channel *channel, struct channel_slot *pending)
{
	worker_channel_set_streams(channel, pending, false);
	pending->tunnel = true;
	channel->in_flight--;
	channel->tunnels++;
	counter_add(&channel->ended, 1);
	leave_process(channel);
}

void worker_channel_vacate(struct worker_channel *channel, struct channel_slot *pending)
{
	worker_channel_set_streams(channel, pending, false);
	if (pending->call)
		channel_call_of(pending->call)->channel = NULL;
	if (pending->orphaned && --channel->orphaned == 0)
		timer_stop(&channel->drain_timer);
	pending->call = NULL;
	client_calls_over(g_steal_pointer(&pending->calls));
	pending->orphaned = pending->cancel_pending = false;
	pending->generation++;
	pending->next = channel->free;
	channel->free = (uint32_t)(pending - channel->pending);
	if (pending->tunnel) {
		pending->tunnel = false;
		channel->tunnels--;
		return;
	}
	channel->in_flight--;
	counter_add(&channel->ended, 1);
}

void worker_channel_leave(struct worker_channel *channel, struct channel_slot *pending)
{
	bool tunnel = pending->tunnel;

	worker_channel_vacate(channel, pending);
	if (!tunnel)
		leave_process(channel);
}

void worker_channel_complain(const struct worker_channel *channel, const char *what)
{
	log_warning("worker %s[%u] (pid %d): %s", channel->process->pool->settings->name,
		    channel->process->number, (int)NC_backend_pid(channel->backend), what);
}

bool worker_channel_is_behind_another(const struct worker_channel *channel,
				      const struct channel_slot *pending)
{
	const struct pool_process *process = channel->process;

	if (pending->heard)
		return false;
	if (atomic_load_explicit(&process->streams, memory_order_acquire) > 0)
		return true;
	/* Another thread's clock may be ahead. */
	return loop_now_ms(channel->thread->loop) <
	       atomic_load_explicit(&process->streamed_ms, memory_order_relaxed) +
		       process->pool->settings->answer_ms;
}

/* --- calls that nobody waits for ------------------------------------------------------ */

static void drain_timed_out(struct timer *timer)
{
	struct worker_channel *channel = container_of(timer, struct worker_channel, drain_timer);
	unsigned most = channel->process->pool->settings->answer_ms;
	uint64_t now = loop_now_ms(channel->thread->loop);

	for (uint32_t i = 0; i < channel->slots; i++) {
		struct channel_slot *pending = &channel->pending[i];

		if (!pending->orphaned || now - pending->orphaned_ms < most)
			continue;
		if (!worker_channel_is_behind_another(channel, pending)) {
			pool_process_kill(channel->process,
					  "did not end a cancelled request in time");
			return;
		}
		/* Its timeout starts when the other response has ended. */
		pending->orphaned_ms = now;
	}
	loop_timer_start(channel->thread->loop, &channel->drain_timer, most, drain_timed_out);
}

void worker_channel_send_cancel(struct worker_channel *channel, struct channel_slot *pending)
{
	uint32_t slot = (uint32_t)(pending - channel->pending);

	pending->cancel_pending = NC_backend_cancel(channel->backend, channel->thread->number,
						    worker_channel_tag(channel, slot)) < 0;
	channel->notify_pending |= pending->cancel_pending;
	channel->dirty = true;
}

void worker_channel_orphan(struct backend_call *call)
{
	struct worker_channel *channel = channel_call_of(call)->channel;
	struct channel_slot *pending;

	if (!channel)
		return;
	pending = &channel->pending[channel_call_of(call)->slot];
	worker_channel_set_streams(channel, pending, false);
	channel_call_of(call)->channel = NULL;
	pending->call = NULL;
	pending->orphaned = true;
	pending->calls = client_calls_abandon(call->transaction->peer.calls);
	pending->orphaned_ms = loop_now_ms(channel->thread->loop);
	if (channel->orphaned++ == 0)
		loop_timer_start(channel->thread->loop, &channel->drain_timer,
				 channel->process->pool->settings->answer_ms, drain_timed_out);
	worker_channel_send_cancel(channel, pending);
}
