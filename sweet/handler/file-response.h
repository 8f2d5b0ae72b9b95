/* SPDX-License-Identifier: MIT */
/*
 * file-response.h - which part of a file responds to a request: all of it (200), ranges of it
 * (206), nothing because the client has it (304), or because a condition or range fails (412, 416).
 */
#ifndef SWEET_FILE_RESPONSE_H
#define SWEET_FILE_RESPONSE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/transaction.h"

struct file_cache;
struct file_cache_entry;

/*
 * Saves the conditions and ranges of the request while it exists.  Returns false if that fails;
 * then the transaction has an error response.
 */
bool file_response_begin(struct transaction *transaction);

/*
 * Responds with the file and that Content-Type (NULL: the file's own).  Takes over the entry.  Lines
 * in head_buffer[0, head_length) are sent too, unless the response is an error: Cache-Control, Vary,
 * Content-Encoding.
 */
enum respond file_response_respond(struct transaction *transaction, struct file_cache *cache,
				   struct file_cache_entry *entry, const char *type);

/* Returns the view of the file whose unit the response holds; NULL if it is another response. */
const struct file_cache_view *file_response_unit(const struct transaction *transaction);

/*
 * Continues such a response from the open file, which has the same bytes, after `gone` bytes of the
 * current piece, and releases the unit.  Takes over fd; calls done() when the next piece is ready.
 */
void file_response_go_on(struct transaction *transaction, int fd, uint64_t gone);

#endif
