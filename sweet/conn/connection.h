/* SPDX-License-Identifier: MIT */
/*
 * connection.h - a client's connection, with HTTP/1.x requests one after the other.
 */
#ifndef SWEET_CONNECTION_H
#define SWEET_CONNECTION_H

#include <stdbool.h>

struct thread;

/* Call it before the thread's loop runs; close it after the loop's end. */
void conn_thread_open(struct thread *thread);
void conn_thread_close(struct thread *thread);

/* Whether the thread has any. */
bool connection_any(const struct thread *thread);

/* Takes over a connected socket (non-blocking). tls: the client begins with a handshake. */
void connection_open(struct thread *thread, int fd, bool tls, bool status_only);

/* Closes idle connections, and lets the others end after their response. */
void connection_drain(struct thread *thread);

/* Closes all connections, and frees what the thread kept for them. */
void connection_close_all(struct thread *thread);

#endif
