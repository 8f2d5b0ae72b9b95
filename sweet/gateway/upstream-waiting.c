/* SPDX-License-Identifier: MIT */
/*
 * upstream-waiting.c - links that wait until an application accepts them, and calls that wait for a
 * link; upstream/capacity.h has the rules.
 *
 * Each thread has its own line of links to an address, in the order of their opening.  While it has
 * any, it looks after each CAPACITY_STUCK_MS whether the first one still waits.
 */
#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend-call.h"
#include "backend/pool.h"
#include "base/balancer.h"
#include "base/container.h"
#include "base/list.h"
#include "base/timer.h"
#include "core/server.h"
#include "event/loop.h"
#include "gateway/upstream-internal.h"
#include "upstream/capacity.h"
#include "upstream/permits.h"
#include "upstream/upstream-link.h"

#define USUAL_UNITS 64u
#define USUAL_WEIGHT 8u	       /* the latest response has this part of the average */
#define USUAL_MAX_MS 5000u     /* a longer one counts as this */
#define PATIENCE 4u	       /* times the average */
#define PATIENCE_FIRST_MS 100u /* as long as there is none */

/* --- links that wait -------------------------------------------------------------------------- */

static void use_limit(const struct upstream_channel *channel, unsigned number)
{
	struct upstream_pool *all = channel->pool->own;

	permits_limit(&all->permits, number, &all->capacities[number].limit);
}

static void accepted(struct upstream_link *link)
{
	struct upstream_place *place = upstream_place_of(link);

	list_remove(&link->waiting);
	if (capacity_accepted(place->capacity, link->connecting, link->opened_ms,
			      loop_now_ms(link->loop)))
		use_limit(place->channel, link->upstream->number);
}

/* The first link of the line that still waits; NULL: none does. */
static struct upstream_link *first_of(struct upstream_place *place)
{
	struct upstream_link *link;

	while ((link = list_first(&place->line, struct upstream_link, waiting))) {
		/* Links of other threads are in the same queue of the system. */
		if (!capacity_is_passed(place->capacity, link->connected_at) &&
		    !upstream_link_is_read(link))
			break;
		accepted(link);
	}
	return link;
}

/*
 * After how long the link is taken for one that no application has accepted.  The system may know;
 * otherwise it may be a response that takes long.
 */
static uint64_t patience_ms(const struct upstream_place *place, const struct upstream_link *link)
{
	if (upstream_is_local(link) && upstream_link_may_rest(link))
		return CAPACITY_STUCK_MS;
	if (!place->measured)
		return PATIENCE_FIRST_MS;
	return MAX(CAPACITY_STUCK_MS, PATIENCE * place->usual / USUAL_UNITS);
}

/* Returns true if links still wait. */
static bool look_at(struct upstream_place *place, uint64_t now_ms)
{
	struct upstream_pool *all = place->channel->pool->own;
	const struct upstream_link *first = first_of(place);
	struct upstream_link *idle;

	if (!first)
		return false;
	if (now_ms - first->opened_ms < patience_ms(place, first))
		return true;
	capacity_stuck(place->capacity, first->opened_ms, now_ms);
	while ((idle = upstream_resting(place)) && upstream_yields(idle, 0))
		upstream_idled(idle);
	permits_call_idle(&all->permits);
	return true;
}

static void waiting_look(struct timer *timer)
{
	struct upstream_channel *channel = container_of(timer, struct upstream_channel, look);
	uint64_t now_ms = loop_now_ms(channel->thread->loop);

	channel->looks = false;
	for (unsigned i = 0; i < channel->balancer->count; i++)
		channel->looks |= look_at(&channel->places[i], now_ms);
	if (channel->looks)
		loop_timer_start(channel->thread->loop, &channel->look, CAPACITY_STUCK_MS,
				 waiting_look);
}

uint64_t upstream_line_number(const struct upstream_place *place)
{
	return place->capacity ? capacity_number(place->capacity) : 0;
}

void upstream_line_enter(struct upstream_link *link, uint64_t number)
{
	struct upstream_place *place = upstream_place_of(link);
	struct upstream_channel *channel = place->channel;

	if (!place->capacity)
		return;
	link->connecting = number;
	link->connected_at = capacity_number(place->capacity);
	capacity_opened(place->capacity);
	list_append(&place->line, &link->waiting);
	if (!channel->looks)
		loop_timer_start(channel->thread->loop, &channel->look, CAPACITY_STUCK_MS,
				 waiting_look);
	channel->looks = true;
}

static void leave_line(struct upstream_link *link)
{
	const struct list *line = &upstream_place_of(link)->line;
	struct upstream_link *before = list_previous(line, link, waiting), *other;

	/* First this one, which shows that those before it were accepted earlier. */
	accepted(link);
	while ((other = before)) {
		before = list_previous(line, other, waiting);
		accepted(other);
	}
}

static void measure(struct upstream_place *place, uint64_t ms)
{
	unsigned now = (unsigned)MIN(ms, USUAL_MAX_MS) * USUAL_UNITS;

	if (place->measured)
		place->usual += now / USUAL_WEIGHT - place->usual / USUAL_WEIGHT;
	else
		place->usual = now;
	place->measured = true;
}

void upstream_heard(struct upstream_link *link)
{
	if (list_is_linked(&link->waiting))
		leave_line(link);
	else if (link->requests > 1)
		measure(upstream_place_of(link), loop_now_ms(link->loop) - link->began_ms);
}

void upstream_line_close(struct upstream_link *link)
{
	struct upstream_place *place = upstream_place_of(link);

	if (!place->capacity)
		return;
	capacity_closed(place->capacity, list_is_linked(&link->waiting));
	list_remove(&link->waiting);
}

bool upstream_yields(struct upstream_link *link, uint64_t began_ms)
{
	struct upstream_place *place = upstream_place_of(link);

	if (!place->capacity || !capacity_has_waiting(place->capacity))
		return false;
	/* It may have been accepted since the last look. */
	(void)first_of(place);
	return capacity_yields(place->capacity, began_ms, loop_now_ms(link->loop));
}

/* --- calls that wait -------------------------------------------------------------------------- */

static void set_behind(struct upstream_channel *channel, bool behind)
{
	channel->behind = behind;
	if (behind)
		return;
	timer_stop(&channel->stall);
	permit_wait_no_more(channel->user);
}

/* The application may have got more processes. */
static void raise_limits(struct upstream_channel *channel)
{
	uint64_t now_ms = loop_now_ms(channel->thread->loop);

	for (unsigned i = 0; i < channel->balancer->count; i++)
		if (channel->places[i].capacity &&
		    capacity_raise(channel->places[i].capacity, now_ms))
			use_limit(channel, i);
}

static void waiting_stalled(struct timer *timer)
{
	struct upstream_channel *channel = container_of(timer, struct upstream_channel, stall);

	/* The clients have disconnected, or their calls have timed out. */
	if (!upstream_is_behind(channel)) {
		set_behind(channel, false);
		return;
	}
	loop_timer_start(channel->thread->loop, timer, PERMIT_STALL_MS + 1, waiting_stalled);
	permit_urge(channel->user);
	raise_limits(channel);
}

void upstream_wait(struct upstream_channel *channel)
{
	struct loop *loop = channel->thread->loop;

	raise_limits(channel);
	if (!channel->behind)
		loop_timer_start(loop, &channel->stall, PERMIT_STALL_MS + 1, waiting_stalled);
	set_behind(channel, true);
	permit_wait(channel->user, loop_now_ms(loop));
}

void upstream_note_start(struct upstream_channel *channel, const struct backend_call *call)
{
	const struct call_queue *queue = &channel->pool->queues[channel->thread->number];
	const struct backend_call *first = list_first(&queue->calls, struct backend_call, queued);

	if (!channel->behind)
		return;
	if (first && (first != call || list_next(&queue->calls, first, queued)))
		permit_started(channel->user, loop_now_ms(channel->thread->loop));
	else
		set_behind(channel, false);
}
