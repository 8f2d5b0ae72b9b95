/* SPDX-License-Identifier: MIT */
/*
 * nabc-worker.h - requests to worker processes, responses as header + cache id.
 *
 * A server starts a worker with NC_exchange_start() and submits requests on a
 * lane (one per server thread); the worker accepts them, puts the body into
 * its own segment and responds with status, headers and the cache id.  Bodies
 * never pass between the two.  See nabc(7), NC_worker_open(3) and
 * NC_exchange_start(3).
 */
#ifndef NABC_WORKER_H
#define NABC_WORKER_H

#include <nabc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- the worker's end -------------------------------------------------- */

typedef struct NC_worker NC_worker;

/*
 * A request as the worker sees it.  variables points at "NAME=value" strings,
 * each ended by a NUL (the meta-variables of RFC 3875, section 4.1); the
 * memory is the library's and good until the next NC_worker_accept().
 */
struct NC_request {
	uint64_t tag; /* names the request in its response */
	uint32_t lane;
	const char *variables;
	size_t variables_length; /* bytes, the last NUL included */
};

/* A response: as the worker gives it, and as the server's end reaps it. */
struct NC_response {
	int status;	       /* 200 to 599 */
	unsigned flags;	       /* NC_RESPONSE_* */
	const char *headers;   /* "Name: value\r\n" lines, or NULL */
	size_t headers_length; /* bytes */
	struct NC_range body;  /* id 0: no body */
};

#define NC_RESPONSE_KEEP 0x1u /* the unit stays; without it, it is given back once sent */
#define NC_BLOCK_MAX 32768u   /* bytes of a request's variables or a response's headers */

NC_worker *NC_worker_open(void);
int NC_worker_accept(NC_worker *worker, struct NC_request *request);
const char *NC_request_variable(const struct NC_request *request, const char *name);
int NC_worker_respond(NC_worker *worker, const struct NC_request *request,
		      const struct NC_response *response);
void NC_worker_close(NC_worker *worker);

/* --- the server's end -------------------------------------------------- */

typedef struct NC_exchange NC_exchange;

struct NC_exchange_options {
	char *const *argv;	  /* program (found by PATH) and arguments, NULL ends */
	char *const *environment; /* added to the server's own, NULL ends; may be NULL */
	unsigned lanes;		  /* server threads that submit; 1 to NC_LANES_MAX */
	size_t memory;		  /* bytes of the worker's segment; 0: the cache's member_size */
};

#define NC_LANES_MAX 64u

NC_exchange *NC_exchange_start(NC_cache *cache, const struct NC_exchange_options *options);
pid_t NC_exchange_pid(const NC_exchange *exchange);
int NC_exchange_pidfd(const NC_exchange *exchange);
int NC_exchange_fd(const NC_exchange *exchange, unsigned lane);
int NC_exchange_submit(NC_exchange *exchange, unsigned lane, uint64_t tag, const char *variables,
		       size_t length);
int NC_exchange_kick(NC_exchange *exchange, unsigned lane);
int NC_exchange_reap(NC_exchange *exchange, unsigned lane, uint64_t *tag,
		     struct NC_response *response);
int NC_exchange_arm(NC_exchange *exchange, unsigned lane);
int NC_exchange_arm_for(NC_exchange *exchange, unsigned lane, unsigned responses);
int NC_exchange_close(NC_exchange *exchange);

#ifdef __cplusplus
}
#endif

#endif
