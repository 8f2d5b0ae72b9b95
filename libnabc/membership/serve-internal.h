/* SPDX-License-Identifier: MIT */
/*
 * serve-internal.h - shared by the parts of serve.h, for serve*.c only.  Functions
 * are called with the lock held.
 */
#ifndef NC_SERVE_INTERNAL_H
#define NC_SERVE_INTERNAL_H

#include <stdbool.h>

#include "cache/grant.h"
#include "membership/disposal.h"

struct nc_serve;

struct nc_guest {
	struct nc_guest *next;
	int socket;
	struct nc_remote_member *remote; /* NULL: has no segment */
	struct nc_subject subject;
	bool welcome;  /* the hello was received */
	bool worker;   /* a worker: its supervisor dismisses it */
	bool reported; /* that another process uses its membership */
	bool dismissed;
	bool gone;
};

/* --- serve.c -------------------------------------------------------------------- */

/*
 * Ends the membership: nothing that the guest has or had can be used any more; the
 * structure remains.
 */
void nc_serve_part(struct nc_serve *serve, struct nc_guest *guest);

/* Adds fd to the epoll set; its events carry `what`.  Returns 0 or -errno. */
int nc_serve_watch_members(struct nc_serve *serve, int fd, void *what);

struct nc_disposal_origin nc_serve_origin(const struct nc_guest *guest);

/* --- serve-handshake.c ---------------------------------------------------------- */

/* Returns a guest at the other end of the socket, not yet in the list; NULL: out of memory. */
struct nc_guest *nc_guest_new(struct nc_serve *serve, int socket);
void nc_serve_enter(struct nc_serve *serve, struct nc_guest *guest);

/* Watches the socket and the pidfd: either reports that the guest is gone. */
int nc_serve_watch_guest(struct nc_serve *serve, struct nc_guest *guest);

/* Handles the hello.  Returns 0, or -errno if the guest must be removed. */
int nc_serve_greet(struct nc_serve *serve, struct nc_guest *guest);

/* Sends the process at the other end the reason why it is refused. */
void nc_serve_refuse(int socket, int error);

/* --- serve-listener.c ----------------------------------------------------------- */

/* Accepts one connection. */
int nc_serve_admit(struct nc_serve *serve);

/* Resumes accepting after a pause for lack of descriptors. */
void nc_serve_listen_again(struct nc_serve *serve);

/* Call it without the lock. */
void nc_serve_stop_listening(struct nc_serve *serve);

#endif
