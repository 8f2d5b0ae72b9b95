/* SPDX-License-Identifier: MIT */
/*
 * session.h - an HTTP/2 session on a connection with a socket.
 */
#ifndef SWEET_SESSION_H
#define SWEET_SESSION_H

struct connection_mux;
struct thread;

#define SESSION_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" /* RFC 9113, section 3.4 */

/* For conn_thread_open(). */
extern const struct connection_mux session_mux;

/* Call it before the thread's loop runs; close it when no connection of the thread is left. */
void h2_thread_open(struct thread *thread);
void h2_thread_close(struct thread *thread);

#endif
