/* SPDX-License-Identifier: MIT */
/*
 * nabc-worker.h - requests to worker processes, responses as header + cache id.
 *
 * A server starts a worker with NC_backend_start() and submits requests on a
 * channel (one for each server thread).  The worker accepts a request, writes the
 * body into its own segment and responds with status, headers and the cache
 * id; the bytes of the body are not passed.  See nabc(7), NC_worker_open(3)
 * and NC_backend_start(3).
 */
#ifndef NABC_WORKER_H
#define NABC_WORKER_H

#include <nabc.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- the worker's end -------------------------------------------------- */

typedef struct NC_worker NC_worker;

/* Options of NC_worker_open(); zero in a field means its default. */
struct NC_worker_options {
	size_t size;	/* of this structure */
	unsigned flags; /* NC_WORKER_* */
	int socket;	/* with NC_WORKER_SOCKET: to the server; default: $NABC_WORKER_FD */
	NC_log log;	/* may be NULL */
	void *log_context;
};

#define NC_WORKER_OPTIONS_INIT(...) NC_INIT(struct NC_worker_options, __VA_ARGS__)

#define NC_WORKER_SOCKET 0x1u /* socket is given */

/*
 * A request as the worker receives it.  variables points to "NAME=value"
 * strings, each terminated by a NUL (the meta-variables of RFC 3875, section
 * 4.1).  The library owns this memory; it is valid until the request is
 * complete: answered in full, or aborted.
 */
struct NC_request {
	size_t size;  /* of this structure; NC_worker_accept() sets it */
	uint64_t tag; /* identifies the request in its response */
	uint32_t channel;
	unsigned flags; /* NC_REQUEST_* */
	const char *variables;
	size_t variables_length; /* bytes, the last NUL included */
};

#define NC_REQUEST_BODY 0x1u /* NC_worker_body() returns a body, in pieces */
#define NC_REQUEST_GONE 0x2u /* an event: the client of this accepted request is gone */

/* A response, as the worker passes it and as NC_backend_reap() returns it. */
struct NC_response {
	size_t size;	       /* of this structure */
	int status;	       /* 200 to 599; 101 with NC_RESPONSE_MORE: bytes in both directions */
	unsigned flags;	       /* NC_RESPONSE_* */
	const char *headers;   /* "Name: value\r\n" lines, or NULL */
	size_t headers_length; /* bytes */
	struct NC_range body;  /* id 0: no body, or the list in ranges */
	const struct NC_range *ranges;
	const struct NC_hold
		*holds;	      /* when reaped: one for each range, which the caller releases */
	unsigned range_count; /* at most NC_RESPONSE_RANGES_MAX */
	const void *data;     /* with NC_BACKEND_POSIX, when reaped: the body, to be freed */
	size_t data_length;   /* bytes */
};

#define NC_RESPONSE_INIT(...) NC_INIT(struct NC_response, __VA_ARGS__)

#define NC_RESPONSE_KEEP 0x1u	 /* the units stay; otherwise they are released when sent */
#define NC_RESPONSE_MORE 0x2u	 /* pieces follow */
#define NC_RESPONSE_NOWAIT 0x20u /* fail with EAGAIN instead of waiting */
#define NC_RESPONSE_DROP(i) (0x10000u << (i)) /* with KEEP: release the unit of range i */
#define NC_RESPONSE_RANGES_MAX 16u
#define NC_WORKER_WINDOW 8u /* pieces of one response, or of one request's body, in flight */
#define NC_WORKER_STREAMS_MAX 1024u /* unfinished responses of a worker */
#define NC_BLOCK_MAX 32768u	    /* bytes of a request's variables or a response's headers */

#define NC_ACCEPT_NOWAIT 0x1u /* fail with EAGAIN instead of waiting */
#define NC_ACCEPT_EVENTS 0x2u /* return events, too: NC_REQUEST_GONE */
#define NC_BODY_NOWAIT 0x2u   /* fail with EAGAIN instead of waiting */

NC_worker *NC_worker_open(const struct NC_worker_options *options);
int NC_worker_fd(NC_worker *worker);
int NC_worker_accept(NC_worker *worker, struct NC_request *request, size_t size, unsigned flags);
const char *NC_request_variable(const struct NC_request *request, const char *name);
int NC_worker_respond(NC_worker *worker, const struct NC_request *request,
		      const struct NC_response *response);
int NC_worker_send(NC_worker *worker, const struct NC_request *request,
		   const struct NC_range *ranges, unsigned count, unsigned flags);
int NC_worker_trailers(NC_worker *worker, const struct NC_request *request, const char *lines,
		       size_t length, unsigned flags);
int NC_worker_body(NC_worker *worker, struct NC_request *request, struct NC_range *piece,
		   unsigned flags);
int NC_worker_abort(NC_worker *worker, const struct NC_request *request);
int NC_worker_gone(NC_worker *worker, const struct NC_request *request);
int NC_worker_interim(NC_worker *worker, const struct NC_request *request,
		      const struct NC_response *response);
int NC_worker_replace(NC_worker *worker);
void NC_worker_close(NC_worker *worker);

/*
 * Reads a program's head, "Status: 404 Not Found\r\nName: value\r\n\r\n" (RFC 3875, section 6),
 * for NC_worker_respond(): sets status, headers and headers_length of response, whose size is set.
 * Returns the bytes of the head, or -1; errno EAGAIN: the head is not complete, EBADMSG: it is wrong.
 */
ssize_t NC_response_headers_parse(struct NC_response *response, char *text, size_t length);

/*
 * Returns 0 if a server accepts these lines of a worker, or -1 with EBADMSG and in *wrong, which may
 * be NULL, the offset of the first wrong line.
 */
int NC_response_headers_check(const char *headers, size_t length, size_t *wrong);

/* --- the server's end -------------------------------------------------- */

typedef struct NC_backend NC_backend;

struct NC_backend_options {
	size_t size;		  /* of this structure */
	char *const *argv;	  /* program (searched in PATH) and arguments, NULL-terminated */
	char *const *environment; /* added to the server's, NULL-terminated; may be NULL */
	unsigned channels;	  /* server threads that submit requests, 1 to NC_CHANNELS_MAX */
	size_t memory;		  /* bytes of the worker's segment; 0: the cache's member_size */
	/*
	 * Starts the worker instead of the library, which then ignores argv.  Returns 0,
	 * or -1 with errno.  *pid 0: NC_backend_started() follows.
	 */
	int (*start)(void *context, int socket, char *const *environment, pid_t *pid, int *pidfd);
	void *context;	/* of start */
	unsigned flags; /* NC_BACKEND_* */
	int output;	/* with NC_BACKEND_OUTPUT: for standard output and error */
};

#define NC_BACKEND_OPTIONS_INIT(...) NC_INIT(struct NC_backend_options, __VA_ARGS__)

#define NC_BACKEND_POSIX 0x1u  /* bodies are passed as bytes, through a pipe */
#define NC_BACKEND_OUTPUT 0x2u /* output is set; else it is the server's standard error */

#define NC_CHANNELS_MAX 64u

/* Flags of reaped records that are no complete response: status is 0. */
#define NC_RESPONSE_PIECE 0x4u	  /* the next piece of a response */
#define NC_RESPONSE_ABORTED 0x8u  /* the response was cut off */
#define NC_RESPONSE_TAKEN 0x10u	  /* no response: a piece of the request's body was released */
#define NC_RESPONSE_REPLACE 0x40u /* no response: the worker asks to be replaced */
#define NC_RESPONSE_INTERIM 0x80u /* but this one has a status, 1xx: the response follows */

#define NC_BODY_LAST 0x1u /* the last piece of the body */

NC_backend *NC_backend_start(NC_cache *cache, const struct NC_backend_options *options);
int NC_backend_started(NC_backend *backend, pid_t pid, int pidfd);
pid_t NC_backend_pid(const NC_backend *backend);
int NC_backend_pidfd(const NC_backend *backend);
int NC_backend_fd(const NC_backend *backend, unsigned channel);
int NC_backend_submit(NC_backend *backend, unsigned channel, uint64_t tag, const char *variables,
		      size_t length, unsigned flags);
int NC_backend_body(NC_backend *backend, unsigned channel, uint64_t tag,
		    const struct NC_range *piece, unsigned flags);
int NC_backend_kick(NC_backend *backend, unsigned channel);
int NC_backend_reap(NC_backend *backend, unsigned channel, uint64_t *tag,
		    struct NC_response *response, size_t size);
int NC_backend_sent(NC_backend *backend, unsigned channel, uint64_t tag);
int NC_backend_cancel(NC_backend *backend, unsigned channel, uint64_t tag);
void NC_backend_data_free(const void *data);
int NC_backend_arm(NC_backend *backend, unsigned channel, unsigned responses);
int NC_backend_pending(const NC_backend *backend, unsigned channel);
int NC_backend_withdraw(NC_backend *backend, unsigned channel, unsigned most, unsigned *left);
int NC_backend_stop(NC_backend *backend);
int NC_backend_close(NC_backend *backend);

#ifdef __cplusplus
}
#endif

#endif
