/* SPDX-License-Identifier: MIT */
/*
 * unsent.c - limits how much of a response the socket holds while the client does not
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
#include <linux/sockios.h>
#include <nabc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/container.h"
#include "base/list.h"
#include "base/timer.h"
#include "config/configuration.h"
#include "core/server.h"
#include "core/site.h"
#include "core/socket-options.h"
#include "core/thread-counters.h"
#include "event/loop.h"
#include "pressure/pressure-internal.h"
#include "pressure/pressure-thread.h"
#include "pressure/unsent.h"

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

static void set_bound(struct unsent *unsent, int bytes)
{
	unsent->bound = bytes;
	/* A Unix socket does not have the option. */
	(void)setsockopt(unsent->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof(bytes));
}

int unsent_in_socket(int fd)
{
	int bytes = 0;

	(void)ioctl(fd, SIOCOUTQ, &bytes);
	return bytes;
}

/* --- the sum ---------------------------------------------------------------------- */

/* Returns how many bytes the socket has taken so far. */
static uint64_t sent_so_far(const struct unsent *unsent)
{
	return unsent->sent_earlier + (unsent->sending ? unsent->send->message.skip : 0);
}

static void rate_from_here(struct unsent *unsent)
{
	unsent->rated = unsent->acknowledged;
	unsent->rated_ms = loop_now_ms(unsent->thread->loop);
}

static void unsent_look_again(struct timer *timer);

static void add(struct unsent *unsent, unsigned bytes)
{
	struct thread *thread = unsent->thread;

	if (bytes == unsent->bytes)
		return;
	if (!unsent->bytes) {
		if (!timer_is_running(&thread->pressure->unsent_timer))
			loop_timer_start(thread->loop, &thread->pressure->unsent_timer,
					 PRESSURE_RATE_MS, unsent_look_again);
		list_append(&thread->pressure->unsent, &unsent->node);
	} else if (!bytes) {
		list_remove(&unsent->node);
	}
	thread->pressure->unsent_bytes += bytes - (uint64_t)unsent->bytes;
	atomic_fetch_add_explicit(&thread->server->unsent, bytes - (uint64_t)unsent->bytes,
				  memory_order_relaxed);
	unsent->bytes = bytes;
}

static void measure(struct unsent *unsent)
{
	uint64_t ms = loop_now_ms(unsent->thread->loop) - unsent->rated_ms;

	if (ms < PRESSURE_RATE_MS)
		return;
	unsent->rate = (unsent->acknowledged - unsent->rated) * 1000 / ms;
	unsent->rate_known = true;
	rate_from_here(unsent);
}

void unsent_count(struct unsent *unsent)
{
	unsigned bytes = (unsigned)unsent_in_socket(unsent->fd);

	unsent->looked_at = sent_so_far(unsent);
	/* The ends of chunks and of the stream do not count as bytes of messages. */
	unsent->acknowledged = unsent->looked_at - MIN(bytes, unsent->looked_at);
	unsent->reads |= unsent->acknowledged >= READ_FROM;
	add(unsent, bytes);
	if (bytes)
		measure(unsent);
	lent_acknowledged(unsent);
}

static uint64_t sum(const struct server *server)
{
	return atomic_load_explicit(&server->unsent, memory_order_relaxed);
}

bool unsent_is_slow(const struct unsent *unsent)
{
	return unsent->rate_known && unsent->rate < unsent->bytes;
}

static gint unsent_slower_first(gconstpointer left, gconstpointer right)
{
	const struct unsent *const *a = left, *const *b = right;
	uint64_t one = (*a)->rate, other = (*b)->rate;

	return one < other ? -1 : one > other;
}

static void shed(struct thread *thread)
{
	struct server *server = thread->server;
	uint64_t enough = server->unsent_most - server->unsent_most / 16,
		 share = enough / server->threads;
	g_autoptr(GPtrArray) all = g_ptr_array_new();
	unsigned left = PRESSURE_SHED_MAX;

	if (sum(server) <= server->unsent_most || thread->pressure->unsent_bytes <= share)
		return;
	list_each (struct unsent, unsent, &thread->pressure->unsent, node)
		g_ptr_array_add(all, unsent);
	g_ptr_array_sort(all, unsent_slower_first);
	for (unsigned i = 0; i < all->len; i++) {
		struct unsent *unsent = all->pdata[i];

		if (sum(server) <= enough || thread->pressure->unsent_bytes <= share)
			return;
		if (!unsent_is_slow(unsent))
			continue;
		/* The rest has the next turn of the loop. */
		if (!left--) {
			loop_notify(thread->loop, &thread->pressure->unsent_shed);
			return;
		}
		unsent->reset(unsent, "socket-memory is reached");
	}
}

/* Counts what the sockets hold now, which the kernel does not report, and acts on it. */
static void look_at_all(struct thread *thread)
{
	list_each (struct unsent, unsent, &thread->pressure->unsent, node)
		unsent_count(unsent);
	shed(thread);
}

static void unsent_shed_now(struct loop_task *task)
{
	struct pressure_thread *pressure =
		container_of(task, struct pressure_thread, unsent_shed.task);

	loop_notice_begin(&pressure->unsent_shed);
	look_at_all(pressure->thread);
}

/* Connections that were kept may be slow by now. */
static void unsent_look_again(struct timer *timer)
{
	struct pressure_thread *pressure =
		container_of(timer, struct pressure_thread, unsent_timer);

	look_at_all(pressure->thread);
	if (!list_is_empty(&pressure->unsent) && !timer_is_running(timer))
		loop_timer_start(pressure->thread->loop, timer, PRESSURE_RATE_MS,
				 unsent_look_again);
}

static void look(struct unsent *unsent)
{
	struct server *server = unsent->thread->server;

	unsent_count(unsent);
	if (sum(server) <= server->unsent_most)
		return;
	/* Later, since this may run within a send; other threads may hold the bytes. */
	for (unsigned i = 0; i < server->threads; i++) {
		struct thread *thread = server->per_thread[i];

		loop_notify(thread->loop, &thread->pressure->unsent_shed);
	}
}

/* Others need the memory more: a client that reads loses nothing. */
static bool is_tight(const struct server *server)
{
	return sum(server) > server->unsent_most / 2;
}

/* The socket is full: raises its limit, if the client reads. */
static void grow(struct unsent *unsent)
{
	if (is_tight(unsent->thread->server) || unsent->near) {
		if (unsent->bound != NEAR)
			set_bound(unsent, NEAR);
	} else if (unsent->bound < FAR) {
		set_bound(unsent, unsent->bound * 2);
	}
}

/* Whether sockets may refer to pages of the cache. */
static bool may_lend(const struct unsent *unsent)
{
	const struct server *server = unsent->thread->server;

	return unsent->reads && held_bytes(server) <= server->held_most / 2;
}

/* --- for the other sources --------------------------------------------------------- */

void unsent_open(struct thread *thread)
{
	thread->pressure->unsent_shed.task.run = unsent_shed_now;
}

void unsent_init(struct unsent *unsent, const struct sockaddr *peer, const struct sockaddr *own)
{
	const struct sockaddr_in *in = (const void *)peer, *own_in = (const void *)own;
	const struct sockaddr_in6 *in6 = (const void *)peer, *own_in6 = (const void *)own;

	unsent->bound = SOCKET_UNSENT_FIRST;
	unsent->near = peer->sa_family == AF_INET ? in->sin_addr.s_addr == own_in->sin_addr.s_addr
		       : peer->sa_family == AF_INET6
			       ? IN6_ARE_ADDR_EQUAL(&in6->sin6_addr, &own_in6->sin6_addr)
			       : true;
}

void unsent_starts(struct unsent *unsent)
{
	const struct server *server = unsent->thread->server;
	const struct config *config = unsent->thread->config_ref->config;

	unsent->sending = true;
	if (unsent->bound > NEAR && is_tight(server))
		set_bound(unsent, NEAR);
	if (!unsent->bytes) {
		unsent->acknowledged = unsent->sent_earlier;
		unsent->rate = 0;
		unsent->rate_known = false;
		rate_from_here(unsent);
	}
	/* Pages of a file are not in the cache.  A configured method is used at once. */
	if (unsent->copies || (config->sockets.send_method == SEND_AUTO && !may_lend(unsent)))
		unsent->send->message.flags |= NC_SEND_COPY;
}

void unsent_waits(struct unsent *unsent)
{
	bool read = unsent->reads;

	look(unsent);
	if (unsent->acknowledged < READ_FROM)
		return;
	grow(unsent);
	/* The client reads: the rest of the message is lent instead of copied. */
	if (!read && !unsent->copies && may_lend(unsent))
		unsent->send->message.flags &= ~NC_SEND_COPY;
}

/* Each second, connections with counted bytes are looked at anyway. */
static uint64_t look_from(const struct unsent *unsent)
{
	const struct server *server = unsent->thread->server;
	uint64_t open = atomic_load_explicit(&unsent->thread->counters->open, memory_order_relaxed),
		 share = server->unsent_most / LOOK_SHARE / server->threads / MAX(open, 1);

	if (!unsent->reads || is_tight(server))
		return unsent->bytes ? 0 : LOOK_FROM;
	return CLAMP(share, LOOK_FROM, LOOK_MOST);
}

void unsent_stops(struct unsent *unsent)
{
	unsent->sending = false;
	unsent->sent_earlier += unsent->send->message.skip;
	if (unsent->sent_earlier - unsent->looked_at >= look_from(unsent))
		look(unsent);
}

void unsent_shrink(struct unsent *unsent)
{
	if (unsent->bound > SOCKET_UNSENT_FIRST)
		set_bound(unsent, SOCKET_UNSENT_FIRST);
}

void unsent_end(struct unsent *unsent)
{
	add(unsent, 0);
	if (unsent->lent)
		lent_end(unsent);
}
