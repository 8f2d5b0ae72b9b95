/* SPDX-License-Identifier: MIT */
/*
 * connection-send.c - sends responses: head and body, piece by piece; then continues with the next
 * request, or ends the connection.
 */
#include <assert.h>
#include <errno.h>
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/container.h"
#include "base/counter.h"
#include "base/peer-addresses.h"
#include "base/slice.h"
#include "base/timer.h"
#include "config/configuration.h"
#include "conn/connection-base.h"
#include "conn/connection-mux.h"
#include "core/server.h"
#include "core/site.h"
#include "core/socket-options.h"
#include "core/thread-counters.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "event/piece.h"
#include "exchange/output.h"
#include "exchange/ready.h"
#include "handler/coded-response.h"
#include "handler/errorpage.h"
#include "http/body.h"
#include "log/log.h"
#include "pressure/pace.h"
#include "pressure/slow.h"
#include "pressure/unsent.h"

/*
 * The end of a piece larger than this, which is more than a segment, is sent without waiting for
 * the next piece.  The next piece may have to come from a disk, and a client whose window is
 * smaller than a segment (64 KB on loopback) would get nothing more until the kernel's timeout of
 * 200 ms.
 */
#define MORE_MAX 65536

static void connection_sent(struct loop_send *op, int result);
static void finished(struct connection *connection);

/* Whether nothing follows the current piece. */
static bool is_last(const struct output *output)
{
	const struct transaction *transaction = &output->transaction;

	if (!transaction_has_next(transaction) || transaction->head_only)
		return true;
	return transaction->response.length == TRANSACTION_UNKNOWN
		       ? output->ended
		       : output->sent >= transaction->response.length;
}

static const struct config_sockets *sockets_of(const struct output *output)
{
	return &output->transaction.config_ref->config->sockets;
}

/*
 * Whether the FIN is sent with the last bytes of the response.  While a connection is still
 * opening, the kernel delays a FIN, and the bytes with it, until the client has acknowledged: a
 * lost round trip, unless the socket is closed as well.
 */
static bool closes_itself(const struct connection *connection)
{
	const struct config_sockets *sockets = sockets_of(connection->output);

	/* The end of a stream costs nothing. */
	if (connection_is_stream(connection))
		return true;
	/* With TLS, a message of its own says that nothing follows. */
	if (connection->keep_alive || !sockets->close_option || connection->carrier->tls)
		return false;
	return !sockets->fastopen || !sockets->linger || connection->carrier->requests > 1 ||
	       !socket_is_opening(connection->carrier->fd);
}

/* Sets the message to memory. */
static void set_message(struct connection *connection, const char *bytes, size_t length)
{
	connection->send.message =
		(struct NC_send)NC_SEND_INIT(.header = bytes, .header_length = length,
					     .cookie = &connection->carrier->cookie);
	connection->send.file = (struct loop_file){0};
	connection->send.batch = true;
}

void connection_waits(struct loop_send *op)
{
	struct connection *connection = container_of(op, struct connection, send);

	if (!connection_is_stream(connection))
		unsent_waits(&connection->carrier->unsent);
	slow_waits(&connection->slow, connection->output);
}

/* A response begins: limits its rate as its path says. */
static void pace(struct connection *connection)
{
	const struct scope *scope = connection->output->transaction.scope;
	struct carrier *carrier = connection->carrier;

	pace_begin(&carrier->pace, &connection->paced, scope ? scope->send_rate : 0, carrier->fd,
		   carrier->addresses.remote);
}

/* waits: called when the socket is full. */
static void start_sending(struct connection *connection, void (*waits)(struct loop_send *op))
{
	connection->state = SENDING;
	connection_count_as(connection, CONNECTION_SENDING);
	connection->measured = false;
	connection->send.sent = connection_sent;
	connection->send.waits = waits;
	connection_send(connection);
}

/* Adds the piece to the message; a text is behind the head already. */
static void add_piece(struct loop_send *send, const struct piece *piece)
{
	struct NC_send *message = &send->message;

	if (piece->kind == PIECE_RANGE) {
		message->ranges = &piece->range;
		message->holds = &piece->hold;
		message->range_count = message->hold_count = 1;
	} else if (piece->kind == PIECE_RANGES) {
		message->ranges = piece->ranges;
		message->holds = piece->holds;
		message->range_count = piece->range_count;
		message->hold_count = piece->hold_count;
	} else if (piece->kind == PIECE_BYTES) {
		send->text = (struct NC_text){.data = piece->data, .length = piece->length};
		message->texts = &send->text;
		message->text_count = 1;
	} else if (piece->kind == PIECE_FILE) {
		send->file = piece->file;
	}
}

static void send_piece(struct connection *connection, size_t head_length)
{
	struct output *output = connection->output;
	struct transaction *transaction = &output->transaction;
	struct NC_send *message = &connection->send.message;
	uint64_t piece = 0;

	set_message(connection, output_bytes(output), head_length);
	connection->send.steady = false;
	connection->send.cipher = connection_cipher(connection);
	connection->send.apart = !output->head_sent && !sockets_of(output)->header_option;
	if (!transaction->head_only) {
		add_piece(&connection->send, &transaction->piece);
		piece = transaction->piece.length;
		output->sent += piece;
		counter_add(&connection->thread->counters->body_units, message->range_count);
	}
	if (is_last(output))
		message->flags |= closes_itself(connection) ? NC_SEND_CLOSE : 0;
	else if (piece < MORE_MAX && !transaction->response.live)
		message->flags |= NC_SEND_MORE;
	connection_time(connection, connection_limits(connection)->send_ms);
	start_sending(connection, connection_waits);
}

/* A small message is sent at once, as a rule: it needs a timeout only if it is not. */
static void send_ready_waits(struct loop_send *op)
{
	struct connection *connection = container_of(op, struct connection, send);

	if (!timer_is_running(&connection->timer))
		connection_time(connection, connection_limits(connection)->send_ms);
	connection_waits(op);
}

/* Sends a response that was made before, after which the connection continues. */
static void send_ready(struct connection *connection, struct ready *ready)
{
	struct output *output = connection->output;

	output->ready = ready;
	output->sent = ready->body_length;
	counter_add(&connection->thread->counters->body_units, 1);
	counter_add(&connection->thread->counters->body_ready, 1);
	/* Its bytes are the same, so that the unit need not be. */
	piece_release(&output->transaction.piece);
	set_message(connection, ready->bytes, ready->head_length + ready->body_length);
	connection->send.steady = true;
	connection->send.cipher = NULL;
	connection->send.apart = false;
	start_sending(connection, send_ready_waits);
}

/* Whether a response can be one that is ready, as far as the connection is concerned. */
static bool may_be_ready(const struct connection *connection)
{
	return connection->keep_alive && !connection->http10 && !connection->carrier->tls &&
	       !connection_is_stream(connection) && sockets_of(connection->output)->header_option;
}

/* Only the first reason; the access log has the rest. */
static void log_reason(struct transaction *transaction)
{
	if (transaction->response.reason)
		log_info("%s: answered %d: %s%s%s", transaction->peer.remote_addr,
			 transaction->response.status, transaction->path,
			 *transaction->path ? ": " : "", transaction->response.reason);
	transaction->response.reason = NULL;
}

void connection_respond(struct connection *connection)
{
	struct transaction *transaction = &connection->output->transaction;
	struct ready *ready;
	size_t length;
	bool may;

	log_reason(transaction);
	if (errorpage_respond(transaction) == RESPOND_LATER) {
		/* If a request is refused for its body, no responder has got it. */
		connection->state = WORKING;
		timer_stop(&connection->timer);
		return;
	}
	if (transaction->response.coding != TRANSACTION_AS_IT_IS)
		coded_response_begin(transaction);
	if (connection->thread->draining)
		connection->keep_alive = false;
	/*
	 * If the body is no longer needed, and the client may not send all of it, its end is
	 * unknown.
	 */
	if (!body_is_over(&connection->body)) {
		body_drop(&connection->body, CONNECTION_DROPPED_MAX);
		if (connection->expecting || body_is_too_long(&connection->body))
			connection->keep_alive = false;
	}
	/* Such a client finds the end of the body only by the end of the connection. */
	if ((connection->http10 || transaction_has_tunnel(transaction)) &&
	    transaction->response.length == TRANSACTION_UNKNOWN)
		connection->keep_alive = false;
	if (transaction_has_tunnel(transaction))
		connection_begin_tunnel(connection);
	pace(connection);
	may = may_be_ready(connection);
	ready = may ? ready_find(connection->output) : NULL;
	if (ready) {
		send_ready(connection, ready);
		return;
	}
	if (!output_head(connection->output, connection->keep_alive, connection->http10, &length)) {
		connection->state = SENDING;
		connection_close(connection);
		return;
	}
	if (may)
		ready_keep(connection->output);
	send_piece(connection, length);
}

/* Not all that speak HTTP/1.0 know them (RFC 9110, section 15.2); of a stream it says nothing. */
static bool takes_interim(const struct connection *connection)
{
	return !connection->http10 || connection_is_stream(connection);
}

void connection_interim(struct transaction *transaction, int status, struct slice lines)
{
	const struct output *output = container_of(transaction, struct output, transaction);
	struct connection *connection = transaction->connection;

	if (!connection || !takes_interim(connection) || connection->sending || output->head_sent)
		return;
	assert(connection->state == WORKING || connection->state == RECEIVING);
	connection->transport->interim(connection, status, lines);
}

/* In HTTP/1.1 they are a part of the last chunk. */
static bool must_send_trailers(const struct connection *connection)
{
	return connection_is_stream(connection) && output_trailers(connection->output).length;
}

void connection_done(struct transaction *transaction)
{
	struct connection *connection = transaction->connection;
	struct output *output = container_of(transaction, struct output, transaction);

	if (!connection) {
		output_close(output);
		return;
	}
	assert(connection->state == WORKING || connection->state == RECEIVING);
	if (transaction->response.status == 0) {
		/* The response was cut off: the client must see that. */
		if (transaction->response.reset ||
		    (transaction->response.length == TRANSACTION_UNKNOWN && !output->chunked &&
		     !connection_is_stream(connection)))
			connection_reset_at_close(connection);
		connection->state = SENDING;
		connection_close(connection);
	} else if (output->sent || output->head_sent) {
		size_t length = output_lead(output, 0);

		/* The end of the connection, or of the stream, marks the end of the body. */
		if (output->ended && length == 0 && !must_send_trailers(connection)) {
			connection_shut(connection);
			finished(connection);
		} else {
			send_piece(connection, length);
		}
	} else {
		connection_respond(connection);
	}
}

void connection_refuse_because(struct connection *connection, int status, const char *wrong,
			       const char *detail)
{
	connection->keep_alive = false;
	body_end(&connection->body);
	/* A responder may be processing what has come: it is cancelled. */
	transaction_dismiss(&connection->output->transaction);
	transaction_refuse(&connection->output->transaction, status, wrong);
	connection->output->transaction.response.detail = detail;
	connection_respond(connection);
}

/* The response was sent: continues with the next request.  May free the connection. */
static void idle(struct connection *connection)
{
	if (connection->input_length)
		connection_consume_input(connection, connection->mux->received);
	else if (connection->ended)
		connection_close(connection);
	else if (connection->thread->draining)
		connection->mux->leave(connection); /* the response had announced keep-alive */
}

static void finished(struct connection *connection)
{
	struct output *output = connection->output;

	output_log(output);
	if (!leave_keeps_output(&connection->slow))
		output_close(output);
	slow_keeps_up(&connection->slow);
	connection->output = NULL;
	pace_end(&connection->carrier->pace, &connection->paced);
	if (!connection->keep_alive) {
		connection_linger(connection);
		return;
	}
	connection->state = READING;
	connection_count_as(connection, CONNECTION_IDLE);
	connection->head_timing = false;
	if (!body_is_over(&connection->body))
		connection_time_body(connection);
	else
		connection_time(connection, connection_limits(connection)->keep_alive_ms);
	idle(connection);
}

/*
 * Ends the chunk that was sent, if the next one does not follow at once: clients process a chunk
 * only when it is complete.  What the socket does not take is sent with the next chunk.  Returns
 * false if the connection is broken.
 */
static bool end_chunk(struct connection *connection)
{
	struct output *output = connection->output;
	size_t length;
	const char *end = output_chunk_end(output, &length);
	ssize_t sent;

	if (length == 0)
		return true;
	sent = connection_write(connection, end, length);
	if (sent > 0)
		output->chunk_end -= (unsigned char)sent;
	return sent >= 0 || sent == -EAGAIN;
}

static void next_piece(struct connection *connection)
{
	struct transaction *transaction = &connection->output->transaction;

	connection->state = WORKING;
	connection_count_as(connection, CONNECTION_WORKING);
	/* The responder limits its own silence. */
	if (transaction_has_tunnel(transaction) || body_is_over(&connection->body))
		timer_stop(&connection->timer);
	if (transaction_next(transaction) == RESPOND_NOW)
		connection_done(transaction);
	/* The socket reports the error only once: the next read would see a normal end. */
	else if (!end_chunk(connection))
		connection_close(connection);
}

static void settle(struct connection *connection);

static void send_look_again(struct timer *timer)
{
	settle(container_of(timer, struct connection, settling));
}

/*
 * The kernel does not report acknowledgements: the server polls.  The client has as much time as
 * for a piece.
 */
static void settle(struct connection *connection)
{
	if (connection_unsent(connection) == 0) {
		next_piece(connection);
		return;
	}
	loop_timer_start(connection->thread->loop, &connection->settling,
			 connection_poll_ms(connection), send_look_again);
}

static void send_failed(struct connection *connection, int error)
{
	const char *remote = connection_remote(connection);

	if (error == -ERANGE) {
		log_info("%s: the file was truncated while it was sent: resetting", remote);
		connection_reset(connection);
		return;
	}
	if (error != -EPIPE && error != -ECONNRESET)
		log_info("%s: sending: %s", remote, strerror(-error));
	connection_close(connection);
}

static void connection_sent(struct loop_send *op, int result)
{
	struct connection *connection = container_of(op, struct connection, send);
	struct output *output = connection->output;

	assert(connection->state == SENDING);
	output->head_sent = true;
	connection->sending = false;
	if (!connection_is_stream(connection))
		unsent_stops(&connection->carrier->unsent);
	if (result < 0) {
		send_failed(connection, result);
		return;
	}
	if (is_last(output)) {
		/* The data was sent; now close our end. */
		if (!connection->keep_alive && !(op->message.flags & NC_SEND_CLOSE))
			connection_shut(connection);
		finished(connection);
		return;
	}
	slow_keeps_up(&connection->slow);
	if (!output->transaction.piece.settle) {
		next_piece(connection);
		return;
	}
	connection->settle_ms = 0;
	settle(connection);
}
