/* SPDX-License-Identifier: MIT */
/*
 * text-response.h - responds with a generated text of any length.
 *
 * Text that does not fit into the memory behind the head is sent as units of the recycled kind, one
 * after the other; nobody else knows their ids.
 */
#ifndef SWEET_TEXT_RESPONSE_H
#define SWEET_TEXT_RESPONSE_H

#include <glib.h>

struct transaction;

/*
 * Makes text the body of the response, and takes it over in every case; type is a media type.
 * Lines that the caller has put into head_buffer (head_length bytes) stay before Content-Type and
 * Content-Length.  A status that is set stays; 0 becomes 200.  Uses the scratch memory, and replaces
 * the responder's table, so the responder must not need them.
 *
 * Returns 0; -ENOMEM if the cache has no memory, or -EMSGSIZE if head_buffer is too small.  In case
 * of an error the response is unchanged, for transaction_fail().
 */
int text_response_set(struct transaction *transaction, const char *type, GString *text);

/* Makes a text that several responses share the body, as above; takes over one reference. */
int text_response_share(struct transaction *transaction, const char *type, GBytes *text);

#endif
