/* SPDX-License-Identifier: MIT */
/*
 * request-spool.h - collects a request body on disk until it is complete; only then a program gets
 * the request, so that no program waits for a slow client.
 *
 * Each piece that comes from the client is appended to a spool.  After the last one, the first part
 * is read back and the call goes to its pool; the program gets the other parts on request.  It
 * belongs to the call's thread.
 */
#ifndef SWEET_REQUEST_SPOOL_H
#define SWEET_REQUEST_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

struct backend_call;
struct gateway_pool;

/* Whether bodies for the pool are collected, which needs request-buffering and a spool. */
bool request_spool_is_wanted(const struct gateway_pool *pool);

/* Returns the maximum length of a body that is collected. */
uint64_t request_spool_most(const struct gateway_pool *pool);

/*
 * Takes the piece of the body that is the transaction's upload.  If more follows, calls
 * backend_call_ask_piece(), now or soon; else backend_call_body_ready(), soon.  Returns 0, or the
 * status to refuse the request with.
 */
int request_spool_take(struct backend_call *call);

/* The program has consumed its part: backend_call_body_ready() follows with the next one. */
void request_spool_next(struct backend_call *call);

/* Returns the length of the whole body. */
uint64_t request_spool_length(const struct backend_call *call);

/* Releases everything; there may be nothing. */
void request_spool_end(struct backend_call *call);

#endif
