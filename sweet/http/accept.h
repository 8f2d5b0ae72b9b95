/* SPDX-License-Identifier: MIT */
/*
 * accept.h - what a client would rather have: a content coding (RFC 9110,
 * section 12.5.3), HTML or JSON (section 12.5.1).
 */
#ifndef SWEET_ACCEPT_H
#define SWEET_ACCEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "http/request.h"

/* Codings that a file beside the plain one can have; the best comes first. */
enum coding { CODING_BR, CODING_ZSTD, CODING_GZIP, CODINGS };

/* Its token in Content-Encoding, and how the names of its files end. */
const char *coding_token(enum coding coding);
const char *coding_suffix(enum coding coding);

/*
 * The codings that a request asks for rather than none at all, in the
 * client's order, where that leaves it open in ours.  Returns how many.
 * Without an Accept-Encoding field there are none: whoever can decode says so.
 */
unsigned accept_codings(const struct request *request, enum coding order[CODINGS]);

/* Whether a request asks for application/json rather than for text/html. */
bool accept_prefers_json(const struct request *request);

#endif
