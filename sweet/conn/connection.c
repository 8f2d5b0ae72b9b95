/* SPDX-License-Identifier: MIT */
/*
 * connection.c - the HTTP state machine of a connection.
 *
 *   PROXY      waits for the header by which a proxy tells its client
 *   READING    waits for a whole request head, behind the rest of a body that
 *              nobody asked for
 *   RECEIVING  waits for a body that a responder asked for, or for a piece of it
 *   WORKING    a responder has the transaction; what comes behind a piece of the
 *              body waits as well, until the responder asks for the next one
 *   SENDING    head or body are on their way
 *   LINGERING  our end is closed; reads until the peer's is, so that the
 *              last answer is not lost to a reset (RFC 9112, section 9.6)
 *
 * A connection owns its socket and at most one transaction; a transaction
 * whose client went while a responder had it is left behind and freed when
 * the responder is done.  Bytes that come before their turn (pipelining) wait
 * in `input`; past a bound nothing more is read.  One thread.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn/connection-internal.h"
#include "handler/route.h"

#define FRESH_PART 5	  /* of the time that is left to the server: for a first byte */
#define INPUT_PAUSE 32768 /* bytes that wait before reading pauses */

/* --- the connection's own life ----------------------------------------------- */

static void connection_free(struct connection *connection)
{
	struct thread *thread = connection->thread;

	*connection->link = connection->next;
	if (connection->next)
		connection->next->link = connection->link;
	timer_stop(&connection->timer);
	timer_stop(&connection->settling);
	counter_add(&thread->counters.open, (uint64_t)-1);
	counter_add(&thread->counters.states[connection->counted], (uint64_t)-1);
	body_end(&connection->body);
	if (connection->client)
		client_limits_leave(thread->server->limits, connection->client);
	free(connection->input);
	if (thread->vacated && !thread->connections)
		thread->vacated(thread);
	free(connection);
}

void connection_close(struct connection *connection)
{
	struct output *output = connection->output;

	loop_close_fd(connection->thread->loop, connection->fd);
	/* Now, while the client's address is there. */
	if (output)
		output_log(output);
	if (output && connection->state == WORKING) {
		struct transaction *transaction = &output->transaction;

		transaction->connection = NULL; /* until the responder is done */
		if (transaction->gone)
			transaction->gone(transaction);
	} else if (output && !connection_leaves_output(connection)) {
		output_close(output);
	}
	connection_keeps_up(connection);
	connection_unsent_end(connection);
	if (connection->lent_id)
		connection_lent_end(connection);
	connection_free(connection);
}

/* --- reading --------------------------------------------------------------------- */

bool connection_keep_input(struct connection *connection, const char *data, size_t length)
{
	size_t need = connection->input_length + length;

	if (need > connection->input_room) {
		size_t room = connection->input_room ? connection->input_room : 1024;
		char *input;

		while (room < need)
			room *= 2;
		input = realloc(connection->input, room);
		if (!input)
			return false;
		connection->input = input;
		connection->input_room = room;
	}
	memcpy(connection->input + connection->input_length, data, length);
	connection->input_length = need;
	if (need > INPUT_PAUSE && connection->state != READING && !connection->paused) {
		connection->paused = true;
		loop_receive_pause(connection->thread->loop, connection->fd);
	}
	return true;
}

/* A whole head; false: nothing more can be done with this connection. */
static bool start_request(struct connection *connection, const char *head, size_t length, int error,
			  const char *wrong)
{
	struct thread *thread = connection->thread;
	const struct config_limits *limits = connection_limits(connection);
	struct output *output = output_open(thread);
	struct transaction *transaction;
	struct request request;

	if (!output) {
		connection_close(connection);
		return false;
	}
	connection->output = output;
	transaction = &output->transaction;
	transaction->remote_addr = connection->addresses.remote;
	transaction->remote_port = connection->addresses.remote_port;
	transaction->remote = &connection->addresses.address.any;
	transaction->local = &connection->own.any;
	transaction->server_addr = connection->addresses.local;
	transaction->server_port = connection->addresses.local_port;
	transaction->connection = connection;
	transaction->done = connection_done;
	transaction->resume = connection_resume;
	transaction->receive = connection_receive;
	transaction->receive_piece = connection_receive_piece;
	transaction->moved = connection_moved;
	transaction->give_up = connection_give_up;
	transaction->drop_upload = connection_drop_upload;
	counter_add(&thread->counters.requests, 1);
	if (thread->log.fd >= 0)
		output_remember_line(output, head, length);
	if (!error) {
		error = request_parse(&request, head, length);
		wrong = error ? request.wrong : NULL;
	}
	if (!error && request.header_count > limits->max_fields) {
		error = -431;
		wrong = REQUEST_TOO_MANY;
	}
	if (!error && request.expect == EXPECT_OTHER) {
		error = -417;
		wrong = "an expectation that nobody knows";
	}
	if (error) {
		/* What follows cannot be told apart from the rest of this. */
		connection->http10 = false;
		transaction->head_only = request_is_head(head, length);
		connection_refuse(connection, -error, wrong);
		return true;
	}
	if (access_log_wants_fields(&thread->log))
		output_remember_fields(output, &request);
	connection->requests++;
	connection->keep_alive =
		request.keep_alive && (!limits->keep_alive_requests ||
				       connection->requests < limits->keep_alive_requests);
	connection->http10 = request.minor == 0;
	body_begin(&connection->body, &request, CONNECTION_DROPPED_MAX);
	transaction->has_upload = !body_is_over(&connection->body);
	connection->expecting = transaction->has_upload && request.expect == EXPECT_CONTINUE;
	transaction->request = &request;
	transaction->head_only = request.method == METHOD_HEAD;
	connection->state = WORKING;
	connection_count_as(connection, CONNECTION_WORKING);
	timer_stop(&connection->timer);
	connection->calling = true;
	if (route(transaction) == RESPOND_NOW)
		connection_respond(connection);
	connection->calling = false;
	transaction->request = NULL;
	return true;
}

void connection_resume(struct transaction *transaction,
		       enum respond (*respond)(struct transaction *transaction, void *context),
		       void *context)
{
	struct connection *connection = transaction->connection;
	enum respond answer;

	assert(connection->state == WORKING && !connection->calling);
	connection->calling = true;
	answer = respond(transaction, context);
	connection->calling = false;
	if (answer == RESPOND_NOW)
		connection_done(transaction);
	else if (connection->state == RECEIVING)
		connection_consume_input(connection, connection_start_receiving);
}

void connection_late(struct connection *connection)
{
	(void)start_request(connection, connection->input, connection->input_length, -408,
			    "a head that takes longer than header-timeout");
}

/* Negated, the status for a head that cannot become a good one. */
static int check_begin(const char *data, size_t length, size_t seen, const char **wrong)
{
	struct request request;
	int error = request_check_begin(&request, data, length, seen);

	*wrong = error ? request.wrong : NULL;
	return error;
}

/* A request is started when its head is whole; what follows waits for its answer. */
void connection_consume(struct connection *connection, const char *data, size_t length)
{
	const char *wrong = NULL;
	size_t head, most;
	int error = 0;

	if (connection->state == LINGERING)
		return;
	if (connection->state == PROXY) {
		connection_consume_proxy(connection, data, length);
		return;
	}
	if (connection->state == RECEIVING) {
		size_t used = connection_receive_body(connection, data, length);

		data += used;
		length -= used;
		/* The rest of it will not come. */
		if (connection->ended && connection->state == RECEIVING) {
			connection_close(connection);
			return;
		}
		if (length == 0)
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
		/* The rest of a head that came in pieces. */
		if (!connection_keep_input(connection, data, length)) {
			connection_close(connection);
			return;
		}
		data = connection->input;
		length = connection->input_length;
	}
	most = connection_limits(connection)->max_header;
	head = request_head_length(data, length, connection->input_seen);
	if (head == 0 && length < most)
		error = check_begin(data, length, connection->input_seen, &wrong);
	if (head == 0 && length < most && !error) {
		connection->input_seen = length;
		/* Without its rest, which will not come when the peer has ended, it is nothing. */
		if (connection->ended || (!connection->input_length &&
					  !connection_keep_input(connection, data, length))) {
			connection_close(connection);
			return;
		}
		if (!connection->head_timing)
			connection_time(connection, connection_limits(connection)->header_ms);
		connection->head_timing = true;
		connection_count_as(connection, CONNECTION_READING);
		return;
	}
	{
		char *whole = connection->input;
		bool open;

		/* The buffer is ours now, so that what follows can wait in a new one. */
		connection->input = NULL;
		connection->input_length = connection->input_room = connection->input_seen = 0;
		if (error)
			open = start_request(connection, data, length < 512 ? length : 512, error,
					     wrong);
		else if (head == 0 || head > most)
			open = start_request(connection, data, length < 512 ? length : 512,
					     memchr(data, '\n', most) ? -431 : -414,
					     "a head that is longer than max-header");
		else
			open = start_request(connection, data, head, 0, NULL);
		if (open && connection->state == RECEIVING)
			connection_start_receiving(connection, data + head, length - head);
		else if (open && head && head < length)
			connection_consume(connection, data + head, length - head);
		free(whole);
	}
}

void connection_consume_input(struct connection *connection,
			      void (*consumer)(struct connection *, const char *, size_t))
{
	char *input = connection->input;
	size_t length = connection->input_length;

	connection->input = NULL;
	connection->input_length = connection->input_room = connection->input_seen = 0;
	if (connection->paused)
		loop_receive_resume(connection->thread->loop, connection->fd);
	connection->paused = false;
	consumer(connection, input, length);
	free(input);
}

static void received(struct loop_receive *op, const char *data, int length)
{
	struct connection *connection = (struct connection *)op;

	if (length > 0) {
		connection_consume(connection, data, (size_t)length);
		return;
	}
	connection->ended = true;
	/* A client may close its end and still read the answer (RFC 9112, section 9.6). */
	if (length == 0 && (connection->state == WORKING || connection->state == SENDING))
		return;
	connection_close(connection);
}

/* An answer if the socket takes it; the end is the caller's. */
static void turn_away(int fd, const char *remote, const char *reason)
{
	static const char answer[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
				     "Content-Length: 0\r\nConnection: close\r\n\r\n";

	log_info("%s: answered 503: %s", remote, reason);
	(void)!send(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Threads that accept at the same moment may let one each in above the limit. */
static bool is_full(const struct thread *thread)
{
	const struct server *server = thread->server;
	unsigned most = thread->config_ref->config->limits.max_connections;
	uint64_t open = 0;

	for (unsigned i = 0; most && i < server->threads; i++)
		open += atomic_load_explicit(&server->per_thread[i]->counters.open,
					     memory_order_relaxed);
	return most && open >= most;
}

bool connection_admit(struct connection *connection)
{
	const struct thread *thread = connection->thread;
	unsigned most = thread->config_ref->config->limits.connections_per_client;

	if (most)
		connection->client = client_limits_enter(thread->server->limits,
							 &connection->addresses.address.any, most);
	if (!most || connection->client)
		return true;
	turn_away(connection->fd, connection->addresses.remote, "more than connections-per-client");
	return false;
}

void connection_init(struct thread *thread)
{
	connection_slow_open(thread);
	connection_unsent_open(thread);
}

void connection_open(struct thread *thread, int fd)
{
	struct connection *connection;
	struct sockaddr_storage remote, local;
	socklen_t remote_length = sizeof(remote), local_length = sizeof(local);
	bool named;

	if (is_full(thread)) {
		struct peer_addresses ends = {.remote = "unknown"};

		if (getpeername(fd, (struct sockaddr *)&remote, &remote_length) == 0)
			peer_addresses_set(&ends, &remote, NULL);
		turn_away(fd, ends.remote, "more than max-connections");
		close(fd);
		return;
	}
	connection = calloc(1, sizeof(*connection));
	if (!connection || getpeername(fd, (struct sockaddr *)&remote, &remote_length) < 0) {
		free(connection);
		close(fd);
		return;
	}
	named = getsockname(fd, (struct sockaddr *)&local, &local_length) == 0;
	peer_addresses_set(&connection->addresses, &remote, named ? &local : NULL);
	connection->thread = thread;
	connection->fd = fd;
	/* A proxy's connections are counted for its clients. */
	if (connection_is_proxys(connection)) {
		connection->state = PROXY;
	} else if (!connection_admit(connection)) {
		free(connection);
		close(fd);
		return;
	}
	if (named)
		memcpy(&connection->own, &local, sizeof(connection->own));
	connection_unsent_init(connection, &remote);
	connection->receive.received = received;
	connection->next = thread->connections;
	connection->link = &thread->connections;
	if (connection->next)
		connection->next->link = &connection->next;
	thread->connections = connection;
	counter_add(&thread->counters.connections, 1);
	counter_add(&thread->counters.open, 1);
	counter_add(&thread->counters.states[CONNECTION_IDLE], 1);
	connection_time(connection, connection_limits(connection)->header_ms);
	if (loop_receive_start(thread->loop, &connection->receive, fd) < 0)
		connection_close(connection);
}

/* Whether the loop has bytes to tell of yet. */
static bool has_waiting(const struct connection *connection)
{
	char byte;

	return recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

void connection_leave(struct connection *connection)
{
	/* With its time for the last answer, but not with all of it. */
	if (connection->state == LINGERING) {
		connection_linger(connection);
		return;
	}
	if ((connection->state != READING && connection->state != PROXY) ||
	    connection->input_length || has_waiting(connection))
		return;
	/* Who is new has been promised an answer; its request is on its way. */
	if (connection->requests > 0)
		connection_close(connection);
	else
		connection_time(connection, connection_limits(connection)->stop_ms / FRESH_PART);
}

void connection_drain(struct thread *thread)
{
	struct connection *next;

	thread->draining = true;
	for (struct connection *at = thread->connections; at; at = next) {
		next = at->next;
		connection_leave(at);
	}
}

void connection_close_all(struct thread *thread)
{
	while (thread->connections)
		connection_close(thread->connections);
	output_free_spare(thread);
	connection_slow_close(thread);
}
