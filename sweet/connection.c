/* SPDX-License-Identifier: MIT */
/*
 * connection.c - the HTTP state machine of a connection.
 *
 *   READING    waits for a whole request head, behind the rest of a body that
 *              nobody asked for
 *   RECEIVING  waits for a body that a responder asked for
 *   WORKING    a responder has the transaction
 *   SENDING    head or body are on their way
 *   LINGERING  our end is closed; reads until the peer's is, so that the
 *              last answer is not lost to a reset (RFC 9112, section 9.6)
 *
 * A connection owns its socket and at most one transaction; a transaction
 * whose client went while a responder had it is left behind and freed when
 * the responder is done.  Bytes that come before their turn (pipelining) wait
 * in `input`; past a bound nothing more is read.  One thread.
 *
 * One timer watches every state that waits for the client.  A head has its
 * time as a whole.  A body, and an answer, must move by a least rate in every
 * period of theirs, so that nobody holds a connection with a byte now and then.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <address.h>
#include <connection.h>
#include <output.h>
#include <route.h>

#define LINGER_MS 5000
#define LEAST_RATE 500		  /* bytes a second, of bodies and answers */
#define INPUT_PAUSE 32768	  /* bytes that wait before reading pauses */
#define DROPPED_MAX (1024 * 1024) /* bytes of a body that nobody asked for */

enum state { READING, RECEIVING, WORKING, SENDING, LINGERING };

struct connection {
	struct loop_receive receive;
	struct loop_send send;
	struct timer timer;
	struct server *server;
	struct connection *next, **link; /* the server's */
	int fd;
	enum state state;
	enum connection_state counted; /* as that in the server's counters */
	bool keep_alive;	       /* after the present answer */
	bool ended;		       /* the peer sends no more */
	bool paused;
	bool head_timing; /* the timer runs for a head that has begun */
	bool starting;	  /* the responder has not returned yet */
	bool expecting;	  /* the client waits for 100 before it sends the body */
	bool measured;	  /* progress is what it was a period ago */
	struct body body; /* of the present request */
	int64_t progress; /* bytes of a body that came, of an answer that were taken */
	char *input;	  /* bytes that wait; NULL: none */
	size_t input_length, input_room, input_seen;
	struct output *output; /* NULL: no transaction */
	unsigned requests;     /* so far */
	uint16_t remote_port, local_port;
	bool http10;
	bool loopback;
	char remote[INET6_ADDRSTRLEN], local[INET6_ADDRSTRLEN];
};

static void connection_close(struct connection *connection);
static void set_timer(struct connection *connection, unsigned ms);
static void refuse(struct connection *connection, int status);
static bool start_request(struct connection *connection, const char *head, size_t length,
			  int error);
static void consume(struct connection *connection, const char *data, size_t length);

/* --- the connection's own life ----------------------------------------------- */

static void plain_address(const struct sockaddr_storage *from, char *text, uint16_t *port,
			  bool *loopback)
{
	if (from->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)from;

		*port = ntohs(in6->sin6_port);
		*loopback = IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
		inet_ntop(AF_INET6, &in6->sin6_addr, text, INET6_ADDRSTRLEN);
		if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
			*loopback = in6->sin6_addr.s6_addr[12] == 127;
			memmove(text, text + strlen("::ffff:"),
				strlen(text) - strlen("::ffff:") + 1);
		}
	} else if (from->ss_family == AF_UNIX) {
		/* No loopback: whoever stands behind a proxy would be local as well. */
		strcpy(text, ADDRESS_UNIX);
		*port = 0;
		*loopback = false;
	} else {
		const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)from;

		*port = ntohs(in->sin_port);
		*loopback = ntohl(in->sin_addr.s_addr) >> 24 == 127;
		inet_ntop(AF_INET, &in->sin_addr, text, INET6_ADDRSTRLEN);
	}
}

static void count_as(struct connection *connection, enum connection_state state)
{
	_Atomic uint64_t *states = connection->server->counters.states;

	server_count(&states[connection->counted], (uint64_t)-1);
	server_count(&states[state], 1);
	connection->counted = state;
}

static void connection_free(struct connection *connection)
{
	*connection->link = connection->next;
	if (connection->next)
		connection->next->link = connection->link;
	timer_stop(&connection->timer);
	server_count(&connection->server->counters.open, (uint64_t)-1);
	server_count(&connection->server->counters.states[connection->counted], (uint64_t)-1);
	body_end(&connection->body);
	free(connection->input);
	free(connection);
}

static void connection_close(struct connection *connection)
{
	struct output *output = connection->output;

	loop_close_fd(connection->server->loop, connection->fd);
	/* Now, while the client's address is there. */
	if (output)
		output_log(output);
	if (output && connection->state == WORKING)
		output->transaction.connection = NULL; /* until the responder is done */
	else if (output)
		output_close(output);
	connection_free(connection);
}

static const struct config_limits *limits_of(const struct connection *connection)
{
	return &connection->server->generation->config->limits;
}

/* Bytes that the client has taken of the piece that is being sent. */
static int64_t taken(const struct connection *connection)
{
	int unsent = 0;

	/* What waits in the socket is not on the client's account. */
	(void)ioctl(connection->fd, SIOCOUTQ, &unsent);
	return (int64_t)connection->send.message.skip - unsent;
}

/* Whether there was progress enough in the last ms; an answer's first period only measures. */
static bool is_moving(struct connection *connection, int64_t progress, unsigned ms)
{
	bool moving = !connection->measured ||
		      progress - connection->progress >= (int64_t)ms * LEAST_RATE / 1000;

	connection->progress = progress;
	connection->measured = true;
	return moving;
}

static void too_slow(struct timer *timer)
{
	struct connection *connection =
		(struct connection *)((char *)timer - offsetof(struct connection, timer));
	const struct config_limits *limits = limits_of(connection);

	if (connection->state == SENDING &&
	    is_moving(connection, taken(connection), limits->send_ms)) {
		set_timer(connection, limits->send_ms);
	} else if (!body_is_over(&connection->body) && connection->state <= RECEIVING &&
		   is_moving(connection, (int64_t)connection->body.length, limits->body_ms)) {
		set_timer(connection, limits->body_ms);
	} else if (connection->state == RECEIVING) {
		refuse(connection, 408);
	} else if (connection->state == READING && connection->input_length) {
		(void)start_request(connection, connection->input, connection->input_length, -408);
	} else {
		connection_close(connection);
	}
}

static void set_timer(struct connection *connection, unsigned ms)
{
	loop_timer_start(connection->server->loop, &connection->timer, ms, too_slow);
}

/* A body is on its way: each period must bring its share. */
static void time_body(struct connection *connection)
{
	connection->progress = (int64_t)connection->body.length;
	connection->measured = true;
	set_timer(connection, limits_of(connection)->body_ms);
}

static void linger(struct connection *connection)
{
	if (connection->ended) {
		connection_close(connection);
		return;
	}
	connection->state = LINGERING;
	count_as(connection, CONNECTION_LINGERING);
	free(connection->input);
	connection->input = NULL;
	connection->input_length = connection->input_room = 0;
	if (connection->paused)
		loop_receive_resume(connection->server->loop, connection->fd);
	connection->paused = false;
	set_timer(connection, LINGER_MS);
}

/* --- sending ------------------------------------------------------------------- */

static void sent(struct loop_send *op, int result);

static void send_piece(struct connection *connection, size_t head_length)
{
	struct output *output = connection->output;
	struct transaction *transaction = &output->transaction;
	struct NC_send *message = &connection->send.message;

	*message = (struct NC_send){.header = output->head,
				    .header_length = head_length,
				    .ranges = &transaction->body,
				    .flags = NC_SEND_HELD};
	if (transaction->body.id && !transaction->head_only) {
		message->range_count = 1;
		output->sent += transaction->body.length;
		server_count(&connection->server->counters.body_units, 1);
	}
	if (transaction->next && output->sent < transaction->length)
		message->flags |= NC_SEND_MORE;
	else if (!connection->keep_alive)
		message->flags |= NC_SEND_CLOSE;
	connection->state = SENDING;
	count_as(connection, CONNECTION_SENDING);
	connection->measured = false;
	set_timer(connection, limits_of(connection)->send_ms);
	connection->send.sent = sent;
	loop_send_start(connection->server->loop, &connection->send, connection->fd);
}

static void respond(struct connection *connection)
{
	if (connection->server->draining)
		connection->keep_alive = false;
	/*
	 * Of a body that nobody asked for, and a client may have kept back, it is
	 * uncertain where it ends.
	 */
	if (!body_is_over(&connection->body) &&
	    (connection->expecting || body_is_hopeless(&connection->body)))
		connection->keep_alive = false;
	send_piece(connection,
		   output_head(connection->output, connection->keep_alive, connection->http10));
}

/* The responder, which had said "later", is done. */
static void done(struct transaction *transaction)
{
	struct connection *connection = transaction->connection;
	struct output *output = (struct output *)transaction;

	if (!connection) {
		output_close(output);
		return;
	}
	assert(connection->state == WORKING);
	if (transaction->status == 0) {
		/* Broken off in the middle: the client must see that. */
		connection->state = SENDING;
		connection_close(connection);
	} else if (output->sent || output->head_sent) {
		send_piece(connection, 0);
	} else {
		respond(connection);
	}
}

/* An answer that closes the connection, in place of the responder's. */
static void refuse(struct connection *connection, int status)
{
	connection->keep_alive = false;
	body_end(&connection->body);
	transaction_fail(&connection->output->transaction, status, NULL);
	respond(connection);
}

/* What has waited is looked at now; the last thing that a caller does. */
static void consume_input(struct connection *connection,
			  void (*consumer)(struct connection *, const char *, size_t))
{
	char *input = connection->input;
	size_t length = connection->input_length;

	connection->input = NULL;
	connection->input_length = connection->input_room = connection->input_seen = 0;
	if (connection->paused)
		loop_receive_resume(connection->server->loop, connection->fd);
	connection->paused = false;
	consumer(connection, input, length);
	free(input);
}

static void finished(struct connection *connection)
{
	struct output *output = connection->output;

	output_log(output);
	connection->output = NULL;
	output_close(output);
	if (!connection->keep_alive) {
		linger(connection);
		return;
	}
	connection->state = READING;
	count_as(connection, CONNECTION_IDLE);
	connection->head_timing = false;
	if (!body_is_over(&connection->body))
		time_body(connection);
	else
		set_timer(connection, limits_of(connection)->keep_alive_ms);
	if (connection->input_length)
		consume_input(connection, consume);
	else if (connection->ended)
		connection_close(connection);
}

static void sent(struct loop_send *op, int result)
{
	struct connection *connection =
		(struct connection *)((char *)op - offsetof(struct connection, send));
	struct output *output = connection->output;
	struct transaction *transaction = &output->transaction;

	assert(connection->state == SENDING);
	output->head_sent = true;
	if (result < 0) {
		if (result != -EPIPE && result != -ECONNRESET)
			log_info("%s: sending: %s", connection->remote, strerror(-result));
		connection_close(connection);
		return;
	}
	if (!transaction->next || transaction->head_only || output->sent >= transaction->length) {
		finished(connection);
		return;
	}
	connection->state = WORKING;
	count_as(connection, CONNECTION_WORKING);
	if (transaction->next(transaction) == RESPOND_NOW)
		done(transaction);
}

/* --- a body that a responder asked for ----------------------------------------- */

/*
 * Past the loop, which has no operation for it: the few bytes fit in a socket
 * that was idle.  In one that is full they may be left out; the client does
 * not wait for ever.
 */
static void send_continue(struct connection *connection)
{
	static const char line[] = "HTTP/1.1 100 Continue\r\n\r\n";
	ssize_t sent = send(connection->fd, line, sizeof(line) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);

	connection->expecting = false;
	if (sent > 0 && sent < (ssize_t)sizeof(line) - 1)
		(void)shutdown(connection->fd, SHUT_RDWR); /* what follows would make no sense */
}

/* The last byte of the body has come. */
static void complete_upload(struct connection *connection)
{
	struct transaction *transaction = &connection->output->transaction;
	int error = body_unit(&connection->body, &transaction->upload);

	transaction->upload_length = connection->body.length;
	if (error) {
		log_message("%s: a body of %llu bytes: %s", connection->remote,
			    (unsigned long long)connection->body.length, strerror(-error));
		refuse(connection, 503);
		return;
	}
	body_end(&connection->body);
	timer_stop(&connection->timer);
	connection->state = WORKING;
	count_as(connection, CONNECTION_WORKING);
	if (transaction->received(transaction) == RESPOND_NOW)
		respond(connection);
}

/* Returns how many bytes were the body's. */
static size_t receive_body(struct connection *connection, const char *data, size_t length)
{
	ssize_t used = body_take(&connection->body, data, length);

	if (used < 0) {
		refuse(connection, (int)-used);
		return length;
	}
	if (body_is_over(&connection->body))
		complete_upload(connection);
	return (size_t)used;
}

/* With what has come of it; the last thing that a caller does. */
static void start_receiving(struct connection *connection, const char *data, size_t length)
{
	if (connection->expecting && length == 0)
		send_continue(connection);
	connection->expecting = false;
	count_as(connection, CONNECTION_READING);
	time_body(connection);
	consume(connection, data, length);
}

/* The responder wants the body. */
static void receive(struct transaction *transaction, uint64_t limit)
{
	struct connection *connection = transaction->connection;

	if (!connection) {
		output_close((struct output *)transaction);
		return;
	}
	assert(connection->state == WORKING && transaction->has_upload);
	connection->state = RECEIVING;
	if (body_keep(&connection->body, limit, &connection->server->site->bodies) < 0)
		refuse(connection, 413);
	else if (!connection->starting)
		consume_input(connection, start_receiving);
}

/* --- reading --------------------------------------------------------------------- */

static bool keep_input(struct connection *connection, const char *data, size_t length)
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
		loop_receive_pause(connection->server->loop, connection->fd);
	}
	return true;
}

/* A whole head; false: nothing more can be done with this connection. */
static bool start_request(struct connection *connection, const char *head, size_t length, int error)
{
	struct server *server = connection->server;
	const struct config_limits *limits = limits_of(connection);
	struct output *output = output_open(server);
	struct transaction *transaction;
	struct request request;

	if (!output) {
		connection_close(connection);
		return false;
	}
	connection->output = output;
	transaction = &output->transaction;
	transaction->remote_addr = connection->remote;
	transaction->remote_port = connection->remote_port;
	transaction->server_addr = connection->local;
	transaction->server_port = connection->local_port;
	transaction->loopback = connection->loopback;
	transaction->connection = connection;
	transaction->done = done;
	transaction->receive = receive;
	server_count(&server->counters.requests, 1);
	if (server->log.fd >= 0)
		output_remember_line(output, head, length);
	if (!error)
		error = request_parse(&request, head, length);
	if (!error && request.expect == EXPECT_OTHER)
		error = -417;
	if (error) {
		/* What follows cannot be told apart from the rest of this. */
		connection->http10 = false;
		refuse(connection, -error);
		return true;
	}
	if (access_log_wants_fields(&server->log))
		output_remember_fields(output, &request);
	connection->requests++;
	connection->keep_alive =
		request.keep_alive && (!limits->keep_alive_requests ||
				       connection->requests < limits->keep_alive_requests);
	connection->http10 = request.minor == 0;
	body_begin(&connection->body, &request, DROPPED_MAX);
	transaction->has_upload = !body_is_over(&connection->body);
	connection->expecting = transaction->has_upload && request.expect == EXPECT_CONTINUE;
	transaction->request = &request;
	transaction->head_only = request.method == METHOD_HEAD;
	connection->state = WORKING;
	count_as(connection, CONNECTION_WORKING);
	timer_stop(&connection->timer);
	connection->starting = true;
	if (route(transaction) == RESPOND_NOW)
		respond(connection);
	connection->starting = false;
	transaction->request = NULL;
	return true;
}

/* Of a body that nobody asked for; below 0: there is no going on with what follows it. */
static ssize_t drop_body(struct connection *connection, const char *data, size_t length)
{
	ssize_t used = body_take(&connection->body, data, length);

	if (used < 0) {
		body_end(&connection->body);
		linger(connection);
	} else if (body_is_over(&connection->body)) {
		set_timer(connection, limits_of(connection)->keep_alive_ms);
	}
	return used;
}

/*
 * Bytes from the socket, or ones that waited.  A request is started when its
 * head is whole; what follows it waits for the answer to be sent.
 */
static void consume(struct connection *connection, const char *data, size_t length)
{
	size_t head, most;

	if (connection->state == LINGERING)
		return;
	if (connection->state == RECEIVING) {
		size_t used = receive_body(connection, data, length);

		data += used;
		length -= used;
		/* The rest of it will not come. */
		if (connection->ended && connection->state == RECEIVING)
			connection_close(connection);
		if (length == 0)
			return;
	}
	if (connection->state != READING) {
		if (!keep_input(connection, data, length))
			connection_close(connection);
		return;
	}
	if (!body_is_over(&connection->body)) {
		ssize_t used = drop_body(connection, data, length);

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
		if (!keep_input(connection, data, length)) {
			connection_close(connection);
			return;
		}
		data = connection->input;
		length = connection->input_length;
	}
	most = limits_of(connection)->max_header;
	head = request_head_length(data, length, connection->input_seen);
	if (head == 0 && length < most) {
		connection->input_seen = length;
		/* Without its rest, which will not come when the peer has ended, it is nothing. */
		if (connection->ended ||
		    (!connection->input_length && !keep_input(connection, data, length))) {
			connection_close(connection);
			return;
		}
		if (!connection->head_timing)
			set_timer(connection, limits_of(connection)->header_ms);
		connection->head_timing = true;
		count_as(connection, CONNECTION_READING);
		return;
	}
	{
		char *whole = connection->input;
		bool open;

		/* The buffer is ours now, so that what follows can wait in a new one. */
		connection->input = NULL;
		connection->input_length = connection->input_room = connection->input_seen = 0;
		if (head == 0 || head > most)
			open = start_request(connection, data, length < 512 ? length : 512,
					     memchr(data, '\n', most) ? -431 : -414);
		else
			open = start_request(connection, data, head, 0);
		if (open && connection->state == RECEIVING)
			start_receiving(connection, data + head, length - head);
		else if (open && head && head < length)
			consume(connection, data + head, length - head);
		free(whole);
	}
}

static void received(struct loop_receive *op, const char *data, int length)
{
	struct connection *connection = (struct connection *)op;

	if (length > 0) {
		consume(connection, data, (size_t)length);
		return;
	}
	connection->ended = true;
	/* A client may close its end and still read the answer (RFC 9112, section 9.6). */
	if (length == 0 && (connection->state == WORKING || connection->state == SENDING))
		return;
	connection_close(connection);
}

void connection_open(struct server *server, int fd)
{
	struct connection *connection = calloc(1, sizeof(*connection));
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	bool local_loopback;

	if (!connection || getpeername(fd, (struct sockaddr *)&address, &length) < 0) {
		free(connection);
		close(fd);
		return;
	}
	plain_address(&address, connection->remote, &connection->remote_port,
		      &connection->loopback);
	length = sizeof(address);
	if (getsockname(fd, (struct sockaddr *)&address, &length) == 0)
		plain_address(&address, connection->local, &connection->local_port,
			      &local_loopback);
	connection->server = server;
	connection->fd = fd;
	connection->receive.received = received;
	connection->next = server->connections;
	connection->link = &server->connections;
	if (connection->next)
		connection->next->link = &connection->next;
	server->connections = connection;
	server_count(&server->counters.connections, 1);
	server_count(&server->counters.open, 1);
	server_count(&server->counters.states[CONNECTION_IDLE], 1);
	set_timer(connection, limits_of(connection)->header_ms);
	if (loop_receive_start(server->loop, &connection->receive, fd) < 0)
		connection_close(connection);
}

void connection_drain(struct server *server)
{
	struct connection *next;

	server->draining = true;
	for (struct connection *at = server->connections; at; at = next) {
		next = at->next;
		if (at->state == READING || at->state == LINGERING)
			connection_close(at);
	}
}

void connection_close_all(struct server *server)
{
	while (server->connections)
		connection_close(server->connections);
	output_free_spare(server);
}
