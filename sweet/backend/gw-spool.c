/* SPDX-License-Identifier: MIT */
/*
 * gw-spool.c - see gw-spool.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "backend/gw-spool.h"
#include "files/spool-unit.h"

#define WRITES_MAX 2u /* under way: what they write is in memory still */

struct gw_spool {
	struct gw_stream *stream;
	struct spool *spool;
	struct gw_window *last; /* in the line, if it is stored; NULL */
	unsigned stored;	/* windows in the line that are */
	unsigned writes;
	bool fetching;
};

/* A window that is written; it outlives the stream if it must. */
struct put {
	struct spool_op op; /* must be first */
	struct gw_spool *spool;
	struct gw_window *window;
	struct iovec runs[];
};

static struct spools *spools_of(const struct gw_stream *stream)
{
	return stream->call->pool->gateway->site->spools;
}

bool gw_spool_has_room(const struct gw_stream *stream)
{
	const struct gw_spool *spool = stream->spool;

	return stream->told && spools_of(stream) &&
	       stream->call->pool->settings->response_buffering &&
	       (!spool || spool->writes < WRITES_MAX) &&
	       spools_have_room(spools_of(stream), GW_WINDOW);
}

/* --- in ---------------------------------------------------------------------------------------- */

static void dropped_put(struct spool_op *op)
{
	struct put *put = (struct put *)op;

	gw_window_free(put->window);
	free(put);
}

static void was_put(struct spool_op *op, int result)
{
	struct gw_spool *spool = ((struct put *)op)->spool;
	char fault[128];

	spool->writes--;
	if (!result) {
		gw_stream_has_more_room(spool->stream);
		return;
	}
	g_snprintf(fault, sizeof(fault), "its answer waits for a client, but the spool: %s",
		   strerror(-result));
	gw_stream_fail(spool->stream, fault);
}

static struct put *new_put(struct gw_spool *spool, struct gw_window *window)
{
	struct put *put = calloc(1, sizeof(*put) + window->range_count * sizeof(put->runs[0]));

	if (!put)
		return NULL;
	put->spool = spool;
	put->op.iov = put->runs;
	put->op.count = window->range_count;
	put->op.done = was_put;
	put->op.drop = dropped_put;
	for (unsigned i = 0; i < window->range_count; i++) {
		const char *at = window->data + window->ranges[i].offset;

		put->runs[i] = (struct iovec){(void *)(uintptr_t)at, window->ranges[i].length};
	}
	return put;
}

static struct gw_spool *get(struct gw_stream *stream)
{
	struct gw_spool *spool = stream->spool;

	if (spool)
		return spool;
	spool = calloc(1, sizeof(*spool));
	if (!spool)
		return NULL;
	spool->stream = stream;
	spool->spool = spool_open(spools_of(stream), stream->call->transaction->server->loop);
	if (!spool->spool) {
		free(spool);
		return NULL;
	}
	stream->spool = spool;
	return spool;
}

bool gw_spool_put(struct gw_stream *stream, struct gw_window *window)
{
	struct gw_spool *spool = get(stream);
	uint64_t bytes = gw_window_bytes(window);
	struct gw_window *stored;
	struct put *put;

	if (!spool)
		return false;
	/* One in memory behind it parts it from what follows. */
	if (spool->last && &spool->last->next != stream->last)
		spool->last = NULL;
	stored = spool->last ? spool->last : gw_window_stored(spool_length(spool->spool));
	put = stored ? new_put(spool, window) : NULL;
	if (!put || spool_append(spool->spool, &put->op)) {
		if (stored != spool->last)
			gw_window_free(stored);
		free(put);
		return false;
	}
	put->window = window;
	spool->writes++;
	stored->stored += bytes;
	if (stored != spool->last) {
		*stream->last = stored;
		stream->last = &stored->next;
		spool->last = stored;
		spool->stored++;
	}
	return true;
}

/* --- out ----------------------------------------------------------------------------------------- */

/* The first in the line has no more: it goes, and the spool with the last of them. */
static void drop_first(struct gw_spool *spool)
{
	struct gw_stream *stream = spool->stream;
	struct gw_window *first = stream->first;

	stream->first = first->next;
	if (!stream->first)
		stream->last = &stream->first;
	if (spool->last == first)
		spool->last = NULL;
	spool->stored--;
	gw_window_free(first);
	if (!spool->stored && !spool->writes)
		gw_spool_end(stream);
}

static void was_fetched(struct spool_op *op, int result)
{
	struct spool_unit *unit = (struct spool_unit *)op;
	struct gw_spool *spool = unit->user;
	struct gw_stream *stream = spool->stream;
	struct gw_window *window = NULL;
	char fault[128];

	spool->fetching = false;
	if (!result) {
		unit->taken = true;
		window = gw_window_of(&unit->handle, unit->bytes.iov_len, &result);
	}
	if (!window) {
		g_snprintf(fault, sizeof(fault), "reading its answer from the spool: %s",
			   strerror(-result));
		gw_stream_fail(stream, fault);
		return;
	}
	stream->first->offset += window->length;
	stream->first->stored -= window->length;
	if (!stream->first->stored)
		drop_first(spool);
	gw_stream_fetched(stream, window);
}

int gw_spool_fetch(struct gw_stream *stream)
{
	struct gw_spool *spool = stream->spool;
	const struct gw_window *first = stream->first;
	int error;

	if (spool->fetching)
		return 0;
	error = spool_unit_read(spool->spool, first->offset, (size_t)MIN(first->stored, GW_WINDOW),
				GW_WINDOW, was_fetched, spool);
	spool->fetching = !error;
	return error;
}

void gw_spool_end(struct gw_stream *stream)
{
	struct gw_spool *spool = stream->spool;

	stream->spool = NULL;
	if (!spool)
		return;
	spool_close(spool->spool);
	free(spool);
}
