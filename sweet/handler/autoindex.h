/* SPDX-License-Identifier: MIT */
/*
 * autoindex.h - responds with the list of a directory, as HTML or JSON.
 */
#ifndef SWEET_AUTOINDEX_H
#define SWEET_AUTOINDEX_H

#include <stdbool.h>

#include "core/transaction.h"
#include "http/autoindex-render.h"

struct request;
struct thread;

#define AUTOINDEX_MAX 10000 /* entries of a listing at most */

/* What the request asks for, kept for after the request's memory has ended. */
struct autoindex_wish {
	struct autoindex_order order;
	bool json;
};

struct autoindex_wish autoindex_wish(const struct request *request);

/*
 * Lists the directory at path, relative to the root of the scope's file cache; it ends with '/' and
 * must remain valid; the client knows it as transaction->path.  Uses the scratch memory; the response
 * comes by done().
 */
enum respond autoindex_respond(struct transaction *transaction, const char *path,
			       struct autoindex_wish wish);

/*
 * Opens what this folder keeps for the thread; closes it, with the listings that are not made any
 * more, when the thread has no connections, nor helpers.
 */
void handler_thread_open(struct thread *thread);
void handler_thread_close(struct thread *thread);

#endif
