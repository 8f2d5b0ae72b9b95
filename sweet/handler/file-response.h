/* SPDX-License-Identifier: MIT */
/*
 * file-response.h - what of a file answers a request: all of it (200), ranges of
 * it (206), that the client has it already (304), or that it does not hold
 * (412, 416).
 */
#ifndef SWEET_FILE_RESPONSE_H
#define SWEET_FILE_RESPONSE_H

#include "core/transaction.h"
#include "files/file-cache.h"

/*
 * Keeps what the request asks of a file, while the request is there.  False:
 * it cannot be kept, and the transaction is an answer that says so.
 */
bool file_response_begin(struct transaction *transaction);

/*
 * Answers with the file, of that Content-Type (NULL: its own).  Takes the entry
 * over, with finish() and next() of the transaction.  Lines that the caller has
 * put into head_buffer[0, head_length) go with it, unless the answer is an error:
 * Cache-Control, Vary, Content-Encoding.
 */
enum respond file_response_respond(struct transaction *transaction, struct file_cache *cache,
				   struct file_cache_entry *entry, const char *type);

/* What an answer is sent of that holds the unit of a file; NULL: another one. */
const struct file_cache_view *file_response_unit(const struct transaction *transaction);

/*
 * Goes on with such an answer from the open file, which has the same bytes,
 * behind so many of the present piece, and gives the unit back.  Takes fd over;
 * done() comes when the next piece is there.
 */
void file_response_go_on(struct transaction *transaction, int fd, uint64_t gone);

#endif
