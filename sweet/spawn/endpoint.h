/* SPDX-License-Identifier: MIT */
/*
 * endpoint.h - an address that is listened on: its sockets, one a thread.
 *
 * Sockets of an IP address share the port (SO_REUSEPORT), so each thread has
 * an accept queue of its own.  A Unix socket, one that a supervisor has handed
 * over, and any where threads take one client at a time, so that none waits for
 * a busy one, is a single socket: the threads have duplicates of it.  Used
 * by the main thread; what a thread has taken is the thread's.
 */
#ifndef SWEET_ENDPOINT_H
#define SWEET_ENDPOINT_H

#include "base/address.h"

struct endpoint {
	unsigned id;		      /* its owner's */
	struct listen_address wanted; /* as configured */
	struct listen_address bound;  /* the same with the port that was found */
	bool inherited;		      /* the supervisor keeps it, and its file */
	bool has_file;		      /* a Unix socket's, made by us */
	dev_t device;
	ino_t inode;
	unsigned threads;
	int fds[]; /* one a thread; -1: taken */
};

/*
 * A bound and listening socket, or -errno.  shared: others of this process
 * will bind the same.  A Unix socket's file on which nobody listens any more
 * is replaced.
 */
int endpoint_bind(const struct listen_address *address, bool shared);

/*
 * Listens on an address that no other socket has, not even one that would
 * share.  one_queue: the threads have one socket between them.  NULL with errno.
 */
struct endpoint *endpoint_open(const struct listen_address *address, unsigned threads,
			       bool one_queue);

/*
 * Takes a descriptor that somebody else has bound; EINVAL: not a listening
 * stream socket of a known family.  On failure it stays the caller's.
 */
struct endpoint *endpoint_adopt(int fd, unsigned threads);

/* The thread's socket; the caller closes it.  -1: taken already. */
int endpoint_take(struct endpoint *endpoint, unsigned thread);

/*
 * Descriptors sent to the Unix socket are refused to their sender, and to those that
 * it accepts; sockets that connect may want that too.  False: the system cannot do that
 * (before Linux 6.16), or it is no Unix socket.
 *
 * A descriptor that a peer passes may be the last of its file, and whoever drops
 * it waits for the end of the file: of a TCP connection that lingers as long as
 * the peer has chosen.  Those that nobody asked for are dropped by the thread that reads the
 * bytes they came with, or closes the socket.
 */
bool endpoint_refuse_descriptors(int fd);

/* The file as well; NULL is fine. */
void endpoint_close(struct endpoint *endpoint);

#endif
