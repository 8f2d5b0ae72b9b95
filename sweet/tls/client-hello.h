/* SPDX-License-Identifier: MIT */
/*
 * client-hello.h - whether the first message of a TLS client has come as a whole (RFC 8446, section
 * 4.1.2): before that, the server spends no memory on a handshake but for the bytes themselves.
 */
#ifndef SWEET_CLIENT_HELLO_H
#define SWEET_CLIENT_HELLO_H

#include <stddef.h>

#define CLIENT_HELLO_MAX 16384u	       /* bytes of the message */
#define CLIENT_HELLO_BYTES (24u << 10) /* with the headers of its records */

enum client_hello {
	CLIENT_HELLO_PART,
	CLIENT_HELLO_WHOLE, /* or no such message: the TLS library finds out at once what is wrong */
	CLIENT_HELLO_LONG,  /* longer than the above */
};

/* Looks at all bytes that a client has sent so far. */
enum client_hello client_hello_look(const char *data, size_t length);

#endif
