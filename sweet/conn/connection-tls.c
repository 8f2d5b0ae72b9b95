/* SPDX-License-Identifier: MIT */
/*
 * connection-tls.c - a connection's TLS: the handshake, what the client sends, and what is sent
 * to it.
 *
 * Received bytes go through the channel, and what they contain to the state machine.  Sending is
 * the loop's, with a cipher: it takes ranges of units straight from their memory, a record at a
 * time, and sends several records with one call.  If the kernel encrypts, there is no cipher:
 * messages are sent as on a connection without TLS.
 *
 * A handshake costs as much as hundreds of requests.  Each turn of the loop does some milliseconds
 * of them; other clients wait for their turn, in the order in which they came.
 */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "conn/connection-internal.h"

#define HANDSHAKES_NS 5000000u	    /* of a turn of the loop, then handshakes wait for the next */
#define BURST (4u * TLS_RECORD_MAX) /* bytes of data that are encrypted before they are sent */
/*
 * A client can use a record when all of it has come: until its window has opened, records of a
 * long body are as long as some segments.
 */
#define COLD_RECORD 4096u
#define COLD_BYTES (64u << 10)
#define COLD_MS 1000u /* without sending */

struct connection_tls {
	struct tls_chooser chooser;
	struct loop_cipher cipher;
	struct connection *connection;
	struct tls_channel *channel;
	GList waiting;	  /* in the thread's list of handshakes */
	bool waits;	  /* is in that list */
	bool begun;	  /* the first byte has come */
	bool over;	  /* the handshake is */
	bool kernel;	  /* the kernel encrypts */
	bool failed;	  /* what the client sent could not be understood */
	bool said_end;	  /* the client has been told that nothing follows */
	uint64_t sent_ms; /* when bytes were last sent */
	uint64_t warm;	  /* bytes sent since a pause */
};

/* --- sending ------------------------------------------------------------------------------- */

/* Sends the output; returns 1: all, 0: the socket is full, or -errno. */
static int flush(struct connection_tls *tls)
{
	for (;;) {
		size_t length;
		const char *output = tls_library->output(tls->channel, &length);
		ssize_t sent;

		if (length == 0)
			return 1;
		sent = send(tls->connection->fd, output, length, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent > 0)
			tls_library->sent(tls->channel, (size_t)sent);
		else if (errno == EAGAIN)
			return 0;
		else if (errno != EINTR)
			return -errno;
	}
}

/* Finds the message's bytes from `at` on that are together in memory; NULL with errno. */
static const char *run_at(const struct loop_send *op, size_t at, size_t *length)
{
	const struct NC_send *message = &op->message;

	if (at < message->header_length) {
		*length = message->header_length - at;
		return (const char *)message->header + at;
	}
	at -= message->header_length;
	for (unsigned i = 0; i < message->range_count; i++) {
		const struct NC_range *range = &message->ranges[i];
		const char *data;

		if (at >= range->length) {
			at -= range->length;
			continue;
		}
		data = NC_data(data_path_hold(message, i), length, range->offset + at);
		*length = MIN(*length, range->length - at);
		return data;
	}
	*length = op->tail.iov_len - at;
	return (const char *)op->tail.iov_base + at;
}

/* Copies at most room bytes of the message; returns them, or -1 with errno. */
static ssize_t gather(const struct loop_send *op, size_t at, char *room, size_t most)
{
	size_t body = op->message.header_length, done = 0;

	while (done < most) {
		size_t length;

		if (op->file.length && at + done >= body) {
			ssize_t got = pread(op->file.fd, room + done, most - done,
					    (off_t)(op->file.offset + at + done - body));

			if (got < 0 && errno == EINTR)
				continue;
			if (got == 0)
				errno = ERANGE;
			if (got <= 0)
				return done ? (ssize_t)done : -1;
			done += (size_t)got;
		} else {
			const char *data = run_at(op, at + done, &length);

			if (!data)
				return -1;
			length = MIN(length, most - done);
			memcpy(room + done, data, length);
			done += length;
		}
	}
	return (ssize_t)done;
}

/* Encrypts at most `most` bytes of the message from `at` on as one record; returns them, or -1. */
static ssize_t encrypt(struct connection_tls *tls, const struct loop_send *op, size_t at,
		       size_t most)
{
	char copy[TLS_RECORD_MAX];
	const char *data = NULL;
	size_t length = 0;
	ssize_t got = (ssize_t)most;

	if (!op->file.length || at < op->message.header_length)
		data = run_at(op, at, &length);
	if (length < most) {
		got = gather(op, at, copy, most);
		data = copy;
	}
	if (got > 0 && !tls_library->write(tls->channel, data, (size_t)got)) {
		errno = EPROTO;
		return -1;
	}
	return got;
}

static size_t length_of(const struct loop_send *op)
{
	size_t total = op->message.header_length + op->tail.iov_len + op->file.length;

	for (unsigned i = 0; i < op->message.range_count; i++)
		total += op->message.ranges[i].length;
	return total;
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
static ssize_t send_encrypted(struct loop_cipher *cipher, const struct loop_send *op, size_t most)
{
	struct connection_tls *tls =
		(struct connection_tls *)((char *)cipher - offsetof(struct connection_tls, cipher));
	size_t total = length_of(op), at = op->message.skip, end = MIN(total, at + most);
	size_t burst = 0;
	int flushed;

	for (;;) {
		ssize_t took;

		flushed = at == end || burst >= BURST || burst == 0 ? flush(tls) : 1;
		if (flushed != 1 || at == end)
			break;
		if (burst >= BURST)
			burst = 0;
		took = encrypt(tls, op, at, MIN(end - at, record_size(tls, total)));
		if (took < 0) {
			flushed = -errno;
			break;
		}
		at += (size_t)took;
		burst += (size_t)took;
		tls->warm += (size_t)took;
	}
	cipher->pending = flushed == 0;
	if (at > op->message.skip)
		return (ssize_t)(at - op->message.skip);
	if (flushed == 1)
		return 0;
	errno = flushed ? -flushed : EAGAIN;
	return -1;
}

struct loop_cipher *connection_tls_cipher(struct connection *connection)
{
	struct connection_tls *tls = connection->tls;

	return tls && !tls->kernel ? &tls->cipher : NULL;
}

ssize_t connection_write(struct connection *connection, const char *data, size_t length)
{
	struct connection_tls *tls = connection->tls;
	ssize_t sent;

	if (tls && !tls->kernel) {
		if (!tls_library->write(tls->channel, data, length))
			return -EPIPE;
		/* What the socket does not take is sent before the next message. */
		sent = flush(tls);
		return sent < 0 ? sent : (ssize_t)length;
	}
	do {
		sent = send(connection->fd, data, length, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : sent;
}

/*
 * Returns false if it must be called again.  Of what the kernel has encrypted, a part waits for
 * room while the socket is full: shutdown(2) would drop it, and so would close(2).
 */
static bool say_end(struct connection_tls *tls)
{
	struct pollfd event = {.fd = tls->connection->fd, .events = POLLOUT};

	if (!tls->said_end)
		tls->said_end = tls_library->end(tls->channel);
	if (!tls->kernel)
		return flush(tls) != 0;
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
	struct connection *connection =
		(struct connection *)((char *)timer - offsetof(struct connection, settling));

	if (!say_end(connection->tls)) {
		shut_later(connection);
		return;
	}
	(void)shutdown(connection->fd, SHUT_WR);
	connection->shutting = false;
	connection_linger(connection);
}

void connection_shut(struct connection *connection)
{
	struct connection_tls *tls = connection->tls;

	if (tls && tls->over && !tls->failed && !say_end(tls)) {
		connection->shutting = true;
		connection->settle_ms = 0;
		shut_later(connection);
		return;
	}
	(void)shutdown(connection->fd, SHUT_WR);
}

/* --- receiving ------------------------------------------------------------------------------ */

/* Nothing more can be understood; the client gets the alert. */
static void fail(struct connection_tls *tls)
{
	struct connection *connection = tls->connection;
	char why[TLS_WHY_MAX];

	tls->failed = true;
	tls_library->why(tls->channel, why);
	log_info("%s: TLS%s: %s: closing", connection->addresses.remote,
		 tls->over ? "" : " handshake", why);
	if (!tls->over)
		counter_add(&connection->thread->counters.tls_failed, 1);
	(void)flush(tls);
	if (connection->state == HANDSHAKE) {
		(void)shutdown(connection->fd, SHUT_WR);
		connection_linger(connection);
	} else {
		connection_close(connection);
	}
}

/* Passes on what the records contain.  May free the connection. */
static void read_records(struct connection_tls *tls)
{
	struct connection *connection = tls->connection;
	struct thread *thread = connection->thread;
	ssize_t got;

	for (;;) {
		char data[TLS_RECORD_MAX];

		got = tls_library->read(tls->channel, data, sizeof(data));
		if (got < 0)
			break;
		thread->tls_reader = tls;
		connection_consume(connection, data, (size_t)got);
		if (thread->tls_reader != tls)
			return;
	}
	if (got == TLS_FAILED)
		fail(tls);
	else if (got == TLS_ENDED)
		connection->handlers->ended(connection);
	else if (!connection->sending && flush(tls) < 0)
		connection_close(connection);
}

static void handshake_over(struct connection_tls *tls)
{
	struct connection *connection = tls->connection;
	struct thread_counters *counters = &connection->thread->counters;
	struct tls_agreed agreed;

	tls->over = true;
	tls->kernel = tls_library->kernel_sends(tls->channel);
	/*
	 * The kernel reads the bytes once, to encrypt them into memory of the socket: it refuses
	 * zero-copy sends, and lent pages would cost more.  Nor do such sends say what a method
	 * costs for others with the same route.
	 */
	connection->copies = tls->kernel;
	tls_library->agreed(tls->channel, &agreed);
	connection->policy = agreed.policy;
	connection->tls_variables = (struct slice){agreed.variables, agreed.variables_length};
	counter_add(&counters->tls_handshakes, 1);
	counter_add(&counters->tls_resumed, agreed.resumed);
	counter_add(&counters->tls_kernel, tls->kernel);
	log_debug("%s: %s, %s%s%s", connection->addresses.remote, agreed.version, agreed.cipher,
		  agreed.resumed ? ", resumed" : "", tls->kernel ? ", by the kernel" : "");
	connection->state = READING;
	connection_count_as(connection, CONNECTION_IDLE);
	connection_time(connection, connection_limits(connection)->header_ms);
}

/* May free the connection. */
static void shake(struct connection *connection, const char *data, size_t length)
{
	struct connection_tls *tls = connection->tls;
	int result;

	tls_library->feed(tls->channel, data, length);
	result = tls_library->handshake(tls->channel);
	if (result == TLS_MORE || result == 0) {
		int flushed = flush(tls);

		/* Its first bytes always fit into a socket. */
		if (flushed != 1) {
			connection_close(connection);
			return;
		}
	}
	if (result == 0) {
		handshake_over(tls);
		read_records(tls);
	} else if (result != TLS_MORE) {
		fail(tls);
	}
}

static bool is_late(const struct thread *thread)
{
	return clock_monotonic_ns() - loop_now_ns(thread->loop) > HANDSHAKES_NS;
}

/* The before_sleep() of the thread's hook: one handshake at least, however late it is. */
static bool shake_next(struct loop_hook *hook)
{
	struct thread *thread =
		(struct thread *)((char *)hook - offsetof(struct thread, handshake_hook));

	do {
		GList *link = g_queue_pop_head_link(&thread->handshakes);
		struct connection_tls *tls;

		if (!link)
			return false;
		tls = link->data;
		tls->waits = false;
		connection_consume_input(tls->connection, shake);
	} while (!is_late(thread));
	return thread->handshakes.length > 0;
}

/* Browsers, and people, get words that they can read (RFC 9110, section 15.5.1). */
static void answer_clear(struct connection *connection, const char *data, size_t length)
{
	connection_tls_free(connection);
	connection->state = READING;
	connection->handlers->refuse_clear(connection, data, length);
}

void connection_tls_received(struct connection *connection, const char *data, size_t length)
{
	struct connection_tls *tls = connection->tls;

	if (connection->state == LINGERING)
		return;
	if (tls->over) {
		tls_library->feed(tls->channel, data, length);
		read_records(tls);
		return;
	}
	if (!tls->begun && data[0] >= 'A' && data[0] <= 'Z') {
		answer_clear(connection, data, length);
		return;
	}
	tls->begun = true;
	if (!tls->waits && !is_late(connection->thread)) {
		shake(connection, data, length);
		return;
	}
	if (!connection_keep_input(connection, data, length)) {
		connection_close(connection);
		return;
	}
	if (!tls->waits)
		g_queue_push_tail_link(&connection->thread->handshakes, &tls->waiting);
	tls->waits = true;
}

/* --- opening and closing ---------------------------------------------------------------------- */

/* The choose() of struct tls_chooser.  Names that no host has get the default host's. */
static const struct tls_identity *choose(const struct tls_chooser *chooser, const char *name,
					 size_t length)
{
	const struct connection_tls *tls =
		(const struct connection_tls *)((const char *)chooser -
						offsetof(struct connection_tls, chooser));
	const struct connection *connection = tls->connection;
	const struct config *config = connection->thread->config_ref->config;

	return config_host(config, (struct slice){name, length}, &connection->own.any)->tls;
}

bool connection_tls_open(struct connection *connection)
{
	const struct server *server = connection->thread->server;
	struct connection_tls *tls = calloc(1, sizeof(*tls));

	if (!tls)
		return false;
	tls->chooser.choose = choose;
	tls->cipher.send = send_encrypted;
	tls->connection = connection;
	tls->waiting.data = tls;
	tls->channel = tls_library->open(&tls->chooser, server->kernel_tls ? connection->fd : -1);
	if (!tls->channel) {
		free(tls);
		return false;
	}
	connection->tls = tls;
	return true;
}

void connection_tls_free(struct connection *connection)
{
	struct connection_tls *tls = connection->tls;

	if (!tls)
		return;
	if (connection->thread->tls_reader == tls)
		connection->thread->tls_reader = NULL;
	if (tls->waits)
		g_queue_unlink(&connection->thread->handshakes, &tls->waiting);
	tls_library->close(tls->channel);
	free(tls);
	connection->tls = NULL;
}

void connection_tls_init(struct thread *thread)
{
	thread->handshake_hook.before_sleep = shake_next;
	loop_hook_add(thread->loop, &thread->handshake_hook);
}
