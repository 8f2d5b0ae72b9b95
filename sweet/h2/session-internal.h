/* SPDX-License-Identifier: MIT */
/*
 * session-internal.h - an HTTP/2 session and its streams (RFC 9113); private to this folder.
 *
 * Each stream is a connection of its own, with one request; its transport is the session.  What is
 * to be sent is collected, stream by stream in the order of their priorities, into one message at
 * a time, which the session's connection sends: heads of frames, and between them the memory of
 * bodies where it is.
 *
 *   session-message.c  the message that is collected or sent
 *   session-head.c     the heads of responses
 *   session-stream.c   the transport of a stream
 *   session-frames.c   splits what is received into frames
 *   session-flood.c    recognizes clients that only cost
 *   session-closed.c   recognizes frames of streams that have ended
 *   session-end.c      the end of a session
 *   session-send.c     fills the message and sends it
 *   session-receive.c  what is received
 *   session-work.c     what there is to do before the loop sleeps, or waits with a timeout
 *   session.c          begins a session
 */
#ifndef SWEET_SESSION_INTERNAL_H
#define SWEET_SESSION_INTERNAL_H

#include <nabc.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/timer.h"
#include "conn/connection-base.h"
#include "core/server.h"
#include "event/loop.h"
#include "h2/h2-thread.h"
#include "h2/stream-head.h"

struct slice;

/* Bytes of bodies that a client may send before they are asked for: of a stream, of a session. */
#define SESSION_STREAM_WINDOW (256 << 10)
#define SESSION_WINDOW (1 << 20)
/* Bytes of the heads of open streams: a byte of HPACK can stand for thousands.  Further streams wait. */
#define SESSION_HEADS_MAX (512u << 10)
/*
 * Requests that sessions start in one turn of their loop: others wait for the next one, whatever
 * number of sessions send whatever number of requests at once.  Half of them are for bytes that were
 * saved, so that these do not wait behind those that come.
 */
#define SESSION_STARTS_MAX 64u
/* Those of one session, of which the next ones come after the other sessions' ones. */
#define SESSION_STARTS_EACH 8u
/*
 * Streams that sessions end in one turn of their loop, beside some of a few: others wait for the next
 * turn, whatever number of streams end at once.
 */
#define SESSION_ENDS_MAX 64u
#define SESSION_ENDS_EACH 8u
#define SESSION_ENDING_LEAST 4u /* ended sessions that have some, so that they make progress */
/* To free the rest of an ended session costs as much as streams. */
#define SESSION_FREE_COST 8u
/* Streams whose windows a setting changes cost as much as one that ends. */
#define SESSION_WINDOWS_PER_END 16u
#define SESSION_WORK_MAX 64u /* sessions that work in one turn of their loop */
/*
 * How long sessions process in one turn of their loop what has come: as it comes, and again before
 * the loop sleeps.  The time is looked at after some requests, or after so much of heads, a byte of
 * which can cost as much as a request.
 */
#define SESSION_TURN_NS 250000u
#define SESSION_HEAD_PIECE 512u /* bytes */
#define SESSION_LAST_MS 1000u	/* for streams that a client opens before it knows of GOAWAY */
#define SESSION_FRAME_HEAD 9u	/* bytes (RFC 9113, section 4.1) */
/* Heads of responses, resets and acknowledgements that wait for the client to read. */
#define SESSION_QUEUE_MAX 512u

struct client_calls;
struct session_block;

struct stream {
	struct connection connection; /* must be first; its send.message.skip: bytes in frames */
	struct session *session;
	struct list_node node; /* the session's list */
	int32_t id;
	size_t head;	 /* bytes of its request's head */
	size_t unread;	 /* bytes received for which the client got no window back */
	bool in_message; /* has something in the message */
	bool referred;	 /* and by reference: completes when the message is sent */
	bool answered;	 /* a head was submitted */
	bool ended;	 /* END_STREAM is in a frame */
	bool ends;	 /* END_STREAM is to be sent without content */
	bool cut;	 /* resets its stream with CANCEL */
	bool closed;	 /* the client, or the library, has closed the stream */
};

struct session_message {
	struct spare_memory *memory;  /* the thread's */
	struct session_block *blocks; /* memory of its own; the first has room */
	struct iovec *pieces;
	struct stream **owners; /* of the memory that a piece refers to; NULL: a block */
	unsigned count, room;
	size_t bytes;
	struct stream **streams; /* with something in the message; NULL: it has been closed */
	unsigned stream_count, stream_room;
};

struct session_frames {
	unsigned preface;			/* bytes of it that are to come */
	unsigned char text[SESSION_FRAME_HEAD]; /* of a head */
	unsigned have;				/* bytes of it */
	size_t left;				/* bytes of the frame that are to come */
	nghttp2_frame_hd head;
};

/* Which timeout runs while the connection does not send. */
enum session_timing { TIMING_NONE, TIMING_IDLE, TIMING_HEAD, TIMING_LAST };

struct session {
	struct connection *connection;
	nghttp2_session *http2; /* NULL: the session has ended, and its streams end */
	nghttp2_session *ended; /* freed after them, with the message, since that can take long */
	struct session_frames frames;
	int32_t highest; /* stream that the client has opened */
	struct session_message message;
	struct list streams;
	unsigned stream_count;
	size_t heads;		    /* bytes of those of the streams */
	struct client_calls *calls; /* those that the client has abandoned */
	struct stream *found;	    /* the last one that a callback was for; or NULL */
	struct stream *current;	    /* whose bytes are being processed; NULL: it has been closed */
	struct stream *opening;	    /* whose head has not come as a whole */
	struct stream_head head;    /* that of `opening`; or trailers, of which nothing is kept */
	bool endless;		    /* it is to be refused before its end has come */
	int32_t refused;	    /* the stream for which that was done, until its head or its
				     * response ends; or 0 */
	struct list_node waking;    /* in the thread's list of sessions with something to do */
	bool stalls;  /* the message waits for the client: nothing else waits for the message */
	bool resumed; /* streams have processed what was saved, or a part of it */
	bool leaving; /* GOAWAY was sent: the client should open no more streams */
	uint64_t leaving_ms; /* since when */
	bool strict;	     /* and gets no response to more */
	bool last;	     /* nothing is read any more, except for streams that exist */
	bool over;	     /* the last GOAWAY was submitted */
	enum session_timing timing;
	uint64_t timing_ms;	/* since when */
	bool timed;		/* the timer is that of the timing */
	struct timer unsettled; /* runs until the client has acknowledged the settings */
	unsigned useless;	/* frames without progress, since then */
	uint64_t useless_ms;
	unsigned long_heads; /* that were refused, since then */
	unsigned resets;     /* less those that time has excused, by then */
	uint64_t resets_ms;
	const struct config_ref *begun_with; /* only compared */
	/* Of session-closed.c: */
	int32_t *forgiven; /* streams whose frames may still come; or NULL */
	unsigned forgiven_next;
	int32_t reset_by_client; /* the last such stream */
};

/* --- session-message.c --- */

/* Whether the message has enough for one call. */
bool session_message_is_full(const struct session_message *message);

/*
 * Adds bytes by copying; by reference, to memory of the owner (NULL: a block of the message).
 * Returns false without memory.
 */
bool session_message_copy(struct session_message *message, const void *data, size_t length);
bool session_message_refer(struct session_message *message, const void *data, size_t length,
			   struct stream *owner);

/* Returns memory at the end of the message, or NULL; adds its first bytes, as above. */
char *session_message_reserve(struct session_message *message, size_t length);
bool session_message_add_reserved(struct session_message *message, char *at, size_t length);

/* The stream has something in the message. */
bool session_message_include(struct session_message *message, struct stream *stream);

/* Copies what the message refers to of the stream, so that it can end. */
void session_message_release(struct session_message *message, struct stream *stream);

/*
 * Calls sent() for each stream of which everything in the message was copied.  Returns whether there
 * were any.
 */
bool session_message_copied(struct session_message *message, void (*sent)(struct stream *stream));

/* The message was sent: forgets it, and calls sent() for each of its streams. */
void session_message_done(struct session_message *message, void (*sent)(struct stream *stream));

void session_message_free(struct session_message *message);

/* --- session-head.c --- */

/*
 * The stream's send begins with the head of its response: submits it, and skips it.  read: reads the
 * content behind it.
 */
void stream_submit_head(struct stream *stream, nghttp2_data_source_read_callback read);
void stream_submit_interim(struct stream *stream, int status, struct slice lines);

/*
 * The last of the content is read: submits the trailers, if the response has some.  Returns the flag
 * that says so, or 0.
 */
uint32_t stream_submit_trailers(struct stream *stream);

/* --- session-stream.c --- */

/* Whether the stream's send has the end of its response. */
static inline bool stream_is_last(const struct stream *stream)
{
	return stream->connection.send.message.flags & NC_SEND_CLOSE;
}

/* A callback of the library for the content of responses. */
int stream_add_data(nghttp2_session *http2, nghttp2_frame *frame, const uint8_t *head,
		    size_t length, nghttp2_data_source *source, void *context);

/* What the message had of the stream was copied, or sent. */
void stream_sent(struct stream *stream);

/* Returns a stream of the session, without a request; NULL without memory. */
struct stream *stream_open(struct session *session, int32_t id);

/* Returns the stream with that number, if it still has a connection. */
struct stream *stream_find(struct session *session, int32_t id);

/*
 * The client may send as many bytes as the stream has processed; those that it has saved count only
 * while it does not pause.
 */
void stream_give_back(struct stream *stream);

/* Lets the session do what there is to do before the loop sleeps (session-work.c). */
void session_wake(struct session *session);

/* As session_wake(), but after the other sessions: it has had its part of this turn. */
void session_wake_late(struct session *session);

/* It has nothing to do any more. */
void session_wake_not(struct session *session);

/*
 * Whether streams have ended, or changed, as many as may in a turn; before: the count when the caller
 * began, so that each session makes progress.
 */
static inline bool session_turn_is_over(const struct session *session, unsigned before)
{
	unsigned changes = session->connection->thread->h2->session_changes;

	return changes >= SESSION_ENDS_MAX && changes - before >= SESSION_ENDS_EACH;
}

/* Whether sessions have processed for as long as they may, for now. */
static inline bool session_time_is_up(const struct h2_thread *h2)
{
	return loop_turn_ns(h2->thread->loop) >= h2->session_end_ns;
}

/* Bytes of sessions wait for their turn; each of these has had one after that many waits. */
static inline void session_hold_timers(const struct h2_thread *h2)
{
	loop_hold_timers(h2->thread->loop, h2->waiting + 1);
}

/* --- session-frames.c --- */

/*
 * Returns how many of length bytes to process next; *begins: they complete the head of a frame,
 * frames->head, and all frames before it were processed.
 */
size_t session_frames_split(struct session_frames *frames, const char *data, size_t length,
			    bool *begins);

/* Whether what comes next is the head of a frame. */
static inline bool session_frames_between(const struct session_frames *frames)
{
	return !frames->preface && !frames->have && !frames->left;
}

/* --- session-flood.c --- */

/*
 * A frame has come, which is useless unless the library accepts it, and it achieves something;
 * request: it belongs to a request that the server processes.
 */
void session_flood_received(struct session *session);
void session_flood_accepted(struct session *session, const nghttp2_frame *frame, bool request);

/* A frame with content is sent. */
void session_flood_sent(struct session *session);

/* The client has reset a request, or has made the server reset it. */
void session_flood_reset(struct session *session);

/* A head, or trailers, have more bytes than they may have. */
void session_flood_long_head(struct session *session);

/* Whether the client only costs. */
bool session_flood_is_over_limit(const struct session *session);

/*
 * Whether too many frames wait for the client to read: nothing more of what it sends is processed,
 * which could add others.
 */
static inline bool session_flood_must_wait(const struct session *session)
{
	return nghttp2_session_get_outbound_queue_size(session->http2) > SESSION_QUEUE_MAX;
}

/* --- session-closed.c --- */

/*
 * Returns the error of a frame that a stream which has ended cannot have (RFC 9113, sections 5.1
 * and 5.1.1); NGHTTP2_NO_ERROR: none.
 */
uint32_t session_closed_check(const struct session *session, const nghttp2_frame_hd *frame);

/* The client has reset a stream; a stream is about to be closed. */
void session_closed_by_client(struct session *session, int32_t id);
void session_closed_note(struct session *session, int32_t id);

/* Content has come for which there is no connection; the end of a response is in the message. */
void session_closed_drop(struct session *session, int32_t id, size_t length);
void session_closed_answered(struct session *session, int32_t id);

void session_closed_free(struct session *session);

/* --- session-end.c --- */

/* The leave() of session_mux: the client opens no more streams, and those that exist end. */
void session_leave(struct connection *connection);

/* Submits the last GOAWAY: the session ends when it was sent. */
void session_say_end(struct session *session, uint32_t error);

/* Submits it for a client that violates the protocol or its limits, and logs why; a second call
 * does nothing. */
void session_break_off(struct session *session, uint32_t error, const char *why);

/* Closes the connection at once, and logs why. */
void session_fail(struct session *session, const char *why);

/* The close() and the end_all() of session_mux. */
void session_close(struct connection *connection);
void session_end_all(struct connection *connection);

/* The session has ended: ends as many of its streams as this turn permits.  May free both. */
void session_end_some(struct session *session);

/* --- session-send.c --- */

void session_send_callbacks(nghttp2_session_callbacks *callbacks);

/* Fills the message with what the streams have to send; returns false if the connection was freed. */
bool session_fill_message(struct session *session);

/* Sends it. */
void session_send_message(struct session *session);

/*
 * Adds to the message what the streams have to send, unless one is being sent; sends it if it is
 * full.  Returns false if the connection was freed.
 */
bool session_collect(struct session *session);

/* Responses that cannot continue wait with their units. */
void session_streams_wait(struct session *session);

/* --- session-receive.c --- */

void session_receive_callbacks(nghttp2_session_callbacks *callbacks);

/* The received() of session_mux; processes bytes that were saved.  Both may free the connection. */
void session_received(struct connection *connection, const char *data, size_t length);
void session_resumed(struct connection *connection, const char *data, size_t length);

/* --- session-work.c --- */

/* The before_sleep() of the thread's hook. */
bool session_work_next(struct loop_hook *hook);

/* --- session.c --- */

/* Sets up the library; again does nothing. */
void session_init(void);

#endif
