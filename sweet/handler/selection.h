/* SPDX-License-Identifier: MIT */
/*
 * selection.h - what of a file answers a request: all of it (200), ranges of
 * it (206), that the client has it already (304), or that it does not hold
 * (412, 416).
 */
#ifndef SWEET_SELECTION_H
#define SWEET_SELECTION_H

#include "core/transaction.h"
#include "files/content.h"

/*
 * Keeps what the request asks of a file, while the request is there.  False:
 * it cannot be kept, and the transaction is an answer that says so.
 */
bool selection_begin(struct transaction *transaction);

/*
 * Answers with the file, of that Content-Type (NULL: its own).  Takes the entry
 * over, with finish() and next() of the transaction.  Lines that the caller has
 * put into head_buffer[0, head_length) go with it, unless the answer is an error:
 * Cache-Control, Vary, Content-Encoding.
 */
enum respond selection_respond(struct transaction *transaction, struct content *content,
			       struct content_entry *entry, const char *type);

/* What an answer is sent of that holds the unit of a file; NULL: another one. */
const struct content_view *selection_unit(const struct transaction *transaction);

/*
 * Goes on with such an answer from the open file, which has the same bytes,
 * behind so many of the present piece, and gives the unit back.  Takes fd over;
 * done() comes when the next piece is there.
 */
void selection_go_on(struct transaction *transaction, int fd, uint64_t gone);

#endif
