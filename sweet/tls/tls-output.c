/* SPDX-License-Identifier: MIT */
/*
 * tls-output.c - see tls-output.h.
 *
 * The memory is that of a record, or of the records that are usually sent together; the thread
 * keeps both (tls/record/tls-memory.c).
 */
#include <stdbool.h>
#include <string.h>

#include <openssl/crypto.h>
#include <sys/uio.h>

#include "tls/tls-output.h"
#include "tls/tls.h"

/* Of records that wait to be sent: the answers to messages of a client that does not read them. */
#define OUTPUT_MAX (16u * TLS_RECORD_MAX)
#define OUTPUT_LEAST TLS_RECORD_WIRE_MAX
#define OUTPUT_USUAL (4u * (TLS_RECORD_MAX + 64u))

static bool grow(struct tls_output *output, size_t need)
{
	size_t room = output->room ? output->room : OUTPUT_LEAST;
	unsigned char *bytes;

	while (room < need)
		room = room < OUTPUT_USUAL ? OUTPUT_USUAL : room * 2;
	if (room > OUTPUT_MAX)
		room = OUTPUT_MAX;
	bytes = OPENSSL_realloc(output->bytes, room);
	if (!bytes)
		return false;
	output->bytes = bytes;
	output->room = room;
	return true;
}

unsigned char *tls_output_room(struct tls_output *output, size_t more)
{
	size_t waiting = output->to - output->from;

	if (output->room - output->to < more) {
		if (more > OUTPUT_MAX - waiting)
			return NULL;
		if (waiting > 0)
			memmove(output->bytes, output->bytes + output->from, waiting);
		output->from = 0;
		output->to = waiting;
		if (waiting + more > output->room && !grow(output, waiting + more))
			return NULL;
	}
	return output->bytes + output->to;
}

void tls_output_expect(struct tls_output *output, size_t length)
{
	if (output->room == 0 && length > TLS_RECORD_MAX)
		(void)grow(output, OUTPUT_USUAL);
}

void tls_output_sent(struct tls_output *output, size_t length)
{
	output->from += length;
	if (output->from == output->to)
		tls_output_free(output);
}

void tls_output_free(struct tls_output *output)
{
	OPENSSL_free(output->bytes);
	*output = (struct tls_output){0};
}

size_t tls_gather(const struct iovec *pieces, unsigned count, void *to)
{
	size_t length = 0;

	for (unsigned i = 0; i < count; i++) {
		memcpy((char *)to + length, pieces[i].iov_base, pieces[i].iov_len);
		length += pieces[i].iov_len;
	}
	return length;
}
