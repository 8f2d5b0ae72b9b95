/* SPDX-License-Identifier: MIT */
/*
 * connection.h - a client's connection, with HTTP/1.x requests one after the other.
 */
#ifndef SWEET_CONNECTION_H
#define SWEET_CONNECTION_H

#include <stdbool.h>

struct connection_mux;
struct thread;

/*
 * Call it before the thread's loop runs; close it when no connection is left, and the loop has ended.
 * http2: for the clients that speak that.
 */
void conn_thread_open(struct thread *thread, const struct connection_mux *http2);
void conn_thread_close(struct thread *thread);

/* Whether the thread has any. */
bool connection_any(const struct thread *thread);

/* Takes over a connected socket (non-blocking). tls: the client begins with a handshake. */
void connection_open(struct thread *thread, int fd, bool tls, bool status_only);

/* Closes idle connections, and lets the others end after their response. */
void connection_drain(struct thread *thread);

/* Closes all connections. */
void connection_close_all(struct thread *thread);

#endif
