/* SPDX-License-Identifier: MIT */
/*
 * endpoint.h - a listening address and its sockets, one for each thread.
 *
 * Sockets of an IP address share the port (SO_REUSEPORT), so each thread has its
 * own accept queue.  There is a single socket, with a duplicate for each thread,
 * for a Unix socket, for a socket that a supervisor passed, and if threads take one
 * client at a time, so that no client waits for a busy thread.  The main thread
 * uses this; a socket that a thread has taken belongs to the thread.
 */
#ifndef SWEET_ENDPOINT_H
#define SWEET_ENDPOINT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/address.h"

struct endpoint {
	unsigned id;		      /* the owner's */
	struct listen_address wanted; /* as configured */
	struct listen_address bound;  /* the same, with the actual port */
	bool status_only;	      /* for the status pages alone */
	bool inherited;		      /* the supervisor keeps it and its file */
	bool has_file;		      /* the server created a Unix socket's file */
	dev_t device;
	ino_t inode;
	unsigned threads;
	int fds[]; /* one for each thread; -1: taken */
};

/*
 * Returns a bound and listening socket, or -errno. shared: other sockets of this
 * process will bind the same address.  Replaces the file of a Unix socket on which
 * nobody listens any more.
 */
int endpoint_bind(const struct listen_address *address, bool shared);

/* Sets the mode of a socket's file, not of what a link there leads to.  Returns 0 or -errno. */
int endpoint_set_mode(const char *path, mode_t mode);

/*
 * Listens on an address that no other socket has, not even one with SO_REUSEPORT.
 * one_queue: the threads share one socket.  Returns NULL with errno.
 */
struct endpoint *endpoint_open(const struct listen_address *address, unsigned threads,
			       bool one_queue);

/*
 * Takes a descriptor that another process has bound; EINVAL: not a listening stream
 * socket of a known family.  On failure the caller keeps it.
 */
struct endpoint *endpoint_adopt(int fd, unsigned threads);

/* Returns the thread's socket, which the caller must close; -1: already taken. */
int endpoint_take(struct endpoint *endpoint, unsigned thread);

/*
 * Makes sending descriptors to this Unix socket, and to those that it accepts, fail.
 * Returns false if the system cannot do that (before Linux 6.16), or it is no Unix
 * socket.
 *
 * A passed descriptor may be the last reference to its file.  Then closing it can
 * block: a TCP connection may linger as long as the peer has chosen.  Unwanted
 * descriptors are closed by the thread that reads the bytes that they came with, or
 * that closes the socket.
 */
bool endpoint_refuse_descriptors(int fd);

/* Closes the sockets and removes the file; NULL is permitted. */
void endpoint_close(struct endpoint *endpoint);

#endif
