/* SPDX-License-Identifier: MIT */
/*
 * response-spool.c - see response-spool.h.
 */
#include <errno.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>
#include <sys/uio.h>

#include "backend/backend-call.h"
#include "backend/pool.h"
#include "backend/read-buffer.h"
#include "backend/response-spool.h"
#include "backend/response-stream.h"
#include "base/container.h"
#include "base/list.h"
#include "config/pool-config.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/client-limit.h"
#include "files/spool.h"

#define WRITES_MAX 2u /* in flight: their data is still in memory */

struct response_spool {
	struct response_stream *stream;
	struct spool *spool;
	struct read_buffer *last; /* the last buffer of the queue, if it is stored; or NULL */
	unsigned stored;	  /* stored buffers in the queue */
	unsigned writes;
	bool fetching;
};

/* A buffer that is being written; it may outlive the stream. */
struct put {
	struct spool_op op;
	struct response_spool *spool;
	struct read_buffer *buffer;
	struct iovec runs[];
};

static struct spools *spools_of(const struct response_stream *stream)
{
	return stream->call->pool->server->spools;
}

bool response_spool_has_room(const struct response_stream *stream)
{
	const struct response_spool *spool = stream->spool;

	return stream->announced && spools_of(stream) &&
	       stream->call->pool->settings->response_buffering &&
	       (!spool || spool->writes < WRITES_MAX) &&
	       spools_have_room(spools_of(stream), READ_BUFFER_MAX);
}

/* --- in --------------------------------------------------------------------------------------- */

static void response_dropped_put(struct spool_op *op)
{
	struct put *put = container_of(op, struct put, op);

	read_buffer_free(put->buffer);
	free(put);
}

static void response_was_put(struct spool_op *op, int result)
{
	struct response_spool *spool = container_of(op, struct put, op)->spool;
	char fault[128];

	spool->writes--;
	if (!result) {
		response_stream_has_more_room(spool->stream);
		return;
	}
	g_snprintf(fault, sizeof(fault), "cannot store its response on disk: %s",
		   strerror(-result));
	response_stream_fail(spool->stream, fault);
}

static struct put *new_put(struct response_spool *spool, struct read_buffer *buffer)
{
	struct put *put = calloc(1, sizeof(*put) + buffer->range_count * sizeof(put->runs[0]));

	if (!put)
		return NULL;
	put->spool = spool;
	put->op.iov = put->runs;
	put->op.count = buffer->range_count;
	put->op.done = response_was_put;
	put->op.drop = response_dropped_put;
	for (unsigned i = 0; i < buffer->range_count; i++) {
		const char *at = buffer->data + buffer->ranges[i].offset;

		put->runs[i] = (struct iovec){(void *)(uintptr_t)at, buffer->ranges[i].length};
	}
	return put;
}

static struct response_spool *get(struct response_stream *stream)
{
	const struct transaction *transaction = stream->call->transaction;
	struct response_spool *spool = stream->spool;

	if (spool)
		return spool;
	spool = calloc(1, sizeof(*spool));
	if (!spool)
		return NULL;
	spool->stream = stream;
	spool->spool = spool_open(spools_of(stream), transaction->thread->loop,
				  client_address(transaction->peer.remote));
	if (!spool->spool) {
		free(spool);
		return NULL;
	}
	stream->spool = spool;
	return spool;
}

bool response_spool_put(struct response_stream *stream, struct read_buffer *buffer)
{
	struct response_spool *spool = get(stream);
	uint64_t bytes = read_buffer_bytes(buffer);
	struct read_buffer *stored;
	struct put *put;

	if (!spool)
		return false;
	/* A buffer in memory follows it: what is stored from now on needs a new entry. */
	if (spool->last != list_last(&stream->queue, struct read_buffer, node))
		spool->last = NULL;
	stored = spool->last ? spool->last : read_buffer_stored(spool_length(spool->spool));
	put = stored ? new_put(spool, buffer) : NULL;
	if (!put || spool_append(spool->spool, &put->op)) {
		if (stored != spool->last)
			read_buffer_free(stored);
		free(put);
		return false;
	}
	put->buffer = buffer;
	spool->writes++;
	stored->stored += bytes;
	if (stored != spool->last) {
		list_append(&stream->queue, &stored->node);
		spool->last = stored;
		spool->stored++;
	}
	return true;
}

/* --- out -------------------------------------------------------------------------------------- */

/* The first buffer of the queue is used up: removes it, and closes the spool after the last one. */
static void drop_first(struct response_spool *spool)
{
	struct response_stream *stream = spool->stream;
	struct read_buffer *first = list_take(&stream->queue, struct read_buffer, node);

	if (spool->last == first)
		spool->last = NULL;
	spool->stored--;
	read_buffer_free(first);
	if (!spool->stored && !spool->writes)
		response_spool_end(stream);
}

static void was_fetched(struct spool_op *op, int result)
{
	struct spool_unit *unit = container_of(op, struct spool_unit, op);
	struct response_spool *spool = unit->user;
	struct response_stream *stream = spool->stream;
	struct read_buffer *buffer = NULL, *first;
	char fault[128];

	spool->fetching = false;
	if (!result) {
		unit->taken = true;
		buffer = read_buffer_of(&unit->handle, unit->bytes.iov_len, &result);
	}
	if (!buffer) {
		g_snprintf(fault, sizeof(fault), "cannot read its response back from disk: %s",
			   strerror(-result));
		response_stream_fail(stream, fault);
		return;
	}
	first = list_first(&stream->queue, struct read_buffer, node);
	first->offset += buffer->length;
	first->stored -= buffer->length;
	if (!first->stored)
		drop_first(spool);
	response_stream_fetched(stream, buffer);
}

int response_spool_fetch(struct response_stream *stream)
{
	struct response_spool *spool = stream->spool;
	const struct read_buffer *first = list_first(&stream->queue, struct read_buffer, node);
	int error;

	if (spool->fetching)
		return 0;
	error = spool_unit_read(spool->spool, first->offset,
				(size_t)MIN(first->stored, READ_BUFFER_MAX), READ_BUFFER_MAX,
				was_fetched, spool);
	spool->fetching = !error;
	return error;
}

void response_spool_end(struct response_stream *stream)
{
	struct response_spool *spool = stream->spool;

	stream->spool = NULL;
	if (!spool)
		return;
	spool_close(spool->spool);
	free(spool);
}
