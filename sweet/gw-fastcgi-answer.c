/* SPDX-License-Identifier: MIT */
/*
 * gw-fastcgi-answer.c - what FastCGI applications say, and the end of it.
 */
#include <errno.h>
#include <string.h>

#include <escape.h>
#include <gw-fastcgi-inside.h>

#define ERRORS_MAX 16384u   /* bytes of one request's errors that are logged */
#define ERROR_LINE_MAX 1000 /* bytes in a line of them */

static const char *name(struct gw_call *call, char *out, size_t size)
{
	const struct fcgi_link *link = fastcgi_call_of(call)->link;

	g_snprintf(out, size, "pool %s%s%s", call->pool->settings->name, link ? ": " : "",
		   link ? link->upstream->address.text : "");
	return out;
}

/* What the application writes for its operator: a line of the log for each. */
static void log_errors(struct gw_call *call, struct slice text)
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

/* Which process it was nobody knows; in the long run each has the same. */
static void served(struct gateway_pool *pool, struct fastcgi_thread *thread)
{
	if (pool->count)
		gw_process_served(&pool->processes[thread->served++ % pool->count]);
}

/* The end of a request has come, and left bytes behind it. */
static void complete(struct fcgi_link *link, struct gw_window *window,
		     const struct fcgi_found *found, size_t left)
{
	struct gw_call *call = link->user;
	struct fastcgi_call *own = fastcgi_call_of(call);
	bool keep =
		left == 0 && link->sent && !link->sending &&
		loop_now_ms(link->loop) - link->opened_ms < fastcgi_place_of(link)->thread->keep_ms;

	if (found->status != FCGI_COMPLETE && !own->came) {
		gw_window_free(window);
		own->tried |= upstream_bit(link->upstream);
		own->repeatable = true; /* it did not take it */
		gw_fastcgi_go_elsewhere(link, "the application did not take the request");
		return;
	}
	served(call->pool, fastcgi_thread_of(call));
	/* From here on the link is free, whatever becomes of the call. */
	gw_fastcgi_detach(link);
	if (keep)
		gw_fastcgi_rest(link);
	else
		gw_fastcgi_close_link(link);
	gw_stream_last(&own->stream, window);
}

/* Looks at the records in the window.  False: the link has no call any more. */
static bool take_window(struct fcgi_link *link, struct gw_window *window)
{
	struct gw_call *call = link->user;
	struct fastcgi_call *own = fastcgi_call_of(call);
	const char *data = window->data;
	size_t at = 0, length = window->length;

	while (at < length) {
		struct fcgi_found found;
		ssize_t used = fcgi_read(&link->fcgi, data + at, length - at, &found);

		if (used < 0) {
			gw_window_free(window);
			gw_fastcgi_drop(link);
			gw_stream_end(&own->stream, fcgi_fault(used));
			return false;
		}
		at += (size_t)used;
		if (found.event == FCGI_OUT) {
			if (!own->came)
				gw_fastcgi_well(link);
			own->came = true;
			if (!gw_stream_feed(&own->stream, window, found.run)) {
				gw_window_free(window);
				if (link->user)
					gw_fastcgi_drop(link);
				return false;
			}
		} else if (found.event == FCGI_ERR) {
			log_errors(call, found.run);
		} else if (found.event == FCGI_END) {
			complete(link, window, &found, length - at);
			return false;
		}
	}
	gw_stream_add(&own->stream, window);
	return link->user != NULL;
}

/*
 * Reads as long as there is something, and room for it, but no more than a turn's.  False: its
 * call is gone, it too perhaps.
 */
static bool read_on(struct fcgi_link *link)
{
	struct fastcgi_thread *thread = fastcgi_place_of(link)->thread;
	unsigned windows = 0;
	bool more = true, there;

	if (link->reading)
		return true;
	link->reading = true;
	while (more && gw_stream_takes_more(&fastcgi_call_of(link->user)->stream)) {
		int error;
		struct gw_window *window;

		if (windows++ == GW_STREAM_TURN) {
			gw_stream_read_later(&fastcgi_call_of(link->user)->stream);
			break;
		}
		window = gw_window_read(link->fd, &error);
		if (window) {
			more = take_window(link, window);
		} else if (error == -EAGAIN) {
			break;
		} else {
			gw_fastcgi_ended(link, error);
			more = false;
		}
	}
	there = more;
	link->reading = false;
	if (link->closed)
		gw_fastcgi_close_link(link);
	if (!there)
		gw_room(thread->pool, thread->server);
	return there;
}

static void readable(struct fcgi_link *link)
{
	if (link->user) {
		(void)read_on(link);
	} else if (!fcgi_link_is_alive(link)) {
		/* Nothing is due from one that rests but its end; news may be old, though. */
		gw_fastcgi_forget(link);
		gw_fastcgi_close_link(link);
	}
}

static void broke(struct fcgi_link *link, int error)
{
	struct fastcgi_thread *thread = fastcgi_place_of(link)->thread;
	struct fastcgi_call *own;

	/* It may have answered before it closed, without having read everything. */
	if (error != -ETIMEDOUT && !fcgi_link_is_unsent(link) && !read_on(link))
		return;
	own = fastcgi_call_of(link->user);
	if (own->came && own->stream.held) {
		/* There may be more than is read of an answer that waits for the body. */
		own->deaf = true;
		gw_start_timer(link->user);
		gw_stream_release(&own->stream);
		return;
	}
	gw_fastcgi_ended(link, error);
	gw_room(thread->pool, thread->server);
}

static void resume(struct gw_call *call)
{
	struct fcgi_link *link = fastcgi_call_of(call)->link;

	if (link)
		(void)read_on(link);
}

/* Nobody's but what processes other than this one have put there. */
static bool may_send(struct gw_call *call, size_t id)
{
	const struct fastcgi_pool *all = call->pool->own;
	struct NC_stat stat;

	if (all->spawn)
		return fcgi_spawn_made(call->pool, id);
	return NC_stat(id, &stat) == 0 && stat.session != 0;
}

const struct gw_stream_source gw_fastcgi_source = {
	.resume = resume, .may_send = may_send, .name = name};

const struct fcgi_link_owner gw_fastcgi_link_owner = {.readable = readable,
						      .broke = broke,
						      .hungry = gw_fastcgi_hungry,
						      .idled = gw_fastcgi_idled};
