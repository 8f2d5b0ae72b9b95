/* SPDX-License-Identifier: MIT */
/*
 * gw-call.h - one request at a gateway: what all protocols share of it.
 *
 * The variables are made, the request's body is received, and the call is
 * handed to the pool's protocol, or waits in the pool's queue until that has
 * room.  The protocol answers: gw_answer() with the head, then the
 * transaction's done().  Or somebody fails it: 502 what came was no answer,
 * 503 nobody was free, 504 none came in time.
 *
 * A call lies in its transaction's scratch; one thread.
 */
#ifndef SWEET_GW_CALL_H
#define SWEET_GW_CALL_H

#include <stdalign.h>

#include "backend/gateway.h"
#include "http/response.h"

#define GW_CALL_OWN 384 /* bytes */

enum gw_state {
	GW_WAITS,     /* for its body, or in the queue */
	GW_UNDER_WAY, /* the protocol has it */
	GW_ANSWERED,  /* the answer's head is known */
};

struct gw_call {
	struct timer timer; /* must be first: until it is taken, answered, let on by the client */
	struct transaction *transaction;
	struct gateway_pool *pool;
	struct gw_call *next; /* in the queue */
	char *block;	      /* the variables, a copy, until they are not needed any more; NULL */
	size_t block_length;
	struct gw_stream *stream; /* gw-stream.c's, in own; NULL */
	char *head;		  /* the request's, a copy, for a redirection; NULL */
	size_t head_length;
	enum gw_state state;
	bool has_type;		  /* the answer told it */
	bool counted_length;	  /* the request did not tell the length of its body */
	uint8_t taken_back;	  /* how often */
	bool moves;		  /* withdrawn from a process, and not handed to another one yet */
	size_t window;		  /* bytes of a piece of its body; 0: it comes as a whole */
	uint64_t length;	  /* of its body, if it comes in pieces; TRANSACTION_UNKNOWN */
	uint64_t before;	  /* bytes of it in the pieces before the present one */
	bool asked;		  /* for a piece, which has not come yet */
	bool rest;		  /* what is left of it is to come as one */
	bool buffered;		  /* it waits on the disk if it comes in pieces */
	bool spooling;		  /* it is on its way to the disk, or the first part from there */
	struct gw_upload *upload; /* gw-upload.c's, of a body that waited there; NULL */
	/* gw-pace.c's */
	uint64_t ahead;		    /* bytes of the answer that wait for the client */
	struct body_budget *shared; /* of which they are */
	uint64_t moved;		    /* bytes that the client had taken or sent */
	alignas(16) unsigned char own[GW_CALL_OWN]; /* the protocol's; zeros at first */
};

static inline struct gw_call *gw_call_of(struct transaction *transaction)
{
	return (struct gw_call *)(void *)transaction->scratch;
}

/* The first skip bytes of the path are the program's name. */
enum respond gw_respond(struct gateway_pool *pool, struct transaction *transaction, size_t skip);

/*
 * The program has done with a piece of the request's body that more follows:
 * the protocol's body() will get the next.  Or finish() is called, perhaps at
 * once; the last thing that a caller does with the call.
 */
void gw_next_body(struct gw_call *call);

/*
 * The program goes on only when somebody takes its answer, which the body is
 * in the way of: what is left of the body is to come as one piece, body() gets
 * it soon.  False: it is larger than a piece can be.  As gw_next_body().
 */
bool gw_rest_of_body(struct gw_call *call);

/* Asks the client for the next piece of the body; as gw_next_body(). */
void gw_ask_piece(struct gw_call *call);

/* A part of a body that waited on the disk is the transaction's upload. */
void gw_upload_ready(struct gw_call *call);

/* What is left of it cannot be had: the call fails. */
void gw_upload_lost(struct gw_call *call);

/* The request's body, or the present piece of it; of length 0: there is none. */
static inline struct NC_range gw_piece(const struct gw_call *call)
{
	const struct transaction *transaction = call->transaction;

	if (!transaction->has_upload)
		return (struct NC_range){0};
	return (struct NC_range){.id = transaction->upload,
				 .length = (size_t)(transaction->upload_length - call->before)};
}

/* The program has its time from now on, to answer in or to go on with its answer. */
void gw_start_timer(struct gw_call *call);

/*
 * The program that had the call ended before it began with it, and with more
 * of the request's body than came at first: the call goes to the head of the
 * queue, for gw_room() to hand it on.  False: it has to fail, since that was
 * so too often, or nobody will take it.
 */
bool gw_take_back(struct gw_call *call);

/*
 * The call was withdrawn from a program that had not begun with it, as above
 * with its body: it goes to the head of the queue, for the gw_room() that asked.
 */
void gw_move(struct gw_call *call);

/* The pool has room again on that thread: calls that wait are handed on. */
void gw_room(struct gateway_pool *pool, struct server *server);

/* The same on all threads, soon; on any thread.  It posts each queue's gw_room_task(). */
void gw_room_everywhere(struct gateway_pool *pool);
void gw_room_task(struct loop_task *task);

/* Fails those that wait. */
void gw_queue_abandon(struct gw_queue *queue);

/* The answer is as old as its own Date says, if that is one; before gw_answer(). */
void gw_take_date(struct gw_call *call, const struct response_facts *facts);

/*
 * Copies header lines of the answer that are fit to be sent to
 * transaction_lines().  Returns their bytes; -1: as response_filter_headers(),
 * or there is no memory for so many.
 */
long gw_take_lines(struct gw_call *call, struct slice lines, struct response_facts *facts);

/*
 * The head of the answer: its fields, fit to be sent, are the first
 * lines_length bytes of transaction_lines(), as gw_take_lines() has left them,
 * or head_buffer's, which has room for GW_LINES_MAX.  length: bytes of the body; TRANSACTION_UNKNOWN; 0 with has_body
 * false: there is none, and an error gets its page.  The body's pieces are the
 * caller's to set before it calls done().
 */
#define GW_OWN_LINES 128 /* bytes that gw_answer() adds */
#define GW_LINES_MAX (TRANSACTION_HEAD_MAX - GW_OWN_LINES)
void gw_answer(struct gw_call *call, int status, size_t lines_length, bool has_type, bool has_body,
	       uint64_t length);

/*
 * The program wants the answer of another path of this server to be its own
 * (RFC 3875, section 6.2.2).  The call is over.
 */
void gw_redirect(struct gw_call *call, struct slice target);

/* The length of an answer that was unknown is known, before done() was called. */
void gw_measured(struct gw_call *call, uint64_t length);

/* There is no answer: detail (may be NULL) is for the error's page. */
void gw_fail(struct gw_call *call, int status, const char *detail);

#endif
