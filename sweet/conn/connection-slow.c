/* SPDX-License-Identifier: MIT */
/*
 * connection-slow.c - clients that do not keep up with their answers must not
 * hold the cache: beyond a bound of the units that answers hold while they wait
 * for their sockets, those that have waited longest are taken off their units
 * (connection-leave.c).
 *
 * A unit is counted once for a thread, whoever of its clients waits.  When an
 * answer is taken off its unit the socket may still refer to pages of that, which
 * are memory of the cache as long as the client has not acknowledged them: the
 * connection holds the unit until it has.  Beyond the bound, when nothing else is
 * left to be taken off its unit, such connections are reset.
 */
#include <stddef.h>

#include <glib.h>

#include "conn/connection-slow-internal.h"
#include "core/page-memory.h"
#include "handler/file-response.h"

/* Who has waited less for a page in a program's memory may be about to have it. */
#define PROGRAM_MS 1000u
#define SHED_AGAIN_MS MAX(PROGRAM_MS, CONNECTION_RATE_MS)

/* A unit that answers of this thread hold while they wait. */
struct held {
	size_t id; /* must be first: the key */
	uint64_t bytes;
	unsigned waiters;
	struct program *program; /* NULL: it lies in the cache */
};

/* A program in whose memory such units lie. */
struct program {
	const struct page_memory *of;
	unsigned units;
	uint64_t bytes, most;
};

static struct connection *connection_of(struct loop_send *op)
{
	return (struct connection *)((char *)op - offsetof(struct connection, send));
}

/* --- who waits ------------------------------------------------------------------ */

static struct program *find_program(struct server *server, const struct transaction *transaction)
{
	struct program *program;

	if (!transaction->pages)
		return NULL;
	if (!server->programs)
		server->programs = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	program = g_hash_table_lookup(server->programs, transaction->pages);
	if (!program) {
		program = g_new0(struct program, 1);
		program->of = transaction->pages;
		/* Half of its memory, which all threads share. */
		program->most = program->of->most / 2 / server->site->threads;
		g_hash_table_insert(server->programs, (void *)(uintptr_t)program->of, program);
	}
	return program;
}

/* transaction: that the unit is sent for; NULL: what was sent before. */
static void count(struct server *server, size_t id, uint64_t bytes,
		  const struct transaction *transaction)
{
	struct held *held;

	if (!server->held)
		server->held = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
	held = g_hash_table_lookup(server->held, &id);
	if (!held) {
		held = g_new0(struct held, 1);
		held->id = id;
		held->bytes = bytes;
		held->program = transaction ? find_program(server, transaction) : NULL;
		if (held->program) {
			held->program->units++;
			held->program->bytes += bytes;
		}
		g_hash_table_add(server->held, held);
		atomic_fetch_add_explicit(&server->site->held, bytes, memory_order_relaxed);
	}
	held->waiters++;
}

static void uncount(struct server *server, size_t id)
{
	struct held *held = g_hash_table_lookup(server->held, &id);
	struct program *program = held->program;

	if (--held->waiters)
		return;
	atomic_fetch_sub_explicit(&server->site->held, held->bytes, memory_order_relaxed);
	if (program) {
		program->bytes -= held->bytes;
		if (--program->units == 0)
			g_hash_table_remove(server->programs, program->of);
	}
	g_hash_table_remove(server->held, held);
}

static uint64_t held_bytes(const struct site *site)
{
	return atomic_load_explicit(&site->held, memory_order_relaxed);
}

static bool cache_is_over(const struct site *site)
{
	return held_bytes(site) > site->held_most;
}

static bool program_is_over(const struct program *program)
{
	return program && (program->bytes > program->most || page_memory_is_wanted(program->of));
}

/* Several clients have more than it can wait for; one alone may be a fast one. */
static bool program_is_full(const struct program *program)
{
	return program && program->units > 1 && program->bytes > program->most + program->most / 2;
}

static const struct program *program_of(const struct connection *connection)
{
	const struct held *held =
		g_hash_table_lookup(connection->server->held, &connection->slow_id);

	return held->program;
}

/* Whether any unit that is waited on may lie where too much is held. */
static bool may_be_over(const struct server *server)
{
	return cache_is_over(server->site) ||
	       (server->programs && g_hash_table_size(server->programs));
}

/* Whether the unit that the connection waits on lies where too much is held. */
static bool is_over(const struct connection *connection)
{
	return cache_is_over(connection->server->site) || program_is_over(program_of(connection));
}

static void enlist(struct connection *connection)
{
	struct server *server = connection->server;
	const struct NC_send *message = &connection->send.message;

	connection->slow_id = message->ranges[0].id;
	connection->slow_ms = loop_now_ms(server->loop);
	count(server, connection->slow_id, connection_body_bytes(message),
	      &connection->output->transaction);
	connection->slow_next = NULL;
	connection->slow_link = server->slow_last ? server->slow_last : &server->slow_first;
	*connection->slow_link = connection;
	server->slow_last = &connection->slow_next;
}

static void unlist(struct connection *connection)
{
	struct server *server = connection->server;

	uncount(server, connection->slow_id);
	connection->slow_id = 0;
	*connection->slow_link = connection->slow_next;
	if (connection->slow_next)
		connection->slow_next->slow_link = connection->slow_link;
	else
		server->slow_last = connection->slow_link;
}

/* --- units that sockets refer to -------------------------------------------------- */

void connection_reset_slow(struct connection *connection, const char *why)
{
	const struct output *output = connection->output;

	server_count(&connection->server->counters.slow_reset, 1);
	log_notice("%s: %s: too slow for its answer: resetting (%s; its socket holds %u bytes, "
		   "%llu left in a second)",
		   connection->addresses.remote,
		   output ? output->transaction.path : "after an answer", why, connection->unsent,
		   (unsigned long long)connection->rate);
	connection_reset(connection);
}

/* Holds the unit as long as the socket may refer to pages of it. */
void connection_lend(struct connection *connection)
{
	struct server *server = connection->server;
	const struct NC_send *message = &connection->send.message;
	size_t id = message->ranges[0].id;
	struct NC_stat stat;

	/* What is recycled is not lent, and a program waits for it. */
	if (message->flags & NC_SEND_COPY || connection->lent_id || !connection->unsent ||
	    NC_stat(id, &stat) < 0 || stat.kind == NC_KIND_RECYCLED || NC_hold(id) < 0)
		return;
	count(server, id, stat.size, NULL);
	connection->lent_id = id;
	connection->lent_until = connection->handed;
	connection->lent_link = (GList){.data = connection};
	g_queue_push_tail_link(&server->lent, &connection->lent_link);
	if (cache_is_over(server->site))
		loop_notify(server->loop, &server->shed);
}

void connection_lent_end(struct connection *connection)
{
	struct server *server = connection->server;

	g_queue_unlink(&server->lent, &connection->lent_link);
	uncount(server, connection->lent_id);
	(void)NC_release(connection->lent_id);
	connection->lent_id = 0;
}

/* --- for the other sources ----------------------------------------------------------- */

/* An answer that is asked for piece by piece holds no more than a piece, but a file's. */
static bool may_leave(const struct connection *connection)
{
	const struct transaction *transaction = &connection->output->transaction;
	const struct NC_send *message = &connection->send.message;

	return message->range_count && message->skip >= message->header_length &&
	       !connection->slow_id && !connection->leaving &&
	       (!transaction->next || file_response_unit(transaction));
}

/* Who is not slow is about to give back what was lent, and has half as much again for that. */
static void shed_lent(struct server *server)
{
	const struct site *site = server->site;
	GList *next;

	for (GList *link = server->lent.head; link; link = next) {
		struct connection *connection = link->data;

		next = link->next;
		connection_unsent_count(connection);
		if (connection->lent_id && cache_is_over(site) &&
		    (connection_unsent_is_slow(connection) ||
		     held_bytes(site) > site->held_most + site->held_most / 2))
			connection_reset_slow(connection, "it keeps what its socket refers to");
	}
}

static void shed_again(struct timer *timer)
{
	struct server *server =
		(struct server *)((char *)timer - offsetof(struct server, slow_timer));

	loop_notify(server->loop, &server->shed);
}

/* Whether its unit is needed now: others wait for the memory, or may soon. */
static bool must_leave(const struct connection *connection)
{
	const struct server *server = connection->server;

	return cache_is_over(server->site) || program_is_full(program_of(connection)) ||
	       loop_now_ms(server->loop) - connection->slow_ms >= PROGRAM_MS;
}

static void shed(struct loop_task *task)
{
	struct server *server =
		(struct server *)((char *)task - offsetof(struct server, shed.task));
	struct connection *connection, *next;
	bool again = false;

	loop_notice_begin(&server->shed);
	for (connection = server->slow_first; connection && may_be_over(server);
	     connection = next) {
		next = connection->slow_next;
		if (!is_over(connection))
			continue;
		if (!must_leave(connection)) {
			again = true;
			continue;
		}
		unlist(connection);
		connection_leave_unit(connection);
	}
	if (cache_is_over(server->site))
		shed_lent(server);
	/* Who has waited longer then, or has turned out to be slow, is next. */
	if (again || (server->lent.head && cache_is_over(server->site)))
		loop_timer_start(server->loop, &server->slow_timer, SHED_AGAIN_MS, shed_again);
}

void connection_slow_open(struct server *server)
{
	server->shed.task.run = shed;
}

void connection_slow_close(struct server *server)
{
	g_clear_pointer(&server->held, g_hash_table_unref);
	g_clear_pointer(&server->programs, g_hash_table_unref);
}

void connection_waits(struct loop_send *op)
{
	struct connection *connection = connection_of(op);
	struct server *server = connection->server;

	connection_unsent_waits(connection);
	if (!may_leave(connection))
		return;
	enlist(connection);
	if (is_over(connection))
		loop_notify(server->loop, &server->shed);
}

void connection_keeps_up(struct connection *connection)
{
	if (connection->slow_id)
		unlist(connection);
	connection_leaving_end(connection);
}
