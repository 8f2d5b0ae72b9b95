/* SPDX-License-Identifier: MIT */
/*
 * connection-unsent.c - limits how much of a response the socket holds while the client does not
 * read it.
 *
 * A connection starts with at most SOCKET_UNSENT_FIRST unsent bytes (TCP_NOTSENT_LOWAT, inherited
 * from the listening socket), and with copies, so that a client that never reads keeps no page of
 * the cache in its socket.  A client reads if it has acknowledged more than a kernel receives
 * without a reader: from then on pages are lent.  If its socket is full then, the limit becomes NEAR
 * for a peer on this machine, and while sockets hold many bytes; else it doubles each time up to FAR
 * (for both see libnabc/send/transmit.c).
 *
 * The bytes in sockets are counted for all threads together.  From half of socket-memory on, a
 * socket that needs more gets NEAR at most.  Above socket-memory, each thread that exceeds its
 * share resets connections that acknowledge less in a second than their sockets hold, the slowest
 * first.  Each second a thread checks its sockets that hold bytes, since the kernel does not report
 * acknowledgements; a client that reads is otherwise checked only when it has sent its share of a
 * quarter of socket-memory, or its socket is full.  A client that acknowledges more, or whose rate
 * is not known yet, is not the cause, however much its socket holds.
 */
#include <glib.h>
#include <nabc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/container.h"
#include "base/list.h"
#include "base/timer.h"
#include "config/configuration.h"
#include "conn/conn-thread.h"
#include "conn/connection-base.h"
#include "conn/connection-slow-internal.h"
#include "core/server.h"
#include "core/site.h"
#include "core/socket-options.h"
#include "core/thread-counters.h"
#include "event/loop.h"

#define NEAR (16 << 10)
#define FAR (1 << 20)
#define READ_FROM (128u << 10) /* bytes; a kernel receives up to about 64 KB without a reader */
/*
 * Bytes that a connection sends from one look to the next: no more than a part of its share of
 * socket-memory, since those are not counted.
 */
#define LOOK_FROM (32u << 10)
#define LOOK_MOST (16u << 20)
#define LOOK_SHARE 4u

/* --- the bound ------------------------------------------------------------------- */

static void set_bound(struct connection *connection, int bytes)
{
	connection->unsent_bound = bytes;
	/* A Unix socket does not have the option. */
	(void)setsockopt(connection->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof(bytes));
}

/* --- the sum ---------------------------------------------------------------------- */

/* Returns how many bytes the socket has taken so far. */
static uint64_t sent_so_far(const struct connection *connection)
{
	return connection->sent_earlier + (connection->sending ? connection->send.message.skip : 0);
}

static void rate_from_here(struct connection *connection)
{
	connection->rated = connection->acknowledged;
	connection->rated_ms = loop_now_ms(connection->thread->loop);
}

static void unsent_look_again(struct timer *timer);

static void add(struct connection *connection, unsigned bytes)
{
	struct thread *thread = connection->thread;

	if (bytes == connection->unsent)
		return;
	if (!connection->unsent) {
		if (!timer_is_running(&thread->conn->unsent_timer))
			loop_timer_start(thread->loop, &thread->conn->unsent_timer,
					 CONNECTION_RATE_MS, unsent_look_again);
		list_append(&thread->conn->unsent, &connection->unsent_node);
	} else if (!bytes) {
		list_remove(&connection->unsent_node);
	}
	thread->conn->unsent_bytes += bytes - (uint64_t)connection->unsent;
	atomic_fetch_add_explicit(&thread->server->unsent, bytes - (uint64_t)connection->unsent,
				  memory_order_relaxed);
	connection->unsent = bytes;
}

static void measure(struct connection *connection)
{
	uint64_t ms = loop_now_ms(connection->thread->loop) - connection->rated_ms;

	if (ms < CONNECTION_RATE_MS)
		return;
	connection->rate = (connection->acknowledged - connection->rated) * 1000 / ms;
	connection->rate_known = true;
	rate_from_here(connection);
}

void connection_unsent_count(struct connection *connection)
{
	unsigned bytes = (unsigned)connection_unsent(connection);

	connection->looked_at = sent_so_far(connection);
	/* The ends of chunks and of the stream do not count as bytes of messages. */
	connection->acknowledged = connection->looked_at - MIN(bytes, connection->looked_at);
	connection->reads |= connection->acknowledged >= READ_FROM;
	add(connection, bytes);
	if (bytes)
		measure(connection);
	connection_lent_acknowledged(connection);
}

static uint64_t sum(const struct server *server)
{
	return atomic_load_explicit(&server->unsent, memory_order_relaxed);
}

bool connection_unsent_is_slow(const struct connection *connection)
{
	return connection->rate_known && connection->rate < connection->unsent;
}

static gint unsent_slower_first(gconstpointer left, gconstpointer right)
{
	const struct connection *const *a = left, *const *b = right;
	uint64_t one = (*a)->rate, other = (*b)->rate;

	return one < other ? -1 : one > other;
}

static void shed(struct thread *thread)
{
	struct server *server = thread->server;
	uint64_t enough = server->unsent_most - server->unsent_most / 16,
		 share = enough / server->threads;
	g_autoptr(GPtrArray) all = g_ptr_array_new();
	unsigned left = CONNECTION_SHED_MAX;

	if (sum(server) <= server->unsent_most || thread->conn->unsent_bytes <= share)
		return;
	list_each (struct connection, connection, &thread->conn->unsent, unsent_node)
		g_ptr_array_add(all, connection);
	g_ptr_array_sort(all, unsent_slower_first);
	for (unsigned i = 0; i < all->len; i++) {
		struct connection *connection = all->pdata[i];

		if (sum(server) <= enough || thread->conn->unsent_bytes <= share)
			return;
		if (!connection_unsent_is_slow(connection))
			continue;
		/* The rest has the next turn of the loop. */
		if (!left--) {
			loop_notify(thread->loop, &thread->conn->unsent_shed);
			return;
		}
		connection_reset_slow(connection, "socket-memory is reached");
	}
}

/* Counts what the sockets hold now, which the kernel does not report, and acts on it. */
static void look_at_all(struct thread *thread)
{
	list_each (struct connection, connection, &thread->conn->unsent, unsent_node)
		connection_unsent_count(connection);
	shed(thread);
}

static void unsent_shed_now(struct loop_task *task)
{
	struct conn_thread *conn = container_of(task, struct conn_thread, unsent_shed.task);

	loop_notice_begin(&conn->unsent_shed);
	look_at_all(conn->thread);
}

/* Connections that were kept may be slow by now. */
static void unsent_look_again(struct timer *timer)
{
	struct conn_thread *conn = container_of(timer, struct conn_thread, unsent_timer);

	look_at_all(conn->thread);
	if (!list_is_empty(&conn->unsent) && !timer_is_running(timer))
		loop_timer_start(conn->thread->loop, timer, CONNECTION_RATE_MS, unsent_look_again);
}

static void look(struct connection *connection)
{
	struct server *server = connection->thread->server;

	connection_unsent_count(connection);
	if (sum(server) <= server->unsent_most)
		return;
	/* Later, since this may run within a send; other threads may hold the bytes. */
	for (unsigned i = 0; i < server->threads; i++) {
		struct thread *thread = server->per_thread[i];

		loop_notify(thread->loop, &thread->conn->unsent_shed);
	}
}

/* Others need the memory more: a client that reads loses nothing. */
static bool is_tight(const struct server *server)
{
	return sum(server) > server->unsent_most / 2;
}

/* The socket is full: raises its limit, if the client reads. */
static void grow(struct connection *connection)
{
	if (is_tight(connection->thread->server) || connection->near) {
		if (connection->unsent_bound != NEAR)
			set_bound(connection, NEAR);
	} else if (connection->unsent_bound < FAR) {
		set_bound(connection, connection->unsent_bound * 2);
	}
}

/* Whether sockets may refer to pages of the cache. */
static bool may_lend(const struct connection *connection)
{
	const struct server *server = connection->thread->server;

	return connection->reads && connection_held_bytes(server) <= server->held_most / 2;
}

/* --- for the other sources --------------------------------------------------------- */

void connection_unsent_open(struct thread *thread)
{
	thread->conn->unsent_shed.task.run = unsent_shed_now;
}

void connection_unsent_init(struct connection *connection, const struct sockaddr_storage *peer)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)peer;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)peer;

	connection->unsent_bound = SOCKET_UNSENT_FIRST;
	connection->near =
		peer->ss_family == AF_INET
			? in->sin_addr.s_addr == connection->own.in.sin_addr.s_addr
		: peer->ss_family == AF_INET6
			? IN6_ARE_ADDR_EQUAL(&in6->sin6_addr, &connection->own.in6.sin6_addr)
			: true;
}

void connection_unsent_starts(struct connection *connection)
{
	const struct server *server = connection->thread->server;
	const struct config *config = connection->thread->config_ref->config;

	if (connection->unsent_bound > NEAR && is_tight(server))
		set_bound(connection, NEAR);
	if (!connection->unsent) {
		connection->acknowledged = connection->sent_earlier;
		connection->rate = 0;
		connection->rate_known = false;
		rate_from_here(connection);
	}
	/* Pages of a file are not in the cache.  A configured method is used at once. */
	if (connection->copies ||
	    (config->sockets.send_method == SEND_AUTO && !may_lend(connection)))
		connection->send.message.flags |= NC_SEND_COPY;
}

void connection_unsent_waits(struct connection *connection)
{
	bool read = connection->reads;

	if (connection_is_stream(connection))
		return;
	look(connection);
	if (connection->acknowledged < READ_FROM)
		return;
	grow(connection);
	/* The client reads: the rest of the message is lent instead of copied. */
	if (!read && !connection->copies && may_lend(connection))
		connection->send.message.flags &= ~NC_SEND_COPY;
}

/* Each second, connections with counted bytes are looked at anyway. */
static uint64_t look_from(const struct connection *connection)
{
	const struct server *server = connection->thread->server;
	uint64_t open = atomic_load_explicit(&connection->thread->counters->open,
					     memory_order_relaxed),
		 share = server->unsent_most / LOOK_SHARE / server->threads / MAX(open, 1);

	if (!connection->reads || is_tight(server))
		return connection->unsent ? 0 : LOOK_FROM;
	return CLAMP(share, LOOK_FROM, LOOK_MOST);
}

void connection_unsent_stops(struct connection *connection)
{
	if (connection_is_stream(connection))
		return;
	connection->sent_earlier += connection->send.message.skip;
	if (connection->sent_earlier - connection->looked_at >= look_from(connection))
		look(connection);
}

void connection_unsent_shrink(struct connection *connection)
{
	if (connection->unsent_bound > SOCKET_UNSENT_FIRST)
		set_bound(connection, SOCKET_UNSENT_FIRST);
}

void connection_unsent_end(struct connection *connection)
{
	add(connection, 0);
}
