/* SPDX-License-Identifier: MIT */
/*
 * fcgi-message.c - see fcgi-message.h.
 */
#include <errno.h>
#include <nabc.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "base/slice.h"
#include "program/fcgi.h"
#include "upstream/fcgi-message.h"
#include "upstream/upstream-link.h"

#define READ_MAX 8192 /* bytes that libfcgi reads at a time */

static size_t fcgi_write_header(const struct upstream_message *message,
				char out[UPSTREAM_FRAME_MAX], size_t length)
{
	fcgi_header(out, FCGI_STDIN, fcgi_id(message->bytes), length);
	return FCGI_HEADER_SIZE;
}

static const struct upstream_framing framing = {.header = fcgi_write_header};

int fcgi_message_make(struct upstream_message *message, struct slice block, struct NC_range body,
		      bool more)
{
	/* A pair needs 8 bytes for its lengths, and saves at most 2 that are omitted. */
	size_t pairs = block.length * 2 + block.length / 2;
	bool last;

	message->framing = &framing;
	message->length = 0;
	message->body = body;
	message->more = more;
	if (!upstream_message_reserve(message, FCGI_BEGIN_SIZE + pairs + 8 * FCGI_HEADER_SIZE))
		return -ENOMEM;
	message->length = FCGI_BEGIN_SIZE;
	do {
		ssize_t length;

		last = block.length == 0;
		length = fcgi_params(&block, message->bytes + message->length,
				     message->room - message->length);
		if (length < 0)
			return -EMSGSIZE;
		message->length += (size_t)length;
	} while (!last);
	fcgi_header(message->bytes + message->length, FCGI_STDIN, FCGI_ID_FIRST,
		    body.length < UPSTREAM_PART_MAX ? body.length : UPSTREAM_PART_MAX);
	message->length += FCGI_HEADER_SIZE;
	/*
	 * A program of libfcgi that does not read up to the end of its input takes what is left for
	 * the next request, and closes the connection.
	 */
	message->last = body.length || more || message->length > READ_MAX;
	fcgi_begin(message->bytes, !message->last);
	return 0;
}

void fcgi_message_begin(struct upstream_message *message, struct upstream_link *link)
{
	unsigned id = link->requests % FCGI_ID_MAX + FCGI_ID_FIRST;

	if (fcgi_id(message->bytes) != id)
		fcgi_set_id(message->bytes, message->length, id);
	fcgi_init(&link->fcgi, id);
}

void fcgi_message_abandon(struct upstream_link *link)
{
	char abort[FCGI_HEADER_SIZE];

	/* Only between two records, else it would be taken for content. */
	if (fcgi_is_over(&link->fcgi))
		return;
	/* The message may be gone. */
	fcgi_header(abort, FCGI_ABORT_REQUEST, link->fcgi.id, 0);
	(void)!send(link->fd, abort, sizeof(abort), MSG_DONTWAIT | MSG_NOSIGNAL);
}
