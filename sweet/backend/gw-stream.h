/* SPDX-License-Identifier: MIT */
/*
 * gw-stream.h - an answer that comes as bytes: a CGI program's by a pipe, a
 * FastCGI application's in records.
 *
 * What is there is read straight into a unit of the cache, a window; the head
 * of the answer is parsed there, and the body leaves by ranges of it, past
 * the headers of records.  What is read ahead of the client is gw-pace.c's to
 * bound, but for two windows.
 *
 * Many a program begins to write before it has read its request's body, and
 * nobody takes an answer while that is on its way: so long the stream is held,
 * and what is read waits without being looked at.  Whoever has given away the
 * last piece, or hears that no more of them are wanted, calls
 * gw_stream_release(); the end of an answer does so by itself.
 *
 * Part of a call's own; its thread's.
 */
#ifndef SWEET_GW_STREAM_H
#define SWEET_GW_STREAM_H

#include "backend/gw-call.h"
#include "backend/gw-window.h"

struct gw_spool;
struct gw_stream;

/* Of the protocol. */
struct gw_stream_source {
	/* There is room for another window again. */
	void (*resume)(struct gw_call *call);
	/* NULL: the program may have that unit sent; else why not, and what to do. */
	const char *(*refusal)(struct gw_call *call, size_t id);
	/* "script /cgi-bin/x (pid 12)", for the log. */
	const char *(*name)(struct gw_call *call, char *out, size_t size);
};

struct gw_stream {
	struct gw_call *call;
	const struct gw_stream_source *source;
	char *head; /* of the answer, as long as it is not whole; NULL */
	size_t head_length;
	uint64_t left;			 /* bytes of the body that are still announced */
	struct gw_window *first, **last; /* read, not yet handed on */
	unsigned count;			 /* of those, in memory */
	uint64_t bytes;			 /* that all take, with the one being sent */
	struct gw_spool *spool;		 /* gw-spool.c's, of windows on the disk; NULL */
	struct gw_window *sending;	 /* the connection has it; or nobody, before the next */
	size_t unit;			 /* that the program named, held; 0: none */
	struct timer later;		 /* for the release */
	struct timer again;		 /* for more than one turn may read */
	bool held, releasing;
	bool began, told, wanted, ended, failed; /* see gw-stream.c */
	bool full;				 /* the source waits for resume() */
};

/* It is held if the client has but sent a piece of its request's body. */
void gw_stream_begin(struct gw_stream *stream, struct gw_call *call,
		     const struct gw_stream_source *source);

/* The answer may leave: what is there is looked at, soon. */
void gw_stream_release(struct gw_stream *stream);

/* Not any more: the call is about to fail, or the stream to end. */
static inline void gw_stream_keep_back(struct gw_stream *stream)
{
	timer_stop(&stream->later);
	timer_stop(&stream->again);
}

/*
 * Windows that may be read in a turn of the loop: what is written and not sent, like records
 * without bytes or more than was announced, takes no room, so nothing else ends the reading.
 */
#define GW_STREAM_TURN 16u

/* So many were read: resume() comes in the next turn. */
void gw_stream_read_later(struct gw_stream *stream);

/* Whether another window may be read; if not, resume() is called when it may. */
bool gw_stream_takes_more(struct gw_stream *stream);

/*
 * The program has written run, which lies in the window.  False: nothing more
 * is wanted, and the call may be gone: its finish() has told.
 */
bool gw_stream_feed(struct gw_stream *stream, struct gw_window *window, struct slice run);

/* The window was fed; it is the stream's now.  The call may be gone behind it, too. */
void gw_stream_add(struct gw_stream *stream, struct gw_window *window);

/*
 * The window was fed, and nothing comes behind it: an answer that is whole by
 * now leaves with its length.  The call may be gone behind it.
 */
void gw_stream_last(struct gw_stream *stream, struct gw_window *window);

/*
 * No more comes; fault: in words, why that is no good end, or NULL.  The call
 * may be gone with it.
 */
void gw_stream_end(struct gw_stream *stream, const char *fault);

/* By gw-spool.c: another window may be read; the first part of the first one is there; it is not. */
void gw_stream_has_more_room(struct gw_stream *stream);
void gw_stream_fetched(struct gw_stream *stream, struct gw_window *window);
/* What was told of breaks off, what was not is a 502.  False. */
bool gw_stream_fail(struct gw_stream *stream, const char *fault);

/* Gives all back; the call is over. */
void gw_stream_clear(struct gw_stream *stream);

#endif
