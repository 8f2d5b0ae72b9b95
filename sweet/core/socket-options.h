/* SPDX-License-Identifier: MIT */
/*
 * socket-options.h - how TCP is made use of: what is set on sockets that
 * listen, which accepted connections inherit, so that it costs no call for
 * each; and the method by which bodies leave.
 */
#ifndef SWEET_SOCKET_OPTIONS_H
#define SWEET_SOCKET_OPTIONS_H

#include "config/configuration.h"

#define SOCKET_OPTIONS_TEXT 160u

/* Bytes that may wait unsent in the socket of a client that has not read anything yet. */
#define SOCKET_UNSENT_FIRST (64 << 10)

/* On a socket that listens; of one that is not TCP's nothing is changed. */
void socket_options_set(int fd, const struct config_sockets *sockets, unsigned header_ms);

/* Whether the client's data have come (TCP Fast Open) before it has acknowledged ours. */
bool socket_is_opening(int fd);

/* Logs what the system does not do its part of. */
void socket_options_check(const struct config_sockets *sockets);

/* Those that are not as by default, with commas between, for people. */
void socket_options_write(const struct config_sockets *sockets, char text[SOCKET_OPTIONS_TEXT]);

/*
 * From now on bodies leave the cache as config says; before is what held so
 * far, or NULL.  What has been learnt of routes is kept if nothing changes.
 * false: they cannot; why (g_free; may be NULL).
 */
bool send_method_use(NC_cache *cache, const struct config *before, const struct config *config,
		     char **why);

#endif
