/* SPDX-License-Identifier: MIT */
/*
 * fcgi-message.h - requests to FastCGI applications, for upstream-link.c.
 */
#ifndef SWEET_FCGI_MESSAGE_H
#define SWEET_FCGI_MESSAGE_H

#include <nabc.h>
#include <stdbool.h>

#include "base/slice.h"

struct upstream_link;
struct upstream_message;

/*
 * Makes the records for a request's variables ("NAME=value", each ended by a NUL)
 * and for its body, or the first part of it.  Returns 0, -ENOMEM, or -EMSGSIZE if a
 * variable fits no record.
 */
int fcgi_message_make(struct upstream_message *message, struct slice block, struct NC_range body,
		      bool more);

/*
 * The message is the next request of the link: gives it the id that no earlier request of the link
 * had, and prepares the link for its response.
 */
void fcgi_message_begin(struct upstream_message *message, struct upstream_link *link);

/* Informs the application that its response is not needed any more; for upstream_link_owner. */
void fcgi_message_abandon(struct upstream_link *link);

#endif
