/* SPDX-License-Identifier: MIT */
/*
 * serve-internal.h - what the parts of serve.h share: for serve*.c alone.  Calls are
 * under the lock.
 */
#ifndef NC_SERVE_INTERNAL_H
#define NC_SERVE_INTERNAL_H

#include "membership/serve.h"

struct nc_guest {
	struct nc_guest *next;
	int socket;
	struct nc_remote_member *remote; /* NULL: no segment */
	struct nc_subject subject;
	bool welcome; /* it has said hello */
	bool worker;  /* somebody else dismisses it */
	bool dismissed;
	bool gone;
};

/* --- serve.c -------------------------------------------------------------------- */

/* Nothing that it has or had can be named any more; the structure stays. */
void nc_serve_part(struct nc_serve *serve, struct nc_guest *guest);

/* Events of the descriptor are told with `what`.  0 or -errno. */
int nc_serve_watch_members(struct nc_serve *serve, int fd, void *what);

/* --- serve-handshake.c ---------------------------------------------------------- */

/* A guest at the other end of the socket, not entered yet; NULL: no memory. */
struct nc_guest *nc_guest_new(struct nc_serve *serve, int socket);
void nc_serve_enter(struct nc_serve *serve, struct nc_guest *guest);

/* By socket and pidfd: either says that it is gone. */
int nc_serve_watch_guest(struct nc_serve *serve, struct nc_guest *guest);

/* The first message: what it wants.  0 or -errno: it is to go. */
int nc_serve_greet(struct nc_serve *serve, struct nc_guest *guest);

/* Tells the process at the other end why it is not let in. */
void nc_serve_refuse(int socket, int error);

/* --- serve-listener.c ----------------------------------------------------------- */

/* Takes one connection. */
int nc_serve_admit(struct nc_serve *serve);

/* After it had to stop for want of descriptors. */
void nc_serve_listen_again(struct nc_serve *serve);

/* Without the lock. */
void nc_serve_stop_listening(struct nc_serve *serve);

#endif
