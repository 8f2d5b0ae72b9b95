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
 * transaction that is to be answered later lives until it is, client or not.
 *
 * A request's body is read and dropped, unless the responder asks for it with
 * receive() before it answers; then it comes as a unit that stands until the
 * end of the transaction.
 */
#ifndef SWEET_TRANSACTION_H
#define SWEET_TRANSACTION_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <nabc.h>

#include <htpasswd.h>
#include <conditional.h>
#include <multipart.h>
#include <range.h>
#include <request.h>

struct content;
struct content_entry;
struct generation;
struct host;
struct scope;
struct server;

#define TRANSACTION_HEAD_MAX 8192 /* bytes of a response's own header lines */
#define TRANSACTION_TEXT_MAX 4096 /* bytes of a body in memory */
#define TRANSACTION_SCRATCH 512	  /* bytes */

enum respond { RESPOND_NOW, RESPOND_LATER };

/* What is sent of a file; selection.c's, and good only once that has it. */
struct selection {
	struct conditions conditions;
	struct content *content;
	struct content_entry *entry;
	const char *type; /* Content-Type */
	size_t own_lines; /* bytes of header lines that are the caller's */
	struct range_set ranges;
	unsigned part;		    /* the range that is sent */
	bool parts;		    /* with texts of multipart/byteranges between */
	struct multipart multipart; /* with parts */
};

struct transaction {
	/* The request; `request` is good only while the responder starts. */
	struct server *server;	       /* this thread's */
	struct generation *generation; /* held until the end */
	const struct host *host;       /* by route.c */
	const struct scope *scope;     /* by route.c, after the path */
	const struct request *request;
	bool head_only;		 /* HEAD */
	bool has_upload;	 /* a body follows the head */
	size_t upload;		 /* the unit that it is in, once it was received; 0: empty */
	uint64_t upload_length;	 /* bytes */
	const char *remote_addr; /* of the connection, lives as long */
	uint16_t remote_port;
	const struct sockaddr *remote; /* the same, lives as long */
	const char *server_addr;       /* that the client connected to */
	uint16_t server_port;
	const struct sockaddr *local;		 /* of the socket, whatever a proxy says */
	char path[REQUEST_TARGET_MAX + 1];	 /* decoded, and rewritten if that is asked for */
	char remote_user[HTPASSWD_USER_MAX + 1]; /* who has shown a password; "": nobody */

	/* The response. */
	int status;
	const char *detail;   /* for the page of an error: static text, or NULL */
	const char *head;     /* header lines; lives until finish() */
	size_t head_length;   /* bytes */
	uint64_t length;      /* bytes of the whole body */
	struct NC_range body; /* the next piece, held; id 0: none */
	const void *text;     /* a small body in memory instead, of length bytes; until finish() */
	bool bodiless;	      /* no body, and no page for the status either */
	bool error_page;      /* errorpage.c has had its look at it */
	const char *lead;     /* text in front of the next piece, of length's bytes too ... */
	size_t lead_length;   /* ... at most TRANSACTION_TEXT_MAX; the connection clears this */

	/* Responder to connection. */
	void (*done)(struct transaction *transaction);
	/*
	 * Asks for the request's body, limit bytes at most, instead of answering;
	 * the last thing that the responder does.  received() is called when it is
	 * there, finish() when it is not to be had.
	 */
	void (*receive)(struct transaction *transaction, uint64_t limit);
	void *connection; /* the connection's; NULL: the client is gone */
	/* Connection to responder; may be NULL. */
	enum respond (*received)(struct transaction *transaction);
	enum respond (*next)(struct transaction *transaction); /* status 0 in the answer: cut off */
	void (*finish)(struct transaction *transaction);

	struct selection selection;
	/* The responder's: from its start to finish(). */
	alignas(16) unsigned char scratch[TRANSACTION_SCRATCH];
	char head_buffer[TRANSACTION_HEAD_MAX];
};

/* A response that is only a status and the small page for it. */
static inline enum respond transaction_fail(struct transaction *transaction, int status,
					    const char *detail)
{
	transaction->status = status;
	transaction->detail = detail;
	return RESPOND_NOW;
}

#endif
