/* SPDX-License-Identifier: MIT */
/*
 * worker-channel-tunnel.c - clients' bytes for workers that have answered 101, as for WebSocket.
 *
 * The worker has one piece at a time; what comes meanwhile waits here, up to a limit above which the
 * client's connection is not read.  From the 101 on, the call counts as a tunnel of the pool, no
 * longer as a request of its process: others do not wait for its end, and get its place.
 *
 * The worker learns the client's end, and that the server wants to end, in one way: no more of the
 * body comes.  The worker's last piece ends both directions.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <glib.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "backend/backend-call.h"
#include "backend/pool.h"
#include "base/budget.h"
#include "base/slice.h"
#include "base/timer.h"
#include "config/pool-config.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "gateway/tunnel-limits.h"
#include "gateway/worker-channel-internal.h"
#include "gateway/worker-channel.h"
#include "program/meta.h"

#define WAITING_MAX ((size_t)32 << 10) /* bytes that wait before the client is not read */

/* --- the protocol ----------------------------------------------------------------------------- */

const char *worker_tunnel_asked(const struct backend_call *call, struct slice block)
{
	char **protocols = call->pool->settings->upgrade;
	struct slice asked;

	if (!protocols || !protocols[0])
		return NULL;
	asked = meta_find(block, "HTTP_UPGRADE");
	for (; *protocols; protocols++)
		if (slice_is(asked, *protocols))
			return *protocols;
	return NULL;
}

/* --- silence ---------------------------------------------------------------------------------- */

static void await_bytes(struct backend_call *call, unsigned ms)
{
	struct worker_tunnel *tunnel = &channel_call_of(call)->tunnel;

	loop_timer_start(call->transaction->thread->loop, &tunnel->silence, ms, tunnel->expired);
}

void worker_tunnel_moves(struct backend_call *call)
{
	const struct worker_tunnel *tunnel = &channel_call_of(call)->tunnel;

	if (!tunnel->drains && !tunnel->broken)
		await_bytes(call, call->pool->settings->upgrade_ms);
}

/* Without memory: the timer ends it, when no caller uses the connection. */
static void break_soon(struct backend_call *call)
{
	channel_call_of(call)->tunnel.broken = true;
	await_bytes(call, 0);
}

/* --- to the worker ---------------------------------------------------------------------------- */

static struct budget *budget_of(const struct backend_call *call)
{
	return &call->transaction->thread->server->bodies;
}

static void drop_waiting(struct backend_call *call)
{
	struct worker_tunnel *tunnel = &channel_call_of(call)->tunnel;

	budget_give(budget_of(call), tunnel->room);
	free(tunnel->waiting);
	tunnel->waiting = NULL;
	tunnel->length = tunnel->room = 0;
}

static void drop_unit(struct worker_tunnel *tunnel)
{
	if (!tunnel->piece.id)
		return;
	(void)NC_release(&tunnel->hold);
	(void)NC_destroy(NULL, tunnel->piece.id);
	tunnel->piece = (struct NC_range){0};
	tunnel->given = false;
}

/* Fills a unit with the bytes, which the worker alone may read.  Returns false without memory. */
static bool fill_unit(struct worker_channel *channel, struct worker_tunnel *tunnel,
		      struct slice bytes)
{
	struct NC_insert_options options = NC_INSERT_OPTIONS_INIT(.hold = &tunnel->hold);
	NC_handle handle;
	bool good;

	if (NC_unit_alloc(NULL, &handle, bytes.length, 0, NC_KIND_SEALED, NC_UNIT_UNSUMMED) < 0)
		return false;
	good = NC_write(&handle, bytes.at, bytes.length, 0) == (ssize_t)bytes.length &&
	       NC_unit_insert_with(&handle, NC_WHOLE, &options) == 0;
	if (good)
		tunnel->piece =
			(struct NC_range){.id = NC_cache_id(&handle), .length = bytes.length};
	(void)NC_free(&handle);
	if (good && NC_grant(NULL, tunnel->piece.id, NC_PROCESS_FD,
			     (id_t)NC_backend_pidfd(channel->backend)) < 0) {
		drop_unit(tunnel);
		return false;
	}
	return good;
}

/* Offers the worker the piece, or the end; a full queue delays it. */
static void offer(struct backend_call *call, bool last)
{
	struct channel_call *own = channel_call_of(call);
	struct worker_tunnel *tunnel = &own->tunnel;
	struct worker_channel *channel = own->channel;
	bool any = tunnel->piece.id && !tunnel->given;

	own->body_pending =
		NC_backend_body(channel->backend, channel->thread->number,
				worker_channel_tag(channel, own->slot), any ? &tunnel->piece : NULL,
				last ? NC_BODY_LAST : 0) < 0;
	channel->notify_pending |= own->body_pending;
	channel->dirty = true;
	if (own->body_pending)
		return;
	tunnel->given |= any;
	tunnel->end_sent = last;
}

void worker_tunnel_offer(struct backend_call *call)
{
	struct channel_call *own = channel_call_of(call);
	struct worker_tunnel *tunnel = &own->tunnel;
	struct slice bytes = {tunnel->waiting, tunnel->length};
	bool last = tunnel->ended && (!tunnel->given || !tunnel->length);

	if (!tunnel->piece.id && bytes.length) {
		if (!fill_unit(own->channel, tunnel, bytes)) {
			break_soon(call);
			return;
		}
		drop_waiting(call);
		last = tunnel->ended;
	}
	if ((tunnel->piece.id && !tunnel->given) || (last && !tunnel->end_sent))
		offer(call, last && !tunnel->length);
}

/* Whether what waits must be passed on before more is read. */
static bool is_full(struct backend_call *call)
{
	const struct worker_tunnel *tunnel = &channel_call_of(call)->tunnel;

	return tunnel->length >= WAITING_MAX ||
	       (tunnel->length && !budget_has_room(budget_of(call)));
}

static void hold_input(struct backend_call *call)
{
	struct worker_tunnel *tunnel = &channel_call_of(call)->tunnel;
	bool full = is_full(call);

	if (tunnel->holds_input == full)
		return;
	tunnel->holds_input = full;
	call->transaction->owner->hold_input(call->transaction, full);
}

static bool add_waiting(struct backend_call *call, struct slice bytes)
{
	struct worker_tunnel *tunnel = &channel_call_of(call)->tunnel;
	size_t need = tunnel->length + bytes.length;

	if (need > tunnel->room) {
		char *waiting = realloc(tunnel->waiting, need);

		if (!waiting)
			return false;
		budget_take_anyhow(budget_of(call), need - tunnel->room);
		tunnel->waiting = waiting;
		tunnel->room = need;
	}
	memcpy(tunnel->waiting + tunnel->length, bytes.at, bytes.length);
	tunnel->length = need;
	return true;
}

/* When the worker has got the end, what a client still sends is dropped. */
void worker_tunnel_from_client(struct transaction *transaction, const char *data, size_t length)
{
	struct backend_call *call = backend_call_of(transaction);
	struct channel_call *own = channel_call_of(call);

	if (!own->channel || own->tunnel.ended || own->tunnel.broken)
		return;
	worker_tunnel_moves(call);
	if (!length) {
		own->tunnel.ended = true;
	} else if (!add_waiting(call, (struct slice){data, length})) {
		break_soon(call);
		return;
	}
	worker_tunnel_offer(call);
	hold_input(call);
}

void worker_tunnel_taken(struct backend_call *call)
{
	struct worker_tunnel *tunnel = &channel_call_of(call)->tunnel;

	/* Of the library's count of pieces, this is the only one. */
	drop_unit(tunnel);
	worker_tunnel_offer(call);
	hold_input(call);
}

/* --- beginning and end ------------------------------------------------------------------------ */

void worker_tunnel_drain(struct transaction *transaction)
{
	struct backend_call *call = backend_call_of(transaction);
	struct channel_call *own = channel_call_of(call);

	if (!own->channel || own->tunnel.drains)
		return;
	own->tunnel.drains = own->tunnel.ended = true;
	await_bytes(call, call->pool->settings->answer_ms);
	worker_tunnel_offer(call);
}

void worker_tunnel_begin(struct backend_call *call, void (*expired)(struct timer *timer))
{
	struct channel_call *own = channel_call_of(call);
	struct worker_channel *channel = own->channel;

	own->switched = true;
	own->tunnel.expired = expired;
	worker_channel_set_tunnel(channel, &channel->pending[own->slot]);
	worker_tunnel_moves(call);
	/* Those that had begun before were asked to end. */
	if (channel->retiring || channel->thread->draining)
		worker_tunnel_drain(call->transaction);
}

void worker_tunnel_end(struct backend_call *call)
{
	struct worker_tunnel *tunnel = &channel_call_of(call)->tunnel;

	timer_stop(&tunnel->silence);
	drop_waiting(call);
	drop_unit(tunnel);
	tunnel_limits_leave(call, &tunnel->count);
}
