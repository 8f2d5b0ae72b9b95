/* SPDX-License-Identifier: MIT */
/*
 * upstream-request.h - the head of a request to an HTTP server behind this one (RFC 9112).
 */
#ifndef SWEET_UPSTREAM_REQUEST_H
#define SWEET_UPSTREAM_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "rules/request-rule.h"

struct request;

/* The line before that of Upgrade.  No other request has it. */
#define UPSTREAM_REQUEST_UPGRADE "Connection: Upgrade\r\n"

/* What is known about a request beside its head. */
struct upstream_request_context {
	const char *path;	    /* decoded, and rewritten if a rule requires that */
	struct slice query;	    /* the client's, or of that rule */
	const char *remote_addr;    /* of the client */
	const char *server_addr;    /* for Host if the client sent none */
	bool https;		    /* the client's URL is */
	bool authorization;	    /* pass that field as well */
	struct request_rules rules; /* whose fields pass, whatever the client says about them */
	const char *request_id;	    /* these three as in struct meta_context */
	const char *traceparent;
	bool trace_begins;
	const char *upgrade; /* of upstream_request_upgrade(); or NULL */
};

/*
 * Returns the protocol of the list (which ends with NULL, or is NULL) that the client wants to
 * switch to; NULL if none, or if the request says anything else than that.
 */
const char *upstream_request_upgrade(const struct request *request, char **protocols);

/*
 * Writes the request line and the fields, without those that frame the body and without the empty
 * line.  The path is as the client sent it, also with runs of slashes, of which only the one at its
 * start becomes one slash; unless it has dot segments (as "/a/../b") or an escaped slash that is
 * one for the rules, or a rule rewrote it: then it is context->path, escaped.  Fields that concern
 * one hop, or that say who the client is, are omitted, as are Expect, Proxy and names that
 * meta_write() omits; X-Forwarded-For, -Proto and -Host follow. Returns the bytes written, or -1 if
 * out is too small or Connection has too many names.
 */
long upstream_request_write(const struct request *request,
			    const struct upstream_request_context *context, char *out,
			    size_t out_size);

#endif
