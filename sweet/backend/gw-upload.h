/* SPDX-License-Identifier: MIT */
/*
 * gw-upload.h - a request's body that waits on the disk until all of it has
 * come: only then a program is taken, which so waits for no client.
 *
 * While the client sends, each piece that came is appended to a spool.  When
 * the last one is there the first part is read back and the call goes to its
 * pool; the program gets the others as it asks for them.  A call's thread.
 */
#ifndef SWEET_GW_UPLOAD_H
#define SWEET_GW_UPLOAD_H

#include "backend/gw-call.h"

/* Whether bodies of the pool's requests wait so: its operator wants it, and there is a disk. */
bool gw_upload_is_wanted(const struct gateway_pool *pool);

/* Bytes that a body can have at most, to wait. */
uint64_t gw_upload_most(const struct gateway_pool *pool);

/*
 * Takes the piece of the body that is the transaction's upload.  If more is to
 * come gw_ask_piece() asks for it, now or soon; else gw_upload_ready() is told
 * soon.  0, or the status to refuse the request with.
 */
int gw_upload_take(struct gw_call *call);

/* The program has done with the part that it had: gw_upload_ready() with the next. */
void gw_upload_next(struct gw_call *call);

/* Bytes of all of it. */
uint64_t gw_upload_length(const struct gw_call *call);

/* Nothing of it is needed any more; there may be none. */
void gw_upload_end(struct gw_call *call);

#endif
