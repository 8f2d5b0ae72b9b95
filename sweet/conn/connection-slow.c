/* SPDX-License-Identifier: MIT */
/*
 * connection-slow.c - keeps slow clients from holding the cache: when the units that waiting
 * responses hold exceed a limit, the responses that have waited longest are moved off their units
 * (connection-leave.c).
 *
 * connection-held.c counts these units, and the units that sockets still refer to after their
 * responses have left them.  If the limit is still exceeded when no response can leave its unit,
 * such connections are reset.
 */
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>

#include <glib.h>

#include "base/container.h"
#include "base/list.h"
#include "conn/conn-thread.h"
#include "conn/connection-base.h"
#include "conn/connection-slow-internal.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "exchange/output.h"
#include "handler/file-response.h"

/* A response that has waited less for a page in a program's memory may be sent soon. */
#define PROGRAM_MS 1000u
#define SHED_AGAIN_MS MAX(PROGRAM_MS, CONNECTION_RATE_MS)

static struct connection *connection_of(struct loop_send *op)
{
	return container_of(op, struct connection, send);
}

/* --- who waits ------------------------------------------------------------------ */

static void enlist(struct connection *connection)
{
	struct thread *thread = connection->thread;
	const struct NC_send *message = &connection->send.message;

	connection->slow_id = message->ranges[0].id;
	connection->slow_ms = loop_now_ms(thread->loop);
	connection_held_add(thread, connection->slow_id, connection_body_bytes(message),
			    &connection->output->transaction);
	list_append(&thread->conn->slow, &connection->slow_node);
}

static void unlist(struct connection *connection)
{
	connection_held_remove(connection->thread, connection->slow_id);
	connection->slow_id = 0;
	list_remove(&connection->slow_node);
}

/* --- for the other sources ----------------------------------------------------------- */

/* A response in pieces holds at most one piece, except a file's. */
static bool may_leave(const struct connection *connection)
{
	const struct transaction *transaction = &connection->output->transaction;
	const struct NC_send *message = &connection->send.message;

	return message->range_count && message->skip >= message->header_length &&
	       !connection->slow_id && !connection->leaving &&
	       (!transaction_has_next(transaction) || file_response_unit(transaction));
}

/*
 * Resets slow connections with lent units.  Those that read release their units within about
 * CONNECTION_RATE_MS, whose clients are not reset even if they hold all of the cache.
 */
static void shed_lent(struct thread *thread)
{
	const struct server *server = thread->server;
	unsigned left = CONNECTION_SHED_MAX;

	list_each (struct connection, connection, &thread->conn->lent, lent_node) {
		if (!left) {
			loop_notify(thread->loop, &thread->conn->shed);
			return;
		}
		connection_unsent_count(connection);
		if (connection->lent && connection_cache_is_over(server) &&
		    connection_unsent_is_slow(connection)) {
			connection_reset_slow(connection,
					      "its socket refers to a unit of an earlier response");
			left--;
		}
	}
}

static void slow_shed_again(struct timer *timer)
{
	struct conn_thread *conn = container_of(timer, struct conn_thread, slow_timer);

	loop_notify(conn->thread->loop, &conn->shed);
}

/* Whether the unit must be released now: others wait for the memory, or may soon. */
static bool must_leave(const struct connection *connection)
{
	const struct thread *thread = connection->thread;

	return connection_cache_is_over(thread->server) || connection_program_is_full(connection) ||
	       loop_now_ms(thread->loop) - connection->slow_ms >= PROGRAM_MS;
}

static void slow_shed(struct loop_task *task)
{
	struct conn_thread *conn = container_of(task, struct conn_thread, shed.task);
	struct thread *thread = conn->thread;
	unsigned left = CONNECTION_SHED_MAX;
	bool again = false;

	loop_notice_begin(&conn->shed);
	list_each (struct connection, connection, &conn->slow, slow_node) {
		if (!connection_held_may_be_over(thread))
			break;
		if (!connection_held_is_over(connection))
			continue;
		if (!must_leave(connection)) {
			again = true;
			continue;
		}
		/* The rest has the next turn of the loop. */
		if (!left--) {
			loop_notify(thread->loop, &conn->shed);
			return;
		}
		unlist(connection);
		connection_leave_unit(connection);
	}
	if (connection_cache_is_over(thread->server))
		shed_lent(thread);
	/* By then others have waited long enough, or have turned out slow. */
	if (again || (!list_is_empty(&conn->lent) && connection_cache_is_over(thread->server)))
		loop_timer_start(thread->loop, &conn->slow_timer, SHED_AGAIN_MS, slow_shed_again);
}

/* The shed() of struct thread. */
static void shed_soon(struct thread *thread)
{
	loop_notify(thread->loop, &thread->conn->shed);
}

void connection_slow_open(struct thread *thread)
{
	thread->conn->shed.task.run = slow_shed;
	thread->shed = shed_soon;
}

void connection_waits(struct loop_send *op)
{
	struct connection *connection = connection_of(op);
	struct thread *thread = connection->thread;

	connection_unsent_waits(connection);
	if (!may_leave(connection))
		return;
	enlist(connection);
	if (connection_held_is_over(connection))
		loop_notify(thread->loop, &thread->conn->shed);
}

void connection_keeps_up(struct connection *connection)
{
	if (connection->slow_id)
		unlist(connection);
	connection_leaving_end(connection);
}
