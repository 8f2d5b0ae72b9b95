/* SPDX-License-Identifier: MIT */
/*
 * leave.c - moves a response off the unit that it waits with, to free the memory for
 * others.
 *
 * The response of a file continues from the file if the file is unchanged.  Any other response is
 * written to the spool and continues from there, so that a program gets its memory back.  If
 * neither is possible the connection is reset.  The response continues from its unit until the
 * replacement is ready.
 */
#include <errno.h>
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <glib.h>

#include "base/container.h"
#include "base/counter.h"
#include "core/server.h"
#include "core/thread-counters.h"
#include "core/transaction-file.h"
#include "core/transaction.h"
#include "event/client-limit.h"
#include "event/data-path.h"
#include "event/loop.h"
#include "event/piece.h"
#include "event/thread-pool.h"
#include "exchange/output.h"
#include "files/docroot.h"
#include "files/file-cache.h"
#include "files/spool.h"
#include "handler/file-response.h"
#include "handler/filestream.h"
#include "http/range.h"
#include "pressure/pressure-internal.h"
#include "pressure/slow.h"

#define IOVECS_MAX 4096u /* runs of memory of a response that is spooled */

/* The operation for a response: checking its file, or writing it to the spool. */
struct leaving {
	struct job job;
	struct slow *slow;     /* NULL: the result is not needed any more */
	struct output *output; /* to be closed at the end, if the response has ended */
	/* For a file: */
	struct file_cache *cache;
	char *path;
	struct file_version version;
	int fd; /* or a negative errno */
	/* For the spool: */
	struct spool_op op;
	struct spool *spool;
	size_t from; /* bytes of the message before the spooled part */
	struct iovec *iov;
};

static void leaving_free(struct leaving *leaving)
{
	file_cache_close(leaving->cache);
	free(leaving->path);
	if (leaving->fd >= 0)
		close(leaving->fd);
	free(leaving->iov);
	free(leaving);
}

/* Returns NULL without memory. */
static struct leaving *leaving_new(struct slow *slow)
{
	struct leaving *leaving = calloc(1, sizeof(*leaving));

	if (!leaving)
		return NULL;
	leaving->fd = -1;
	leaving->slow = slow;
	slow->leaving = leaving;
	return leaving;
}

static uint64_t bytes_left(const struct NC_send *message)
{
	return pressure_body_bytes(message) - (message->skip - message->header_length);
}

/*
 * Stops the send.  Returns how many bytes of the body were sent; below 0: the send continues, and
 * can be stopped when it waits.
 */
static int64_t stop_send(struct slow *slow)
{
	struct output *output = slow->output;
	const struct NC_send *message = &slow->send->message;

	if (message->skip < message->header_length)
		return -1;
	/* With TLS all of it may be encrypted, and only wait to be sent. */
	if (bytes_left(message) == 0 || !slow->owner->stop(slow))
		return -1;
	/* By then a stream has sent what is in frames, too. */
	output->sent -= bytes_left(message);
	output->head_sent = true;
	if (slow->socket)
		lent_begin(slow->socket, message);
	return (int64_t)(message->skip - message->header_length);
}

static bool to_spool(struct slow *slow);

static void leave_file_opened(struct job *job)
{
	struct leaving *leaving = container_of(job, struct leaving, job);
	struct slow *slow = leaving->slow;
	int64_t gone;

	if (!slow) {
		leaving_free(leaving);
		return;
	}
	slow->leaving = NULL;
	if (leaving->fd < 0) {
		/* The file has changed or is gone. */
		leaving_free(leaving);
		(void)to_spool(slow);
		return;
	}
	gone = stop_send(slow);
	if (gone >= 0) {
		counter_add(&slow->thread->counters->slow_files, 1);
		file_response_go_on(&slow->output->transaction, leaving->fd, (uint64_t)gone);
		leaving->fd = -1;
	}
	leaving_free(leaving);
}

static void leave_open_file(struct job *job)
{
	struct leaving *leaving = container_of(job, struct leaving, job);
	struct file_version version;

	leaving->fd = docroot_open_file(file_cache_root(leaving->cache), leaving->path, &version);
	if (leaving->fd < 0 || file_version_equal(&version, &leaving->version))
		return;
	close(leaving->fd);
	leaving->fd = -ESTALE;
}

static bool to_file(struct slow *slow)
{
	const struct transaction *transaction = &slow->output->transaction;
	const struct file_cache_view *view = file_response_unit(transaction);
	struct leaving *leaving;
	char *path;

	if (!view || view->coded)
		return false;
	path = strdup(view->path);
	leaving = path ? leaving_new(slow) : NULL;
	if (!leaving) {
		free(path);
		return false;
	}
	leaving->cache = file_cache_ref(transaction_file(transaction)->cache);
	leaving->path = path;
	leaving->version = view->version;
	leaving->job = (struct job){.work = leave_open_file,
				    .done = leave_file_opened,
				    .loop = slow->thread->loop,
				    .class = JOB_QUICK,
				    .client = client_address(transaction->peer.remote)};
	thread_pool_submit(slow->thread->server->thread_pool, &leaving->job);
	return true;
}

/* --- by the spool ------------------------------------------------------------------- */

static struct leaving *leaving_of(struct spool_op *op)
{
	return container_of(op, struct leaving, op);
}

/* For another run: the array doubles whenever its length is a power of 2.  Returns 0 or -errno. */
static int make_room(struct leaving *leaving)
{
	unsigned count = leaving->op.count;
	struct iovec *iov;

	if (count == IOVECS_MAX)
		return -E2BIG;
	if (count & (count - 1))
		return 0;
	iov = realloc(leaving->iov, (count ? 2 * (size_t)count : 1) * sizeof(*iov));
	if (!iov)
		return -ENOMEM;
	leaving->iov = iov;
	return 0;
}

/* Lists the memory of everything that is not sent yet; returns 0 or -errno. */
static int list_memory(struct leaving *leaving, const struct NC_send *message)
{
	size_t skip = message->skip - message->header_length;

	for (unsigned i = 0; i < message->range_count; i++) {
		const struct NC_range *range = &message->ranges[i];
		size_t at = MIN(skip, range->length), run;

		skip -= at;
		for (; at < range->length; at += run) {
			const void *data =
				NC_data(data_path_hold(message, i), &run, range->offset + at);
			int error = data ? make_room(leaving) : -errno;

			if (error)
				return error;
			run = MIN(run, range->length - at);
			leaving->iov[leaving->op.count++] =
				(struct iovec){(void *)(uintptr_t)data, run};
		}
	}
	leaving->op.iov = leaving->iov;
	return 0;
}

static void leave_spooled(struct spool_op *op, int result)
{
	struct leaving *leaving = leaving_of(op);
	struct slow *slow = leaving->slow;
	uint64_t length = spool_length(leaving->spool), offset;
	struct transaction *transaction;
	int64_t gone;
	int fd;

	if (!slow)
		return;
	slow->leaving = NULL;
	leaving->slow = NULL;
	fd = result ? result : spool_reader(leaving->spool);
	if (fd < 0) {
		slow->owner->reset(slow, strerror(-fd));
		return;
	}
	gone = stop_send(slow);
	if (gone < 0) {
		close(fd);
		return;
	}
	counter_add(&slow->thread->counters->slow_spooled, 1);
	offset = (uint64_t)gone + slow->send->message.header_length - leaving->from;
	transaction = &slow->output->transaction;
	transaction_dismiss(transaction);
	filestream_from_spool(transaction, leaving->spool, fd,
			      (struct range){.first = offset, .length = length - offset});
	leaving->spool = NULL;
}

static void leave_spool_dropped(struct spool_op *op)
{
	struct leaving *leaving = leaving_of(op);

	if (leaving->output)
		output_close(leaving->output);
	spool_close(leaving->spool);
	leaving_free(leaving);
}

/* Returns false if the connection has ended. */
static bool to_spool(struct slow *slow)
{
	struct thread *thread = slow->thread;
	const struct sockaddr *remote = slow->output->transaction.peer.remote;
	const struct NC_send *message = &slow->send->message;
	struct leaving *leaving;
	int error = -ENODEV;

	if (transaction_has_next(&slow->output->transaction)) {
		slow->owner->reset(slow, "its file has changed");
		return false;
	}
	leaving = leaving_new(slow);
	if (!leaving) {
		slow->owner->reset(slow, strerror(ENOMEM));
		return false;
	}
	leaving->from = message->skip;
	leaving->op.done = leave_spooled;
	leaving->op.drop = leave_spool_dropped;
	if (thread->server->spools)
		error = list_memory(leaving, message);
	if (!error) {
		leaving->spool =
			spool_open(thread->server->spools, thread->loop, client_address(remote));
		error = leaving->spool ? spool_append(leaving->spool, &leaving->op) : -ENOMEM;
	}
	if (!error)
		return true;
	slow->leaving = NULL;
	spool_close(leaving->spool);
	leaving_free(leaving);
	slow->owner->reset(slow, strerror(-error));
	return false;
}

bool leave_keeps_output(struct slow *slow)
{
	struct leaving *leaving = slow->leaving;

	/* When the server ends, the spool is not read any more. */
	if (!leaving || !leaving->spool || spools_stopped(slow->thread->server->spools))
		return false;
	leaving->output = slow->output;
	return true;
}

void leave_unit(struct slow *slow)
{
	if (!to_file(slow))
		(void)to_spool(slow);
}

void leave_end(struct slow *slow)
{
	struct leaving *leaving = slow->leaving;

	if (!leaving)
		return;
	slow->leaving = NULL;
	leaving->slow = NULL;
	thread_pool_cancel(&leaving->job);
	/* Its operation ends with it, and frees the rest. */
	spool_close(g_steal_pointer(&leaving->spool));
}
