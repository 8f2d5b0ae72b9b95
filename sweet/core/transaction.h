/* SPDX-License-Identifier: MIT */
/*
 * transaction.h - one request and its response, as data.
 *
 * A connection fills in the request and passes the transaction to a responder (static files, a
 * gateway, the status page), which fills in the response.  Responders never see a connection: each
 * calls the other by a const table of functions, struct transaction_owner and struct
 * transaction_responder.  A third one, struct transaction_router, leads a request to another responder.
 *
 * The life of a response: the responder sets its table.  It returns RESPOND_NOW, or returns
 * RESPOND_LATER and calls transaction_done() later, once.  The connection sends head and body, and
 * calls next() for more while the table has it, after it has released the piece that was sent
 * (event/piece.h).  At the end, or when the client has disconnected, it releases the piece and calls
 * finish() once, which releases all else that the response has.  A transaction with a pending response
 * lives until the response comes, even without its client: gone() tells the responder that it is not
 * needed any more.
 *
 * A responder whose abilities change, because it has sent its last piece or does not wait any more,
 * sets another table.  One that takes a response over sets its own, which replaces all of the other's
 * functions; one that stands in between (coded-response.c) saves the other's table, and restores it.
 *
 * A body of unknown length comes in pieces by next(), until an empty one.
 *
 * A request body is read and dropped, unless the responder requests it before it responds: with
 * receive() as one unit, which exists until the end of the transaction, or with receive_piece() as
 * a sequence of units, so that it need not fit anywhere as a whole.  If the responder responds
 * before it has the last piece, the rest is dropped.
 */
#ifndef SWEET_TRANSACTION_H
#define SWEET_TRANSACTION_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <nabc.h>

#include "base/slice.h"
#include "event/piece.h"
#include "http/accept.h"
#include "http/request.h"
#include "rules/path-pattern.h"

struct client_calls;
struct file_cache;
struct file_cache_entry;
struct config_ref;
struct cache_store;
struct coded_response;
struct fields;
struct host;
struct kept_request;
struct remembered;
struct scope;
struct thread;
struct tls_channel;
struct transaction;

#define TRANSACTION_HEAD_MAX 8192  /* bytes of a response's own header lines */
#define TRANSACTION_TEXT_MAX 4096  /* bytes of a body in memory */
#define TRANSACTION_RULES_MAX 2048 /* bytes that rules for fields add to a head */
#define TRANSACTION_AROUND_MAX                                                                     \
	(TRANSACTION_TEXT_MAX + TRANSACTION_RULES_MAX + 1792) /* of that, with other lines */
#define TRANSACTION_INTERIM_MAX 8192   /* bytes of an interim response's lines */
#define TRANSACTION_TRAILERS_MAX 4096  /* bytes of trailer fields */
#define TRANSACTION_SCRATCH 592	       /* bytes */
#define TRANSACTION_ID_MAX 64	       /* bytes of a request's id */
#define TRANSACTION_USER_MAX 127       /* bytes of a name */
#define TRANSACTION_TRACEPARENT 55     /* bytes of the field */
#define TRANSACTION_TRACE_PARENT 16    /* bytes of the id in it */
#define TRANSACTION_FILE_RESPONSE 1536 /* bytes of struct file_response */
#define TRANSACTION_UNKNOWN UINT64_MAX /* length of a body that is not known before its end */

/* Or an enum coding: what the client prefers of the codings for the path. */
#define TRANSACTION_AS_IT_IS (-2)
#define TRANSACTION_NO_CODING (-1) /* it accepts none of them, but others may */

enum respond { RESPOND_NOW, RESPOND_LATER };

/* When a request reached a program, by the loop's clock; 0: it did not. */
struct transaction_times {
	uint64_t ready_ns;     /* its program could have got it */
	uint64_t submitted_ns; /* it got it */
	uint64_t answered_ns;  /* the head of its response came, or it failed */
};

/*
 * What a responder asks of the owner of its transaction: a connection, or the response cache, which
 * refreshes a response without a client.  Each owner has all of them.
 */
struct transaction_owner {
	/*
	 * The responder, which had returned RESPOND_LATER, has the response or its next piece;
	 * status 0 cuts the response off.  Responders call transaction_done().
	 */
	void (*done)(struct transaction *transaction);
	/*
	 * Starts another responder, in place of one that has returned RESPOND_LATER, and calls
	 * done() if it responds at once.  The body that it requests is received only after it has
	 * returned: the transaction lives until then.  May free the transaction.
	 */
	void (*resume)(struct transaction *transaction,
		       enum respond (*respond)(struct transaction *transaction, void *context),
		       void *context);
	/*
	 * Requests the request body, at most limit bytes, before a response; the responder must not
	 * use the transaction afterwards. received() is called when the body has come, finish() if
	 * it cannot come.
	 */
	void (*receive)(struct transaction *transaction, uint64_t limit);
	/*
	 * Requests the body in pieces of window bytes: received() is called with the first when
	 * that many bytes have come, or the body has ended.  With upload_more the responder
	 * requests the next piece when it has consumed the current one, which releases it; the last
	 * piece may be empty.  Meanwhile the client waits. finish() is called if no more can come,
	 * or nobody waits for the response; for a further piece it may be called before the call
	 * returns. done() may be called while a piece is being received.
	 */
	void (*receive_piece)(struct transaction *transaction, uint64_t limit, size_t window);
	/* Releases what has come of the body; the rest is dropped. */
	void (*drop_upload)(struct transaction *transaction);
	/* Returns the bytes of request body and response transferred so far. */
	uint64_t (*moved)(const struct transaction *transaction);
	/* The client is too slow: ends the connection, which calls finish(). */
	void (*give_up)(struct transaction *transaction);
	/* Stops what tunnel() gets, soon, or continues. */
	void (*hold_input)(struct transaction *transaction, bool hold);
	/*
	 * Sends an interim response with these header lines, which are safe to send, at most
	 * TRANSACTION_INTERIM_MAX bytes.  A client that cannot get it now, or at all, gets none.
	 * The responder has returned RESPOND_LATER, and the response has not begun.
	 */
	void (*interim)(struct transaction *transaction, int status, struct slice lines);
};

/*
 * What leads a request to another responder: route.c, or for the response cache's own requests, which
 * go to no other, functions that end them.  Each router has all of them.
 */
struct transaction_router {
	/*
	 * Responds with the response to a request for target, a path with a query, with the other
	 * fields of the kept one.  The responder has released the transaction.
	 */
	void (*again)(struct transaction *transaction, const struct kept_request *kept,
		      struct slice target);
	/*
	 * Responds with the file at path, below the folder of that scope, to a request with the
	 * fields of the kept one.  The responder has released the transaction.
	 */
	void (*send_file)(struct transaction *transaction, const struct kept_request *kept,
			  const struct scope *files, const char *path);
	/*
	 * A phase that made the request wait (phase.h) lets it pass: runs the next phase.  The
	 * request is set.
	 */
	enum respond (*proceed)(struct transaction *transaction);
};

/*
 * What a responder does for the owner of its transaction; NULL: nothing.  A responder that does
 * other things in another state has a table for each of them.
 */
struct transaction_responder {
	/*
	 * Of one that stands between another responder and the owner: the other one is done.
	 * RESPOND_LATER: the owner does not learn it yet.
	 */
	enum respond (*source_done)(struct transaction *transaction);
	/* The body of the request, or the piece of it that was requested, has come. */
	enum respond (*received)(struct transaction *transaction);
	/* The piece was sent and released, and the body is longer.  Sets status to 0 to cut it off. */
	enum respond (*next)(struct transaction *transaction);
	/*
	 * With a response 101: gets what the client sends from then on; length 0: its end.  The
	 * body of the response is sent as it is.
	 */
	void (*tunnel)(struct transaction *transaction, const char *data, size_t length);
	/* With tunnel(): the server ends, and waits for the responder to end it.  NULL: it continues. */
	void (*drain)(struct transaction *transaction);
	/* While a response or piece is being made: it is not needed any more. */
	void (*gone)(struct transaction *transaction);
	/* The client has closed its end only, meanwhile: it may still read the response. */
	void (*half_closed)(struct transaction *transaction);
	/* Releases what the response has besides its piece; called once. */
	void (*finish)(struct transaction *transaction);
};

/* How and from where the request came. */
struct transaction_peer {
	const char *remote_addr; /* of the connection, which outlives it, or of its output */
	uint16_t remote_port;
	const struct sockaddr *remote; /* the same */
	const char *server_addr;       /* that the client connected to */
	uint16_t server_port;
	const struct sockaddr *local; /* the socket's own, even behind a proxy */
	bool status_only;	      /* of a listener for the status alone */
	bool secure;		      /* by TLS */
	bool https;		      /* the client's URL is: by TLS, or as a proxy says */
	bool http2;		      /* on a stream of HTTP/2 */
	bool trailers;		      /* it takes trailer fields */
	struct client_calls *calls;   /* of its session, a user of it; NULL: not counted */
	uint64_t policy;	      /* with TLS: the rules for clients that were kept */
	struct tls_channel *tls;      /* with TLS: of the connection, too */
};

/* What the rules have decided, besides host and scope. */
struct transaction_route {
	struct path_captures captures; /* of the scope's pattern, in the path */
	/* set by phase-rewrite.c: the scope whose rule made the path; or NULL */
	const struct scope *rewritten_by;
	const struct scope *files; /* whose folder has the file; NULL: the scope */
	struct remembered *known;  /* until its scope is known; NULL: nothing is remembered */
	char *query;		   /* the query of a rewrite; NULL: the request's */
	unsigned phases;	   /* of route.c: the rows of its table that are left */
	unsigned redirects;	   /* number so far */
	bool tried;		   /* phase-try.c has run */
	bool found;		   /* and a file or folder answers, even if the scope has a pool */
	bool indexed;		   /* phase-index.c: the path is that of a folder's index */
	bool no_index;		   /* or the folder has none */
	bool accel;		   /* the next request of again() is to an internal path */
	bool internal;		   /* this one is */
};

/* The body of the request, or the piece of it that has come. */
struct transaction_upload {
	bool has;	     /* a body follows the head */
	bool more;	     /* more pieces follow the received one */
	size_t unit;	     /* of the received body or piece; 0: empty */
	struct NC_hold hold; /* of that unit */
	uint64_t length;     /* bytes received, of all pieces */
};

/* By which logs and collectors of traces find the request. */
struct transaction_trace {
	char id[TRANSACTION_ID_MAX + 1];	       /* of the request; "": none */
	char traceparent[TRANSACTION_TRACEPARENT + 1]; /* for programs; "": none */
	/* The span that the request came from; "": none. */
	char parent[TRANSACTION_TRACE_PARENT + 1];
	bool begins;   /* with this request */
	bool exported; /* its span is sent to a collector */
};

struct transaction_response {
	int status;
	const char *detail; /* for the error page: static text, or NULL */
	const char *reason; /* of a refusal, for the log: static text, or NULL */
	char *phrase;	    /* a program's, of phrase_status; NULL: the usual one */
	int phrase_status;  /* with another status, the phrase is not sent */
	const char *head;   /* header lines, valid until finish() */
	size_t head_length; /* bytes */
	time_t date;	    /* when the response was made, for Date; 0: now */
	time_t modified;    /* of a file, as in Last-Modified of the head; 0: no file */
	uint64_t length;    /* bytes of the whole body, or TRANSACTION_UNKNOWN */
	char *header_lines; /* of header_rules_expand(), for the scope; or NULL */
	char *accel_lines;  /* that a program has set for the response of another path; or NULL */
	/* Lines of malloc() that follow a body of unknown length, if the client takes them. */
	char *trailers;
	size_t trailers_length; /* bytes */
	bool reset;		/* if cut off, reset the connection, even if the length shows it */
	bool bodiless;		/* no body, and no error page either */
	bool live;		/* each piece is sent at once: the next one does not exist yet */
	bool error_page;	/* errorpage.c has processed the response */
	bool unlogged;		/* a status page, which the access log does not have */
	bool codings_known;	/* unless they are, the request says them: transaction_codings() */
	/* Of a program's response: TRANSACTION_AS_IT_IS, or whether and how it may be compressed. */
	signed char coding;
	enum coding codings[CODINGS]; /* that the client prefers */
	unsigned coding_count;
	struct coded_response *coded; /* of coded-response.c, while it is; or NULL */
	const char *cache_verdict;    /* of the response cache, static text; NULL: not asked */
	const char *pool_name;	      /* of the pool that responds; NULL: none */
	/* The head of a response if head_buffer is too small for its lines; else NULL. */
	char *long_head;
	size_t long_room; /* bytes */
};

struct transaction {
	struct thread *thread;
	struct config_ref *config_ref; /* a reference until the end */
	const struct host *host;       /* set by phase-target.c */
	const struct scope *scope;     /* set by phase_scope(), after the path */
	const struct request *request; /* valid only while the responder starts */
	bool head_only;		       /* the method is HEAD */
	bool has_authorization;	       /* the client's own request; set by phase-pool.c */
	char remote_user[TRANSACTION_USER_MAX + 1]; /* the authenticated user; "": none */
	struct transaction_times times;
	struct transaction_peer peer;
	struct transaction_route route;
	struct transaction_upload upload;
	struct transaction_trace trace;
	struct transaction_response response;
	struct piece piece; /* the next one of the body */

	const struct transaction_owner *owner;
	const struct transaction_router *router;
	void *connection; /* the connection; NULL: it has ended */
	/* Set by the responder when its state changes; NULL: it has nothing to do any more. */
	const struct transaction_responder *responder;

	/* Of cache-store.c; NULL, 0: nothing to do but to send the response. */
	struct cache_store *store;
	uint64_t store_mark;
	/*
	 * Private to the responder, from its start to finish().  transaction_init() zeroes what is
	 * before it, and of the rest only the beginning of the path.
	 */
	alignas(16) unsigned char scratch[TRANSACTION_SCRATCH];
	/* core/file-response.h: what is sent of a file. */
	alignas(16) unsigned char file_response[TRANSACTION_FILE_RESPONSE];
	/* Large buffers, of which little is used: last, so that a request uses few pages of memory. */
	char path[REQUEST_TARGET_MAX + 1]; /* decoded, and rewritten if a rule requires that */
	char head_buffer[TRANSACTION_HEAD_MAX];
};

/* Returns the query, as long as the request is set. */
static inline struct slice transaction_query(const struct transaction *transaction)
{
	const char *query = transaction->route.query;

	return query ? (struct slice){query, strlen(query)} : transaction->request->query;
}

/* Returns where a responder that copies the lines of a response writes them. */
static inline char *transaction_lines(struct transaction *transaction)
{
	return transaction->response.long_head ? transaction->response.long_head
					       : transaction->head_buffer;
}

/*
 * Gives transaction_lines() room for that many bytes; its contents are lost.  Returns false without
 * memory.
 */
bool transaction_make_room(struct transaction *transaction, size_t bytes);

/*
 * Stores the codings that the client prefers to none, in its order, then in that of the scope; returns
 * their number.  request: the one that the responder sees.
 */
unsigned transaction_codings(const struct transaction *transaction, const struct request *request,
			     enum coding order[CODINGS]);

/*
 * Sets the status's phrase of a program; of one that is empty, usual or too long, the usual one is
 * sent.
 */
void transaction_set_phrase(struct transaction *transaction, int status, struct slice phrase);

/*
 * Makes the fields, which may refer to the present head, the head of the response, in memory of its
 * own.  Returns false without memory.
 */
bool transaction_set_head(struct transaction *transaction, const struct fields *fields);

/* Puts accel_lines into the head, unless the response is an error. */
void transaction_merge_lines(struct transaction *transaction);

/* Frees that memory: lines go to head_buffer again. */
void transaction_drop_room(struct transaction *transaction);

/*
 * Makes an empty request and response in memory of whatever contents, as the only constructor of
 * transactions.  Takes a reference of config_ref; the owner sets `owner` and `router`.
 */
void transaction_init(struct transaction *transaction, struct thread *thread,
		      struct config_ref *config_ref);

/* Frees what each transaction has, of whichever owner, after finish(). */
void transaction_release(struct transaction *transaction);

/* Whether the response is only a status and fields, so that the error page can follow. */
static inline bool transaction_is_bare(const struct transaction *transaction)
{
	return transaction->piece.kind == PIECE_NONE && !transaction->response.bodiless &&
	       transaction->response.length == 0;
}

/* The responder, which had returned RESPOND_LATER, is done.  May free the transaction. */
static inline void transaction_done(struct transaction *transaction)
{
	const struct transaction_responder *responder = transaction->responder;

	if (responder && responder->source_done &&
	    responder->source_done(transaction) == RESPOND_LATER)
		return;
	transaction->owner->done(transaction);
}

/* Calls of the responder: see its table.  Only one that has received() requests a body. */
static inline enum respond transaction_received(struct transaction *transaction)
{
	return transaction->responder->received(transaction);
}

static inline bool transaction_has_next(const struct transaction *transaction)
{
	return transaction->responder && transaction->responder->next;
}

static inline enum respond transaction_next(struct transaction *transaction)
{
	piece_release(&transaction->piece);
	return transaction->responder->next(transaction);
}

static inline bool transaction_has_tunnel(const struct transaction *transaction)
{
	return transaction->responder && transaction->responder->tunnel;
}

static inline void transaction_tunnel(struct transaction *transaction, const char *data,
				      size_t length)
{
	transaction->responder->tunnel(transaction, data, length);
}

static inline void transaction_drain(struct transaction *transaction)
{
	if (transaction->responder && transaction->responder->drain)
		transaction->responder->drain(transaction);
}

static inline void transaction_gone(struct transaction *transaction)
{
	if (transaction->responder && transaction->responder->gone)
		transaction->responder->gone(transaction);
}

static inline void transaction_half_closed(struct transaction *transaction)
{
	if (transaction->responder && transaction->responder->half_closed)
		transaction->responder->half_closed(transaction);
}

/* The responder gets no more calls. */
static inline void transaction_finish(struct transaction *transaction)
{
	const struct transaction_responder *responder = transaction->responder;

	transaction->responder = NULL;
	piece_release(&transaction->piece);
	if (responder && responder->finish)
		responder->finish(transaction);
}

/* Releases what the responder has, and forgets what it has said of the response. */
static inline void transaction_dismiss(struct transaction *transaction)
{
	transaction_finish(transaction);
	transaction->response.date = transaction->response.modified = 0;
	transaction->response.phrase_status = 0;
}

/* Responds with a status and its built-in page. */
static inline enum respond transaction_fail(struct transaction *transaction, int status,
					    const char *detail)
{
	transaction->response.status = status;
	transaction->response.detail = detail;
	transaction->response.reason = detail;
	return RESPOND_NOW;
}

/* Responds with a status and its built-in page; the reason is for the log only. */
static inline enum respond transaction_refuse(struct transaction *transaction, int status,
					      const char *reason)
{
	transaction->response.status = status;
	transaction->response.detail = NULL;
	transaction->response.reason = reason;
	return RESPOND_NOW;
}

#endif
