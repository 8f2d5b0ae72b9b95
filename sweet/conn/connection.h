/* SPDX-License-Identifier: MIT */
/*
 * connection.h - one client's connection: HTTP/1.x requests in order.
 */
#ifndef SWEET_CONNECTION_H
#define SWEET_CONNECTION_H

#include "core/server.h"

/* Before its loop runs. */
void connection_init(struct thread *thread);

/* Takes over a connected socket (non-blocking). */
void connection_open(struct thread *thread, int fd);

/* Closes those that are idle and lets the others end after their answer. */
void connection_drain(struct thread *thread);

/* Closes all, and frees what the thread kept for them. */
void connection_close_all(struct thread *thread);

#endif
