/* SPDX-License-Identifier: MIT */
/*
 * accept.h - what a client prefers: a content coding (RFC 9110, section 12.5.3),
 * HTML or JSON (section 12.5.1).
 */
#ifndef SWEET_ACCEPT_H
#define SWEET_ACCEPT_H

#include <stdbool.h>
#include <stdint.h>

struct request;

/* Codings that a precompressed copy of a file can have; the best one first. */
enum coding { CODING_BR, CODING_ZSTD, CODING_GZIP, CODINGS };

/* Returns the coding's token in Content-Encoding, and the suffix of its files' names. */
const char *coding_token(enum coding coding);
const char *coding_suffix(enum coding coding);

/*
 * Stores the codings that a request prefers to no coding, in the client's order;
 * codings of equal weight in the order of own.  Returns their number.  A request
 * without Accept-Encoding gets none, because clients that decode send this field.
 */
unsigned accept_codings_by(const struct request *request, const enum coding own[CODINGS],
			   enum coding order[CODINGS]);

/* Returns true if a request prefers application/json to text/html. */
bool accept_prefers_json(const struct request *request);

#endif
