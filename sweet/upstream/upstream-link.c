/* SPDX-License-Identifier: MIT */
/*
 * upstream-link.c - see upstream-link.h.
 *
 * If possible, a request is one message: its head and the beginning of its body, which is sent from
 * its unit without a copy.  Connecting needs no separate step: the message waits in the loop
 * until the socket is writable, which it is once it is connected.
 */
#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <nabc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "base/balancer.h"
#include "base/container.h"
#include "base/timer.h"
#include "process/endpoint.h"
#include "upstream/upstream-link.h"

/* --- the message ---------------------------------------------------------------------- */

bool upstream_message_reserve(struct upstream_message *message, size_t more)
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

void upstream_message_free(struct upstream_message *message)
{
	free(message->bytes);
	*message = (struct upstream_message){0};
}

/* --- out ---------------------------------------------------------------------------------- */

static void link_sent(struct loop_send *op, int result);

/* Whether the piece is the last one of a body whose end is not marked. */
static bool is_last(const struct upstream_link *link)
{
	const struct body_queue *queue = &link->queue;

	return !link->message->framing->header && !queue->more &&
	       (queue->count == 0 ||
		(queue->count == 1 && queue->line[0].length == link->piece.length));
}

/* Sends a header and a part of the body, or its end. */
static void send_part(struct upstream_link *link, const char *header, size_t header_length)
{
	const struct body_queue *queue = &link->queue;
	struct NC_send *out = &link->send.message;
	bool empty, more;

	link->piece = body_queue_next(queue, UPSTREAM_PART_MAX);
	empty = link->piece.length == 0;
	link->last = empty || is_last(link);
	/* If more of the body will follow later, do not delay the end of this part. */
	more = !link->last &&
	       !(queue->more && queue->count == 1 && queue->line[0].length == link->piece.length);
	*out = (struct NC_send)NC_SEND_INIT(.header = header, .header_length = header_length,
					    .ranges = &link->piece, .holds = body_queue_hold(queue),
					    .range_count = empty ? 0 : 1,
					    .hold_count = empty ? 0 : 1,
					    .flags = more ? NC_SEND_MORE : 0);
	link->sending = true;
	link->send.sent = link_sent;
	link->send.batch = link->connected;
	loop_send_start(link->loop, &link->send, link->fd);
}

/* Sends what is available of the body, or its end. */
static void send_on(struct upstream_link *link)
{
	const struct upstream_framing *framing = link->message->framing;
	struct NC_range next = body_queue_next(&link->queue, UPSTREAM_PART_MAX);
	size_t length = 0;

	if (next.length == 0 && link->queue.more)
		return;
	if (framing->header)
		length = framing->header(link->message, link->header, next.length);
	if (next.length || length)
		send_part(link, link->header, length);
	else
		link->sent = true;
}

/* --- another protocol --------------------------------------------------------------------- */

static void link_wrote(struct loop_send *op, int result);

static void write_on(struct upstream_link *link)
{
	link->writing = g_steal_pointer(&link->backlog);
	link->send.message = (struct NC_send)NC_SEND_INIT(.header = (char *)link->writing->data,
							  .header_length = link->writing->len);
	link->send.sent = link_wrote;
	link->send.batch = false;
	link->sending = true;
	loop_send_start(link->loop, &link->send, link->fd);
}

/* Nothing is being sent: continues with what upstream_link_write() and _end() left to do. */
static void write_rest(struct upstream_link *link)
{
	if (link->backlog)
		write_on(link);
	else if (link->ending)
		(void)shutdown(link->fd, SHUT_WR);
}

static void link_wrote(struct loop_send *op, int result)
{
	struct upstream_link *link = container_of(op, struct upstream_link, send);

	link->sending = false;
	g_clear_pointer(&link->writing, g_byte_array_unref);
	if (result < 0) {
		link->owner->broke(link, result);
		return;
	}
	write_rest(link);
	if (!link->sending)
		link->owner->drained(link);
}

bool upstream_link_write(struct upstream_link *link, const char *data, size_t length)
{
	ssize_t done = 0;

	if (!link->sending)
		done = send(link->fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (done == (ssize_t)length || (done < 0 && errno != EAGAIN))
		return true;
	done = done < 0 ? 0 : done;
	if (!link->backlog)
		link->backlog = g_byte_array_new();
	g_byte_array_append(link->backlog, (const uint8_t *)data + done,
			    (unsigned)(length - (size_t)done));
	if (!link->sending)
		write_on(link);
	return false;
}

void upstream_link_end(struct upstream_link *link)
{
	link->ending = true;
	if (!link->sending)
		(void)shutdown(link->fd, SHUT_WR);
}

/* --- the request -------------------------------------------------------------------------- */

/* What was being sent of an abandoned request was sent, or could not be: no more follows. */
static void leave(struct upstream_link *link, int result)
{
	body_queue_clear(&link->queue);
	if (result < 0) {
		link->owner->idled(link);
		return;
	}
	if (link->owner->abandon)
		link->owner->abandon(link);
	(void)shutdown(link->fd, SHUT_WR);
}

static void link_sent(struct loop_send *op, int result)
{
	struct upstream_link *link = container_of(op, struct upstream_link, send);

	link->sending = false;
	if (link->abandoned) {
		leave(link, result);
		return;
	}
	timer_stop(&link->timer);
	if (result < 0) {
		link->owner->broke(link, result);
		return;
	}
	link->taken = link->connected = true;
	if (link->piece.length)
		body_queue_written(&link->queue, link->piece.length);
	if (link->last) {
		link->sent = true;
		/* The protocol may have changed before the loop reported this. */
		write_rest(link);
		return;
	}
	send_on(link);
	if (!link->sending)
		link->owner->drained(link);
}

static void link_too_late(struct timer *timer)
{
	struct upstream_link *link = container_of(timer, struct upstream_link, timer);

	link->owner->broke(link, -ETIMEDOUT);
}

int upstream_link_request(struct upstream_link *link, const struct upstream_message *message)
{
	int error;

	assert(!link->message && !link->sending);
	error = body_queue_add(&link->queue, message->body.id, message->body.length, message->more);
	if (error)
		return error;
	link->message = message;
	link->taken = link->sent = false;
	link->requests++;
	loop_timer_start(link->loop, &link->timer, UPSTREAM_CONNECT_MS, link_too_late);
	send_part(link, message->bytes, message->length);
	return 0;
}

int upstream_link_body(struct upstream_link *link, struct NC_range piece, bool more)
{
	int error = body_queue_add(&link->queue, piece.id, piece.length, more);

	if (!error && !link->sending)
		send_on(link);
	return error;
}

/* --- the connection -------------------------------------------------------------------- */

static void link_ready(struct loop_watch *watch)
{
	struct upstream_link *link = container_of(watch, struct upstream_link, watch);

	if (!link->abandoned)
		link->owner->readable(link);
	/* The event may be outdated. */
	else if (!upstream_link_is_alive(link))
		link->owner->idled(link);
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

struct upstream_link *upstream_link_open(struct loop *loop, struct upstream *upstream,
					 const struct upstream_link_owner *owner, int *error)
{
	struct upstream_link *link = calloc(1, sizeof(*link));

	*error = link ? connect_to(upstream, &link->fd) : -ENOMEM;
	if (!*error) {
		link->watch.ready = link_ready;
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

static void link_idled(struct timer *timer)
{
	struct upstream_link *link = container_of(timer, struct upstream_link, timer);

	link->owner->idled(link);
}

bool upstream_link_may_rest(const struct upstream_link *link)
{
	return link->sent && !link->sending;
}

void upstream_link_rest(struct upstream_link *link, unsigned ms)
{
	assert(upstream_link_may_rest(link) && body_queue_is_over(&link->queue));
	link->message = NULL;
	loop_timer_start(link->loop, &link->timer, ms, link_idled);
}

bool upstream_link_has_backlog(const struct upstream_link *link)
{
	const struct body_queue *queue = &link->queue;

	return link->sending && (queue->count > 1 ||
				 (queue->count == 1 && queue->line[0].length > link->piece.length));
}

void upstream_link_abandon(struct upstream_link *link, struct upstream_message *message,
			   unsigned ms)
{
	link->abandoned = true;
	link->kept = *message;
	*message = (struct upstream_message){0};
	link->message = NULL;
	loop_timer_start(link->loop, &link->timer, ms, link_idled);
	if (!link->sending)
		leave(link, 0);
}

bool upstream_link_is_alive(const struct upstream_link *link)
{
	char byte;

	return recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

bool upstream_link_has_bytes(const struct upstream_link *link)
{
	char byte;

	return recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

bool upstream_link_is_unsent(const struct upstream_link *link)
{
	/* What leaves with others may be with the system before the loop reports it. */
	return !link->taken && link->send.message.skip == 0 && !(link->sending && link->send.batch);
}

int upstream_link_send_error(const struct upstream_link *link)
{
	return link->sending ? link->send.result : 0;
}

bool upstream_link_is_read(const struct upstream_link *link)
{
	const struct sockaddr *address = (const struct sockaddr *)&link->upstream->address.address;
	int unread;

	/* By TCP, the system of the other side takes it before the application accepts. */
	return address->sa_family == AF_UNIX && link->taken && !link->sending &&
	       ioctl(link->fd, SIOCOUTQ, &unread) == 0 && unread == 0;
}

bool upstream_link_was_read(const struct upstream_link *link)
{
	const struct sockaddr *address = (const struct sockaddr *)&link->upstream->address.address;
	struct tcp_info info = {0};
	socklen_t length = sizeof(info);

	/* What is closed with unread bytes resets the connection; by TCP they may have met its end. */
	return address->sa_family == AF_UNIX ||
	       (getsockopt(link->fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 &&
		info.tcpi_state == TCP_CLOSE_WAIT && info.tcpi_unacked == 0);
}

void upstream_link_close(struct upstream_link *link)
{
	if (link->message && !link->sending && link->owner->abandon)
		link->owner->abandon(link);
	timer_stop(&link->timer);
	loop_close_fd(link->loop, link->fd);
	upstream_message_free(&link->kept);
	body_queue_clear(&link->queue);
	g_clear_pointer(&link->writing, g_byte_array_unref);
	g_clear_pointer(&link->backlog, g_byte_array_unref);
	free(link);
}
