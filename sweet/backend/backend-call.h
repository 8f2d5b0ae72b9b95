/* SPDX-License-Identifier: MIT */
/*
 * backend-call.h - one request to a pool: the part that all protocols share.
 *
 * The server makes the variables, receives the request body, and submits the call to the pool's
 * protocol; it queues the call while the pool has no free capacity.  The protocol responds: it
 * calls call_answer() with the head, then transaction_done().  Or the call fails: with 502 if
 * the program's response is invalid, 503 if no program was free, 504 if the response timed out.
 *
 * A call lies in the scratch memory of its transaction and belongs to the transaction's thread.
 *
 * Call cycle: backend-call.c adds a call to call-queue.c, which calls backend-call.c to submit it
 * when the pool has free capacity; backend-call.c passes pieces of the body to request-spool.c,
 * which asks it for the next piece, and notifies it when the body is complete.
 */
#ifndef SWEET_BACKEND_CALL_H
#define SWEET_BACKEND_CALL_H

#include <nabc.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "base/timer.h"
#include "core/transaction.h"

struct call_queue;
struct gateway_pool;
struct kept_request;
struct loop_task;
struct response_facts;
struct scope;
struct thread;

#define BACKEND_CALL_OWN 400 /* bytes */

enum call_state {
	CALL_PENDING,	/* waits for its body, or is queued */
	CALL_IN_FLIGHT, /* submitted to the protocol */
	CALL_ANSWERED,	/* the head of the response is known */
};

struct backend_call {
	struct timer timer; /* times out each state, and a slow client */
	struct transaction *transaction;
	struct gateway_pool *pool;
	struct list_node queued;
	char *block; /* a copy of the variables while they may be needed; or NULL */
	size_t block_length;
	struct response_stream *stream; /* of response-stream.c, lies in own; or NULL */
	struct kept_request *kept;	/* the request, for redirects; or NULL */
	enum call_state state;
	signed char coding;  /* for the transaction, if the program answers */
	bool has_type;	     /* the response has a Content-Type */
	bool counted_length; /* the request does not state the length of its body */
	uint8_t taken_back;  /* how often a program ended before it began with the call */
	bool moves;	     /* withdrawn from a process, not yet submitted to another one */
	size_t window;	     /* bytes of one piece of the body; 0: the body comes as a whole */
	uint64_t length;     /* of a body in pieces, or TRANSACTION_UNKNOWN */
	uint64_t before;     /* bytes of the body in the pieces before the current one */
	bool refused;	     /* the response is our error response: no more of the body is needed */
	bool keeps_nothing;  /* of the request body: the disk is full, or the like */
	bool asked;	     /* a piece is requested and has not come yet */
	bool rest;	     /* the rest of the body is to come as one piece */
	bool buffered;	     /* a body in pieces is collected on disk */
	bool spooling;	     /* being written to disk, or its first part read back */
	struct request_spool *upload; /* of request-spool.c, if the body is on disk; or NULL */
	/* Fields of backpressure.c: */
	uint64_t ahead;	       /* bytes of the response that wait for the client */
	struct budget *shared; /* the budget that these bytes count against */
	uint64_t moved;	       /* bytes transferred to or from the client at the last check */
	alignas(16) unsigned char own[BACKEND_CALL_OWN]; /* private to the protocol, zeroed */
};

static inline struct backend_call *backend_call_of(struct transaction *transaction)
{
	return (struct backend_call *)(void *)transaction->scratch;
}

/* Call it before the thread's loop runs; close it after the loop's end, and after the gateway. */
void backend_thread_open(struct thread *thread);
void backend_thread_close(struct thread *thread);

/* Starts a call.  The first skip bytes of the path name the program. */
enum respond backend_call_start(struct gateway_pool *pool, struct transaction *transaction,
				size_t skip);

/*
 * The program has consumed a piece of the request body, and more follows: requests the next piece,
 * which the protocol's body() will get.  It may call finish(), even before it returns: the caller
 * must not use the call afterwards.
 */
void backend_call_next_body(struct backend_call *call);

/*
 * The program does not read more of its request body before the server reads its response: requests
 * the rest of the body as one piece, which body() gets soon.  Returns false if the rest is too
 * large for one piece.  May free the call.
 */
bool backend_call_rest_of_body(struct backend_call *call);

/* Requests the next piece of the body.  May free the call. */
void backend_call_ask_piece(struct backend_call *call);

/* The next part of a body on disk is ready as the transaction's upload. */
void backend_call_body_ready(struct backend_call *call);

/* The rest of the body cannot be read back: the call fails. */
void backend_call_body_lost(struct backend_call *call);

/* Returns the request body, or its current piece; its length is 0 if there is none. */
static inline struct NC_range backend_call_piece(const struct backend_call *call)
{
	const struct transaction *transaction = call->transaction;

	if (!transaction->upload.has)
		return (struct NC_range){0};
	return (struct NC_range){.id = transaction->upload.unit,
				 .length = (size_t)(transaction->upload.length - call->before)};
}

/*
 * Of the responder that a call is, for those that replace its table because they have more of the
 * response to send.
 */
void backend_call_gone(struct transaction *transaction);
void backend_call_finish(struct transaction *transaction);

/* Starts the timeout for the program's response, or for its next part. */
void backend_call_start_timer(struct backend_call *call);

/*
 * Puts a call back at the head of the queue, because its program ended before it began with the
 * call and before it got more than the first piece of the body. call_queue_room() submits it again.
 * Returns false if the call has to fail: this has happened too often, or no program of the pool can
 * run.
 */
bool call_queue_take_back(struct backend_call *call);

/*
 * Puts a call back at the head of the queue after it was withdrawn from a program that had not
 * begun with it.  The call_queue_room() that requested this submits it.
 */
void call_queue_move(struct backend_call *call);

/*
 * The pool has free capacity again on that thread: submits queued calls.  Returns true if there are
 * more than one turn of the loop submits: call_queue_room_task() tries the others.
 */
bool call_queue_room(struct gateway_pool *pool, struct thread *thread);

/* Any thread: makes each thread call call_queue_room() soon, by call_queue_room_task(). */
void call_queue_room_everywhere(struct gateway_pool *pool);
void call_queue_room_task(struct loop_task *task);

/* Fails all queued calls. */
void call_queue_abandon(struct call_queue *queue);

/* Takes the date of the response from its Date field, if that is valid; before call_answer(). */
void call_take_date(struct backend_call *call, const struct response_facts *facts);

/*
 * Copies the valid header lines of the response to transaction_lines().  Returns their bytes; -1 as
 * response_filter_headers() does, or if there is no memory.
 */
long call_take_lines(struct backend_call *call, struct slice lines, struct response_facts *facts);

/*
 * Sets the head of the response.  Its fields are the first lines_length bytes of
 * transaction_lines(), as call_take_lines() has left them, or of head_buffer, which has
 * CALL_LINES_MAX bytes. length: bytes of the body, or TRANSACTION_UNKNOWN; 0 if has_body is false:
 * then there is no body, and an error gets an error page.  The caller sets the body's ranges before
 * it calls done().
 */
#define CALL_OWN_LINES 128 /* bytes that call_answer() adds */
#define CALL_LINES_MAX (TRANSACTION_HEAD_MAX - CALL_OWN_LINES)
void call_answer(struct backend_call *call, int status, size_t lines_length, bool has_type,
		 bool has_body, uint64_t length);

/*
 * The program wants the response of another path of this server (RFC 3875, section 6.2.2).  The
 * call is over.
 */
void call_redirect(struct backend_call *call, struct slice target);

/* The server sends the file of that path below a folder.  The call is over. */
void call_send_file(struct backend_call *call, const struct scope *folder, const char *path);

/* Sets the length of a response that was unknown before; before done(). */
void call_measured(struct backend_call *call, uint64_t length);

/* Fails the call; the error page contains detail, which may be NULL. */
void backend_call_fail(struct backend_call *call, int status, const char *detail);

#endif
