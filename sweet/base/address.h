/* SPDX-License-Identifier: MIT */
/*
 * address.h - what can be listened on, as text and as a socket's address.
 * Pure: no system calls.
 */
#ifndef SWEET_ADDRESS_H
#define SWEET_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#define ADDRESS_UNIX "unix:" /* what a Unix socket's text begins with; a client's is no more */

struct listen_address {
	struct sockaddr_storage address;
	socklen_t length;
	mode_t mode;	/* of a Unix socket's file */
	char text[120]; /* "127.0.0.1:8080", "[::1]:8080", "unix:/run/sweet/socket" */
};

/*
 * "8080", ":8080", "127.0.0.1:8080", "[::1]:8080", "*:8080", "unix:PATH",
 * "unix:PATH,mode=660", "unix:@NAME" (no file, Linux's own).  Names are not
 * looked up.  false: not one of these.
 */
bool address_parse(const char *text, struct listen_address *address);

/* Sets text from the socket's address, of any family that can be parsed. */
void address_write(struct listen_address *address);

/* Whether two sockets cannot have both: the modes of files do not count. */
bool address_equal(const struct listen_address *one, const struct listen_address *other);

/*
 * Whether a socket that listens there can have accepted a connection whose own
 * address is local.  Port 0 is any, and so is the name of a Unix socket.
 */
bool address_accepts(const struct listen_address *address, const struct sockaddr *local);

/* The path of a Unix socket that has a file; else NULL. */
const char *address_path(const struct listen_address *address);

#endif
