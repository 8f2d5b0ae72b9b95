/* SPDX-License-Identifier: MIT */
/*
 * peer.h - a Unix sequenced-packet socket to another process: messages with
 * descriptors, and who is at the other end according to the kernel.
 */
#ifndef NC_PEER_H
#define NC_PEER_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define NC_PEER_FDS_MAX 72u

/* Sockets are close-on-exec; -errno on failure. */
int nc_peer_listen(const char *path, mode_t mode, gid_t group); /* group -1: as it is */
int nc_peer_connect(const char *path, int timeout_ms);
int nc_peer_accept(int listener);
int nc_peer_pair(int pair[2]);

/* One message, whole or not at all; never blocks, never raises SIGPIPE. */
int nc_peer_send(int socket, const void *message, size_t length, const int *fds, unsigned count);

/* From now on the kernel adds to each message who sent it. */
int nc_peer_ask_sender(int socket);

/*
 * Waits at most timeout_ms (-1: for ever) for one message.  Returns its bytes
 * (0: the peer is gone, or has nothing to say) or -errno; -EPROTO when
 * something was truncated, -EMFILE when this process had no room for its
 * descriptors: the message itself is there then.  Descriptors received are the
 * caller's; on failure and with 0 none are left open.
 */
ssize_t nc_peer_receive(int socket, void *message, size_t length, int *fds, unsigned *count,
			int timeout_ms);

/* What a message failed with for want of memory or of a message: it may be tried again. */
static inline bool nc_peer_is_later(int error)
{
	return error == -EAGAIN || error == -ENOMEM || error == -ENOBUFS;
}

/*
 * The same on a socket that asked for senders, without waiting.  most: the
 * descriptors that are wanted; more are -EPROTO, and never enter this process,
 * since closing one may wait for whoever made it.  *pid: who sent it.
 */
ssize_t nc_peer_receive_from(int socket, void *message, size_t length, int *fds, unsigned most,
			     unsigned *count, pid_t *pid);

/* Closes descriptors that were received. */
void nc_peer_close_fds(const int *fds, unsigned count);

#endif
