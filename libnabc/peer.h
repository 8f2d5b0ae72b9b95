/* SPDX-License-Identifier: MIT */
/*
 * peer.h - a Unix sequenced-packet socket to another process: messages with
 * descriptors, and who is at the other end according to the kernel.
 */
#ifndef NC_PEER_H
#define NC_PEER_H

#include <stddef.h>
#include <sys/types.h>

#define NC_PEER_FDS_MAX 72u

/* Sockets are close-on-exec; -errno on failure. */
int nc_peer_listen(const char *path, mode_t mode);
int nc_peer_connect(const char *path);
int nc_peer_accept(int listener);
int nc_peer_pair(int pair[2]);

/* One message, whole or not at all; never blocks, never raises SIGPIPE. */
int nc_peer_send(int socket, const void *message, size_t length, const int *fds, unsigned count);

/*
 * Waits at most timeout_ms (-1: for ever) for one message.  Returns its bytes
 * (0: the peer is gone) or -errno; -EPROTO when something was truncated.
 * Descriptors received are the caller's; on failure none are left open.
 */
ssize_t nc_peer_receive(int socket, void *message, size_t length, int *fds, unsigned *count,
			int timeout_ms);

#endif
