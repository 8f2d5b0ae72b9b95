/* SPDX-License-Identifier: MIT */
/*
 * gw-fastcgi-request.c - a call on its way to an application: which address,
 * over which link, and where to when that is no good.
 *
 * Every thread has links of its own to the addresses of a pool, one request
 * over each at a time.  A link whose answer is whole is kept for the next, but
 * not for long unless the operator says so: many an application serves one
 * connection at a time, and another thread, or another server, may be waiting.
 *
 * A request of which no answer has begun to come is handed to another address
 * when that cannot do harm: nothing of it was sent, or its method may be
 * repeated (RFC 9110, section 9.2.2).  Of a body in pieces the first must be
 * there for that: none of them is kept.
 */
#include <errno.h>
#include <string.h>

#include <gw-fastcgi-inside.h>
#include <meta.h>

#define ATTEMPTS_MAX 8 /* of one request */

/* --- links --------------------------------------------------------------------------------- */

void gw_fastcgi_close_link(struct fcgi_link *link)
{
	/* Whoever reads from it sees to that. */
	link->closed = true;
	if (link->reading)
		return;
	g_ptr_array_remove_fast(fastcgi_place_of(link)->thread->links, link);
	fcgi_link_close(link);
}

void gw_fastcgi_detach(struct fcgi_link *link)
{
	struct gw_call *call = link->user;

	fastcgi_call_of(call)->link = NULL;
	gw_stream_keep_back(&fastcgi_call_of(call)->stream);
	link->user = NULL;
	link->upstream->in_use--;
}

void gw_fastcgi_drop(struct fcgi_link *link)
{
	gw_fastcgi_detach(link);
	gw_fastcgi_close_link(link);
}

void gw_fastcgi_forget(struct fcgi_link *link)
{
	struct fcgi_link **at = &fastcgi_place_of(link)->resting;

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
}

void gw_fastcgi_idled(struct fcgi_link *link)
{
	gw_fastcgi_forget(link);
	gw_fastcgi_close_link(link);
}

void gw_fastcgi_rest(struct fcgi_link *link)
{
	struct fastcgi_place *place = fastcgi_place_of(link);

	link->next = place->resting;
	place->resting = link;
	fcgi_link_rest(link, place->thread->keep_ms);
}

static void cannot_reach(struct upstream *upstream, struct fastcgi_thread *thread, int error)
{
	if (upstream_failed(upstream, loop_now_ms(thread->server->loop)))
		log_warning("pool %s: %s: cannot be reached: %s", thread->pool->settings->name,
			    upstream->address.text, strerror(-error));
}

void gw_fastcgi_well(struct fcgi_link *link)
{
	if (upstream_answered(link->upstream))
		log_notice("pool %s: %s: answers again",
			   fastcgi_place_of(link)->thread->pool->settings->name,
			   link->upstream->address.text);
}

/* --- requests -------------------------------------------------------------------------------- */

/* One that rests, or a new one; NULL with *error. */
static struct fcgi_link *get_link(struct fastcgi_thread *thread, struct upstream *upstream,
				  bool repeatable, int *error)
{
	struct fastcgi_place *place = upstream->own;
	struct fcgi_link *link;

	while ((link = place->resting)) {
		place->resting = link->next;
		/* Its end may be on its way here; only what may be repeated takes the risk. */
		if (repeatable || fcgi_link_is_alive(link))
			return link;
		gw_fastcgi_close_link(link);
	}
	link = fcgi_link_open(thread->server->loop, upstream, &gw_fastcgi_link_owner, error);
	if (!link)
		return NULL;
	g_ptr_array_add(thread->links, link);
	if (((const struct fastcgi_pool *)thread->pool->own)->has_members && fastcgi_is_local(link))
		sender_watch(link->fd);
	return link;
}

/* Hands the call to the next address that takes it.  False: there is none. */
static bool attempt(struct gw_call *call)
{
	struct fastcgi_call *own = fastcgi_call_of(call);
	struct fastcgi_thread *thread = fastcgi_thread_of(call);
	struct upstream *upstream;

	while (own->attempts < ATTEMPTS_MAX &&
	       (upstream = upstream_choose(thread->upstreams, loop_now_ms(thread->server->loop),
					   thread->most, own->tried))) {
		int error;
		struct fcgi_link *link = get_link(thread, upstream, own->repeatable, &error);

		own->attempts++;
		if (link) {
			error = fcgi_link_request(link, &own->message);
			if (!error) {
				link->user = call;
				own->link = link;
				upstream->in_use++;
				return true;
			}
			gw_fastcgi_close_link(link);
			return false;
		}
		own->tried |= upstream_bit(upstream);
		/* One whose queue is full is at work, not away. */
		if (error != -EAGAIN)
			cannot_reach(upstream, thread, error);
	}
	return false;
}

static void nobody_there(struct timer *timer)
{
	struct fastcgi_call *own =
		(struct fastcgi_call *)((char *)timer - offsetof(struct fastcgi_call, later));

	gw_fail(own->stream.call, 503, "The application cannot be reached.");
}

static bool is_repeatable(struct slice block)
{
	static const char *const methods[] = {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"};
	const char *method = meta_find(block, "REQUEST_METHOD").at;

	for (size_t i = 0; i < G_N_ELEMENTS(methods); i++)
		if (strcmp(method, methods[i]) == 0)
			return true;
	return false;
}

bool gw_fastcgi_submit(struct gw_call *call, const char *block, size_t length)
{
	struct fastcgi_call *own = fastcgi_call_of(call);
	struct transaction *transaction = call->transaction;
	struct fastcgi_thread *thread = fastcgi_thread_of(call);
	struct slice variables = {block, length};
	int error;

	if (!upstreams_have_room(thread->upstreams, thread->most))
		return false;
	gw_stream_begin(&own->stream, call, &gw_fastcgi_source);
	own->sender = SENDER_UNKNOWN;
	own->repeatable = is_repeatable(variables);
	error = fcgi_message_make(&own->message, variables, gw_piece(call),
				  transaction->upload_more);
	if (error || !attempt(call))
		loop_timer_start(thread->server->loop, &own->later, 0, nobody_there);
	return true;
}

bool gw_fastcgi_body(struct gw_call *call)
{
	struct fastcgi_call *own = fastcgi_call_of(call);
	bool more = call->transaction->upload_more;

	if (!own->link || (!own->deaf && fcgi_link_body(own->link, gw_piece(call), more) < 0))
		return false;
	if (!more)
		gw_stream_release(&own->stream);
	return true;
}

void gw_fastcgi_hungry(struct fcgi_link *link)
{
	struct gw_call *call = link->user;

	fastcgi_call_of(call)->asked = true;
	gw_next_body(call);
}

void gw_fastcgi_go_elsewhere(struct fcgi_link *link, const char *fault)
{
	struct gw_call *call = link->user;
	struct fastcgi_call *own = fastcgi_call_of(call);
	bool may = (fcgi_link_is_unsent(link) || own->repeatable) && !own->asked;

	gw_fastcgi_drop(link);
	sender_close(&own->sender);
	if (may && attempt(call))
		return;
	gw_stream_end(&own->stream, fault);
}

void gw_fastcgi_ended(struct fcgi_link *link, int error)
{
	struct fastcgi_thread *thread = fastcgi_place_of(link)->thread;
	struct gw_call *call = link->user;
	struct fastcgi_call *own = fastcgi_call_of(call);
	/* One that was kept may have been closed before it saw the request. */
	bool stale = link->requests > 1 && error != -ETIMEDOUT;
	char fault[128];

	g_snprintf(fault, sizeof(fault), "the connection %s%s",
		   error ? "broke: " : "ended before the answer did",
		   error ? strerror(-error) : "");
	if (own->came) {
		gw_fastcgi_drop(link);
		gw_stream_end(&own->stream, fault);
		return;
	}
	if (!stale) {
		own->tried |= upstream_bit(link->upstream);
		if (fcgi_link_is_unsent(link) || error == -ETIMEDOUT)
			cannot_reach(link->upstream, thread, error ? error : -EPIPE);
	}
	gw_fastcgi_go_elsewhere(link, fault);
}
