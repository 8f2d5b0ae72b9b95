/* SPDX-License-Identifier: MIT */
/*
 * request-spool.h - a request's body that waits on the disk until all of it has
 * come: only then a program is taken, which so waits for no client.
 *
 * While the client sends, each piece that came is appended to a spool.  When
 * the last one is there the first part is read back and the call goes to its
 * pool; the program gets the others as it asks for them.  A call's thread.
 */
#ifndef SWEET_REQUEST_SPOOL_H
#define SWEET_REQUEST_SPOOL_H

#include "backend/backend-call.h"

/* Whether bodies of the pool's requests wait so: its operator wants it, and there is a disk. */
bool request_spool_is_wanted(const struct gateway_pool *pool);

/* Bytes that a body can have at most, to wait. */
uint64_t request_spool_most(const struct gateway_pool *pool);

/*
 * Takes the piece of the body that is the transaction's upload.  If more is to
 * come backend_call_ask_piece() asks for it, now or soon; else backend_call_body_ready() is told
 * soon.  0, or the status to refuse the request with.
 */
int request_spool_take(struct backend_call *call);

/* The program has done with the part that it had: backend_call_body_ready() with the next. */
void request_spool_next(struct backend_call *call);

/* Bytes of all of it. */
uint64_t request_spool_length(const struct backend_call *call);

/* Nothing of it is needed any more; there may be none. */
void request_spool_end(struct backend_call *call);

#endif
