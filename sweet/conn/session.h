/* SPDX-License-Identifier: MIT */
/*
 * session.h - an HTTP/2 session on a connection with a socket.
 */
#ifndef SWEET_SESSION_H
#define SWEET_SESSION_H

#include <stdbool.h>
#include <stddef.h>

struct client_calls;
struct connection;
struct thread;

#define SESSION_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" /* RFC 9113, section 3.4 */

/* For the thread, before its loop runs. */
void session_init(struct thread *thread);

/* Frees the memory of the thread's sessions, of which none is left. */
void session_free_memory(struct thread *thread);

/* The connection becomes a session.  Returns false without memory. */
bool session_open(struct connection *connection);

/* Returns what counts the calls that the client has abandoned. */
struct client_calls *session_calls(const struct connection *connection);

/*
 * Ends it; the connection remains.  No message may be in flight.  Its streams end in this turn of the
 * loop and the next ones, until when the connection has connection->ending.
 */
void session_close(struct connection *connection);

/* Ends the streams that are left of connection->ending.  May free the connection. */
void session_end_all(struct connection *connection);

/* Processes what the client sent.  May free the connection. */
void session_received(struct connection *connection, const char *data, size_t length);

/* The client opens no more streams, and those that exist end.  May free the connection. */
void session_leave(struct connection *connection);

/* The timeout that runs is over.  May free the connection. */
void session_timed_out(struct connection *connection);

#endif
