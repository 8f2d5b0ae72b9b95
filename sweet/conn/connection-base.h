/* SPDX-License-Identifier: MIT */
/*
 * connection-base.h - a connection: what carries one request after the other, which is a part of a
 * client's socket, or of one stream of an HTTP/2 session.  For the sources of this folder, and for h2/,
 * which makes streams.  Each source calls those that are listed above it.
 *
 *   connection-time.c     the timeouts of the client
 *   connection-input.c    saves early bytes
 *   connection-free.c     frees it
 *   connection-close.c    ends it
 *   connection-cipher.c   encrypts what is sent
 *   connection-socket.c   the transport of a connection with a socket
 *   connection-send.c     sends responses
 *   connection-body.c     receives the body that a responder requested
 *   connection-request.c  starts requests
 *   connection-tls.c      handshakes; decrypts
 *   connection-admit.c    the limits of connections; reads a proxy's header
 *   connection.c          reads requests of HTTP/1.x; what comes from the socket
 */
#ifndef SWEET_CONNECTION_BASE_H
#define SWEET_CONNECTION_BASE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/counter.h"
#include "base/list.h"
#include "base/peer-addresses.h"
#include "base/slice.h"
#include "base/timer.h"
#include "config/configuration.h"
#include "core/server.h"
#include "core/site.h"
#include "core/thread-counters.h"
#include "event/loop.h"
#include "http/body.h"
#include "pressure/pace.h"
#include "pressure/slow.h"
#include "pressure/unsent.h"

#define CONNECTION_DROPPED_MAX (1024 * 1024) /* bytes of a body that nobody requested */

enum state { READING, RECEIVING, WORKING, SENDING, LINGERING, PROXY, HANDSHAKE, SESSION, ENDED };

struct carrier;
struct client_calls;
struct connection;
struct connection_mux;
struct connection_tls;
struct session;
struct transaction;

/* What carries the bytes of a connection: a socket, or a stream. */
struct connection_transport {
	/* Starts connection->send; see connection_send(). */
	void (*send)(struct connection *connection);
	/* Cancels it if it waits: see loop_send_cancel(). */
	bool (*cancel)(struct connection *connection);
	/* A send that makes no progress waits for the client. */
	bool (*client_stalls)(const struct connection *connection);
	/* Stops receiving, soon; continues. */
	void (*pause)(struct connection *connection);
	void (*resume)(struct connection *connection);
	/* Sends an interim response with these header lines, while no message is being sent. */
	void (*interim)(struct connection *connection, int status, struct slice lines);
	/* Returns how many sent bytes the client has not acknowledged, as far as that matters. */
	int (*unsent)(const struct connection *connection);
	/* See connection_shut() and connection_reset_at_close(). */
	void (*shut)(struct connection *connection);
	void (*reset_at_close)(struct connection *connection);
	/* Ends all operations, without a callback. */
	void (*close)(struct connection *connection);
	void (*free)(struct connection *connection);
};

extern const struct connection_transport connection_socket;

/* What one request after the other needs; of a stream the only one. */
struct connection {
	struct loop_send send;
	struct timer timer;
	struct timer settling; /* polls until the client has acknowledged everything, or to shut */
	unsigned settle_ms;    /* how long it has polled so far */
	struct slow slow;
	const struct connection_mux *mux;
	const struct connection_transport *transport;
	struct carrier *carrier; /* its own, or that of the session */
	struct thread *thread;
	enum state state;
	bool sending;	 /* a message is being sent */
	bool keep_alive; /* after the current response */
	bool ended;	 /* the peer has closed its end */
	bool shutting;	 /* our end will be closed when the socket has room */
	bool paused;
	bool head_timing; /* the timer limits a head that has begun */
	bool calling;	  /* a responder was called and has not returned yet */
	bool expecting;	  /* the client waits for status 100 before it sends the body */
	bool measured;	  /* progress holds the value of the last period */
	bool paced;	  /* counted in the pace of the carrier */
	bool http10;
	struct body body; /* of the current request */
	int64_t progress; /* bytes of a body received, or of a response taken */
	char *input;	  /* bytes that wait to be processed; or NULL */
	size_t input_length, input_room, input_seen;
	struct output *output; /* NULL: no transaction */
};

/* A connection with a socket. */
struct carrier {
	struct connection connection;
	struct loop_receive receive;
	struct unsent unsent;
	struct pace pace;
	struct session *session;    /* what the connection has become; or NULL */
	struct session *ending;	    /* after its end, as long as it has streams */
	struct client_calls *calls; /* those that the client of the session has abandoned */
	struct list_node node;	    /* in the thread's list */
	int fd;
	uint64_t cookie;	       /* of the socket, for the library */
	enum connection_state counted; /* state that the thread's counters contain */
	bool status_only;	       /* of a listener for the status alone */
	unsigned requests;	       /* number so far */
	struct peer_addresses addresses;
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} own;			       /* the socket's own, even behind a proxy */
	struct limited_client *client; /* the client that it is counted for; or NULL */
	struct connection_tls *tls;    /* NULL: clear text */
};

/* --- connection-time.c --- */

/* Starts the timeout of the connection's state. */
void connection_time(struct connection *connection, unsigned ms);

/* Starts the timeout of a body: each period must bring a minimum of bytes. */
void connection_time_body(struct connection *connection);

/* Returns after how long to poll again: about a quarter of the time that it has polled so far. */
unsigned connection_poll_ms(struct connection *connection);

/* Returns how many bytes in the socket the client has not acknowledged; of a stream 0. */
static inline int connection_unsent(const struct connection *connection)
{
	return connection->transport->unsent(connection);
}

/* The moved() of struct transaction. */
uint64_t connection_moved(const struct transaction *transaction);

/* --- connection-input.c --- */

/* Saves bytes for later; returns false without memory. */
bool connection_keep_input(struct connection *connection, const char *data, size_t length);

/* Passes the saved bytes to consumer.  May free the connection. */
void connection_consume_input(struct connection *connection,
			      void (*consumer)(struct connection *, const char *, size_t));

/* Passes what has come to the transaction's tunnel(), whose response 101 is about to be sent. */
void connection_begin_tunnel(struct connection *connection);

/* The response has switched to another protocol. */
bool connection_has_tunnel(const struct connection *connection);

/* --- connection-free.c --- */

/* Its socket is closed.  With carrier->ending it remains, in the state ENDED, until the latter. */
void connection_free(struct connection *connection);

/* The last of its streams has ended.  May free the connection. */
void connection_streams_ended(struct connection *connection);

/* Forgets TLS, if there is any. */
void connection_tls_free(struct connection *connection);

/* --- connection-close.c --- */

/* Closes and frees the connection. */
void connection_close(struct connection *connection);

/* Makes the close that follows a reset, where a normal close would mark the end of the body. */
static inline void connection_reset_at_close(struct connection *connection)
{
	connection->transport->reset_at_close(connection);
}

/* Closes the connection so that the client sees an incomplete response. */
void connection_reset(struct connection *connection);

/* For the slow and the unsent of a connection. */
extern const struct slow_owner connection_slow;
void connection_unsent_reset(struct unsent *unsent, const char *why);

/* Everything is sent, and our end is closed or shutting: waits for the peer's. */
void connection_linger(struct connection *connection);

/* The peer sends nothing more.  May free the connection. */
void connection_ended(struct connection *connection);

/* --- connection-cipher.c --- */

/* Returns what encrypts the next messages; NULL: nothing, or the kernel. */
struct loop_cipher *connection_cipher(struct connection *connection);

/*
 * Sends a few bytes while no message is being sent.  Returns how many; or -errno if the connection
 * is broken, or the socket is full.
 */
ssize_t connection_write(struct connection *connection, const char *data, size_t length);

/*
 * Everything is sent: says so, with TLS also to the client, and closes our end; later, if the
 * connection is shutting afterwards.
 */
static inline void connection_shut(struct connection *connection)
{
	connection->transport->shut(connection);
}
void connection_shut_socket(struct connection *connection);

/* --- connection-send.c --- */

/* The waits() of struct loop_send. */
void connection_waits(struct loop_send *op);

/* Sends the head of the transaction's response, and the body if there is one. */
void connection_respond(struct connection *connection);

/* The interim() of struct transaction. */
void connection_interim(struct transaction *transaction, int status, struct slice lines);

/* The responder, which had returned RESPOND_LATER, is done. */
void connection_done(struct transaction *transaction);

/*
 * Sends an error response instead of the responder's and closes; wrong: the reason for the log;
 * detail: for the page, static text, or NULL.
 */
void connection_refuse_because(struct connection *connection, int status, const char *wrong,
			       const char *detail);
static inline void connection_refuse(struct connection *connection, int status, const char *wrong)
{
	connection_refuse_because(connection, status, wrong, NULL);
}

/* --- connection-body.c --- */

/* The receive(), receive_piece() and drop_upload() of struct transaction. */
void connection_receive(struct transaction *transaction, uint64_t limit);
void connection_receive_piece(struct transaction *transaction, uint64_t limit, size_t window);
void connection_drop_upload(struct transaction *transaction);

/* Starts to receive after the head; data has come behind it.  May free the connection. */
void connection_start_receiving(struct connection *connection, const char *data, size_t length);

/* Returns how many bytes belonged to the body. */
size_t connection_receive_body(struct connection *connection, const char *data, size_t length);

/* The hold_input() of struct transaction. */
void connection_hold_input(struct transaction *transaction, bool hold);

/* The client does not send a body in time that a responder waits for. */
void connection_refuse_slow_body(struct connection *connection);

/* Drops a body that nobody requested; returns its bytes, or below 0 to close the connection. */
ssize_t connection_drop_body(struct connection *connection, const char *data, size_t length);

/* --- connection-tls.c --- */

/* For the thread, before its loop runs. */
void connection_tls_init(struct thread *thread);

/* A handshake follows; the socket has its address.  Returns false without memory. */
bool connection_tls_open(struct connection *connection);

/* Processes bytes from the socket.  May free the connection. */
void connection_tls_received(struct connection *connection, const char *data, size_t length);

/* --- connection-request.c --- */

/*
 * Starts a request from a whole head: of a stream it is a list (http/request-list.h), otherwise
 * text.  With error, a negated status: refuses it for the reason wrong; the head may be a part of
 * one then.  Returns false if the connection was closed.
 */
bool connection_start_request(struct connection *connection, const char *head, size_t length,
			      int error, const char *wrong);

/*
 * Starts a stream's request from its head, a list (http/request-list.h).  With error, a negated
 * status: refuses it for the reason wrong.  May free the connection.
 */
void connection_start_stream(struct connection *connection, const char *head, size_t length,
			     int error, const char *wrong);

/* Refuses what came in clear text where TLS was expected.  May free the connection. */
void connection_refuse_clear(struct connection *connection, const char *data, size_t length);

/* --- connection-admit.c --- */

/*
 * Whether an accepted socket gets a connection.  If not, the client has got a response, except
 * with TLS.
 */
bool connection_admit_socket(const struct thread *thread, int fd, bool tls);

/*
 * Sets the state for what comes first: a proxy's header, a handshake or a request.  Returns false if
 * the connection cannot begin; a client with too many connections has got a response.
 */
bool connection_begin(struct connection *connection, bool tls);

/* Processes bytes in the state PROXY; deliver() those behind the header.  Both may free the connection. */
void connection_consume_proxy(struct connection *connection, const char *data, size_t length,
			      void (*deliver)(struct connection *, const char *, size_t));

/* Starts connection->send, which is set. */
static inline void connection_send(struct connection *connection)
{
	connection->sending = true;
	connection->transport->send(connection);
}

/* Whether it is a stream of a session. */
static inline bool connection_is_stream(const struct connection *connection)
{
	return &connection->carrier->connection != connection;
}

static inline const char *connection_remote(const struct connection *connection)
{
	return connection->carrier->addresses.remote;
}

static inline const struct config_limits *connection_limits(const struct connection *connection)
{
	return &connection->thread->config_ref->config->limits;
}

static inline void connection_count_as(struct connection *connection, enum connection_state state)
{
	_Atomic uint64_t *states = connection->thread->counters->states;

	/* The status counts sockets. */
	if (connection_is_stream(connection))
		return;
	counter_sub(&states[connection->carrier->counted], 1);
	counter_add(&states[state], 1);
	connection->carrier->counted = state;
}

#endif
