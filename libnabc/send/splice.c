/* SPDX-License-Identifier: MIT */
/*
 * splice.c - sendfile() from the segment: it passes page references, not bytes.
 *
 * Only for memory that is never written again (invariant 1), and only while SIGPIPE
 * is ignored, because sendfile() has no MSG_NOSIGNAL; transmit-plan.c checks that
 * before it offers the method.
 *
 * sendfile() has no MSG_MORE either, and pushes a partial segment at its end unless
 * the socket is corked; transmit.c does that.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cache/index.h"
#include "os/segment.h"
#include "os/socket.h"
#include "send/message.h"
#include "send/splice.h"
#include "store/store.h"
#include "store/unit.h"

static bool splice_takes(const struct nc_sending *sending, unsigned range)
{
	return nc_unit_spliceable(nc_sending_unit(sending, range)) &&
	       nc_sending_gapless(sending, range);
}

static int splice_send(struct nc_sending *sending)
{
	struct nc_message *message = &sending->message;
	const struct nc_unit *unit = message->views[message->range].unit;
	off_t from =
		(off_t)(unit->at + message->spec->ranges[message->range].offset + message->within);
	size_t length = nc_message_piece(message);
	ssize_t sent;
	int error;

	sent = nc_socket_sendfile(sending->socket, unit->store->segment.fd, &from, length);
	if (sent >= 0)
		return nc_sending_moved(sending, NC_METHOD_SPLICE, length, (size_t)sent);
	error = errno;
	if (error == EINVAL || error == EOPNOTSUPP) {
		/* The socket takes no pages. */
		nc_sending_drop(sending, NC_METHOD_SPLICE, NC_SPLICE_REFUSED);
		return 1;
	}
	if (error == EAGAIN)
		(void)nc_sending_moved(sending, NC_METHOD_SPLICE, length, 0);
	return -error;
}

const struct nc_method nc_splice_method = {
	.id = NC_METHOD_SPLICE, .name = "splice", .takes = splice_takes, .send = splice_send};
