/* SPDX-License-Identifier: MIT */
/*
 * response-stream.h - an answer that comes as bytes: a CGI program's by a pipe, a
 * FastCGI application's in records.
 *
 * What is there is read straight into a unit of the cache, a buffer; the head
 * of the answer is parsed there, and the body leaves by ranges of it, past
 * the headers of records.  What is read ahead of the client is backpressure.c's to
 * bound, but for two buffers.
 *
 * Many a program begins to write before it has read its request's body, and
 * nobody takes an answer while that is on its way: so long the stream is held,
 * and what is read waits without being looked at.  Whoever has given away the
 * last piece, or hears that no more of them are wanted, calls
 * response_stream_release(); the end of an answer does so by itself.
 *
 * Part of a call's own; its thread's.
 *
 * Call cycle: response-stream.c gives the beginning to response-stream-head.c, which fails
 * the stream if it is no head; and it gives buffers to response-spool.c, which reports
 * later that they are written, fetched or lost.
 */
#ifndef SWEET_RESPONSE_STREAM_H
#define SWEET_RESPONSE_STREAM_H

#include "backend/backend-call.h"
#include "backend/read-buffer.h"

struct response_spool;
struct response_stream;

/* Of the protocol. */
struct response_stream_source {
	/* There is room for another buffer again. */
	void (*resume)(struct backend_call *call);
	/* NULL: the program may have that unit sent; else why not, and what to do. */
	const char *(*refusal)(struct backend_call *call, size_t id);
	/* "script /cgi-bin/x (pid 12)", for the log. */
	const char *(*name)(struct backend_call *call, char *out, size_t size);
};

struct response_stream {
	struct backend_call *call;
	const struct response_stream_source *source;
	char *head; /* of the answer, as long as it is not whole; NULL */
	size_t head_length;
	uint64_t left;			   /* bytes of the body that are still announced */
	struct read_buffer *first, **last; /* read, not yet handed on */
	unsigned count;			   /* of those, in memory */
	uint64_t bytes;			   /* that all take, with the one being sent */
	struct response_spool *spool;	   /* response-spool.c's, of buffers on the disk; NULL */
	struct read_buffer *sending;	   /* the connection has it; or nobody, before the next */
	bool unit;	    /* the transaction's hold is of one that the program named */
	struct timer later; /* for the release */
	struct timer again; /* for more than one turn may read */
	bool held, releasing;
	bool began, told, wanted, ended, failed; /* see response-stream.c */
	bool full;				 /* the source waits for resume() */
};

/* It is held if the client has but sent a piece of its request's body. */
void response_stream_begin(struct response_stream *stream, struct backend_call *call,
			   const struct response_stream_source *source);

/* The answer may leave: what is there is looked at, soon. */
void response_stream_release(struct response_stream *stream);

/* Not any more: the call is about to fail, or the stream to end. */
static inline void response_stream_keep_back(struct response_stream *stream)
{
	timer_stop(&stream->later);
	timer_stop(&stream->again);
}

/*
 * Windows that may be read in a turn of the loop: what is written and not sent, like records
 * without bytes or more than was announced, takes no room, so nothing else ends the reading.
 */
#define RESPONSE_STREAM_TURN 16u

/* So many were read: resume() comes in the next turn. */
void response_stream_read_later(struct response_stream *stream);

/* Whether another buffer may be read; if not, resume() is called when it may. */
bool response_stream_takes_more(struct response_stream *stream);

/*
 * The program has written run, which lies in the buffer.  False: nothing more
 * is wanted, and the call may be gone: its finish() has told.
 */
bool response_stream_feed(struct response_stream *stream, struct read_buffer *buffer,
			  struct slice run);

/* The buffer was fed; it is the stream's now.  The call may be gone behind it, too. */
void response_stream_add(struct response_stream *stream, struct read_buffer *buffer);

/*
 * The buffer was fed, and nothing comes behind it: an answer that is whole by
 * now leaves with its length.  The call may be gone behind it.
 */
void response_stream_last(struct response_stream *stream, struct read_buffer *buffer);

/*
 * No more comes; fault: in words, why that is no good end, or NULL.  The call
 * may be gone with it.
 */
void response_stream_end(struct response_stream *stream, const char *fault);

/* By response-spool.c: another buffer may be read; the first part of the first one is there; it is not. */
void response_stream_has_more_room(struct response_stream *stream);
void response_stream_fetched(struct response_stream *stream, struct read_buffer *buffer);
/* What was told of breaks off, what was not is a 502.  False. */
bool response_stream_fail(struct response_stream *stream, const char *fault);

/* Gives all back; the call is over. */
void response_stream_clear(struct response_stream *stream);

#endif
