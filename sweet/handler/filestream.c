/* SPDX-License-Identifier: MIT */
/*
 * filestream.c - see filestream.h.  A stream belongs to its transaction's thread, except while a
 * helper thread runs its job; if the transaction ends then, the end of the job frees the stream.
 *
 * sendfile(2) puts pages of the page cache into the socket: a write to the file changes what the
 * client gets, even after any comparison, until the client has acknowledged the bytes.  So the last
 * bytes of the response are held back until all others are acknowledged.  If the file has changed
 * by then, the connection is reset, and no client can take a mixture of two versions for the file.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "base/budget.h"
#include "base/container.h"
#include "config/configuration.h"
#include "event/piece.h"
#include "core/server.h"
#include "core/site.h"
#include "core/transaction-file.h"
#include "event/client-limit.h"
#include "event/data-path.h"
#include "event/loop.h"
#include "event/thread-pool.h"
#include "files/docroot.h"
#include "files/file-cache-tick.h"
#include "files/file-cache.h"
#include "files/spool.h"
#include "handler/filestream-internal.h"
#include "handler/filestream.h"
#include "http/range.h"
#include "log/log.h"

/* --- on the transaction's thread -------------------------------------------------- */

static void stream_free(struct filestream *stream)
{
	filestream_drop(stream, &stream->ready);
	if (stream->fd >= 0)
		close(stream->fd);
	spool_close(stream->spool);
	if (stream->entry)
		file_cache_tick_put(stream->tick, stream->cache, stream->entry);
	file_cache_close(stream->cache);
	free(stream->path);
	free(stream);
}

static struct filestream **stream_of(struct transaction *transaction)
{
	return (struct filestream **)(void *)transaction->scratch;
}

static void filestream_finish(struct transaction *transaction)
{
	struct filestream *stream = *stream_of(transaction);

	stream->transaction = NULL;
	if (stream->reading)
		thread_pool_cancel(&stream->job);
	else
		stream_free(stream);
}

/* There is no body, or no more of it. */
static const struct transaction_responder ended = {.finish = filestream_finish};

/* Goes to the range of the next read; returns false if everything was read. */
static bool next_range(struct filestream *stream)
{
	if (filestream_left(stream))
		return true;
	if (stream->part + 1 >= stream->ranges.count)
		return false;
	stream->part++;
	stream->at = 0;
	return true;
}

/* Whether the next read is the held-back end of a response that was sent as lent pages. */
static bool is_held_back(const struct filestream *stream)
{
	return stream->lent && !stream->spool && stream->part + 1 == stream->ranges.count &&
	       filestream_left(stream) <= FILESTREAM_HELD_BACK;
}

/* settled: the client has acknowledged everything that was sent. */
static void read_ahead(struct filestream *stream, bool settled)
{
	if (stream->reading || stream->ready.length || stream->error || !next_range(stream) ||
	    (!settled && is_held_back(stream)))
		return;
	/* The first window always comes by a job, which opens the file. */
	if (stream->begun && !stream->awaited && filestream_has_window(stream))
		return;
	stream->reading = true;
	thread_pool_submit(stream->transaction->thread->server->thread_pool, &stream->job);
}

/* Passes the text after the last of several ranges. */
static void hand_over_end(struct filestream *stream)
{
	struct transaction *transaction = stream->transaction;

	transaction_file(transaction)->part = stream->ranges.count;
	stream->owner->lead(transaction);
}

static void filestream_release_window(struct piece *piece)
{
	struct filestream *stream = piece->owner;

	filestream_drop(stream, &stream->sending);
}

/* Passes the window that is ready to the connection. */
static void hand_over(struct filestream *stream)
{
	struct transaction *transaction = stream->transaction;
	struct window *window = &stream->sending;

	stream->begun = true;
	*window = stream->ready;
	stream->ready = (struct window){0};
	if (window->bytes) {
		transaction->piece = piece_bytes(window->bytes, window->length);
	} else {
		stream->lent = true;
		transaction->response.reset = true;
		transaction->piece =
			piece_file((struct loop_file){stream->fd, window->offset, window->length});
	}
	transaction->piece.release = filestream_release_window;
	transaction->piece.owner = stream;
	if (transaction_file(transaction)->parts && window->first) {
		transaction_file(transaction)->part = stream->part;
		stream->owner->lead(transaction);
	}
	transaction->piece.settle = next_range(stream) && is_held_back(stream);
	read_ahead(stream, false);
}

/* Without the file's own lines and length, so that an error page is sent. */
static void answer_no_file(struct transaction *transaction, int status, const char *text)
{
	transaction->response.head_length = 0;
	transaction->response.length = 0;
	transaction_fail(transaction, status, text);
}

/* Ends a response of which a part was sent. */
static void cut_off(struct transaction *transaction, const char *why)
{
	log_info("%s: %s while it was sent: cut off", transaction->path, why);
	transaction->response.status = 0;
}

/* If nothing was sent yet, the failure becomes an ordinary error response. */
static void break_off(struct filestream *stream)
{
	struct transaction *transaction = stream->transaction;

	if (stream->error == -ECANCELED) {
		transaction->response.status = 0; /* the client has left */
		return;
	}
	if (stream->begun) {
		cut_off(transaction, stream->error == -EAGAIN ? "the file was changed"
							      : strerror(-stream->error));
		return;
	}
	transaction->responder = &ended;
	if (stream->error == -EAGAIN)
		answer_no_file(transaction, 503, "The file is being changed.");
	else if (stream->error == -ENOENT || stream->error == -ENOTDIR)
		answer_no_file(transaction, 404, NULL);
	else
		answer_no_file(transaction, 503, "The file cannot be read now.");
}

/* Makes the response if it can be made by now; returns false if not. */
static bool answer(struct filestream *stream)
{
	struct transaction *transaction = stream->transaction;

	if (stream->renewed && !stream->error) {
		stream->renewed = false;
		if (!stream->owner->renewed(transaction, &stream->version)) {
			transaction->responder = &ended;
			return true;
		}
		stream->ranges = transaction_file(transaction)->ranges;
		read_ahead(stream, false);
		return false;
	}
	if (stream->error)
		break_off(stream);
	else
		hand_over(stream);
	return true;
}

static void filestream_work_done(struct job *job)
{
	struct filestream *stream = container_of(job, struct filestream, job);

	stream->reading = false;
	if (!job->worked)
		stream->error = -ECANCELED;
	if (!stream->transaction) {
		stream_free(stream);
		return;
	}
	if (!stream->awaited)
		return;
	stream->awaited = false;
	if (answer(stream))
		transaction_done(stream->transaction);
	else
		stream->awaited = true;
}

static enum respond filestream_next(struct transaction *transaction)
{
	struct filestream *stream = *stream_of(transaction);

	/* If bytes were held back, the client has acknowledged all others. */
	read_ahead(stream, true);
	/* While the helper runs the job, do not read its fields. */
	if (stream->reading) {
		stream->awaited = true;
		return RESPOND_LATER;
	}
	if (stream->error)
		break_off(stream);
	else if (stream->ready.length)
		hand_over(stream);
	else
		hand_over_end(stream);
	return RESPOND_NOW;
}

/* Nobody waits for the next window. */
static void filestream_gone(struct transaction *transaction)
{
	struct filestream *stream = *stream_of(transaction);

	if (stream->reading)
		thread_pool_cancel(&stream->job);
}

static const struct transaction_responder responder = {
	.next = filestream_next, .gone = filestream_gone, .finish = filestream_finish};

/* Returns NULL without memory: then nothing is left to finish. */
static struct filestream *begin(struct transaction *transaction)
{
	struct thread *thread = transaction->thread;
	struct filestream *stream = calloc(1, sizeof(*stream));

	if (!stream) {
		transaction->responder = NULL;
		return NULL;
	}
	*stream_of(transaction) = stream;
	stream->transaction = transaction;
	stream->budget = &thread->server->windows;
	stream->job = (struct job){.work = filestream_work,
				   .done = filestream_work_done,
				   .loop = thread->loop,
				   .class = JOB_QUICK,
				   .client = client_address(transaction->peer.remote)};
	stream->tick = thread->tick;
	stream->fd = -1;
	stream->lends = transaction->config_ref->config->large_files == LARGE_FILES_SENDFILE &&
			thread->server->path == &data_path_nabc;
	stream->awaited = true;
	transaction->responder = &responder;
	return stream;
}

enum respond filestream_respond(struct transaction *transaction, struct file_cache *cache,
				struct file_cache_entry *entry,
				const struct filestream_owner *owner)
{
	struct filestream *stream = begin(transaction);

	if (!stream) {
		file_cache_tick_put(transaction->thread->tick, cache, entry);
		answer_no_file(transaction, 503, "The file cannot be read now.");
		return RESPOND_NOW;
	}
	stream->owner = owner;
	stream->cache = file_cache_ref(cache);
	stream->entry = entry;
	stream->version = file_cache_view(entry)->version;
	stream->ranges = transaction_file(transaction)->ranges;
	read_ahead(stream, false);
	return RESPOND_LATER;
}

/* For a response of which a part was sent, without memory for the rest. */
static void end_it(struct transaction *transaction, int fd)
{
	close(fd);
	transaction->responder = NULL;
	cut_off(transaction, strerror(ENOMEM));
	transaction_done(transaction);
}

void filestream_go_on(struct transaction *transaction, int fd, char *path,
		      const struct file_version *version, uint64_t gone,
		      const struct filestream_owner *owner)
{
	struct filestream *stream = path ? begin(transaction) : NULL;

	if (!stream) {
		free(path);
		end_it(transaction, fd);
		return;
	}
	stream->owner = owner;
	stream->cache = file_cache_ref(transaction_file(transaction)->cache);
	stream->path = path;
	stream->fd = fd;
	stream->version = *version;
	stream->ranges = transaction_file(transaction)->ranges;
	stream->part = transaction_file(transaction)->part;
	stream->at = gone;
	stream->begun = true;
	read_ahead(stream, false);
}

void filestream_from_spool(struct transaction *transaction, struct spool *spool, int fd,
			   struct range range)
{
	struct filestream *stream = begin(transaction);

	if (!stream) {
		spool_close(spool);
		end_it(transaction, fd);
		return;
	}
	stream->spool = spool;
	stream->fd = fd;
	stream->ranges.count = 1;
	stream->ranges.ranges[0] = range;
	stream->begun = true;
	transaction_file(transaction)->parts = false;
	read_ahead(stream, false);
}
