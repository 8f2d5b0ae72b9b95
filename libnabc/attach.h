/* SPDX-License-Identifier: MIT */
/*
 * attach.h - joining a cache, both ends.
 *
 * The owner listens on a Unix socket; a process that connects, and is the
 * owner's user or root by the kernel's word, gets a member number and a
 * segment.  A worker inherits its socket instead and takes the same step.
 */
#ifndef NC_ATTACH_H
#define NC_ATTACH_H

#include "cache.h"
#include "wire.h"

struct nc_guest;

/* The owner's end; one thread at a time dispatches. */
struct nc_attach {
	struct nc_cache *cache;
	int epoll;    /* -1 in a process that joined */
	int listener; /* -1: not served */
	char *path;
	pthread_mutex_t lock; /* guests */
	struct nc_guest *guests;
};

int nc_attach_init(struct nc_attach *attach, struct nc_cache *cache);
void nc_attach_fini(struct nc_attach *attach);

/* One more descriptor that makes the owner's pollable descriptor readable. */
int nc_attach_watch(struct nc_attach *attach, int fd);

/* Listens at path, mode 0600.  0; -EALREADY; errors of bind(2). */
int nc_attach_serve(struct nc_attach *attach, const char *path);

/* Admits, and buries those that are gone; never blocks.  Events handled, or -errno. */
int nc_attach_dispatch(struct nc_attach *attach);

/*
 * Makes whoever is at the other end of socket a member with a segment of
 * memory bytes, and sends the welcome with `extra` more descriptors (see
 * wire.h) behind the segment's.
 */
int nc_attach_offer(struct nc_cache *cache, int socket, size_t memory, unsigned lanes,
		    uint32_t queue_size, const int *extra, struct nc_foreign **foreign);

/*
 * The joining end: waits at most timeout_ms for the welcome on socket and
 * sets cache up.  fds receives the descriptors behind the segment's, the
 * caller's from then on.
 */
int nc_attach_join(struct nc_cache *cache, int socket, int timeout_ms,
		   struct nc_wire_welcome *welcome, int *fds);

#endif
