/* SPDX-License-Identifier: MIT */
/*
 * autoindex.h - answers with what is in a folder, as HTML or as JSON.
 */
#ifndef SWEET_AUTOINDEX_H
#define SWEET_AUTOINDEX_H

#include "core/transaction.h"
#include "http/autoindex-render.h"

#define AUTOINDEX_MAX 10000 /* entries of a listing */

/* What a request asks for, for when it is gone. */
struct autoindex_wish {
	struct autoindex_order order;
	bool json;
};

struct autoindex_wish autoindex_wish(const struct request *request);

/*
 * Lists the folder at path (below the file cache of the transaction's scope; ends
 * with '/'; stays), which the client knows as transaction->path.  Takes the
 * scratch, next() and finish(); the answer comes by done().
 */
enum respond autoindex_respond(struct transaction *transaction, const char *path,
			       struct autoindex_wish wish);

#endif
