/* SPDX-License-Identifier: MIT */
/*
 * browse.h - answers with what is in a folder, as HTML or as JSON.
 */
#ifndef SWEET_BROWSE_H
#define SWEET_BROWSE_H

#include "core/transaction.h"
#include "http/listing.h"

#define BROWSE_MAX 10000 /* entries of a listing */

/* What a request asks for, for when it is gone. */
struct browse_wish {
	struct listing_order order;
	bool json;
};

struct browse_wish browse_wish(const struct request *request);

/*
 * Lists the folder at path (below the content of the transaction's scope; ends
 * with '/'; stays), which the client knows as transaction->path.  Takes the
 * scratch, next() and finish(); the answer comes by done().
 */
enum respond browse_respond(struct transaction *transaction, const char *path,
			    struct browse_wish wish);

#endif
