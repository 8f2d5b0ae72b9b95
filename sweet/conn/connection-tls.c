/* SPDX-License-Identifier: MIT */
/*
 * connection-tls.c - a connection's TLS: the handshake, and what the client sends.
 *
 * Received bytes go through the channel, and what they contain to the state machine.  For what is
 * sent see connection-cipher.c.
 *
 * A handshake costs as much as hundreds of requests.  Each turn of the loop does some milliseconds
 * of them; other clients wait for their turn, in the order in which they came.
 */
#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/container.h"
#include "base/counter.h"
#include "base/list.h"
#include "base/slice.h"
#include "config/configuration.h"
#include "conn/conn-thread.h"
#include "conn/connection-base.h"
#include "conn/connection-mux.h"
#include "conn/connection-tls-internal.h"
#include "core/server.h"
#include "core/site.h"
#include "core/thread-counters.h"
#include "event/loop.h"
#include "log/log.h"
#include "pressure/unsent.h"
#include "tls/client-hello.h"
#include "tls/tls-challenge.h"
#include "tls/tls.h"

#define HANDSHAKES_NS 5000000u /* of a turn of the loop, then handshakes wait for the next */

/* --- receiving ------------------------------------------------------------------------------ */

/* Nothing more can be understood; the client gets the alert. */
static void fail(struct connection_tls *tls)
{
	struct connection *connection = tls->connection;
	char why[TLS_WHY_MAX];

	tls->failed = true;
	tls_library->why(tls->channel, why);
	log_info("%s: TLS%s: %s: closing", connection_remote(connection),
		 tls->over ? "" : " handshake", why);
	if (!tls->over)
		counter_add(&connection->thread->counters->tls_failed, 1);
	(void)connection_tls_flush(tls);
	if (connection->state == HANDSHAKE) {
		(void)shutdown(connection->carrier->fd, SHUT_WR);
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
		char data[TLS_READ_ROOM];

		got = tls_library->read(tls->channel, data);
		if (got < 0)
			break;
		thread->conn->tls_reader = tls;
		connection->mux->received(connection, data, (size_t)got);
		if (thread->conn->tls_reader != tls)
			return;
	}
	if (got == TLS_FAILED)
		fail(tls);
	else if (got == TLS_ENDED)
		connection_ended(connection);
	else if (!connection->sending && connection_tls_flush(tls) < 0)
		connection_close(connection);
}

/* Returns false without memory. */
static bool handshake_over(struct connection_tls *tls, const struct tls_agreed *agreed)
{
	struct connection *connection = tls->connection;
	struct thread_counters *counters = connection->thread->counters;

	tls->over = true;
	tls->kernel = tls_library->kernel_sends(tls->channel);
	/*
	 * The kernel reads the bytes once, to encrypt them into memory of the socket: it refuses
	 * zero-copy sends, and lent pages would cost more.  Nor do such sends say what a method
	 * costs for others with the same route.
	 */
	connection->carrier->unsent.copies = tls->kernel;
	tls->policy = agreed->policy;
	counter_add(&counters->tls_handshakes, 1);
	counter_add(&counters->tls_resumed, agreed->resumed);
	counter_add(&counters->tls_kernel, tls->kernel);
	log_debug("%s: %s, %s%s%s", connection_remote(connection), agreed->version, agreed->cipher,
		  agreed->resumed ? ", resumed" : "", tls->kernel ? ", by the kernel" : "");
	connection->state = READING;
	connection_count_as(connection, CONNECTION_IDLE);
	connection_time(connection, connection_limits(connection)->header_ms);
	return !agreed->http2 || connection->thread->conn->http2->open(connection);
}

/* No data follow (RFC 8737, section 4).  May free the connection. */
static void end_challenge(struct connection *connection)
{
	log_info("%s: answered the challenge tls-alpn-01", connection_remote(connection));
	connection_shut(connection);
	connection_linger(connection);
}

/* Returns false without memory, or if the address has no TLS any more. */
static bool open_channel(struct connection_tls *tls)
{
	const struct connection *connection = tls->connection;
	int socket = connection->thread->server->kernel_tls ? connection->carrier->fd : -1;

	tls->channel = tls_library->open(&tls->chooser, socket);
	return tls->channel;
}

/* May free the connection. */
static void tls_handshake(struct connection *connection, const char *data, size_t length)
{
	struct connection_tls *tls = connection->carrier->tls;
	int result;

	if (!tls->channel && !open_channel(tls)) {
		connection_close(connection);
		return;
	}
	tls_library->feed(tls->channel, data, length);
	result = tls_library->handshake(tls->channel);
	/* Its first bytes always fit into a socket. */
	if (result == TLS_MORE && connection_tls_flush(tls) != 1) {
		connection_close(connection);
		return;
	}
	/* Its last ones, the tickets, are sent with the first response if that is ready now. */
	if (result == 0) {
		struct tls_agreed agreed;

		tls_library->agreed(tls->channel, &agreed);
		if (!handshake_over(tls, &agreed))
			connection_close(connection);
		else if (agreed.challenge)
			end_challenge(connection);
		else
			read_records(tls);
	} else if (result != TLS_MORE) {
		fail(tls);
	}
}

static bool is_late(const struct thread *thread)
{
	return loop_turn_ns(thread->loop) > HANDSHAKES_NS;
}

/* The timers of those that wait must not end them; each turn does one at least. */
static void hold_timers(const struct conn_thread *conn)
{
	if (conn->handshake_count)
		loop_hold_timers(conn->thread->loop, conn->handshake_count + 1);
}

/*
 * The before_sleep() of the thread's hook: one handshake at least, however late it is.  Requests
 * may have followed one, which are work for other hooks: then all are called again.
 */
static bool tls_handshake_next(struct loop_hook *hook)
{
	struct conn_thread *conn = container_of(hook, struct conn_thread, handshake_hook);
	bool work = !list_is_empty(&conn->handshakes);
	struct connection_tls *tls;

	while ((tls = list_take(&conn->handshakes, struct connection_tls, waiting))) {
		conn->handshake_count--;
		connection_consume_input(tls->connection, tls_handshake);
		if (is_late(conn->thread))
			break;
	}
	hold_timers(conn);
	return work;
}

/* Browsers, and people, get words that they can read (RFC 9110, section 15.5.1). */
static void answer_clear(struct connection *connection, const char *data, size_t length)
{
	connection_tls_free(connection);
	connection->state = READING;
	connection_refuse_clear(connection, data, length);
}

/* Nothing is known of what the client speaks: the alert is that of the first versions. */
static void refuse_hello(struct connection *connection)
{
	static const char alert[] = {21, 3, 1, 0, 2, 2, 50}; /* a record: fatal, decode_error */

	log_info("%s: TLS handshake: a ClientHello of more than %u bytes: closing",
		 connection_remote(connection), CLIENT_HELLO_MAX);
	counter_add(&connection->thread->counters->tls_failed, 1);
	connection->carrier->tls->failed = true;
	(void)!send(connection->carrier->fd, alert, sizeof(alert), MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)shutdown(connection->carrier->fd, SHUT_WR);
	connection_linger(connection);
}

/*
 * A channel takes 40 KB and more: there is none before the ClientHello has come as a whole.  Returns
 * false as long as it has not; then the connection may be freed.  Else sets the bytes to all of them.
 */
static bool gather_hello(struct connection *connection, const char **data, size_t *length)
{
	if (connection->input_length) {
		if (!connection_keep_input(connection, *data, *length)) {
			connection_close(connection);
			return false;
		}
		*data = connection->input;
		*length = connection->input_length;
	}
	switch (client_hello_look(*data, *length)) {
	case CLIENT_HELLO_WHOLE:
		return true;
	case CLIENT_HELLO_LONG:
		refuse_hello(connection);
		return false;
	case CLIENT_HELLO_PART:
		break;
	}
	if (*data != connection->input && !connection_keep_input(connection, *data, *length))
		connection_close(connection);
	return false;
}

void connection_tls_received(struct connection *connection, const char *data, size_t length)
{
	struct conn_thread *conn = connection->thread->conn;
	struct connection_tls *tls = connection->carrier->tls;

	if (connection->state == LINGERING)
		return;
	if (tls->over) {
		tls_library->feed(tls->channel, data, length);
		read_records(tls);
		return;
	}
	/* Nothing behind a PROXY header. */
	if (length == 0)
		return;
	if (!tls->begun && data[0] >= 'A' && data[0] <= 'Z') {
		answer_clear(connection, data, length);
		return;
	}
	tls->begun = true;
	if (!tls->channel && !list_is_linked(&tls->waiting) &&
	    !gather_hello(connection, &data, &length))
		return;
	if (!list_is_linked(&tls->waiting) && !is_late(connection->thread)) {
		if (data == connection->input)
			connection_consume_input(connection, tls_handshake);
		else
			tls_handshake(connection, data, length);
		return;
	}
	if (data != connection->input && !connection_keep_input(connection, data, length)) {
		connection_close(connection);
		return;
	}
	if (!list_is_linked(&tls->waiting)) {
		list_append(&conn->handshakes, &tls->waiting);
		conn->handshake_count++;
	}
	hold_timers(conn);
}

/* --- opening ---------------------------------------------------------------------------------- */

static const struct connection *connection_of(const struct tls_chooser *chooser)
{
	const struct connection_tls *tls =
		container_of(chooser, const struct connection_tls, chooser);

	return tls->connection;
}

/* What is open for the host of that name: for names that no host has, the default host. */
static const struct site_host *host_of(const struct connection *connection, const char *name,
				       size_t length)
{
	const struct config_ref *ref = connection->thread->config_ref;

	return site_host(ref, config_host(ref->config, (struct slice){name, length},
					  &connection->carrier->own.any));
}

/* The choose() of struct tls_chooser. */
static const struct tls_identity *tls_choose(const struct tls_chooser *chooser, const char *name,
					     size_t length)
{
	return host_of(connection_of(chooser), name, length)->tls;
}

/* The answer() of struct tls_chooser. */
static struct tls_identity *tls_answer(const struct tls_chooser *chooser, const char *name,
				       size_t length)
{
	const struct connection *connection = connection_of(chooser);
	const struct site_host *host = host_of(connection, name, length);
	struct tls_identity *identity;
	char *why;

	if (!host->answers)
		return NULL;
	identity = tls_challenge_open(host->answers, name, length, &why);
	if (!identity)
		log_info("%s: tls-alpn-01: %s", connection_remote(connection),
			 why ? why : "no memory");
	free(why);
	return identity;
}

bool connection_tls_open(struct connection *connection)
{
	struct connection_tls *tls = calloc(1, sizeof(*tls));

	if (!tls)
		return false;
	tls->chooser = (struct tls_chooser){tls_choose, tls_answer};
	connection_tls_set_cipher(tls);
	tls->connection = connection;
	connection->carrier->tls = tls;
	return true;
}

void connection_tls_init(struct thread *thread)
{
	thread->conn->handshake_hook.before_sleep = tls_handshake_next;
	loop_hook_add(thread->loop, &thread->conn->handshake_hook);
}
