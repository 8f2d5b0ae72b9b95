/* SPDX-License-Identifier: MIT */
/*
 * connection.c - the HTTP state machine of a connection: of a client's, or of one stream.
 *
 *   PROXY      waits for the header in which a proxy states its client
 *   HANDSHAKE  waits for the client's part of a TLS handshake
 *   READING    waits for a whole request head, behind the rest of a body that
 *              nobody requested
 *   RECEIVING  waits for a body that a responder requested, or for a piece of it
 *   WORKING    a responder has the transaction; what follows a piece of the
 *              body waits until the responder requests the next one
 *   SENDING    head or body are being sent
 *   SESSION    an HTTP/2 session has the connection; its streams are connections
 *              of their own, which begin when their head has come
 *   ENDED      the socket is closed, but not all streams of its session have ended:
 *              until then it is counted
 *   LINGERING  our end is closed, or will be when the socket has room; reads until
 *              the peer's is, so that no reset destroys the last response (RFC 9112,
 *              section 9.6)
 *
 * A connection owns its socket and at most one transaction.  If the client disconnects while a
 * responder has the transaction, the transaction is left behind and freed when the responder is
 * done.  Bytes that come early (pipelining) are saved (connection-body.c).  A connection belongs to
 * one thread.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/container.h"
#include "base/counter.h"
#include "base/list.h"
#include "base/peer-addresses.h"
#include "config/configuration.h"
#include "conn/conn-thread.h"
#include "conn/connection-base.h"
#include "conn/connection-mux.h"
#include "conn/connection.h"
#include "core/server.h"
#include "core/site.h"
#include "core/thread-counters.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "exchange/output.h"
#include "http/body.h"
#include "http/request.h"
#include "log/log.h"
#include "pressure/pressure.h"
#include "pressure/slow.h"
#include "pressure/unsent.h"

#define FRESH_PART 5 /* part of the server's remaining time, to wait for a first byte */

/* --- reading --------------------------------------------------------------------- */

/* The client has not sent in time what the state waits for. */
static void connection_time_out(struct connection *connection)
{
	if (connection->state == RECEIVING) {
		connection_refuse_slow_body(connection);
	} else if (connection->state == READING && connection->input_length) {
		(void)connection_start_request(connection, connection->input,
					       connection->input_length, -408,
					       "a head that takes longer than header-timeout");
	} else {
		if (connection->state == PROXY)
			log_info("%s: no PROXY header in time: closing",
				 connection_remote(connection));
		else if (connection->state == HANDSHAKE)
			log_info("%s: no TLS handshake in time: closing",
				 connection_remote(connection));
		connection_close(connection);
	}
}

/* Returns the negated status for a head that cannot become valid. */
static int check_begin(const char *data, size_t length, size_t seen, const char **wrong)
{
	struct request request;
	int error = request_check_begin(&request, data, length, seen);

	*wrong = error ? request.wrong : NULL;
	return error;
}

/* Waits for the rest of a head, of which length bytes have come. */
static void await_head(struct connection *connection, const char *data, size_t length)
{
	connection->input_seen = length;
	/* After the peer's end, the rest of the head will not come. */
	if (connection->ended ||
	    (!connection->input_length && !connection_keep_input(connection, data, length))) {
		connection_close(connection);
		return;
	}
	if (!connection->head_timing)
		connection_time(connection, connection_limits(connection)->header_ms);
	connection->head_timing = true;
	connection_count_as(connection, CONNECTION_READING);
}

static void connection_consume(struct connection *connection, const char *data, size_t length);

/*
 * Starts the request whose head is the first `head` bytes of data, and consumes what follows.
 * With error, or a head that is 0 or longer than max-header: refuses it.
 */
static void consume_head(struct connection *connection, const char *data, size_t length,
			 size_t head, int error, const char *wrong)
{
	size_t most = connection_limits(connection)->max_header;
	char *whole = connection->input;
	bool open;

	/* Take over the buffer, so that what follows is saved in a new one. */
	connection->input = NULL;
	connection->input_length = connection->input_room = connection->input_seen = 0;
	if (error)
		open = connection_start_request(connection, data, length < 512 ? length : 512,
						error, wrong);
	else if (head == 0 || head > most)
		open = connection_start_request(connection, data, length < 512 ? length : 512,
						memchr(data, '\n', most) ? -431 : -414,
						"a head that is longer than max-header");
	else
		open = connection_start_request(connection, data, head, 0, NULL);
	if (open && connection->state == RECEIVING)
		connection_start_receiving(connection, data + head, length - head);
	else if (open && head && head < length)
		connection_consume(connection, data + head, length - head);
	free(whole);
}

/* HTTP/2 with prior knowledge, in clear text (RFC 9113, section 3.3). */
static bool may_be_session(const struct connection *connection, const char *data, size_t length)
{
	const struct thread *thread = connection->thread;
	const char *preface = thread->conn->http2->preface;

	return connection->carrier->requests == 0 && !connection->carrier->tls &&
	       thread->config_ref->config->http2 == HTTP2_CLEAR && *data == *preface &&
	       memcmp(data, preface, MIN(length, strlen(preface))) == 0;
}

/* The bytes so far are of the preface. */
static void begin_session(struct connection *connection, const char *data, size_t length)
{
	const struct connection_mux *http2 = connection->thread->conn->http2;
	char *whole;

	if (length < strlen(http2->preface)) {
		await_head(connection, data, length);
		return;
	}
	whole = connection->input;
	connection->input = NULL;
	connection->input_length = connection->input_room = connection->input_seen = 0;
	if (http2->open(connection))
		http2->received(connection, data, length);
	else
		connection_close(connection);
	free(whole);
}

/* Starts a request when its head is complete; what follows waits for its response. */
static void connection_consume(struct connection *connection, const char *data, size_t length)
{
	const char *wrong = NULL;
	size_t head, most;
	int error = 0;

	if (connection->state == LINGERING)
		return;
	if (connection->state == RECEIVING) {
		size_t used = connection_receive_body(connection, data, length);

		data += used;
		length -= used;
		/* The rest of the body will not come. */
		if (connection->ended && connection->state == RECEIVING) {
			connection_close(connection);
			return;
		}
		if (length == 0)
			return;
	}
	if (connection_has_tunnel(connection)) {
		transaction_tunnel(&connection->output->transaction, data, length);
		return;
	}
	if (connection->state != READING) {
		if (!connection_keep_input(connection, data, length))
			connection_close(connection);
		return;
	}
	if (!body_is_over(&connection->body)) {
		ssize_t used = connection_drop_body(connection, data, length);

		if (used < 0)
			return;
		data += used;
		length -= (size_t)used;
	}
	if (length == 0) {
		/* The rest of that body will not come. */
		if (connection->ended)
			connection_close(connection);
		return;
	}
	if (connection->input_length) {
		/* The rest of a head that comes in pieces. */
		if (!connection_keep_input(connection, data, length)) {
			connection_close(connection);
			return;
		}
		data = connection->input;
		length = connection->input_length;
	}
	if (may_be_session(connection, data, length)) {
		begin_session(connection, data, length);
		return;
	}
	most = connection_limits(connection)->max_header;
	head = request_head_length(data, length, connection->input_seen);
	if (head == 0 && length < most)
		error = check_begin(data, length, connection->input_seen, &wrong);
	if (head == 0 && length < most && !error) {
		await_head(connection, data, length);
		return;
	}
	consume_head(connection, data, length, head, error, wrong);
}

/* Whether the loop has bytes that it has not delivered yet. */
static bool has_waiting(const struct connection *connection)
{
	char byte;

	return recv(connection->carrier->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* The thread is ending: closes an idle connection.  May free the connection. */
static void connection_leave(struct connection *connection)
{
	if (connection_has_tunnel(connection))
		transaction_drain(&connection->output->transaction);
	/* It has the timeout of a last response, but not longer. */
	if (connection->state == LINGERING) {
		connection_linger(connection);
		return;
	}
	if ((connection->state != READING && connection->state != PROXY &&
	     connection->state != HANDSHAKE) ||
	    (connection->input_length && connection->state != HANDSHAKE) || has_waiting(connection))
		return;
	/* A new connection was accepted, and its first request shall get a response. */
	if (connection->carrier->requests > 0)
		connection_close(connection);
	else
		connection_time(connection, connection_limits(connection)->stop_ms / FRESH_PART);
}

const struct connection_mux connection_http1 = {
	.received = connection_consume,
	.leave = connection_leave,
	.timed_out = connection_time_out,
};

/* --- the socket ------------------------------------------------------------------ */

static void connection_deliver(struct connection *connection, const char *data, size_t length)
{
	if (connection->state == PROXY)
		connection_consume_proxy(connection, data, length, connection_deliver);
	else if (connection->carrier->tls)
		connection_tls_received(connection, data, length);
	else
		connection->mux->received(connection, data, length);
}

static void connection_received(struct loop_receive *op, const char *data, int length)
{
	struct connection *connection = &container_of(op, struct carrier, receive)->connection;

	if (length > 0)
		connection_deliver(connection, data, (size_t)length);
	else if (length == 0)
		connection_ended(connection);
	else
		connection_close(connection);
}

/* For a client that has no connection yet. */
static void set_up(struct carrier *carrier, struct thread *thread, int fd)
{
	struct connection *connection = &carrier->connection;

	connection->mux = &connection_http1;
	connection->transport = &connection_socket;
	connection->carrier = carrier;
	connection->thread = thread;
	connection->slow.owner = &connection_slow;
	connection->slow.thread = thread;
	connection->slow.send = &connection->send;
	connection->slow.socket = &carrier->unsent;
	carrier->fd = fd;
	carrier->receive.received = connection_received;
	carrier->unsent.thread = thread;
	carrier->unsent.fd = fd;
	carrier->unsent.send = &connection->send;
	carrier->unsent.reset = connection_unsent_reset;
}

/* Starts to receive.  The connection may have been freed afterwards. */
static void start(struct carrier *carrier)
{
	struct connection *connection = &carrier->connection;
	struct thread *thread = connection->thread;

	list_prepend(&thread->conn->connections, &carrier->node);
	counter_add(&thread->counters->connections, 1);
	counter_add(&thread->counters->open, 1);
	counter_add(&thread->counters->states[CONNECTION_IDLE], 1);
	connection_time(connection, connection_limits(connection)->header_ms);
	if (loop_receive_start(thread->loop, &carrier->receive, carrier->fd) < 0)
		connection_close(connection);
}

void connection_open(struct thread *thread, int fd, bool tls, bool status_only)
{
	struct carrier *carrier;
	struct sockaddr_storage remote, local;
	socklen_t remote_length = sizeof(remote), local_length = sizeof(local);
	bool named;

	if (!connection_admit_socket(thread, fd, tls)) {
		close(fd);
		return;
	}
	carrier = calloc(1, sizeof(*carrier));
	if (!carrier || getpeername(fd, (struct sockaddr *)&remote, &remote_length) < 0) {
		free(carrier);
		close(fd);
		return;
	}
	named = getsockname(fd, (struct sockaddr *)&local, &local_length) == 0;
	peer_addresses_set(&carrier->addresses, &remote, named ? &local : NULL);
	set_up(carrier, thread, fd);
	carrier->status_only = status_only;
	if (named)
		memcpy(&carrier->own, &local, sizeof(carrier->own));
	if (!connection_begin(&carrier->connection, tls)) {
		connection_tls_free(&carrier->connection);
		free(carrier);
		close(fd);
		return;
	}
	unsent_init(&carrier->unsent, (const struct sockaddr *)&remote, &carrier->own.any);
	start(carrier);
}

bool connection_any(const struct thread *thread)
{
	return !list_is_empty(&thread->conn->connections);
}

static void connection_leaves(struct timer *timer)
{
	struct connection *connection = container_of(timer, struct connection, timer);

	/* Unless it is closed: for what the loop has not delivered yet. */
	connection_time(connection, connection_limits(connection)->stop_ms / FRESH_PART);
	connection->mux->leave(connection);
}

void connection_drain(struct thread *thread)
{
	thread->draining = true;
	/*
	 * Most are idle: timers that expire together have several turns of the loop.  They run when
	 * all that came until now was delivered; not at once, which would be in this millisecond.
	 */
	list_each (struct carrier, carrier, &thread->conn->connections, node) {
		struct connection *connection = &carrier->connection;

		if (connection->state == READING && !connection->input_length)
			loop_timer_start(thread->loop, &connection->timer, 1, connection_leaves);
		else
			connection->mux->leave(connection);
	}
}

void connection_close_all(struct thread *thread)
{
	struct carrier *carrier;

	if (!thread->conn)
		return;
	/* The loop has no further turn for streams. */
	while ((carrier = list_first(&thread->conn->connections, struct carrier, node)))
		if (carrier->connection.state == ENDED)
			thread->conn->http2->end_all(&carrier->connection);
		else
			connection_close(&carrier->connection);
	pressure_thread_stop(thread);
}
