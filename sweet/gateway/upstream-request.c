/* SPDX-License-Identifier: MIT */
/*
 * upstream-request.c - sends a call to an application: chooses the address and the link, and retries
 * elsewhere after a failure.
 *
 * Each thread has its own links to the addresses of a pool, with one request at a time on each.
 * Permits limit the links of all threads together.  After a complete response the link is kept for
 * the next request, until another thread needs its permit.  The link of a request that was abandoned
 * keeps its permit until the application is done with it.  If the server has not started the
 * application, the link is kept only for a short time, unless the operator configures more: many
 * applications serve one connection at a time, and another server may be waiting.
 *
 * A request without a byte of a response is sent to another address if that is safe: nothing of it
 * was sent, or its method may be repeated (RFC 9110, section 9.2.2).  If its body comes in pieces, the
 * application must not have got more than the first: pieces are not kept.
 *
 * The request may be what ends the process, so only one process of an address reads it.  A kept link
 * may end before that: then the same address gets the request once more, by a new link.
 */
#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "backend/backend-call.h"
#include "backend/pool.h"
#include "backend/response-stream.h"
#include "base/address.h"
#include "base/balancer.h"
#include "base/container.h"
#include "base/list.h"
#include "base/slice.h"
#include "base/timer.h"
#include "config/pool-config.h"
#include "core/client-calls.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "event/sender.h"
#include "gateway/pool-process.h"
#include "gateway/upstream-internal.h"
#include "log/log.h"
#include "upstream/permits.h"
#include "upstream/upstream-link.h"

#define ATTEMPTS_MAX 8 /* attempts for one request */

/* --- links --------------------------------------------------------------------------------- */

void upstream_close_link(struct upstream_link *link)
{
	struct upstream_place *place = upstream_place_of(link);
	const struct upstream *upstream = link->upstream;
	struct upstream_channel *channel = place->channel;
	bool has_permit = link->permit, given_up = link->given_up;

	/* The code that reads from the link closes it. */
	link->closed = true;
	if (link->reading)
		return;
	g_ptr_array_remove_fast(channel->links, link);
	if (upstream_wire_of(link)->clear)
		upstream_wire_of(link)->clear(link);
	upstream_line_close(link);
	link->upstream->in_use -= link->abandoned;
	client_calls_over(link->calls);
	upstream_link_close(link);
	/* Only after the close: the process may serve one connection at a time. */
	if (has_permit)
		permit_give(channel->user, upstream->number, given_up);
	if (--place->links == 0 && upstream->out)
		upstream_names_release(channel, upstream);
}

void upstream_detach(struct upstream_link *link)
{
	struct backend_call *call = link->user;

	upstream_call_of(call)->link = NULL;
	timer_stop(&upstream_call_of(call)->later); /* of a tunnel */
	response_stream_keep_back(&upstream_call_of(call)->stream);
	link->user = NULL;
	link->upstream->in_use--;
}

void upstream_drop(struct upstream_link *link)
{
	upstream_detach(link);
	upstream_close_link(link);
}

void upstream_abandon(struct upstream_link *link)
{
	struct backend_call *call = link->user;
	struct upstream_call *own = upstream_call_of(call);

	/* What has begun to respond finds out with what it writes next, if it has not ended. */
	if (own->came || link->reading || upstream_link_is_unsent(link) ||
	    upstream_link_has_backlog(link) || !upstream_link_is_alive(link)) {
		upstream_drop(link);
		return;
	}
	upstream_detach(link);
	link->upstream->in_use++;
	link->calls = client_calls_abandon(call->transaction->peer.calls);
	upstream_link_abandon(link, &own->message, call->pool->settings->answer_ms);
}

void upstream_forget(struct upstream_link *link)
{
	list_remove(&link->resting);
	permit_idles_no_more(upstream_place_of(link)->channel->user);
}

void upstream_log_bytes(const struct upstream_link *link)
{
	if (upstream_link_has_bytes(link))
		log_info("pool %s: %s: bytes on an idle connection: closing it",
			 upstream_place_of(link)->channel->pool->settings->name,
			 link->upstream->address.text);
}

void upstream_idled(struct upstream_link *link)
{
	struct upstream_channel *channel = upstream_place_of(link)->channel;

	if (!link->abandoned) {
		upstream_forget(link);
		upstream_close_link(link);
		return;
	}
	upstream_close_link(link);
	call_queue_room(channel->pool, channel->thread);
}

/* Closes an idle link for another thread. */
static void give_up(struct upstream_link *link)
{
	link->given_up = true;
	upstream_idled(link);
}

static void give_up_idle(struct upstream_channel *channel, struct upstream *upstream)
{
	const struct upstream_place *place = upstream->own;

	struct upstream_link *link;

	while ((link = upstream_resting(place)) &&
	       permit_is_wanted(channel->user, upstream->number, false,
				loop_now_ms(channel->thread->loop)))
		give_up(link);
	while ((link = upstream_resting(place)) && upstream_yields(link, 0))
		upstream_idled(link);
}

void upstream_rest(struct upstream_link *link)
{
	struct upstream_place *place = upstream_place_of(link);
	struct upstream_channel *channel = place->channel;
	uint64_t now_ms = loop_now_ms(channel->thread->loop);

	/* In this order: a thread that starts to wait sees the idle link, or is seen here. */
	permit_idles(channel->user);
	list_prepend(&place->resting, &link->resting);
	upstream_link_rest(link, channel->keep_ms);
	if (!upstream_is_behind(channel))
		give_up_idle(channel, link->upstream);
	else if (now_ms - link->opened_ms >= PERMIT_TURN_MS &&
		 permit_is_wanted(channel->user, link->upstream->number, true, now_ms))
		give_up(link);
}

void upstream_news(struct loop_task *task)
{
	struct permit_user *user = container_of(task, struct permit_user, news);
	struct upstream_pool *all = container_of(user->permits, struct upstream_pool, permits);
	struct upstream_channel *channel = &all->channels[user->number];

	permit_news_begin(user);
	call_queue_room(channel->pool, channel->thread);
	for (unsigned i = 0; i < channel->balancer->count; i++)
		give_up_idle(channel, &channel->balancer->all[i]);
	permit_news_end(user);
}

static void cannot_reach(struct upstream *upstream, struct upstream_channel *channel, int error)
{
	if (!balancer_failed(upstream, loop_now_ms(channel->thread->loop)))
		return;
	log_warning("pool %s: %s: cannot be reached: %s", channel->pool->settings->name,
		    upstream->address.text, strerror(-error));
	upstream_names_late(channel);
}

void upstream_well(struct upstream_link *link)
{
	if (balancer_answered(link->upstream))
		log_notice("pool %s: %s: answers again",
			   upstream_place_of(link)->channel->pool->settings->name,
			   link->upstream->address.text);
}

/* --- requests -------------------------------------------------------------------------------- */

/* Keeps the permit of a link that is closed, for the next link to this address. */
static void keep_permit(struct upstream_link *link)
{
	upstream_place_of(link)->permits += link->permit;
	link->permit = false;
}

/* Returns the permits that no link was opened with. */
static void return_permits(struct upstream *upstream)
{
	struct upstream_place *place = upstream->own;

	for (; place->permits; place->permits--)
		permit_give(place->channel->user, upstream->number, false);
}

/*
 * Returns the next address for a call, with an idle link or a permit.  If there is none: NULL, or
 * with beyond the next address without a permit.
 */
static struct upstream *choose(struct upstream_channel *channel, uint64_t tried, bool beyond)
{
	uint64_t now_ms = loop_now_ms(channel->thread->loop), out = tried;
	struct upstream *upstream;

	while ((upstream = balancer_choose(channel->balancer, now_ms, out))) {
		struct upstream_place *place = upstream->own;

		if (upstream_resting(place) || place->permits)
			return upstream;
		if (permit_take(channel->user, upstream->number)) {
			place->permits++;
			return upstream;
		}
		out |= balancer_bit(upstream);
	}
	return beyond ? balancer_choose(channel->balancer, now_ms, tried) : NULL;
}

/* Returns an idle link or a new one; NULL with *error. */
static struct upstream_link *get_link(struct upstream_channel *channel, struct upstream *upstream,
				      const struct upstream_call *own, int *error)
{
	const struct upstream_pool *all = channel->pool->own;
	struct upstream_place *place = upstream->own;
	/* Some FastCGI libraries close after each response, a moment later, whatever was asked. */
	bool may_stay = !own->anew && (own->repeatable || all->wire->announces || place->keeps);
	struct upstream_link *link;
	uint64_t number;

	while ((link = upstream_resting(place))) {
		upstream_forget(link);
		/* Bytes would be taken for the response; and the peer may have closed it. */
		if (may_stay && upstream_link_is_alive(link))
			return link;
		upstream_log_bytes(link);
		keep_permit(link);
		upstream_close_link(link);
		/* Its process is free for the new one. */
		if (!may_stay)
			break;
	}
	number = upstream_line_number(place);
	link = upstream_link_open(channel->thread->loop, upstream, &all->wire->owner, error);
	if (!link)
		return NULL;
	link->permit = place->permits > 0;
	place->permits -= link->permit;
	place->links++;
	g_ptr_array_add(channel->links, link);
	upstream_line_enter(link, number);
	if (all->has_members && upstream_is_local(link))
		sender_watch(link->fd);
	return link;
}

/*
 * Sends the call to the chosen address, or else to the next one that accepts it; returns false if
 * none does.  A call that was sent before is not queued again: if the pool has several addresses it
 * gets a link even without a permit.
 */
static bool attempt(struct backend_call *call, struct upstream *upstream)
{
	struct upstream_call *own = upstream_call_of(call);
	struct upstream_channel *channel = upstream_channel_of(call);

	for (; own->attempts < ATTEMPTS_MAX; upstream = NULL) {
		struct upstream_link *link;
		int error;

		if (!upstream)
			upstream = choose(channel, own->tried, own->attempts > 0);
		if (!upstream)
			break;
		own->where = upstream;
		link = get_link(channel, upstream, own, &error);
		return_permits(upstream);
		own->attempts++;
		if (link) {
			upstream_wire_of(link)->begin(link, call);
			error = upstream_link_request(link, &own->message);
			if (!error) {
				link->user = call;
				link->began_ms = loop_now_ms(channel->thread->loop);
				own->link = link;
				upstream->in_use++;
				return true;
			}
			upstream_close_link(link);
			return false;
		}
		own->tried |= balancer_bit(upstream);
		/* An application with a full queue is busy, not unavailable. */
		if (error != -EAGAIN)
			cannot_reach(upstream, channel, error);
	}
	return false;
}

static void nobody_there(struct timer *timer)
{
	struct upstream_call *own = container_of(timer, struct upstream_call, later);

	backend_call_fail(own->stream.call, 503, "The application cannot be reached.");
}

static void no_tunnel(struct timer *timer)
{
	struct upstream_call *own = container_of(timer, struct upstream_call, later);

	backend_call_fail(own->stream.call, 503, "Too many connections are open.");
}

/* --- calls ------------------------------------------------------------------------------------ */

bool upstream_submit(struct backend_call *call, const char *block, size_t length)
{
	struct upstream_call *own = upstream_call_of(call);
	struct upstream_channel *channel = upstream_channel_of(call);
	const struct upstream_pool *all = call->pool->own;
	struct upstream *upstream = choose(channel, 0, false);
	int error;

	if (!upstream && !upstream_names_none(all)) {
		upstream_wait(channel);
		return false;
	}
	upstream_note_start(channel, call);
	response_stream_begin(&own->stream, call, &upstream_source);
	own->sender = SENDER_UNKNOWN;
	if (!upstream) {
		loop_timer_start(channel->thread->loop, &own->later, 0, nobody_there);
		return true;
	}
	error = all->wire->make(call, (struct slice){block, length});
	if (!error && own->upgrade && !upstream_tunnel_enter(call))
		loop_timer_start(channel->thread->loop, &own->later, 0, no_tunnel);
	else if (error || !attempt(call, upstream))
		loop_timer_start(channel->thread->loop, &own->later, 0, nobody_there);
	return_permits(upstream);
	return true;
}

bool upstream_body(struct backend_call *call)
{
	struct upstream_call *own = upstream_call_of(call);
	bool more = call->transaction->upload.more;

	if (!own->link || (!own->stopped_reading &&
			   upstream_link_body(own->link, backend_call_piece(call), more) < 0))
		return false;
	if (!more)
		response_stream_release(&own->stream);
	return true;
}

void upstream_drained(struct upstream_link *link)
{
	struct backend_call *call = link->user;

	if (upstream_call_of(call)->switched) {
		call->transaction->owner->hold_input(call->transaction, false);
		return;
	}
	upstream_call_of(call)->asked = true;
	backend_call_next_body(call);
}

void upstream_go_elsewhere(struct upstream_link *link, bool stale, const char *fault)
{
	struct backend_call *call = link->user;
	struct upstream_call *own = upstream_call_of(call);
	bool careful = upstream_wire_of(link)->careful;
	bool may = (upstream_link_is_unsent(link) || (own->repeatable && (stale || !careful))) &&
		   !own->asked;
	struct upstream *upstream = link->upstream;
	bool has_link;

	if (may)
		keep_permit(link);
	upstream_drop(link);
	sender_close(&own->sender);
	has_link = may && attempt(call, NULL);
	return_permits(upstream);
	if (has_link)
		return;
	response_stream_end(&own->stream, fault);
}

/* Whether a process has read the request and ended, and not because the server wanted it to. */
static bool was_read(const struct upstream_link *link, int error)
{
	const struct upstream_channel *channel = upstream_place_of(link)->channel;

	return !upstream_wire_of(link)->careful && !error && upstream_link_was_read(link) &&
	       !pool_processes_retired(channel->pool, loop_now_ms(channel->thread->loop));
}

void upstream_ended(struct upstream_link *link, int error)
{
	struct upstream_channel *channel = upstream_place_of(link)->channel;
	struct backend_call *call = link->user;
	struct upstream_call *own = upstream_call_of(call);
	/* A kept link may have been closed before the application saw the request. */
	bool stale = link->requests > 1 && error != -ETIMEDOUT;
	const char *wrong = upstream_wire_of(link)->ended(link);
	char fault[128];

	if (stale)
		upstream_place_of(link)->keeps = false;
	if (!error && !wrong) {
		upstream_complete(link, NULL, false);
		return;
	}
	if (!error && !stale && upstream_link_is_unsent(link))
		error = upstream_link_send_error(link);
	if (error)
		g_snprintf(fault, sizeof(fault), "the connection broke: %s", strerror(-error));
	else
		g_strlcpy(fault, wrong, sizeof(fault));
	if (own->heard) {
		upstream_drop(link);
		response_stream_end(&own->stream, fault);
		return;
	}
	own->anew |= stale;
	if (!stale || was_read(link, error))
		own->tried |= balancer_bit(link->upstream);
	if (!stale && (upstream_link_is_unsent(link) || error == -ETIMEDOUT))
		cannot_reach(link->upstream, channel, error ? error : -EPIPE);
	upstream_go_elsewhere(link, stale, fault);
}
