/* SPDX-License-Identifier: MIT */
/*
 * upstream-response.c - reads the responses of applications with sockets, and ends their calls.
 */
#include <errno.h>
#include <glib.h>
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "backend/backend-call.h"
#include "backend/pool.h"
#include "backend/read-buffer.h"
#include "backend/response-stream.h"
#include "base/address.h"
#include "base/balancer.h"
#include "config/pool-config.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "event/sender.h"
#include "gateway/pool-process.h"
#include "gateway/upstream-internal.h"
#include "log/log.h"
#include "upstream/upstream-link.h"

const char *upstream_name(struct backend_call *call, char *out, size_t size)
{
	const struct upstream *where = upstream_call_of(call)->where;

	g_snprintf(out, size, "pool %s%s%s", call->pool->settings->name, where ? ": " : "",
		   where ? where->address.text : "");
	return out;
}

/* The process that served the request is unknown; on average all serve the same number. */
static void served(struct gateway_pool *pool, struct upstream_channel *channel)
{
	if (pool->count)
		pool_process_served(&pool->processes[channel->served++ % pool->count]);
}

void upstream_came(struct upstream_link *link)
{
	struct upstream_call *own = upstream_call_of(link->user);

	if (!own->came)
		upstream_well(link);
	own->came = true;
}

void upstream_complete(struct upstream_link *link, struct read_buffer *buffer, bool keep)
{
	struct backend_call *call = link->user;
	struct upstream_call *own = upstream_call_of(call);

	keep = keep && upstream_link_may_rest(link) && !link->upstream->out &&
	       loop_now_ms(link->loop) - link->opened_ms <
		       upstream_place_of(link)->channel->keep_ms;
	if (link->requests > 1)
		upstream_place_of(link)->keeps = true;
	served(call->pool, upstream_channel_of(call));
	/* From here on the link is free, even if the call fails. */
	own->last = link;
	upstream_detach(link);
	if (keep && link->permit && !upstream_yields(link, link->began_ms))
		upstream_rest(link);
	else
		upstream_close_link(link);
	response_stream_last(&own->stream, buffer);
}

bool upstream_refuse(struct upstream_link *link, struct read_buffer *buffer, const char *fault)
{
	struct upstream_call *own = link->user ? upstream_call_of(link->user) : NULL;

	read_buffer_free(buffer);
	if (own)
		upstream_drop(link);
	if (own && fault)
		response_stream_end(&own->stream, fault);
	return false;
}

/* The writer of a response can be identified only before its bytes are read. */
static void note_sender(struct upstream_link *link)
{
	struct backend_call *call = link->user;
	struct upstream_call *own = upstream_call_of(call);
	const struct upstream_pool *all = call->pool->own;

	if (all->has_members && !own->stream.has_head && upstream_is_local(link))
		sender_note(&own->sender, link->fd);
}

/*
 * What a turn begins with: as much as the last one got, if that was one read.  Otherwise 0, and the
 * system is asked, which costs a call.
 */
static size_t expected(const struct upstream_link *link, unsigned buffers)
{
	bool known = buffers == 1 && !link->last_of_many;

	return known || link->last_read <= READ_BUFFER_MIN ? link->last_read : 0;
}

/*
 * Reads while there is data and room for it, for one turn at most.  Returns false if the call has
 * left the link; then the link may be freed.
 */
static bool read_on(struct upstream_link *link)
{
	struct upstream_channel *channel = upstream_place_of(link)->channel;
	unsigned buffers = 0;
	bool more = true, there;

	if (link->reading)
		return true;
	link->reading = true;
	while (more && response_stream_takes_more(&upstream_call_of(link->user)->stream)) {
		int error;
		struct read_buffer *buffer;

		if (buffers++ == RESPONSE_STREAM_TURN) {
			response_stream_read_later(&upstream_call_of(link->user)->stream);
			break;
		}
		note_sender(link);
		buffer = read_buffer_read(link->fd, expected(link, buffers), &error);
		if (buffer) {
			link->last_read = buffer->length;
			link->last_of_many = buffers > 1;
			if (!upstream_call_of(link->user)->heard)
				upstream_heard(link);
			upstream_call_of(link->user)->heard = true;
			more = upstream_wire_of(link)->take(link, buffer);
		} else if (error == -EAGAIN ||
			   response_stream_awaits_memory(&upstream_call_of(link->user)->stream,
							 error)) {
			break;
		} else {
			upstream_ended(link, error);
			more = false;
		}
	}
	there = more;
	link->reading = false;
	if (link->closed)
		upstream_close_link(link);
	if (!there)
		call_queue_room(channel->pool, channel->thread);
	return there;
}

void upstream_readable(struct upstream_link *link)
{
	if (link->user) {
		(void)read_on(link);
	} else if (!upstream_link_is_alive(link)) {
		/* On an idle link only its end should come; the event may be outdated, though. */
		upstream_log_bytes(link);
		upstream_place_of(link)->keeps = false;
		upstream_forget(link);
		upstream_close_link(link);
	}
}

void upstream_broke(struct upstream_link *link, int error)
{
	struct upstream_channel *channel = upstream_place_of(link)->channel;
	struct upstream_call *own;

	/* It may have responded and closed without reading the whole request. */
	if (error != -ETIMEDOUT && !upstream_link_is_unsent(link) && !read_on(link))
		return;
	own = upstream_call_of(link->user);
	if (own->came && own->stream.held) {
		/* If the response waited for the body, there may be more to read. */
		own->stopped_reading = true;
		backend_call_start_timer(link->user);
		response_stream_release(&own->stream);
		return;
	}
	upstream_ended(link, error);
	call_queue_room(channel->pool, channel->thread);
}

static void upstream_resume(struct backend_call *call)
{
	struct upstream_link *link = upstream_call_of(call)->link;

	if (link)
		(void)read_on(link);
}

/* Whether a member made the unit; units of the server itself are refused. */
static bool is_members(size_t id)
{
	struct NC_stat stat;

	return NC_stat(NULL, id, &stat, sizeof(stat)) == 0 && stat.session != 0;
}

/*
 * Refuses a unit unless the process that responds or the one that listens made it or has a grant
 * for it; the kernel identifies them.  If the server has started the pool, any process of the pool
 * may have made it.
 */
static const char *upstream_refusal(struct backend_call *call, size_t id)
{
	const struct upstream_call *own = upstream_call_of(call);
	const struct upstream_pool *all = call->pool->own;
	const struct upstream_link *link = own->link ? own->link : own->last;

	if (sender_may_use(&own->sender, id))
		return NULL;
	if (all->spawn)
		return fastcgi_spawn_made(call->pool, id)
			       ? NULL
			       : "no process of the pool made it: grant it to the one that "
				 "answers, see NC_grant(3)";
	if (call->pool->settings->trust_cache_ids)
		return is_members(id) ? NULL : "no member of the cache made it";
	if (!link || !upstream_is_local(link))
		return "the process behind a TCP upstream is not known: use a Unix upstream, or "
		       "set trust-cache-ids=on for the pool, see sweet.conf(5)";
	if (NC_access(NULL, id, NC_PEER, (uint32_t)link->fd) == 0)
		return NULL;
	return "the application did not make it: grant it to the process that answers, see "
	       "NC_grant(3), or set trust-cache-ids=on for the pool, see sweet.conf(5)";
}

/* --- for response-stream.c ------------------------------------------------------------------- */

const struct response_stream_source upstream_source = {
	.resume = upstream_resume,
	.refusal = upstream_refusal,
	.from_client = upstream_tunnel_from_client,
	.awaited = upstream_tunnel_awaited,
	.name = upstream_name,
};
