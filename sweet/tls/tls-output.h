/* SPDX-License-Identifier: MIT */
/*
 * tls-output.h - records that wait to be sent, one after the other in memory.
 */
#ifndef SWEET_TLS_OUTPUT_H
#define SWEET_TLS_OUTPUT_H

#include <stddef.h>

#include "tls/tls.h"

struct iovec;

#define TLS_RECORD_MORE 22u /* bytes that a record of TLS 1.3 has more than its content */
#define TLS_RECORD_WIRE_MAX (TLS_RECORD_MAX + TLS_RECORD_MORE)

/* All zero: empty. */
struct tls_output {
	unsigned char *bytes;
	size_t from, to, room;
};

/*
 * Returns where more bytes follow the others; add what was written there to output->to.  NULL:
 * there is no memory, or the client has let too much wait.
 */
unsigned char *tls_output_room(struct tls_output *output, size_t more);

/* Records of that many bytes of data follow: if it is empty, takes memory for them, or does nothing. */
void tls_output_expect(struct tls_output *output, size_t length);

/* The first bytes were sent; without any left it has no memory. */
void tls_output_sent(struct tls_output *output, size_t length);

void tls_output_free(struct tls_output *output);

/* Copies the pieces, one after the other; returns their bytes. */
size_t tls_gather(const struct iovec *pieces, unsigned count, void *to);

#endif
