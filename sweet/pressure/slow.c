/* SPDX-License-Identifier: MIT */
/*
 * slow.c - keeps slow clients from holding the cache: when the units that waiting responses hold exceed
 * a limit, the responses that have waited longest are moved off their units (leave.c).
 *
 * held.c counts these units, and the units that sockets still refer to after their responses have left
 * them (lent.c).  If the limit is still exceeded when no response can leave its unit, such sockets are
 * reset.
 */
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>

#include <glib.h>

#include "base/container.h"
#include "base/list.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "exchange/output.h"
#include "handler/file-response.h"
#include "pressure/pressure-internal.h"
#include "pressure/pressure-thread.h"
#include "pressure/slow.h"
#include "pressure/unsent.h"

/* A response that has waited less for a page in a program's memory may be sent soon. */
#define PROGRAM_MS 1000u
#define SHED_AGAIN_MS MAX(PROGRAM_MS, PRESSURE_RATE_MS)

/* --- who waits ------------------------------------------------------------------ */

static void enlist(struct slow *slow)
{
	struct thread *thread = slow->thread;
	const struct NC_send *message = &slow->send->message;

	slow->id = message->ranges[0].id;
	slow->since_ms = loop_now_ms(thread->loop);
	held_add(thread, slow->id, pressure_body_bytes(message), &slow->output->transaction);
	list_append(&thread->pressure->slow, &slow->node);
}

static void unlist(struct slow *slow)
{
	held_remove(slow->thread, slow->id);
	slow->id = 0;
	list_remove(&slow->node);
}

/* --- for the other sources ----------------------------------------------------------- */

/* A response in pieces holds at most one piece, except a file's. */
static bool may_leave(const struct slow *slow)
{
	const struct transaction *transaction = &slow->output->transaction;
	const struct NC_send *message = &slow->send->message;

	return message->range_count && message->skip >= message->header_length && !slow->id &&
	       !slow->leaving &&
	       (!transaction_has_next(transaction) || file_response_unit(transaction));
}

/*
 * Resets slow clients of sockets with lent units.  Those that read release their units within about
 * PRESSURE_RATE_MS, whose clients are not reset even if they hold all of the cache.
 */
static void shed_lent(struct thread *thread)
{
	const struct server *server = thread->server;
	unsigned left = PRESSURE_SHED_MAX;

	list_each (struct unsent, unsent, &thread->pressure->lent, lent_node) {
		if (!left) {
			loop_notify(thread->loop, &thread->pressure->shed);
			return;
		}
		unsent_count(unsent);
		if (unsent->lent && held_cache_is_over(server) && unsent_is_slow(unsent)) {
			unsent->reset(unsent, "its socket refers to a unit of an earlier response");
			left--;
		}
	}
}

static void slow_shed_again(struct timer *timer)
{
	struct pressure_thread *pressure = container_of(timer, struct pressure_thread, slow_timer);

	loop_notify(pressure->thread->loop, &pressure->shed);
}

/* Whether the unit must be released now: others wait for the memory, or may soon. */
static bool must_leave(const struct slow *slow)
{
	const struct thread *thread = slow->thread;

	return held_cache_is_over(thread->server) || held_program_is_full(thread, slow->id) ||
	       loop_now_ms(thread->loop) - slow->since_ms >= PROGRAM_MS;
}

static void slow_shed(struct loop_task *task)
{
	struct pressure_thread *pressure = container_of(task, struct pressure_thread, shed.task);
	struct thread *thread = pressure->thread;
	unsigned left = PRESSURE_SHED_MAX;
	bool again = false;

	loop_notice_begin(&pressure->shed);
	list_each (struct slow, slow, &pressure->slow, node) {
		if (!held_may_be_over(thread))
			break;
		if (!held_is_over(thread, slow->id))
			continue;
		if (!must_leave(slow)) {
			again = true;
			continue;
		}
		/* The rest has the next turn of the loop. */
		if (!left--) {
			loop_notify(thread->loop, &pressure->shed);
			return;
		}
		unlist(slow);
		leave_unit(slow);
	}
	if (held_cache_is_over(thread->server))
		shed_lent(thread);
	/* By then others have waited long enough, or have turned out slow. */
	if (again || (!list_is_empty(&pressure->lent) && held_cache_is_over(thread->server)))
		loop_timer_start(thread->loop, &pressure->slow_timer, SHED_AGAIN_MS,
				 slow_shed_again);
}

/* The shed() of struct thread. */
static void shed_soon(struct thread *thread)
{
	loop_notify(thread->loop, &thread->pressure->shed);
}

void slow_open(struct thread *thread)
{
	thread->pressure->shed.task.run = slow_shed;
	thread->shed = shed_soon;
}

void slow_waits(struct slow *slow, struct output *output)
{
	struct thread *thread = slow->thread;

	slow->output = output;
	if (!may_leave(slow))
		return;
	enlist(slow);
	if (held_is_over(thread, slow->id))
		loop_notify(thread->loop, &thread->pressure->shed);
}

void slow_keeps_up(struct slow *slow)
{
	if (slow->id)
		unlist(slow);
	leave_end(slow);
}
