/* SPDX-License-Identifier: MIT */
/*
 * local-redirect.h - a program's redirect to a path of the same server, which the server follows
 * itself (RFC 3875, section 6.2.2).
 */
#ifndef SWEET_LOCAL_REDIRECT_H
#define SWEET_LOCAL_REDIRECT_H

#include <glib.h>
#include <stdbool.h>

#include "base/slice.h"

struct kept_request;
struct request;
struct transaction;

/*
 * Makes a GET or HEAD request for target, a path with a query, in which bytes that have no place in
 * a URL are escaped, with the fields of the kept request except those about a body.  Parses it
 * into *request, which points into the returned text (free it with g_string_free()).
 *
 * Counts it as one of the transaction's redirects.  Sets *good to false, and logs why, if target is
 * no path or there are too many redirects.
 */
GString *local_redirect_request(struct transaction *transaction, const struct kept_request *kept,
				struct slice target, struct request *request, bool *good);

#endif
