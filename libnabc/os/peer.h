/* SPDX-License-Identifier: MIT */
/*
 * peer.h - a Unix sequenced-packet socket to another process: messages with
 * descriptors, and the identity of the other end from the kernel.
 */
#ifndef NC_PEER_H
#define NC_PEER_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define NC_PEER_FDS_MAX 72u
#define NC_PEER_FDS_ALL 253u /* no message carries more: SCM_MAX_FD */

/* Sockets are close-on-exec; -errno on failure. */
int nc_peer_listen(const char *path, mode_t mode, gid_t group); /* group -1: not changed */
int nc_peer_connect(const char *path, int timeout_ms);
int nc_peer_accept(int listener);
int nc_peer_pair(int pair[2]);

/* Sends one message, whole or not at all; never blocks, never raises SIGPIPE. */
int nc_peer_send(int socket, const void *message, size_t length, const int *fds, unsigned count);

/* From now on the kernel adds the sender's credentials to each message. */
int nc_peer_ask_sender(int socket);

/*
 * Waits at most timeout_ms (-1: no limit) for one message.  Returns its bytes (0:
 * the peer is gone, or the message is empty) or -errno; -EPROTO if something was
 * truncated, -EMFILE if this process had no free descriptor for those that came:
 * message then has the bytes.  The caller owns received descriptors; on failure and
 * with 0 none is left open.
 */
ssize_t nc_peer_receive(int socket, void *message, size_t length, int *fds, unsigned *count,
			int timeout_ms);

/* Whether a message failed for lack of memory, or no message was there: it may be tried again. */
static inline bool nc_peer_is_later(int error)
{
	return error == -EAGAIN || error == -ENOMEM || error == -ENOBUFS;
}

/*
 * Receives a message on a socket after nc_peer_ask_sender(), without waiting; *pid: the sender.  All
 * descriptors that came are in fds, which has room for NC_PEER_FDS_ALL, and belong to the caller,
 * also on failure and with 0: closing one may block until its maker permits it.  The kernel closes
 * those for which this process has no free descriptor.
 */
ssize_t nc_peer_receive_from(int socket, void *message, size_t length, int *fds, unsigned *count,
			     pid_t *pid);

/*
 * Drops a message of a socket after nc_peer_ask_sender(), whose connection it ends: nothing more
 * is sent.  Returns false if there was none; else fds, with room for NC_PEER_FDS_ALL, has its
 * descriptors.
 */
bool nc_peer_drain(int socket, int *fds, unsigned *count);

/* Closes received descriptors. */
void nc_peer_close_fds(const int *fds, unsigned count);

#endif
