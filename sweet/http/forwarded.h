/* SPDX-License-Identifier: MIT */
/*
 * forwarded.h - what trusted proxies say about a client, in the fields of a request: Forwarded (RFC
 * 7239), or X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host.
 */
#ifndef SWEET_FORWARDED_H
#define SWEET_FORWARDED_H

#include <glib.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "base/slice.h"

struct request;

/* In the order of the values of "forwarded". */
enum forwarded_fields { FORWARDED_X, FORWARDED_STANDARD };

#define FORWARDED_HOPS_MAX 32u /* the last ones; more are not read */

struct forwarded {
	struct sockaddr_storage client; /* AF_UNSPEC: they do not say, or it is unknown */
	bool unknown; /* they speak of a client, but its address cannot be read, or is not named */
	struct slice host;   /* the client's Host, with any port; empty: they do not say */
	struct slice scheme; /* "http" or "https", or empty */
	struct slice wrong; /* the entry that ended the list, as no address can be read; or empty */
};

typedef bool forwarded_trusts(const struct sockaddr *address, const void *context);

/*
 * Reads the fields of a request that a trusted proxy sent, from right to left: each address was
 * added by the proxy to its right, so the first one that is not trusted is the client's.  If one
 * cannot be read before that, the client is unknown: it is none of the proxies that were read.  Scheme
 * and host are those of the same hop, if there are as many of them, else the last ones; there are
 * none if the last hop is wrong.
 */
void forwarded_read(struct forwarded *forwarded, const struct request *request,
		    enum forwarded_fields fields, forwarded_trusts *trusts, const void *context);

/*
 * Returns the head of the request (g_string_free()) without the fields of both families and
 * X-Real-IP, and with the host that forwarded says, if it does; parse it again.  NULL: the same as
 * the request's.
 */
GString *forwarded_rewrite(const struct request *request, const struct forwarded *forwarded);

#endif
