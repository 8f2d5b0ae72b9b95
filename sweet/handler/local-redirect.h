/* SPDX-License-Identifier: MIT */
/*
 * local-redirect.h - a program's redirect to a path of the same server, which the
 * server follows itself (RFC 3875, section 6.2.2): the request for that path.
 */
#ifndef SWEET_LOCAL_REDIRECT_H
#define SWEET_LOCAL_REDIRECT_H

#include <glib.h>

#include "core/transaction.h"

/*
 * Makes a GET or HEAD request for target, a path with a query, of a request's head:
 * the same fields, but those of a body.  It is parsed into *request, which lies in the
 * text that is returned (the caller's, for g_string_free()).
 *
 * Counts it as one of the transaction's redirects.  False in *good: target is no path,
 * or those are too many; that is logged.
 */
GString *local_redirect_request(struct transaction *transaction, struct slice head,
				struct slice target, struct request *request, bool *good);

#endif
