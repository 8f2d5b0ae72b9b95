/* SPDX-License-Identifier: MIT */
/*
 * short-response.h - responses that are a status and a header field: Allow,
 * Retry-After, or one that the caller has written (Location, WWW-Authenticate).
 */
#ifndef SWEET_SHORT_RESPONSE_H
#define SWEET_SHORT_RESPONSE_H

#include <stddef.h>
#include <stdint.h>

#include "core/transaction.h"

/* For any resource; for a file. */
#define ALLOW_ANY "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH\r\n"
#define ALLOW_FILE "Allow: GET, HEAD, OPTIONS\r\n"

/* 204 with that Allow line: the response to OPTIONS. */
enum respond short_response_options(struct transaction *transaction, const char *allow);

/* 405 with that Allow line. */
enum respond short_response_method(struct transaction *transaction, const char *allow);

/* The status with Retry-After in seconds; reason: for the log, static text. */
enum respond short_response_retry(struct transaction *transaction, int status, uint64_t seconds,
				  const char *reason);

/*
 * Responds with the status; the first length bytes of head_buffer are its header lines. length 0:
 * they did not fit, and it responds with status too_long only.
 */
enum respond short_response_head(struct transaction *transaction, int status, size_t length,
				 int too_long);

#endif
