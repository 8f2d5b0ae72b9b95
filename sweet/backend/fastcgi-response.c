/* SPDX-License-Identifier: MIT */
/*
 * fastcgi-response.c - reads the responses of FastCGI applications, and ends their calls.
 */
#include <errno.h>
#include <string.h>

#include "backend/fastcgi-internal.h"
#include "base/escape.h"

#define ERRORS_MAX 16384u   /* bytes of error output that are logged for one request */
#define ERROR_LINE_MAX 1000 /* bytes in one line of it */

static const char *name(struct backend_call *call, char *out, size_t size)
{
	const struct fcgi_link *link = fastcgi_call_of(call)->link;

	g_snprintf(out, size, "pool %s%s%s", call->pool->settings->name, link ? ": " : "",
		   link ? link->upstream->address.text : "");
	return out;
}

/* Logs each line of the application's error output. */
static void log_errors(struct backend_call *call, struct slice text)
{
	struct fastcgi_call *own = fastcgi_call_of(call);
	char who[256], line[ERROR_LINE_MAX * ESCAPE_MOST + 1];

	while (text.length && own->errors < ERRORS_MAX) {
		const char *newline = memchr(text.at, '\n', text.length);
		size_t length = newline ? (size_t)(newline - text.at) : text.length;
		size_t used = length + (newline ? 1 : 0);

		if (length > ERROR_LINE_MAX)
			length = used = ERROR_LINE_MAX;
		*escape_message(line, (struct slice){text.at, length}) = '\0';
		if (length)
			log_warning("%s: says: %s", name(call, who, sizeof(who)), line);
		text = (struct slice){text.at + used, text.length - used};
		own->errors += (unsigned)used;
		if (own->errors >= ERRORS_MAX)
			log_warning("%s: says more, which is left out",
				    name(call, who, sizeof(who)));
	}
}

/* The process that served the request is unknown; on average all serve the same number. */
static void served(struct gateway_pool *pool, struct fastcgi_local *local)
{
	if (pool->count)
		pool_process_served(&pool->processes[local->served++ % pool->count]);
}

/* The end of a request has come; left bytes follow it. */
static void complete(struct fcgi_link *link, struct read_buffer *buffer,
		     const struct fcgi_found *found, size_t left)
{
	struct backend_call *call = link->user;
	struct fastcgi_call *own = fastcgi_call_of(call);
	bool keep =
		left == 0 && link->sent && !link->sending &&
		loop_now_ms(link->loop) - link->opened_ms < fastcgi_place_of(link)->local->keep_ms;

	if (found->status != FCGI_COMPLETE && !own->came) {
		read_buffer_free(buffer);
		own->tried |= balancer_bit(link->upstream);
		own->repeatable = true; /* the application did not process it */
		fastcgi_go_elsewhere(link, "the application did not take the request");
		return;
	}
	served(call->pool, fastcgi_local_of(call));
	/* From here on the link is free, even if the call fails. */
	own->last = link;
	fastcgi_detach(link);
	if (keep && link->permit)
		fastcgi_rest(link);
	else
		fastcgi_close_link(link);
	response_stream_last(&own->stream, buffer);
}

/* The writer of a response can be identified only before its bytes are read. */
static void note_sender(struct fcgi_link *link)
{
	struct backend_call *call = link->user;
	struct fastcgi_call *own = fastcgi_call_of(call);
	const struct fastcgi_pool *all = call->pool->own;

	if (all->has_members && !own->stream.has_head && fastcgi_is_local(link))
		sender_note(&own->sender, link->fd);
}

/* Processes the records in the buffer.  Returns false if the link has no call any more. */
static bool take_buffer(struct fcgi_link *link, struct read_buffer *buffer)
{
	struct backend_call *call = link->user;
	struct fastcgi_call *own = fastcgi_call_of(call);
	const char *data = buffer->data;
	size_t at = 0, length = buffer->length;

	while (at < length) {
		struct fcgi_found found;
		ssize_t used = fcgi_read(&link->fcgi, data + at, length - at, &found);

		if (used < 0) {
			read_buffer_free(buffer);
			fastcgi_drop(link);
			response_stream_end(&own->stream, fcgi_fault(used));
			return false;
		}
		at += (size_t)used;
		if (found.event == FCGI_OUT) {
			if (!own->came)
				fastcgi_well(link);
			own->came = true;
			if (!response_stream_feed(&own->stream, buffer, found.run)) {
				read_buffer_free(buffer);
				if (link->user)
					fastcgi_drop(link);
				return false;
			}
		} else if (found.event == FCGI_ERR) {
			log_errors(call, found.run);
		} else if (found.event == FCGI_END) {
			complete(link, buffer, &found, length - at);
			return false;
		}
	}
	response_stream_add(&own->stream, buffer);
	return link->user != NULL;
}

/*
 * Reads while there is data and room for it, for one turn at most.  Returns false if the call has
 * left the link; then the link may be freed.
 */
static bool read_on(struct fcgi_link *link)
{
	struct fastcgi_local *local = fastcgi_place_of(link)->local;
	unsigned buffers = 0;
	bool more = true, there;

	if (link->reading)
		return true;
	link->reading = true;
	while (more && response_stream_takes_more(&fastcgi_call_of(link->user)->stream)) {
		int error;
		struct read_buffer *buffer;

		if (buffers++ == RESPONSE_STREAM_TURN) {
			response_stream_read_later(&fastcgi_call_of(link->user)->stream);
			break;
		}
		note_sender(link);
		buffer = read_buffer_read(link->fd, &error);
		if (buffer) {
			more = take_buffer(link, buffer);
		} else if (error == -EAGAIN) {
			break;
		} else {
			fastcgi_ended(link, error);
			more = false;
		}
	}
	there = more;
	link->reading = false;
	if (link->closed)
		fastcgi_close_link(link);
	if (!there)
		call_queue_room(local->pool, local->thread);
	return there;
}

static void readable(struct fcgi_link *link)
{
	if (link->user) {
		(void)read_on(link);
	} else if (!fcgi_link_is_alive(link)) {
		/* On an idle link only its end can come; the event may be outdated, though. */
		fastcgi_forget(link);
		fastcgi_close_link(link);
	}
}

static void broke(struct fcgi_link *link, int error)
{
	struct fastcgi_local *local = fastcgi_place_of(link)->local;
	struct fastcgi_call *own;

	/* It may have responded and closed without reading the whole request. */
	if (error != -ETIMEDOUT && !fcgi_link_is_unsent(link) && !read_on(link))
		return;
	own = fastcgi_call_of(link->user);
	if (own->came && own->stream.held) {
		/* If the response waited for the body, there may be more to read. */
		own->stopped_reading = true;
		backend_call_start_timer(link->user);
		response_stream_release(&own->stream);
		return;
	}
	fastcgi_ended(link, error);
	call_queue_room(local->pool, local->thread);
}

static void resume(struct backend_call *call)
{
	struct fcgi_link *link = fastcgi_call_of(call)->link;

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
static const char *refusal(struct backend_call *call, size_t id)
{
	const struct fastcgi_call *own = fastcgi_call_of(call);
	const struct fastcgi_pool *all = call->pool->own;
	const struct fcgi_link *link = own->link ? own->link : own->last;

	if (sender_may_use(&own->sender, id))
		return NULL;
	if (all->spawn)
		return fastcgi_spawn_made(call->pool, id)
			       ? NULL
			       : "no process of the pool made it: grant it to the one that "
				 "answers, see NC_grant(3)";
	if (call->pool->settings->trust_cache_ids)
		return is_members(id) ? NULL : "no member of the cache made it";
	if (!link || !fastcgi_is_local(link))
		return "the process behind a TCP upstream is not known: use a Unix upstream, or "
		       "set trust-cache-ids=on for the pool, see sweet.conf(5)";
	if (NC_access(NULL, id, NC_PEER, (uint32_t)link->fd) == 0)
		return NULL;
	return "the application did not make it: grant it to the process that answers, see "
	       "NC_grant(3), or set trust-cache-ids=on for the pool, see sweet.conf(5)";
}

const struct response_stream_source fastcgi_source = {
	.resume = resume, .refusal = refusal, .name = name};

const struct fcgi_link_owner fastcgi_link_owner = {
	.readable = readable, .broke = broke, .drained = fastcgi_drained, .idled = fastcgi_idled};
