/* SPDX-License-Identifier: MIT */
/*
 * http-message.h - requests to HTTP servers behind this one, for upstream-link.c.
 */
#ifndef SWEET_HTTP_MESSAGE_H
#define SWEET_HTTP_MESSAGE_H

#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

struct upstream_message;

#define HTTP_MESSAGE_UNKNOWN UINT64_MAX /* bytes of a body: it is sent in chunks */

/* What the request says of its body. */
struct http_message_body {
	bool any;	 /* there is one */
	uint64_t length; /* bytes */
	struct NC_range first;
	bool more; /* first is only its first part */
};

/*
 * Completes the head of a request, of upstream_request_write(), with the framing of its body.
 * Returns 0, -ENOMEM, or -EINVAL if the body does not have the length.
 */
int http_message_make(struct upstream_message *message, struct slice head,
		      const struct http_message_body *body);

#endif
