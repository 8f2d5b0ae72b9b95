/* SPDX-License-Identifier: MIT */
/*
 * connection-internal.h - a connection as the sources connection*.c see it, and
 * nobody else.  Each calls those that are listed above it; what they need of
 * connection.c they call by its handlers.
 *
 *   connection-time.c     sees to it that the client moves, or is reset
 *   connection-held.c     counts the units that answers hold while they wait
 *   connection-unsent.c   bounds what the socket holds of an answer
 *   connection-leave.c    takes an answer off its unit
 *   connection-slow.c     selects the answers that have to leave their units
 *   connection-send.c     sends answers
 *   connection-body.c     takes the body that a responder asked for; keeps other bytes
 *   connection-admit.c    who gets a connection; hears from a proxy whose it is
 *   connection.c          the state machine: reads requests
 */
#ifndef SWEET_CONNECTION_INTERNAL_H
#define SWEET_CONNECTION_INTERNAL_H

#include "base/peer-addresses.h"
#include "conn/connection.h"
#include "conn/output.h"
#include "event/client-limit.h"
#include "http/body.h"

#define CONNECTION_DROPPED_MAX (1024 * 1024) /* bytes of a body that nobody asked for */

enum state { READING, RECEIVING, WORKING, SENDING, LINGERING, PROXY };

struct leaving;
struct connection;

/* What the other sources need of connection.c. */
struct connection_handlers {
	void (*close)(struct connection *connection);
	void (*consume)(struct connection *connection, const char *data, size_t length);
	void (*idle)(struct connection *connection);
	void (*timed_out)(struct connection *connection);
};

#define CONNECTION_RATE_MS 1000u /* what a rate is measured over, at least */

struct connection {
	struct loop_receive receive;
	struct loop_send send;
	struct timer timer;
	struct timer settling; /* until the client has acknowledged what was sent */
	unsigned settle_ms;    /* how long it has waited for that */
	/* Of connection-held.c, connection-slow.c and connection-leave.c: */
	size_t slow_id; /* the unit that it is counted for; 0: it is not */
	struct connection *slow_next, **slow_link;
	struct leaving *leaving;  /* NULL: it stays with its unit */
	uint64_t slow_ms;	  /* since when */
	size_t lent_id;		  /* a unit that its answer was taken off; 0: none */
	struct NC_hold lent_hold; /* of that unit */
	uint64_t lent_until;	  /* until so much is acknowledged */
	GList lent_link;	  /* in the thread's list of those */
	/* connection-unsent.c's: */
	uint64_t handed;       /* bytes that the socket took of messages before the present one */
	uint64_t looked_at;    /* and of the present one, when the socket was looked at last */
	uint64_t acknowledged; /* of those */
	unsigned unsent;       /* bytes that the socket is counted for; 0: it is not */
	int unsent_bound;      /* TCP_NOTSENT_LOWAT */
	GList unsent_link;     /* in the thread's list of sockets that are counted */
	uint64_t rate;	       /* bytes that were acknowledged in a second */
	uint64_t rated, rated_ms; /* acknowledged, and the time, when that was measured */
	bool rate_known;	  /* there was time enough */
	bool sending;		  /* a message that has not ended */
	bool near, reads;	  /* the peer is on this machine; it has read something */
	const struct connection_handlers *handlers;
	struct thread *thread;
	struct connection *next, **link; /* the thread's */
	int fd;
	enum state state;
	enum connection_state counted; /* as that in the thread's counters */
	bool keep_alive;	       /* after the present answer */
	bool ended;		       /* the peer sends no more */
	bool paused;
	bool head_timing; /* the timer runs for a head that has begun */
	bool calling;	  /* the responder, which has not returned yet */
	bool expecting;	  /* the client waits for 100 before it sends the body */
	bool measured;	  /* progress is what it was a period ago */
	struct body body; /* of the present request */
	int64_t progress; /* bytes of a body that came, of an answer that were taken */
	char *input;	  /* bytes that wait; NULL: none */
	size_t input_length, input_room, input_seen;
	struct output *output; /* NULL: no transaction */
	unsigned requests;     /* so far */
	bool http10;
	struct peer_addresses addresses;
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} own;			       /* the socket's, whatever a proxy says */
	struct limited_client *client; /* that it is counted for; NULL: it is not */
};

/* --- connection.c, by its handlers --- */

/* Frees it. */
static inline void connection_close(struct connection *connection)
{
	connection->handlers->close(connection);
}

/* Bytes from the socket, or ones that waited.  The last thing that a caller does. */
static inline void connection_consume(struct connection *connection, const char *data,
				      size_t length)
{
	connection->handlers->consume(connection, data, length);
}

/* An answer has left: the next request.  The last thing that a caller does. */
static inline void connection_idle(struct connection *connection)
{
	connection->handlers->idle(connection);
}

/* The client is too slow for the connection's state.  The last thing that a caller does. */
static inline void connection_timed_out(struct connection *connection)
{
	connection->handlers->timed_out(connection);
}

/* --- connection-time.c --- */

/* In ms the client is too slow for the connection's state. */
void connection_time(struct connection *connection, unsigned ms);

/* A body is on its way: each period must bring its share. */
void connection_time_body(struct connection *connection);

/* Bytes in the socket that the client has not acknowledged. */
int connection_unsent(const struct connection *connection);

/* What struct transaction calls moved(). */
uint64_t connection_moved(const struct transaction *transaction);

/* The close that follows is a reset: where it would be the end of the body. */
void connection_reset_at_close(const struct connection *connection);

/* Closes it so that the client sees that it has not got all. */
void connection_reset(struct connection *connection);

/* Resets it for that reason, counted and logged. */
void connection_reset_slow(struct connection *connection, const char *why);

/* --- connection-held.c --- */

/* Of a thread without connections. */
void connection_held_close(struct thread *thread);

/* The socket has nothing more of the unit that an answer was taken off; or the connection ends. */
void connection_lent_end(struct connection *connection);

/* --- connection-unsent.c --- */

/* With the socket's own address, before the first request. */
void connection_unsent_open(struct thread *thread);
void connection_unsent_init(struct connection *connection, const struct sockaddr_storage *peer);

/* A message is about to be sent; it waits for room; it was sent, or taken back. */
void connection_unsent_starts(struct connection *connection);
void connection_unsent_waits(struct connection *connection);
void connection_unsent_stops(struct connection *connection);

/* What the socket holds now, and its rate. */
void connection_unsent_count(struct connection *connection);

/* At its rate it takes more than a second until the socket is empty. */
bool connection_unsent_is_slow(const struct connection *connection);

/* The client has shown to be slow: its socket takes less from now on. */
void connection_unsent_shrink(struct connection *connection);

/* The connection ends. */
void connection_unsent_end(struct connection *connection);

/* --- connection-leave.c --- */

/* True: the output is closed later, since what it holds is being read. */
bool connection_leaves_output(struct connection *connection);

/* --- connection-slow.c --- */

/* What struct loop_send calls waits(). */
void connection_waits(struct loop_send *op);
void connection_slow_open(struct thread *thread);

/* The send is over, or the connection. */
void connection_keeps_up(struct connection *connection);

/* --- connection-send.c --- */

/* Sends the head of the transaction's answer, and the body if there is one. */
void connection_respond(struct connection *connection);

/* The responder, which had said "later", is done. */
void connection_done(struct transaction *transaction);

/* An answer that closes the connection, in place of the responder's; wrong: why, for the log. */
void connection_refuse(struct connection *connection, int status, const char *wrong);

/* All is said: closes our end, and waits for the peer's. */
void connection_linger(struct connection *connection);

/* --- connection-body.c --- */

/* What struct transaction calls receive(), receive_piece() and drop_upload(). */
void connection_receive(struct transaction *transaction, uint64_t limit);
void connection_receive_piece(struct transaction *transaction, uint64_t limit, size_t window);
void connection_drop_upload(struct transaction *transaction);

/* After the head, with what has come behind it.  The last thing that a caller does. */
void connection_start_receiving(struct connection *connection, const char *data, size_t length);

/* Returns how many bytes were the body's. */
size_t connection_receive_body(struct connection *connection, const char *data, size_t length);

/* Of a body that nobody asked for; below 0: there is no going on with what follows it. */
ssize_t connection_drop_body(struct connection *connection, const char *data, size_t length);

/* Keeps bytes until their turn; false: no memory. */
bool connection_keep_input(struct connection *connection, const char *data, size_t length);

/* Gives what waits to consumer.  The last thing that a caller does. */
void connection_consume_input(struct connection *connection,
			      void (*consumer)(struct connection *, const char *, size_t));

/* --- connection-admit.c --- */

/* Of a socket that was accepted.  False: there are too many, and the client was told so. */
bool connection_admit_socket(const struct thread *thread, int fd);

/* Counts the connection for its client; false: that has too many, and was told so. */
bool connection_admit(struct connection *connection);

/* Whether it must begin with the header of a proxy: the state is PROXY then. */
bool connection_is_proxys(const struct connection *connection);

/* In that state.  The last thing that a caller does. */
void connection_consume_proxy(struct connection *connection, const char *data, size_t length);

static inline const struct config_limits *connection_limits(const struct connection *connection)
{
	return &connection->thread->config_ref->config->limits;
}

static inline void connection_count_as(struct connection *connection, enum connection_state state)
{
	_Atomic uint64_t *states = connection->thread->counters.states;

	counter_add(&states[connection->counted], (uint64_t)-1);
	counter_add(&states[state], 1);
	connection->counted = state;
}

#endif
