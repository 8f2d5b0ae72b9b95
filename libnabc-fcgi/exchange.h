/* SPDX-License-Identifier: MIT */
/*
 * exchange.h - a request of the server, from its acceptance to its end, with the streams that the
 * program has.
 */
#ifndef NABC_FCGI_EXCHANGE_H
#define NABC_FCGI_EXCHANGE_H

#include <nabc-worker.h>

#include "input.h"
#include "layout.h"
#include "output.h"

struct fcgi_exchange {
	struct NC_request request; /* its variables are in block */
	char *block;
	char **envp;
	struct fcgi_stream in, out, err;
	struct fcgi_input input;
	struct fcgi_output output;
	struct fcgi_request *owner;
	unsigned char errors[1024]; /* of the stream err */
	struct fcgi_exchange *next, **link;
};

/*
 * Waits for the next request and connects it with owner.  Returns 0, or -errno; ECANCELED: the
 * server has ended.
 */
int fcgi_exchange_accept(struct fcgi_request *owner);

/* Completes the response and frees the exchange of owner, if there is one. */
void fcgi_exchange_finish(struct fcgi_request *owner);

/* Frees it without a complete response. */
void fcgi_exchange_abort(struct fcgi_request *owner);

/* Returns the exchange that has the stream, or NULL. */
struct fcgi_exchange *fcgi_exchange_of(const struct fcgi_stream *stream);

#endif
