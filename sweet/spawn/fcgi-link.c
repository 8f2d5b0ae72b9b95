/* SPDX-License-Identifier: MIT */
/*
 * fcgi-link.c - see fcgi-link.h.
 *
 * If possible, a request is one message: its beginning, its variables and, after
 * the header of a record, the beginning of its body, which is sent from its unit
 * without a copy.  Connecting needs no separate step: the message waits in the loop
 * until the socket is writable, which it is once it is connected.
 */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "spawn/endpoint.h"
#include "spawn/fcgi-link.h"

#define RECORD_MAX ((size_t)65528) /* bytes of a body in a record: aligned, so no padding */

/* --- the message ---------------------------------------------------------------------- */

static bool reserve(struct fcgi_message *message, size_t more)
{
	size_t room = message->room ? message->room : 2048;
	char *bytes;

	while (room < message->length + more)
		room *= 2;
	if (room == message->room)
		return true;
	bytes = realloc(message->bytes, room);
	if (!bytes)
		return false;
	message->bytes = bytes;
	message->room = room;
	return true;
}

int fcgi_message_make(struct fcgi_message *message, struct slice block, struct NC_range body,
		      bool more)
{
	/* A pair needs 8 bytes for its lengths, and saves at most 2 that are omitted. */
	size_t pairs = block.length * 2 + block.length / 2;
	bool last;

	message->length = 0;
	message->body = body;
	message->more = more;
	if (!reserve(message, FCGI_BEGIN_SIZE + pairs + 8 * FCGI_HEADER_SIZE))
		return -ENOMEM;
	fcgi_begin(message->bytes, true);
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
	fcgi_header(message->bytes + message->length, FCGI_STDIN,
		    body.length < RECORD_MAX ? body.length : RECORD_MAX);
	message->length += FCGI_HEADER_SIZE;
	return 0;
}

void fcgi_message_free(struct fcgi_message *message)
{
	free(message->bytes);
	*message = (struct fcgi_message){0};
}

/* --- out ---------------------------------------------------------------------------------- */

static void sent(struct loop_send *op, int result);

/* Sends the header of a record and a part of the body; an empty record ends the body. */
static void send_record(struct fcgi_link *link, const char *header, size_t header_length)
{
	const struct body_queue *queue = &link->queue;
	struct NC_send *out = &link->send.message;
	bool more;

	link->piece = body_queue_next(queue, RECORD_MAX);
	link->sent = link->piece.length == 0;
	/* If more of the body will follow later, do not delay the end of this part. */
	more = !link->sent &&
	       !(queue->more && queue->count == 1 && queue->line[0].length == link->piece.length);
	*out = (struct NC_send)NC_SEND_INIT(.header = header, .header_length = header_length,
					    .ranges = &link->piece, .holds = body_queue_hold(queue),
					    .range_count = link->sent ? 0 : 1,
					    .hold_count = link->sent ? 0 : 1,
					    .flags = more ? NC_SEND_MORE : 0);
	link->sending = true;
	link->send.sent = sent;
	loop_send_start(link->loop, &link->send, link->fd);
}

/* Sends what is available of the body, or its end. */
static void send_on(struct fcgi_link *link)
{
	struct NC_range next = body_queue_next(&link->queue, RECORD_MAX);

	if (next.length == 0 && link->queue.more)
		return;
	fcgi_header(link->header, FCGI_STDIN, next.length);
	send_record(link, link->header, sizeof(link->header));
}

static void sent(struct loop_send *op, int result)
{
	struct fcgi_link *link =
		(struct fcgi_link *)((char *)op - offsetof(struct fcgi_link, send));

	link->sending = false;
	timer_stop(&link->timer);
	if (result < 0) {
		link->owner->broke(link, result);
		return;
	}
	link->taken = true;
	if (link->sent)
		return;
	body_queue_written(&link->queue, link->piece.length);
	send_on(link);
	if (!link->sending)
		link->owner->drained(link);
}

static void too_late(struct timer *timer)
{
	struct fcgi_link *link =
		(struct fcgi_link *)((char *)timer - offsetof(struct fcgi_link, timer));

	link->owner->broke(link, -ETIMEDOUT);
}

int fcgi_link_request(struct fcgi_link *link, const struct fcgi_message *message)
{
	int error;

	assert(!link->message && !link->sending);
	error = body_queue_add(&link->queue, message->body.id, message->body.length, message->more);
	if (error)
		return error;
	link->message = message;
	link->taken = false;
	link->requests++;
	fcgi_init(&link->fcgi);
	loop_timer_start(link->loop, &link->timer, FCGI_CONNECT_MS, too_late);
	send_record(link, message->bytes, message->length);
	return 0;
}

int fcgi_link_body(struct fcgi_link *link, struct NC_range piece, bool more)
{
	int error = body_queue_add(&link->queue, piece.id, piece.length, more);

	if (!error && !link->sending)
		send_on(link);
	return error;
}

/* --- the connection -------------------------------------------------------------------- */

static void ready(struct loop_watch *watch)
{
	struct fcgi_link *link = (struct fcgi_link *)watch;

	link->owner->readable(link);
}

static int connect_to(const struct upstream *upstream, int *fd)
{
	const struct sockaddr *address = (const struct sockaddr *)&upstream->address.address;
	int on = 1;

	*fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		return -errno;
	if (address->sa_family == AF_UNIX)
		(void)endpoint_refuse_descriptors(*fd);
	else
		(void)setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(*fd, address, upstream->address.length) < 0 && errno != EINPROGRESS)
		return -errno;
	return 0;
}

struct fcgi_link *fcgi_link_open(struct loop *loop, struct upstream *upstream,
				 const struct fcgi_link_owner *owner, int *error)
{
	struct fcgi_link *link = calloc(1, sizeof(*link));

	*error = link ? connect_to(upstream, &link->fd) : -ENOMEM;
	if (!*error) {
		link->watch.ready = ready;
		link->loop = loop;
		link->owner = owner;
		link->upstream = upstream;
		link->opened_ms = loop_now_ms(loop);
		*error = loop_watch_socket(loop, &link->watch, link->fd);
	}
	if (!*error)
		return link;
	if (link && link->fd >= 0)
		close(link->fd);
	free(link);
	return NULL;
}

static void idled(struct timer *timer)
{
	struct fcgi_link *link =
		(struct fcgi_link *)((char *)timer - offsetof(struct fcgi_link, timer));

	link->owner->idled(link);
}

void fcgi_link_rest(struct fcgi_link *link, unsigned ms)
{
	assert(!link->sending && link->sent && body_queue_is_over(&link->queue));
	link->message = NULL;
	loop_timer_start(link->loop, &link->timer, ms, idled);
}

bool fcgi_link_is_alive(const struct fcgi_link *link)
{
	char byte;

	return recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

bool fcgi_link_is_unsent(const struct fcgi_link *link)
{
	return !link->taken && link->send.message.skip == 0;
}

void fcgi_link_close(struct fcgi_link *link)
{
	char abort[FCGI_HEADER_SIZE];

	/* Only between two records, else it would be taken for content. */
	if (link->message && !link->sending && !fcgi_is_over(&link->fcgi)) {
		fcgi_header(abort, FCGI_ABORT_REQUEST, 0);
		(void)!send(link->fd, abort, sizeof(abort), MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	timer_stop(&link->timer);
	loop_close_fd(link->loop, link->fd);
	body_queue_clear(&link->queue);
	free(link);
}
