/* SPDX-License-Identifier: MIT */
/*
 * listener.h - listening sockets: one a thread and address, shared by the
 * kernel (SO_REUSEPORT).
 */
#ifndef SWEET_LISTENER_H
#define SWEET_LISTENER_H

#include <sys/socket.h>

#include <server.h>

struct listen_address {
	struct sockaddr_storage address;
	socklen_t length;
	char text[64]; /* "127.0.0.1:8080" */
};

struct listener {
	struct loop_accept accept;
	struct server *server;
	int fd;
	int reserve;	  /* given up for a moment when descriptors run out */
	uint64_t told_ms; /* when that was last said */
};

/*
 * "8080", ":8080", "127.0.0.1:8080", "[::1]:8080", "*:8080".  Names are not
 * looked up.  false: not one of these.
 */
bool listener_parse(const char *text, struct listen_address *address);

/*
 * A bound and listening socket, or -errno.  shared: others of this process
 * will bind the same; the first of them is opened without, so that another
 * program's socket is noticed.
 */
int listener_bind(const struct listen_address *address, bool shared);

/* The port that was given when 0 was asked for. */
void listener_name(int fd, struct listen_address *address);

int listener_start(struct listener *listener, struct server *server, int fd);
void listener_stop(struct listener *listener);

#endif
