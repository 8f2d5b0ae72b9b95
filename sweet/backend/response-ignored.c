/* SPDX-License-Identifier: MIT */
/*
 * response-ignored.c - when the source of a response reads again: in the next turn of the loop, or
 * later if it reads what no client gets, such as error output.  Nothing else would stop a program
 * from writing that as fast as the server can read.
 */
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

#define IGNORED_MAX ((size_t)1 << 20) /* bytes a second */

static struct loop *loop_of(const struct response_stream *stream)
{
	return stream->call->transaction->thread->loop;
}

static void ignored_read_again(struct timer *timer)
{
	struct response_stream *stream = container_of(timer, struct response_stream, again);

	stream->paused = false;
	stream->source->resume(stream->call);
}

void response_stream_read_later(struct response_stream *stream)
{
	if (!stream->paused)
		loop_timer_start(loop_of(stream), &stream->again, 0, ignored_read_again);
}

void response_stream_ignored(struct response_stream *stream, size_t bytes)
{
	struct loop *loop = loop_of(stream);

	if (!byte_rate_take(&stream->ignored, bytes, IGNORED_MAX, loop_now_ms(loop)) ||
	    stream->paused)
		return;
	stream->paused = true;
	loop_timer_start(loop, &stream->again, BYTE_RATE_MS, ignored_read_again);
}
