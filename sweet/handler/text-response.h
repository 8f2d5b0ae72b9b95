/* SPDX-License-Identifier: MIT */
/*
 * text-response.h - a text that was made for one answer as its body, of any length.
 *
 * What is too long for the memory behind the head goes out as units of the
 * recycled kind, one after the other, each of which only this answer can name.
 */
#ifndef SWEET_TEXT_RESPONSE_H
#define SWEET_TEXT_RESPONSE_H

#include <glib.h>

#include "core/transaction.h"

/*
 * Makes text, which it takes over in any case, the body of the answer; type is
 * a media type.  Lines that the caller has put into head_buffer (head_length
 * bytes) stay in front of Content-Type and Content-Length; a status that is
 * set stays, none becomes 200.  Takes the scratch, next() and finish(): the
 * responder has nothing there any more.
 *
 * 0; -ENOMEM: no room in the cache, or -EMSGSIZE: in head_buffer; then the
 * answer is as it was, for transaction_fail().
 */
int text_response_set(struct transaction *transaction, const char *type, GString *text);

#endif
