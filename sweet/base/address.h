/* SPDX-License-Identifier: MIT */
/*
 * address.h - addresses to listen on or to connect to, as text and as socket addresses.
 * Pure: no system calls.
 */
#ifndef SWEET_ADDRESS_H
#define SWEET_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* The prefix of a Unix socket's text; a client's text is only this. */
#define ADDRESS_UNIX "unix:"
#define ADDRESS_UNKNOWN "0.0.0.0" /* as programs want an address (RFC 3875, section 4.1.8) */

struct listen_address {
	struct sockaddr_storage address;
	socklen_t length;
	mode_t mode;	/* of a Unix socket's file */
	bool tls;	/* clients use TLS */
	char text[120]; /* "127.0.0.1:8080", "[::1]:8080", "unix:/run/sweet/socket" */
};

#define HOST_NAME_MAX_LENGTH 253u /* RFC 1035, section 2.3.4, as text */

/* A host by its name; the name may end with a dot. */
struct host_port {
	char host[HOST_NAME_MAX_LENGTH + 2];
	uint16_t port;
};

/*
 * Parses "8080", ":8080", "127.0.0.1:8080", "[::1]:8080", "*:8080", "unix:PATH",
 * "unix:PATH,mode=660" or "unix:@NAME" (Linux's abstract names, without a file);
 * each may end with ",tls".
 * Does not resolve host names.  Returns false if the text is none of these.
 */
bool address_parse(const char *text, struct listen_address *address);

/*
 * Parses "NAME:PORT".  Returns false if the text is something else, as an address with a mistake: no
 * name ends with a number (as "10.0.0.256", or "0x7f000001", which inet_aton(3) reads).
 */
bool address_parse_name(const char *text, struct host_port *name);

/* Sets the port of an IP address, and its text. */
void address_set_port(struct listen_address *address, uint16_t port);

/* Sets text from the socket address, which is of any family that address_parse() knows. */
void address_write(struct listen_address *address);

/* Returns true if two sockets cannot bind both addresses; ignores the modes of files, and TLS. */
bool address_equal(const struct listen_address *one, const struct listen_address *other);

/*
 * Returns true if a socket that listens on address can have accepted a connection
 * whose local address is local.  Port 0 and any name of a Unix socket match
 * everything.
 */
bool address_accepts(const struct listen_address *address, const struct sockaddr *local);

/* Returns the port; 0: any, or a Unix socket. */
unsigned address_port(const struct listen_address *address);

/* Returns the path of a Unix socket that has a file; else NULL. */
const char *address_path(const struct listen_address *address);

#endif
