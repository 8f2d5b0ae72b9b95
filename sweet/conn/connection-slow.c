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

static struct program *find_program(struct thread *thread, const struct transaction *transaction)
{
	struct program *program;

	if (!transaction->pages)
		return NULL;
	if (!thread->programs)
		thread->programs = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	program = g_hash_table_lookup(thread->programs, transaction->pages);
	if (!program) {
		program = g_new0(struct program, 1);
		program->of = transaction->pages;
		/* Half of its memory, which all threads share. */
		program->most = program->of->most / 2 / thread->server->threads;
		g_hash_table_insert(thread->programs, (void *)(uintptr_t)program->of, program);
	}
	return program;
}

/* transaction: that the unit is sent for; NULL: what was sent before. */
static void count(struct thread *thread, size_t id, uint64_t bytes,
		  const struct transaction *transaction)
{
	struct held *held;

	if (!thread->held)
		thread->held = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
	held = g_hash_table_lookup(thread->held, &id);
	if (!held) {
		held = g_new0(struct held, 1);
		held->id = id;
		held->bytes = bytes;
		held->program = transaction ? find_program(thread, transaction) : NULL;
		if (held->program) {
			held->program->units++;
			held->program->bytes += bytes;
		}
		g_hash_table_add(thread->held, held);
		atomic_fetch_add_explicit(&thread->server->held, bytes, memory_order_relaxed);
	}
	held->waiters++;
}

static void uncount(struct thread *thread, size_t id)
{
	struct held *held = g_hash_table_lookup(thread->held, &id);
	struct program *program = held->program;

	if (--held->waiters)
		return;
	atomic_fetch_sub_explicit(&thread->server->held, held->bytes, memory_order_relaxed);
	if (program) {
		program->bytes -= held->bytes;
		if (--program->units == 0)
			g_hash_table_remove(thread->programs, program->of);
	}
	g_hash_table_remove(thread->held, held);
}

static uint64_t held_bytes(const struct server *server)
{
	return atomic_load_explicit(&server->held, memory_order_relaxed);
}

static bool cache_is_over(const struct server *server)
{
	return held_bytes(server) > server->held_most;
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
		g_hash_table_lookup(connection->thread->held, &connection->slow_id);

	return held->program;
}

/* Whether any unit that is waited on may lie where too much is held. */
static bool may_be_over(const struct thread *thread)
{
	return cache_is_over(thread->server) ||
	       (thread->programs && g_hash_table_size(thread->programs));
}

/* Whether the unit that the connection waits on lies where too much is held. */
static bool is_over(const struct connection *connection)
{
	return cache_is_over(connection->thread->server) || program_is_over(program_of(connection));
}

static void enlist(struct connection *connection)
{
	struct thread *thread = connection->thread;
	const struct NC_send *message = &connection->send.message;

	connection->slow_id = message->ranges[0].id;
	connection->slow_ms = loop_now_ms(thread->loop);
	count(thread, connection->slow_id, connection_body_bytes(message),
	      &connection->output->transaction);
	connection->slow_next = NULL;
	connection->slow_link = thread->slow_last ? thread->slow_last : &thread->slow_first;
	*connection->slow_link = connection;
	thread->slow_last = &connection->slow_next;
}

static void unlist(struct connection *connection)
{
	struct thread *thread = connection->thread;

	uncount(thread, connection->slow_id);
	connection->slow_id = 0;
	*connection->slow_link = connection->slow_next;
	if (connection->slow_next)
		connection->slow_next->slow_link = connection->slow_link;
	else
		thread->slow_last = connection->slow_link;
}

/* --- units that sockets refer to -------------------------------------------------- */

void connection_reset_slow(struct connection *connection, const char *why)
{
	const struct output *output = connection->output;

	counter_add(&connection->thread->counters.slow_reset, 1);
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
	struct thread *thread = connection->thread;
	const struct NC_send *message = &connection->send.message;
	size_t id = message->ranges[0].id;
	struct NC_stat stat;

	/* What is recycled is not lent, and a program waits for it. */
	if (message->flags & NC_SEND_COPY || connection->lent_id || !connection->unsent ||
	    NC_stat(NULL, id, &stat, sizeof(stat)) < 0 || stat.kind == NC_KIND_RECYCLED ||
	    NC_hold(NULL, id) < 0)
		return;
	count(thread, id, stat.size, NULL);
	connection->lent_id = id;
	connection->lent_until = connection->handed;
	connection->lent_link = (GList){.data = connection};
	g_queue_push_tail_link(&thread->lent, &connection->lent_link);
	if (cache_is_over(thread->server))
		loop_notify(thread->loop, &thread->shed);
}

void connection_lent_end(struct connection *connection)
{
	struct thread *thread = connection->thread;

	g_queue_unlink(&thread->lent, &connection->lent_link);
	uncount(thread, connection->lent_id);
	(void)NC_release(NULL, connection->lent_id);
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
static void shed_lent(struct thread *thread)
{
	const struct server *server = thread->server;
	GList *next;

	for (GList *link = thread->lent.head; link; link = next) {
		struct connection *connection = link->data;

		next = link->next;
		connection_unsent_count(connection);
		if (connection->lent_id && cache_is_over(server) &&
		    (connection_unsent_is_slow(connection) ||
		     held_bytes(server) > server->held_most + server->held_most / 2))
			connection_reset_slow(connection, "it keeps what its socket refers to");
	}
}

static void shed_again(struct timer *timer)
{
	struct thread *thread =
		(struct thread *)((char *)timer - offsetof(struct thread, slow_timer));

	loop_notify(thread->loop, &thread->shed);
}

/* Whether its unit is needed now: others wait for the memory, or may soon. */
static bool must_leave(const struct connection *connection)
{
	const struct thread *thread = connection->thread;

	return cache_is_over(thread->server) || program_is_full(program_of(connection)) ||
	       loop_now_ms(thread->loop) - connection->slow_ms >= PROGRAM_MS;
}

static void shed(struct loop_task *task)
{
	struct thread *thread =
		(struct thread *)((char *)task - offsetof(struct thread, shed.task));
	struct connection *connection, *next;
	bool again = false;

	loop_notice_begin(&thread->shed);
	for (connection = thread->slow_first; connection && may_be_over(thread);
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
	if (cache_is_over(thread->server))
		shed_lent(thread);
	/* Who has waited longer then, or has turned out to be slow, is next. */
	if (again || (thread->lent.head && cache_is_over(thread->server)))
		loop_timer_start(thread->loop, &thread->slow_timer, SHED_AGAIN_MS, shed_again);
}

void connection_slow_open(struct thread *thread)
{
	thread->shed.task.run = shed;
}

void connection_slow_close(struct thread *thread)
{
	g_clear_pointer(&thread->held, g_hash_table_unref);
	g_clear_pointer(&thread->programs, g_hash_table_unref);
}

void connection_waits(struct loop_send *op)
{
	struct connection *connection = connection_of(op);
	struct thread *thread = connection->thread;

	connection_unsent_waits(connection);
	if (!may_leave(connection))
		return;
	enlist(connection);
	if (is_over(connection))
		loop_notify(thread->loop, &thread->shed);
}

void connection_keeps_up(struct connection *connection)
{
	if (connection->slow_id)
		unlist(connection);
	connection_leaving_end(connection);
}
