/* SPDX-License-Identifier: MIT */
/*
 * response-stream.h - a response that comes as bytes: from a CGI program by a pipe, from a FastCGI
 * application in records, from an HTTP server.
 *
 * Data is read straight into a unit of the cache, called a buffer.  The head of the response is
 * parsed there, and the body is sent as ranges of the buffer, without the headers of records.
 * backpressure.c limits how much is read before the client takes it; two buffers are always
 * permitted.
 *
 * Many programs begin to write before they have read their request body, and the connection accepts
 * no response while it receives the body.  Until then the stream is held: what is read is queued
 * unparsed.  The protocol calls response_stream_release() when it has passed the last piece, or
 * when the program reads no more of the body; the end of the response releases the stream, too.
 *
 * It lies in the call's own part and belongs to the call's thread.
 *
 * What no client gets takes no memory: response-again.c limits its rate.
 *
 * response-stream.c takes what the protocol reads, passes the beginning to response-stream-head.c,
 * and calls response-stream-send.c when the connection may get more.  Both fail the stream there.
 *
 * Call cycle: response-stream-send.c fetches buffers from response-spool.c, which reports to it later
 * that they are written, fetched or lost.
 */
#ifndef SWEET_RESPONSE_STREAM_H
#define SWEET_RESPONSE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/byte-rate.h"
#include "base/list.h"
#include "base/slice.h"
#include "base/timer.h"

struct response_spool;
struct response_stream;
struct backend_call;
struct cgihead;
struct read_buffer;
struct transaction;

/* The callbacks of the protocol. */
struct response_stream_source {
	/* Another buffer may be read again. */
	void (*resume)(struct backend_call *call);
	/* Returns NULL if the program may have that unit sent; else the reason, and what to do. */
	const char *(*refusal)(struct backend_call *call, size_t id);
	/* The client has sent bytes of another protocol; length 0: its end.  NULL: never. */
	void (*from_client)(struct transaction *transaction, const char *data, size_t length);
	/* The client waits for more of the response: limits how long.  NULL: the source always does. */
	void (*awaited)(struct backend_call *call);
	/* Writes a name for the log, as "script /cgi-bin/x (pid 12)". */
	const char *(*name)(struct backend_call *call, char *out, size_t size);
};

struct response_stream {
	struct backend_call *call;
	const struct response_stream_source *source;
	char *head; /* the incomplete head of the response; or NULL */
	size_t head_length, phrase_length;
	uint64_t left;		      /* announced bytes of the body that have not come */
	struct list queue;	      /* buffers */
	unsigned count;		      /* queued buffers in memory */
	uint64_t bytes;		      /* memory of all buffers, with the one being sent */
	struct response_spool *spool; /* of response-spool.c, for buffers on disk; or NULL */
	struct read_buffer *sending;  /* being sent; the piece with its last ranges owns it */
	struct timer later;	      /* for the release */
	struct timer again;	      /* to read more in the next turn, or when the pause is over */
	struct byte_rate ignored;
	bool paused;  /* too much was ignored, or there was no memory */
	bool starved; /* there was no memory, and the log says so */
	bool held, releasing;
	const char *upgrade;  /* the protocol that the request asks for; or NULL */
	uint16_t http_status; /* while it is held: head has the lines of an HTTP response; or 0 */
	bool has_head, announced, awaited, ended, failed; /* see response-stream.c */
	bool full;					  /* the source waits for resume() */
};

/* Initialises a stream; it is held if only a part of the request body has come. */
void response_stream_begin(struct response_stream *stream, struct backend_call *call,
			   const struct response_stream_source *source);

/* Ends the hold, soon: parses what is queued, and lets it be sent. */
void response_stream_release(struct response_stream *stream);

/* Cancels the release and a later read: the call is about to fail, or the stream to end. */
static inline void response_stream_keep_back(struct response_stream *stream)
{
	timer_stop(&stream->later);
	timer_stop(&stream->again);
	stream->paused = false;
}

#define RESPONSE_STREAM_NAME 256u /* bytes of a name for the log, at most */

/* Buffers that one turn of the loop may read. */
#define RESPONSE_STREAM_TURN 16u

/* One turn's buffers were read: resume() comes in the next turn. */
void response_stream_read_later(struct response_stream *stream);

/*
 * The program has written that many bytes which no client gets, such as error output, records without
 * bytes, or more than the announced length: after too many the source reads no more for a while.
 */
void response_stream_ignored(struct response_stream *stream, size_t bytes);

/*
 * A read has failed with that negated errno: returns true if it is for lack of memory, and the client
 * has a part of the response already.  Then resume() comes later, and the time limits continue.
 */
bool response_stream_awaits_memory(struct response_stream *stream, int error);

/* If the client waits for more of the response: the time limit starts again. */
void response_stream_limit(const struct response_stream *stream);

/* Whether another buffer may be read; if not, resume() is called later. */
bool response_stream_takes_more(struct response_stream *stream);

/*
 * The program has written run, which lies in the buffer.  Returns false if it needs no
 * more; then finish() may have been called and the call freed.
 */
bool response_stream_feed(struct response_stream *stream, struct read_buffer *buffer,
			  struct slice run);

/*
 * Feeds the head of an HTTP response, which the stream copies; its body is fed afterwards.  Returns
 * as response_stream_feed().
 */
bool response_stream_http_head(struct response_stream *stream, const struct cgihead *head);

/* Queues a buffer that was fed; the stream owns it now.  The call may be freed. */
void response_stream_add(struct response_stream *stream, struct read_buffer *buffer);

/*
 * Queues the last buffer, which was fed: if the response is complete now, it is sent with its
 * length.  The call may be freed.
 */
void response_stream_last(struct response_stream *stream, struct read_buffer *buffer);

/*
 * Ends the stream. fault: a text that says why the response is incomplete, or NULL.  The call may
 * be freed.
 */
void response_stream_end(struct response_stream *stream, const char *fault);

/*
 * Called by response-spool.c: another buffer may be read; the first part of the first buffer was
 * read from disk; it cannot be read.
 */
void response_stream_has_more_room(struct response_stream *stream);
void response_stream_fetched(struct response_stream *stream, struct read_buffer *buffer);
/* Cuts off an announced response, makes any other a 502.  Returns false. */
bool response_stream_fail(struct response_stream *stream, const char *fault);

/* Releases everything; the call is over. */
void response_stream_clear(struct response_stream *stream);

#endif
