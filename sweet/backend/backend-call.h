/* SPDX-License-Identifier: MIT */
/*
 * backend-call.h - one request at a gateway: what all protocols share of it.
 *
 * The variables are made, the request's body is received, and the call is
 * handed to the pool's protocol, or waits in the pool's queue until that has
 * room.  The protocol answers: call_answer() with the head, then the
 * transaction's done().  Or somebody fails it: 502 what came was no answer,
 * 503 nobody was free, 504 none came in time.
 *
 * A call lies in its transaction's scratch; one thread.
 *
 * Call cycle: backend-call.c puts a call into call-queue.c, which hands it to the protocol
 * by backend-call.c when there is room; and it gives pieces of the body to
 * request-spool.c, which asks it for the next one, and tells it when all have come.
 */
#ifndef SWEET_BACKEND_CALL_H
#define SWEET_BACKEND_CALL_H

#include <stdalign.h>

#include "backend/gateway.h"
#include "http/response.h"

#define BACKEND_CALL_OWN 384 /* bytes */

enum call_state {
	CALL_PENDING,	/* for its body, or in the queue */
	CALL_IN_FLIGHT, /* the protocol has it */
	CALL_ANSWERED,	/* the answer's head is known */
};

struct backend_call {
	struct timer timer; /* must be first: until it is taken, answered, let on by the client */
	struct transaction *transaction;
	struct gateway_pool *pool;
	struct backend_call *next; /* in the queue */
	char *block; /* the variables, a copy, until they are not needed any more; NULL */
	size_t block_length;
	struct response_stream *stream; /* response-stream.c's, in own; NULL */
	char *head;			/* the request's, a copy, for a redirection; NULL */
	size_t head_length;
	enum call_state state;
	bool has_type;	     /* the answer told it */
	bool counted_length; /* the request did not tell the length of its body */
	uint8_t taken_back;  /* how often */
	bool moves;	     /* withdrawn from a process, and not handed to another one yet */
	size_t window;	     /* bytes of a piece of its body; 0: it comes as a whole */
	uint64_t length;     /* of its body, if it comes in pieces; TRANSACTION_UNKNOWN */
	uint64_t before;     /* bytes of it in the pieces before the present one */
	bool refused;	     /* the response is an error of ours: no more of the body is wanted */
	bool asked;	     /* for a piece, which has not come yet */
	bool rest;	     /* what is left of it is to come as one */
	bool buffered;	     /* it waits on the disk if it comes in pieces */
	bool spooling;	     /* it is on its way to the disk, or the first part from there */
	struct request_spool *upload; /* request-spool.c's, of a body that waited there; NULL */
	/* backpressure.c's */
	uint64_t ahead;		    /* bytes of the answer that wait for the client */
	struct body_budget *shared; /* of which they are */
	uint64_t moved;		    /* bytes that the client had taken or sent */
	alignas(16) unsigned char own[BACKEND_CALL_OWN]; /* the protocol's; zeros at first */
};

static inline struct backend_call *backend_call_of(struct transaction *transaction)
{
	return (struct backend_call *)(void *)transaction->scratch;
}

/* The first skip bytes of the path are the program's name. */
enum respond backend_call_start(struct gateway_pool *pool, struct transaction *transaction,
				size_t skip);

/*
 * The program has done with a piece of the request's body that more follows:
 * the protocol's body() will get the next.  Or finish() is called, perhaps at
 * once; the last thing that a caller does with the call.
 */
void backend_call_next_body(struct backend_call *call);

/*
 * The program goes on only when somebody takes its answer, which the body is
 * in the way of: what is left of the body is to come as one piece, body() gets
 * it soon.  False: it is larger than a piece can be.  As backend_call_next_body().
 */
bool backend_call_rest_of_body(struct backend_call *call);

/* Asks the client for the next piece of the body; as backend_call_next_body(). */
void backend_call_ask_piece(struct backend_call *call);

/* A part of a body that waited on the disk is the transaction's upload. */
void backend_call_body_ready(struct backend_call *call);

/* What is left of it cannot be had: the call fails. */
void backend_call_body_lost(struct backend_call *call);

/* The request's body, or the present piece of it; of length 0: there is none. */
static inline struct NC_range backend_call_piece(const struct backend_call *call)
{
	const struct transaction *transaction = call->transaction;

	if (!transaction->has_upload)
		return (struct NC_range){0};
	return (struct NC_range){.id = transaction->upload,
				 .length = (size_t)(transaction->upload_length - call->before)};
}

/* The program has its time from now on, to answer in or to go on with its answer. */
void backend_call_start_timer(struct backend_call *call);

/*
 * The program that had the call ended before it began with it, and with more
 * of the request's body than came at first: the call goes to the head of the
 * queue, for call_queue_room() to hand it on.  False: it has to fail, since that was
 * so too often, or nobody will take it.
 */
bool call_queue_take_back(struct backend_call *call);

/*
 * The call was withdrawn from a program that had not begun with it, as above
 * with its body: it goes to the head of the queue, for the call_queue_room() that asked.
 */
void call_queue_move(struct backend_call *call);

/* The pool has room again on that thread: calls that wait are handed on. */
void call_queue_room(struct gateway_pool *pool, struct thread *thread);

/* The same on all threads, soon; on any thread.  It posts each queue's call_queue_room_task(). */
void call_queue_room_everywhere(struct gateway_pool *pool);
void call_queue_room_task(struct loop_task *task);

/* Fails those that wait. */
void call_queue_abandon(struct call_queue *queue);

/* The answer is as old as its own Date says, if that is one; before call_answer(). */
void call_take_date(struct backend_call *call, const struct response_facts *facts);

/*
 * Copies header lines of the answer that are fit to be sent to
 * transaction_lines().  Returns their bytes; -1: as response_filter_headers(),
 * or there is no memory for so many.
 */
long call_take_lines(struct backend_call *call, struct slice lines, struct response_facts *facts);

/*
 * The head of the answer: its fields, fit to be sent, are the first
 * lines_length bytes of transaction_lines(), as call_take_lines() has left them,
 * or head_buffer's, which has room for CALL_LINES_MAX.  length: bytes of the body; TRANSACTION_UNKNOWN; 0 with has_body
 * false: there is none, and an error gets its page.  The body's pieces are the
 * caller's to set before it calls done().
 */
#define CALL_OWN_LINES 128 /* bytes that call_answer() adds */
#define CALL_LINES_MAX (TRANSACTION_HEAD_MAX - CALL_OWN_LINES)
void call_answer(struct backend_call *call, int status, size_t lines_length, bool has_type,
		 bool has_body, uint64_t length);

/*
 * The program wants the answer of another path of this server to be its own
 * (RFC 3875, section 6.2.2).  The call is over.
 */
void call_redirect(struct backend_call *call, struct slice target);

/* The length of an answer that was unknown is known, before done() was called. */
void call_measured(struct backend_call *call, uint64_t length);

/* There is no answer: detail (may be NULL) is for the error's page. */
void backend_call_fail(struct backend_call *call, int status, const char *detail);

#endif
