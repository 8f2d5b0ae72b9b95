/* SPDX-License-Identifier: MIT */
/*
 * coded-response.h - compresses a program's response while it is sent: stands between the responder and
 * the connection, and passes the pieces of one to the other as compressed bytes.
 */
#ifndef SWEET_CODED_RESPONSE_H
#define SWEET_CODED_RESPONSE_H

struct encoder;
struct transaction;

/*
 * Call it for a response of a program before anything is sent.  Changes it if it is to be
 * compressed; what cannot be leaves as it is.
 */
void coded_response_begin(struct transaction *transaction);

/* Compresses the response with the caller's encoder; for tests. */
void coded_response_begin_with(struct transaction *transaction, const struct encoder *encoder);

#endif
