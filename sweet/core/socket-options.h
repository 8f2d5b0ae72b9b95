/* SPDX-License-Identifier: MIT */
/*
 * socket-options.h - the use of TCP: options of listening sockets, which accepted connections
 * inherit, so that they cost no call for each; and the method that sends bodies.
 */
#ifndef SWEET_SOCKET_OPTIONS_H
#define SWEET_SOCKET_OPTIONS_H

#include <nabc.h>
#include <stdbool.h>

struct config;
struct config_sockets;

#define SOCKET_OPTIONS_TEXT 160u

/* Limit of unsent bytes in the socket of a client that has not read anything yet. */
#define SOCKET_UNSENT_FIRST (64 << 10)

/* Sets the options of a listening socket; does nothing for a socket that is not TCP. */
void socket_options_set(int fd, const struct config_sockets *sockets, unsigned header_ms);

/* Whether the client's data came (TCP Fast Open) before it acknowledged ours. */
bool socket_is_opening(int fd);

/* Logs which options the kernel does not support. */
void socket_options_check(const struct config_sockets *sockets);

/* Writes the options that differ from the defaults, separated by commas, for people. */
void socket_options_write(const struct config_sockets *sockets, char text[SOCKET_OPTIONS_TEXT]);

/*
 * Uses the transmit method of config from now on; before: the previous configuration, or NULL.  The
 * statistics of routes are kept if nothing changes.  Returns false with *why (g_free(); may be
 * NULL) on failure.
 */
bool send_method_use(NC_cache *cache, const struct config *before, const struct config *config,
		     char **why);

#endif
