/* SPDX-License-Identifier: MIT */
/*
 * connection-held.c - counts the units of a thread that responses hold while they wait for their
 * sockets, or that sockets refer to: bytes in the cache, and bytes in the memory of each program;
 * and whether they exceed a limit.
 *
 * A thread counts a unit once, even if several of its clients wait with it.  When a response is
 * moved off its unit, the socket may still refer to pages of that unit until the client has
 * acknowledged them: the connection holds the unit until then.
 */
#include <glib.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <nabc.h>

#include "base/list.h"
#include "conn/conn-thread.h"
#include "conn/connection-base.h"
#include "conn/connection-slow-internal.h"
#include "core/page-memory.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "event/piece.h"

/* A unit that a response was moved off; the socket may refer to it. */
struct lent {
	size_t id;
	struct NC_hold hold;
	uint64_t until; /* held until that many bytes are acknowledged */
};

/* A unit that responses of this thread hold while they wait. */
struct held {
	size_t id; /* must be first: the key */
	uint64_t bytes;
	unsigned waiters;
	struct program *program; /* NULL: the unit is in the cache */
};

/* A program whose memory has such units. */
struct program {
	const struct page_memory *of;
	unsigned units;
	uint64_t bytes, most;
};

static struct program *find_program(struct thread *thread, const struct transaction *transaction)
{
	struct program *program;

	if (!transaction->piece.pages)
		return NULL;
	if (!thread->conn->programs)
		thread->conn->programs = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	program = g_hash_table_lookup(thread->conn->programs, transaction->piece.pages);
	if (!program) {
		program = g_new0(struct program, 1);
		program->of = transaction->piece.pages;
		/* Half of its memory, divided among the threads. */
		program->most = program->of->most / 2 / thread->server->threads;
		g_hash_table_insert(thread->conn->programs, (void *)(uintptr_t)program->of,
				    program);
	}
	return program;
}

void connection_held_add(struct thread *thread, size_t id, uint64_t bytes,
			 const struct transaction *transaction)
{
	struct held *held;

	if (!thread->conn->held)
		thread->conn->held =
			g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
	held = g_hash_table_lookup(thread->conn->held, &id);
	if (!held) {
		held = g_new0(struct held, 1);
		held->id = id;
		held->bytes = bytes;
		held->program = transaction ? find_program(thread, transaction) : NULL;
		if (held->program) {
			held->program->units++;
			held->program->bytes += bytes;
		}
		g_hash_table_add(thread->conn->held, held);
		atomic_fetch_add_explicit(&thread->server->held, bytes, memory_order_relaxed);
	}
	held->waiters++;
}

void connection_held_remove(struct thread *thread, size_t id)
{
	struct held *held = g_hash_table_lookup(thread->conn->held, &id);
	struct program *program = held->program;

	if (--held->waiters)
		return;
	atomic_fetch_sub_explicit(&thread->server->held, held->bytes, memory_order_relaxed);
	if (program) {
		program->bytes -= held->bytes;
		if (--program->units == 0)
			g_hash_table_remove(thread->conn->programs, program->of);
	}
	g_hash_table_remove(thread->conn->held, held);
}

uint64_t connection_held_bytes(const struct server *server)
{
	return atomic_load_explicit(&server->held, memory_order_relaxed);
}

bool connection_cache_is_over(const struct server *server)
{
	return connection_held_bytes(server) > server->held_most;
}

static bool program_is_over(const struct program *program)
{
	return program && (program->bytes > program->most || page_memory_has_waiters(program->of));
}

static bool program_is_full(const struct program *program)
{
	return program && program->units > 1 && program->bytes > program->most + program->most / 2;
}

static const struct program *program_of(const struct connection *connection)
{
	const struct held *held =
		g_hash_table_lookup(connection->thread->conn->held, &connection->slow_id);

	return held->program;
}

bool connection_program_is_full(const struct connection *connection)
{
	return program_is_full(program_of(connection));
}

bool connection_held_may_be_over(const struct thread *thread)
{
	return connection_cache_is_over(thread->server) ||
	       (thread->conn->programs && g_hash_table_size(thread->conn->programs));
}

bool connection_held_is_over(const struct connection *connection)
{
	return connection_cache_is_over(connection->thread->server) ||
	       program_is_over(program_of(connection));
}

void connection_lend(struct connection *connection)
{
	struct thread *thread = connection->thread;
	const struct NC_send *message = &connection->send.message;
	size_t id = message->ranges[0].id;
	struct NC_stat stat;
	struct lent *lent;

	/* Pages of recycled units are never lent, and a program waits for their memory. */
	if (message->flags & NC_SEND_COPY || connection->lent || !connection->unsent ||
	    NC_stat(NULL, id, &stat, sizeof(stat)) < 0 || stat.kind == NC_KIND_RECYCLED)
		return;
	lent = g_new0(struct lent, 1);
	if (NC_hold(NULL, id, &lent->hold) < 0) {
		g_free(lent);
		return;
	}
	connection_held_add(thread, id, stat.size, NULL);
	lent->id = id;
	lent->until = connection->sent_earlier;
	list_append(&thread->conn->lent, &connection->lent_node);
	connection->lent = lent;
	if (connection_cache_is_over(thread->server))
		loop_notify(thread->loop, &thread->conn->shed);
}

void connection_lent_end(struct connection *connection)
{
	struct thread *thread = connection->thread;
	struct lent *lent = connection->lent;

	list_remove(&connection->lent_node);
	connection_held_remove(thread, lent->id);
	(void)NC_release(&lent->hold);
	g_free(lent);
	connection->lent = NULL;
}

void connection_lent_acknowledged(struct connection *connection)
{
	if (connection->lent && connection->acknowledged >= connection->lent->until)
		connection_lent_end(connection);
}

void connection_held_close(struct thread *thread)
{
	g_clear_pointer(&thread->conn->held, g_hash_table_unref);
	g_clear_pointer(&thread->conn->programs, g_hash_table_unref);
}
