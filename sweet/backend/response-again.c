/* SPDX-License-Identifier: MIT */
/*
 * response-again.c - when the source of a response reads again: in the next turn of the loop; later
 * if it reads what no client gets, such as error output, since nothing else would stop a program from
 * writing that as fast as the server can read; or later where the cache has no memory for it.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "backend/backend-call.h"
#include "backend/response-stream.h"
#include "base/byte-rate.h"
#include "base/container.h"
#include "base/timer.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "log/log.h"

#define IGNORED_MAX ((size_t)1 << 20) /* bytes a second */
#define MEMORY_MS 20u		      /* until the cache is asked again */

static struct loop *loop_of(const struct response_stream *stream)
{
	return stream->call->transaction->thread->loop;
}

static void response_again(struct timer *timer)
{
	struct response_stream *stream = container_of(timer, struct response_stream, again);

	stream->paused = false;
	stream->source->resume(stream->call);
}

void response_stream_read_later(struct response_stream *stream)
{
	if (!stream->paused)
		loop_timer_start(loop_of(stream), &stream->again, 0, response_again);
}

static void pause_for(struct response_stream *stream, unsigned ms)
{
	stream->paused = true;
	loop_timer_start(loop_of(stream), &stream->again, ms, response_again);
}

void response_stream_ignored(struct response_stream *stream, size_t bytes)
{
	if (byte_rate_take(&stream->ignored, bytes, IGNORED_MAX, loop_now_ms(loop_of(stream))) &&
	    !stream->paused)
		pause_for(stream, BYTE_RATE_MS);
}

bool response_stream_awaits_memory(struct response_stream *stream, int error)
{
	char name[RESPONSE_STREAM_NAME];

	if (error != -ENOMEM || !stream->announced)
		return false;
	if (!stream->starved)
		log_notice("%s: its response waits, as the cache has no memory for more",
			   stream->source->name(stream->call, name, sizeof(name)));
	stream->starved = true;
	pause_for(stream, MEMORY_MS);
	return true;
}
