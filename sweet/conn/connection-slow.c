/* SPDX-License-Identifier: MIT */
/*
 * connection-slow.c - clients that do not keep up with their answers must not
 * hold the cache: beyond a bound of the units that answers hold while they wait
 * for their sockets, those that have waited longest are taken off their units.
 *
 * The answer of a file goes on from the file, if that is still the version that
 * the unit has; all else is written to the spool and goes on from there, so that
 * a program has its memory back.  Where neither can be, the connection is reset.
 *
 * A unit is counted once for a thread, whoever of its clients waits.  An answer
 * goes on from its unit until what replaces it is there.  The socket may still
 * refer to pages of the unit then, which are memory of the cache as long as the
 * client has not acknowledged them: the connection holds the unit until it has.
 * Beyond the bound, when nothing else is left to be taken off its unit, such
 * connections are reset.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "conn/connection-inside.h"
#include "core/page-memory.h"
#include "files/spool.h"
#include "handler/filestream.h"
#include "handler/selection.h"

#define IOVECS_MAX 4096u /* runs of memory of an answer that is spooled */

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

/* What is under way for an answer: the look at its file, or its way to the spool. */
struct leaving {
	struct job job;
	struct connection *connection; /* NULL: it needs no more */
	struct output *output;	       /* to be closed at the end, the connection being gone */
	/* The file: */
	struct content *content;
	char *path;
	struct file_version version;
	int fd; /* or -errno */
	/* The spool: */
	struct spool_op op;
	struct spool *spool;
	size_t from; /* bytes of the message that are not in it */
	struct iovec *iov;
};

static struct connection *connection_of(struct loop_send *op)
{
	return (struct connection *)((char *)op - offsetof(struct connection, send));
}

/* --- who waits ------------------------------------------------------------------ */

static uint64_t bytes_of(const struct NC_send *message)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < message->range_count; i++)
		bytes += message->ranges[i].length;
	return bytes;
}

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
	count(server, connection->slow_id, bytes_of(message), &connection->output->transaction);
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

/* --- the end of its unit ---------------------------------------------------------- */

static void leaving_free(struct leaving *leaving)
{
	content_close(leaving->content);
	g_free(leaving->path);
	if (leaving->fd >= 0)
		close(leaving->fd);
	g_free(leaving->iov);
	g_free(leaving);
}

static struct leaving *leaving_new(struct connection *connection)
{
	struct leaving *leaving = g_new0(struct leaving, 1);

	leaving->fd = -1;
	leaving->connection = connection;
	connection->leaving = leaving;
	return leaving;
}

void connection_reset_slow(struct connection *connection, const char *why)
{
	const struct output *output = connection->output;

	server_count(&connection->server->counters.slow_reset, 1);
	log_notice("%s: %s: too slow for its answer: resetting (%s; its socket holds %u bytes, "
		   "%llu left in a second)",
		   connection->ends.remote, output ? output->transaction.path : "after an answer",
		   why, connection->unsent, (unsigned long long)connection->rate);
	connection_reset(connection);
}

/* Holds the unit as long as the socket may refer to pages of it. */
static void lend(struct connection *connection)
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

/*
 * Stops the send.  Bytes of the body that are gone; below 0: it goes on by
 * itself, and may be asked again when it waits.
 */
static int64_t stop_send(struct connection *connection)
{
	struct output *output = connection->output;
	const struct NC_send *message = &connection->send.message;
	uint64_t left;

	if (message->skip < message->header_length ||
	    !loop_send_cancel(connection->server->loop, connection->fd))
		return -1;
	left = bytes_of(message) - (message->skip - message->header_length);
	output->sent -= left;
	connection_unsent_stops(connection);
	connection_unsent_shrink(connection);
	lend(connection);
	connection->state = WORKING;
	return (int64_t)(message->skip - message->header_length);
}

static bool to_spool(struct connection *connection);

static void file_opened(struct job *job)
{
	struct leaving *leaving = (struct leaving *)job;
	struct connection *connection = leaving->connection;
	int64_t gone;

	if (!connection) {
		leaving_free(leaving);
		return;
	}
	connection->leaving = NULL;
	if (leaving->fd < 0) {
		/* Another version is there, or none. */
		leaving_free(leaving);
		(void)to_spool(connection);
		return;
	}
	gone = stop_send(connection);
	if (gone >= 0) {
		server_count(&connection->server->counters.slow_files, 1);
		selection_go_on(&connection->output->transaction, leaving->fd, (uint64_t)gone);
		leaving->fd = -1;
	}
	leaving_free(leaving);
}

static void open_file(struct job *job)
{
	struct leaving *leaving = (struct leaving *)job;
	struct file_version version;

	leaving->fd = docroot_open_file(content_root(leaving->content), leaving->path, &version);
	if (leaving->fd < 0 || file_version_equal(&version, &leaving->version))
		return;
	close(leaving->fd);
	leaving->fd = -ESTALE;
}

static bool to_file(struct connection *connection)
{
	const struct transaction *transaction = &connection->output->transaction;
	const struct content_view *view = selection_unit(transaction);
	struct leaving *leaving;

	if (!view)
		return false;
	leaving = leaving_new(connection);
	leaving->content = content_ref(transaction->selection.content);
	leaving->path = g_strdup(view->path);
	leaving->version = view->version;
	leaving->job = (struct job){
		.work = open_file, .done = file_opened, .loop = connection->server->loop};
	helper_submit(connection->server->site->helpers, &leaving->job);
	return true;
}

/* --- by the spool ------------------------------------------------------------------- */

static struct leaving *leaving_of(struct spool_op *op)
{
	return (struct leaving *)((char *)op - offsetof(struct leaving, op));
}

/* The runs of memory of what has not left; 0 or -errno. */
static int list_memory(struct leaving *leaving, const struct NC_send *message)
{
	size_t skip = message->skip - message->header_length;
	GArray *runs = g_array_new(FALSE, FALSE, sizeof(struct iovec));
	int error = 0;

	for (unsigned i = 0; i < message->range_count && !error; i++) {
		const struct NC_range *range = &message->ranges[i];
		size_t at = MIN(skip, range->length), run;

		skip -= at;
		for (; at < range->length && !error; at += run) {
			const void *data = NC_data(NULL, range->id, range->offset + at, &run);
			struct iovec iov = {(void *)(uintptr_t)data, 0};

			if (!data || runs->len == IOVECS_MAX) {
				error = data ? -E2BIG : -errno;
				break;
			}
			run = MIN(run, range->length - at);
			iov.iov_len = run;
			g_array_append_val(runs, iov);
		}
	}
	leaving->op.count = runs->len;
	leaving->iov = (struct iovec *)(void *)g_array_free(runs, FALSE);
	leaving->op.iov = leaving->iov;
	return error;
}

static void spooled(struct spool_op *op, int result)
{
	struct leaving *leaving = leaving_of(op);
	struct connection *connection = leaving->connection;
	uint64_t length = spool_length(leaving->spool), offset;
	struct transaction *transaction;
	int64_t gone;
	int fd;

	if (!connection)
		return;
	connection->leaving = NULL;
	leaving->connection = NULL;
	fd = result ? result : spool_reader(leaving->spool);
	if (fd < 0) {
		connection_reset_slow(connection, strerror(-fd));
		return;
	}
	gone = stop_send(connection);
	if (gone < 0) {
		close(fd);
		return;
	}
	server_count(&connection->server->counters.slow_spooled, 1);
	offset = (uint64_t)gone + connection->send.message.header_length - leaving->from;
	transaction = &connection->output->transaction;
	transaction_dismiss(transaction);
	transaction->body = (struct NC_range){0};
	transaction->ranges = NULL;
	transaction->range_count = 0;
	filestream_from_spool(transaction, leaving->spool, fd,
			      (struct range){.first = offset, .length = length - offset});
	leaving->spool = NULL;
}

static void spool_dropped(struct spool_op *op)
{
	struct leaving *leaving = leaving_of(op);

	if (leaving->output)
		output_close(leaving->output);
	spool_close(leaving->spool);
	leaving_free(leaving);
}

/* False: the connection is gone. */
static bool to_spool(struct connection *connection)
{
	struct server *server = connection->server;
	const struct NC_send *message = &connection->send.message;
	struct leaving *leaving;
	int error = -ENODEV;

	if (connection->output->transaction.next) {
		connection_reset_slow(connection, "its file has changed");
		return false;
	}
	leaving = leaving_new(connection);
	leaving->from = message->skip;
	leaving->op.done = spooled;
	leaving->op.drop = spool_dropped;
	if (server->site->spools)
		error = list_memory(leaving, message);
	if (!error) {
		leaving->spool = spool_open(server->site->spools, server->loop);
		error = leaving->spool ? spool_append(leaving->spool, &leaving->op) : -ENOMEM;
	}
	if (!error)
		return true;
	connection->leaving = NULL;
	spool_close(leaving->spool);
	leaving_free(leaving);
	connection_reset_slow(connection, strerror(-error));
	return false;
}

/* --- for the other sources ----------------------------------------------------------- */

/* An answer that is asked for piece by piece holds no more than a piece, but a file's. */
static bool may_leave(const struct connection *connection)
{
	const struct transaction *transaction = &connection->output->transaction;
	const struct NC_send *message = &connection->send.message;

	return message->range_count && message->skip >= message->header_length &&
	       !connection->slow_id && !connection->leaving &&
	       (!transaction->next || selection_unit(transaction));
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
		if (!to_file(connection))
			(void)to_spool(connection);
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
	if (connection->leaving)
		connection->leaving->connection = NULL;
	connection->leaving = NULL;
}

bool connection_leaves_output(struct connection *connection)
{
	struct leaving *leaving = connection->leaving;

	/* At the end of the server nothing is read any more. */
	if (!leaving || !leaving->spool || spools_stopped(connection->server->site->spools))
		return false;
	leaving->output = connection->output;
	return true;
}
