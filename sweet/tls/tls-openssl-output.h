/* SPDX-License-Identifier: MIT */
/*
 * tls-openssl-output.h - records that wait to be sent, one after the other in memory.
 */
#ifndef SWEET_TLS_OPENSSL_OUTPUT_H
#define SWEET_TLS_OPENSSL_OUTPUT_H

#include <stddef.h>

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

#endif
