/* SPDX-License-Identifier: MIT */
/*
 * connection-cipher.c - what is sent to a client, encrypted if it uses TLS; and the end of it.
 *
 * Messages are the loop's, with a cipher: it takes ranges of units straight from their memory, a
 * record at a time, and sends several records with one call.  If the kernel encrypts, there is no
 * cipher: messages are sent as on a connection without TLS.
 */
#include <errno.h>
#include <glib.h>
#include <nabc.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/container.h"
#include "conn/connection-base.h"
#include "conn/connection-tls-internal.h"
#include "core/server.h"
#include "event/loop.h"
#include "tls/tls.h"

#define PIECES_MAX 4u		    /* of a record; what is in more is short, and is copied */
#define BURST (4u * TLS_RECORD_MAX) /* bytes of data that are encrypted before they are sent */
/*
 * A client can use a record when all of it has come: until its window has opened, records of a
 * long body are as long as some segments.
 */
#define COLD_RECORD 4096u
#define COLD_BYTES (64u << 10)
#define COLD_MS 1000u /* without sending */

/* --- messages ------------------------------------------------------------------------------ */

/* Sends what the socket has room for; returns bytes, or -errno. */
static ssize_t send_some(const struct connection *connection, const char *data, size_t length,
			 int flags)
{
	ssize_t sent;

	do {
		sent = send(connection->carrier->fd, data, length,
			    MSG_NOSIGNAL | MSG_DONTWAIT | flags);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : sent;
}

static int flush(struct connection_tls *tls, int flags)
{
	for (;;) {
		size_t length;
		const char *output = tls_library->output(tls->channel, &length);
		ssize_t sent;

		if (length == 0)
			return 1;
		sent = send_some(tls->connection, output, length, flags);
		if (sent == -EAGAIN)
			return 0;
		if (sent < 0)
			return (int)sent;
		tls_library->sent(tls->channel, (size_t)sent);
	}
}

int connection_tls_flush(struct connection_tls *tls)
{
	return flush(tls, 0);
}

/* Finds `most` bytes in memory; returns how many pieces they are, or 0: they must be copied. */
static unsigned find_pieces(const struct loop_send *op, size_t at, size_t most,
			    struct iovec pieces[PIECES_MAX])
{
	for (unsigned count = 0; count < PIECES_MAX; count++) {
		size_t run;
		const char *data = loop_send_run(op, at, &run);

		if (!data)
			return 0;
		run = MIN(run, most);
		pieces[count] = (struct iovec){(void *)(uintptr_t)data, run};
		at += run;
		most -= run;
		if (most == 0)
			return count + 1;
	}
	return 0;
}

/* Encrypts at most `most` bytes of the message from `at` on as one record; returns them, or -1. */
static ssize_t encrypt(struct connection_tls *tls, const struct loop_send *op, size_t at,
		       size_t most)
{
	char copy[TLS_RECORD_MAX];
	struct iovec pieces[PIECES_MAX];
	unsigned count = find_pieces(op, at, most, pieces);
	ssize_t got = (ssize_t)most;

	if (count == 0) {
		got = loop_send_copy(op, at, copy, most);
		if (got <= 0)
			return got;
		pieces[count++] = (struct iovec){copy, (size_t)got};
	}
	if (!tls_library->write(tls->channel, pieces, count)) {
		errno = EPROTO;
		return -1;
	}
	return got;
}

static size_t record_size(struct connection_tls *tls, size_t total)
{
	uint64_t now = loop_now_ms(tls->connection->thread->loop);

	if (now - tls->sent_ms > COLD_MS)
		tls->warm = 0;
	tls->sent_ms = now;
	return tls->warm < COLD_BYTES && total > TLS_RECORD_MAX ? COLD_RECORD : TLS_RECORD_MAX;
}

/* The send() of struct loop_cipher. */
static ssize_t cipher_send(struct loop_cipher *cipher, const struct loop_send *op, size_t most)
{
	struct connection_tls *tls = container_of(cipher, struct connection_tls, cipher);
	size_t total = loop_send_length(op), at = op->message.skip, end = MIN(total, at + most);
	int flushed = cipher->pending ? connection_tls_flush(tls) : 1;

	while (flushed == 1 && at < end) {
		size_t record = MIN(end - at, record_size(tls, total)), waiting;
		ssize_t took;

		tls_library->expect(tls->channel, MIN(end - at, BURST));
		took = encrypt(tls, op, at, record);
		if (took < 0) {
			flushed = -errno;
			break;
		}
		at += (size_t)took;
		tls->warm += (size_t)took;
		/* Also what was there before, as a ticket after a handshake. */
		(void)tls_library->output(tls->channel, &waiting);
		if (waiting >= BURST || at == end)
			flushed = connection_tls_flush(tls);
	}
	cipher->pending = flushed == 0;
	/* A connection that is broken has no room again: the loop must know now. */
	if (flushed >= 0 && at > op->message.skip)
		return (ssize_t)(at - op->message.skip);
	if (flushed == 1)
		return 0;
	errno = flushed ? -flushed : EAGAIN;
	return -1;
}

void connection_tls_set_cipher(struct connection_tls *tls)
{
	tls->cipher.send = cipher_send;
}

struct loop_cipher *connection_cipher(struct connection *connection)
{
	struct connection_tls *tls = connection->carrier->tls;

	/* What a stream sends is a part of the message of its session. */
	return tls && !tls->kernel && !connection_is_stream(connection) ? &tls->cipher : NULL;
}

/* --- without the loop ----------------------------------------------------------------------- */

ssize_t connection_write(struct connection *connection, const char *data, size_t length)
{
	struct connection_tls *tls = connection->carrier->tls;
	ssize_t sent;

	if (tls && !tls->kernel) {
		if (!tls_library->write(tls->channel,
					&(struct iovec){(void *)(uintptr_t)data, length}, 1))
			return -EPIPE;
		/* What the socket does not take is sent before the next message. */
		sent = connection_tls_flush(tls);
		return sent < 0 ? sent : (ssize_t)length;
	}
	return send_some(connection, data, length, 0);
}

/*
 * Returns false if it must be called again.  Of what the kernel has encrypted, a part waits for
 * room while the socket is full: shutdown(2) would drop it, and so would close(2).
 */
static bool say_end(struct connection_tls *tls)
{
	struct pollfd event = {.fd = tls->connection->carrier->fd, .events = POLLOUT};

	if (!tls->said_end)
		tls->said_end = tls_library->end(tls->channel);
	/* The end of the stream follows, in the same packet. */
	if (!tls->kernel)
		return flush(tls, MSG_MORE) != 0;
	return tls->said_end && poll(&event, 1, 0) != 0;
}

static void shut_again(struct timer *timer);

/* Polls, since the loop reports room for messages only. */
static void shut_later(struct connection *connection)
{
	loop_timer_start(connection->thread->loop, &connection->settling,
			 connection_poll_ms(connection), shut_again);
}

static void shut_again(struct timer *timer)
{
	struct connection *connection = container_of(timer, struct connection, settling);

	if (!say_end(connection->carrier->tls)) {
		shut_later(connection);
		return;
	}
	(void)shutdown(connection->carrier->fd, SHUT_WR);
	connection->shutting = false;
	connection_linger(connection);
}

void connection_shut_socket(struct connection *connection)
{
	struct connection_tls *tls = connection->carrier->tls;

	if (tls && tls->over && !tls->failed && !say_end(tls)) {
		connection->shutting = true;
		connection->settle_ms = 0;
		shut_later(connection);
		return;
	}
	(void)shutdown(connection->carrier->fd, SHUT_WR);
}
