/* SPDX-License-Identifier: MIT */
/*
 * transaction.h - one request and its response, as data.
 *
 * A connection fills in the request and hands the transaction to a responder
 * (static files, a gateway, the status page); the responder fills in the
 * response and says so.  Responders never see a connection.
 *
 * The life of a response: the responder returns RESPOND_NOW, or RESPOND_LATER
 * and calls done() later, once; the connection sends head and body, asks
 * next() for more as long as it is set, and at the end, or when the client is
 * gone, calls finish() once, which gives back what the body holds.  A
 * transaction that is to be answered later lives until it is, client or not:
 * gone() tells the responder that nobody waits for it any more.
 *
 * Of a body of unknown length the pieces come by next(), until one is empty.
 *
 * A request's body is read and dropped, unless the responder asks for it
 * before it answers: with receive() for one unit that stands until the end of
 * the transaction, or with receive_piece() for one unit after another, so that
 * it need not fit anywhere as a whole.  Who answers before he has had the last
 * piece does not want the rest; it is dropped like one that nobody asked for.
 */
#ifndef SWEET_TRANSACTION_H
#define SWEET_TRANSACTION_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <nabc.h>

#include "auth/htpasswd.h"
#include "event/loop.h"
#include "http/conditional.h"
#include "http/multipart.h"
#include "http/range.h"
#include "http/request.h"

struct file_cache;
struct file_cache_entry;
struct config_ref;
struct cache_store;
struct host;
struct scope;
struct thread;

#define TRANSACTION_HEAD_MAX 8192 /* bytes of a response's own header lines */
#define TRANSACTION_TEXT_MAX 4096 /* bytes of a body in memory */
#define TRANSACTION_AROUND_MAX                                                                     \
	(TRANSACTION_TEXT_MAX + 1024)  /* of that and the server's own lines */
#define TRANSACTION_SCRATCH 576	       /* bytes */
#define TRANSACTION_UNKNOWN UINT64_MAX /* length of a body that ends when it ends */

enum respond { RESPOND_NOW, RESPOND_LATER };

/* What is sent of a file; file-response.c's, and good only once that has it. */
struct file_response {
	struct conditions conditions;
	struct file_cache *cache;
	struct file_cache_entry *entry;
	const char *type; /* Content-Type */
	size_t own_lines; /* bytes of header lines that are the caller's */
	struct range_set ranges;
	unsigned part;		    /* the range that is sent */
	bool parts;		    /* with texts of multipart/byteranges between */
	struct multipart multipart; /* with parts */
};

struct transaction {
	/* The request; `request` is good only while the responder starts. */
	struct thread *thread;		  /* this thread's */
	struct config_ref *config_ref;	  /* held until the end */
	const struct host *host;	  /* by phase-target.c */
	const struct scope *scope;	  /* by phase-target.c, after the path */
	const struct scope *rewritten_by; /* by phase-rewrite.c: whose rule made the path; NULL */
	unsigned phase;			  /* route.c's: the next row of its table */
	const struct request *request;
	bool head_only;	 /* HEAD */
	bool has_upload; /* a body follows the head */
	size_t upload;	 /* the unit that it, or a piece, is in once received; 0: empty */
	struct NC_hold upload_hold; /* of that unit */
	uint64_t upload_length;	    /* bytes that have come, of all pieces */
	bool upload_more;	    /* what was received was not the last piece */
	const char *remote_addr;    /* of the connection, lives as long */
	uint16_t remote_port;
	const struct sockaddr *remote; /* the same, lives as long */
	const char *server_addr;       /* that the client connected to */
	uint16_t server_port;
	const struct sockaddr *local;		 /* of the socket, whatever a proxy says */
	char path[REQUEST_TARGET_MAX + 1];	 /* decoded, and rewritten if that is asked for */
	char remote_user[HTPASSWD_USER_MAX + 1]; /* who has shown a password; "": nobody */

	/* The response. */
	int status;
	const char *detail;	   /* for the page of an error: static text, or NULL */
	const char *reason;	   /* of a refusal, for the log: static text, or NULL */
	const char *head;	   /* header lines; lives until finish() */
	size_t head_length;	   /* bytes */
	time_t date;		   /* when it was made, for Date; 0: now */
	uint64_t length;	   /* bytes of the whole body, or TRANSACTION_UNKNOWN */
	struct NC_range body;	   /* the next piece; id 0: none */
	struct NC_hold hold;	   /* of its unit */
	struct page_memory *pages; /* that it lies in, a program's; NULL: the cache's */
	/*
	 * The next piece as several ranges instead, until next() or finish(), with a hold
	 * for each of them, or one for all if they are of one unit.
	 */
	const struct NC_range *ranges;
	const struct NC_hold *holds;
	unsigned range_count, hold_count;
	/* Or as bytes in memory; until next() or finish(). */
	const void *data;
	size_t data_length;
	struct loop_file file; /* or as a range of a file that is in the page cache */
	/*
	 * next() is asked when the client has acknowledged all that was sent: bytes of
	 * a file that somebody writes to may change until then.
	 */
	bool settle;
	bool reset;	    /* what is cut off ends with a reset, whatever tells its length */
	bool live;	    /* a piece is not to wait for the next: that is not made yet */
	const void *text;   /* a small body in memory instead, of length bytes; until finish() */
	bool bodiless;	    /* no body, and no page for the status either */
	bool error_page;    /* errorpage.c has had its look at it */
	const char *lead;   /* text in front of the next piece, of length's bytes too ... */
	size_t lead_length; /* ... at most TRANSACTION_TEXT_MAX; the connection clears this */

	/* Responder to connection. */
	void (*done)(struct transaction *transaction);
	/*
	 * Starts a responder, in place of one that had returned RESPOND_LATER, and
	 * calls done() if it answers now.  The body that it asks for is taken only
	 * when it has returned: the transaction lives until then.  The last thing
	 * that the caller does with the transaction.
	 */
	void (*resume)(struct transaction *transaction,
		       enum respond (*respond)(struct transaction *transaction, void *context),
		       void *context);
	/*
	 * Asks for the request's body, limit bytes at most, instead of answering;
	 * the last thing that the responder does.  received() is called when it is
	 * there, finish() when it is not to be had.
	 */
	void (*receive)(struct transaction *transaction, uint64_t limit);
	/*
	 * The same in pieces of window bytes: received() is called with the first
	 * as soon as there are so many, or the body is over.  With upload_more the
	 * responder asks again when it is done with the piece, which is given back
	 * by that; the last one may be empty.  Meanwhile the client waits.  finish()
	 * says that no more is to be had (or that nobody waits for the answer), and
	 * in place of a further piece may come from within the call; done() may be
	 * called while a piece is on its way.
	 */
	void (*receive_piece)(struct transaction *transaction, uint64_t limit, size_t window);
	/* Gives back what came of the body; the rest of it is not wanted. */
	void (*drop_upload)(struct transaction *transaction);
	/*
	 * In place of an answer: that to a request for target, a path with a
	 * query, with the other fields of head.  The responder has let go of the
	 * transaction.  route.c's.
	 */
	void (*again)(struct transaction *transaction, struct slice head, struct slice target);
	/*
	 * A phase that had the request wait (phase.h) lets it pass: goes on with the
	 * next one.  The request is set.  route.c's.
	 */
	enum respond (*proceed)(struct transaction *transaction);
	/* Bytes of the request's body and of the answer that have passed; NULL: there is no client. */
	uint64_t (*moved)(const struct transaction *transaction);
	/* The client is too slow, with a piece that is on its way to it or from it: finish() is called. */
	void (*give_up)(struct transaction *transaction);
	unsigned redirects; /* so far */
	void *connection;   /* the connection's; NULL: the client is gone */
	/* Connection to responder; may be NULL. */
	enum respond (*received)(struct transaction *transaction);
	enum respond (*next)(struct transaction *transaction); /* status 0 in the answer: cut off */
	void (*finish)(struct transaction *transaction);
	void (*gone)(struct transaction *transaction); /* while an answer or piece is being made */

	/* cache-store.c's; NULL, 0: nothing is to be done with the answer but to send it. */
	struct cache_store *store;
	uint64_t store_mark;

	struct file_response file_response;
	/* The responder's: from its start to finish(). */
	alignas(16) unsigned char scratch[TRANSACTION_SCRATCH];
	char head_buffer[TRANSACTION_HEAD_MAX];
	/* Of an answer with more lines than that has room for, as few have; NULL: none. */
	char *long_head;
	size_t long_room; /* bytes that long_head has room for */
	char *long_out;	  /* the allocation, which begins with room for output.c's whole head */
};

/* Where the lines of a response go that a responder copies. */
static inline char *transaction_lines(struct transaction *transaction)
{
	return transaction->long_head ? transaction->long_head : transaction->head_buffer;
}

/*
 * From now on transaction_lines() has room for that many bytes, and nothing in
 * it.  False: there is no memory.
 */
bool transaction_make_room(struct transaction *transaction, size_t bytes);

/* The lines have no room but head_buffer. */
void transaction_drop_room(struct transaction *transaction);

/* Bytes of the present piece, without the text in front of it. */
static inline uint64_t transaction_piece(const struct transaction *transaction)
{
	uint64_t bytes = 0;

	if (transaction->data)
		return transaction->data_length;
	if (transaction->file.length)
		return transaction->file.length;
	if (transaction->range_count == 0)
		return transaction->body.id ? transaction->body.length : 0;
	for (unsigned i = 0; i < transaction->range_count; i++)
		bytes += transaction->ranges[i].length;
	return bytes;
}

/* Nothing but a status and fields: the small page for it may follow. */
static inline bool transaction_is_bare(const struct transaction *transaction)
{
	return !transaction->body.id && !transaction->range_count && !transaction->data &&
	       !transaction->file.length && !transaction->text && !transaction->bodiless &&
	       transaction->length == 0;
}

/* The responder gives back what it has, and hears no more of the transaction. */
static inline void transaction_dismiss(struct transaction *transaction)
{
	if (transaction->finish)
		transaction->finish(transaction);
	transaction->finish = NULL;
	transaction->next = NULL;
	transaction->gone = NULL;
	transaction->date = 0;
}

/* A response that is only a status and the small page for it. */
static inline enum respond transaction_fail(struct transaction *transaction, int status,
					    const char *detail)
{
	transaction->status = status;
	transaction->detail = detail;
	transaction->reason = detail;
	return RESPOND_NOW;
}

/* The same, with what only the log is told. */
static inline enum respond transaction_refuse(struct transaction *transaction, int status,
					      const char *reason)
{
	transaction->status = status;
	transaction->detail = NULL;
	transaction->reason = reason;
	return RESPOND_NOW;
}

#endif
