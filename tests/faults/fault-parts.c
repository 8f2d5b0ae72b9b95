/* SPDX-License-Identifier: MIT */
/*
 * fault-parts.c - calls that can also succeed partly: read and write less, lose a
 * wake-up, or receive a message without its descriptors.
 */
#include "fault-internal.h"
#include "fault.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define EVENTFDS_MAX 65536u

static _Atomic unsigned char eventfds[EVENTFDS_MAX]; /* which descriptors are eventfds */

int eventfd(unsigned value, int flags)
{
	int fd;
	REAL(eventfd);

	if (fault_met_error(FAULT_eventfd) > 0)
		return -1;
	fd = real(value, flags);
	if (fd >= 0 && fd < (int)EVENTFDS_MAX)
		atomic_store(&eventfds[fd], 1);
	return fd;
}

int close(int fd)
{
	REAL(close);

	if (fd >= 0 && fd < (int)EVENTFDS_MAX)
		atomic_store(&eventfds[fd], 0);
	return real(fd);
}

ssize_t write(int fd, const void *data, size_t length)
{
	bool wake = fd >= 0 && fd < (int)EVENTFDS_MAX && atomic_load(&eventfds[fd]);
	int error = fault_met_error_on(wake ? FAULT_wake : FAULT_write, fd, length);
	REAL(write);

	if (error > 0)
		return -1;
	if (error == FAULT_LOST)
		return (ssize_t)length;
	return real(fd, data, fault_cut(error, fd, length));
}

ssize_t read(int fd, void *data, size_t length)
{
	int error = fault_met_error_on(FAULT_read, fd, length);
	REAL(read);

	return error > 0 ? -1 : real(fd, data, fault_cut(error, fd, length));
}

ssize_t readv(int fd, const struct iovec *vector, int count)
{
	int error = fault_met_error_on(FAULT_readv, fd, SIZE_MAX);
	struct iovec one;
	REAL(readv);

	if (error > 0)
		return -1;
	vector = fault_cut_vector(error, fd, vector, &count, &one);
	return real(fd, vector, count);
}

ssize_t preadv2(int fd, const struct iovec *vector, int count, off_t offset, int flags)
{
	int error = fault_met_error_on(FAULT_preadv2, fd, SIZE_MAX);
	struct iovec one;
	REAL(preadv2);

	if (error > 0)
		return -1;
	vector = fault_cut_vector(error, fd, vector, &count, &one);
	return real(fd, vector, count, offset, flags);
}

ssize_t writev(int fd, const struct iovec *vector, int count)
{
	int error = fault_met_error_on(FAULT_writev, fd, SIZE_MAX);
	struct iovec one;
	REAL(writev);

	if (error > 0)
		return -1;
	vector = fault_cut_vector(error, fd, vector, &count, &one);
	return real(fd, vector, count);
}

ssize_t send(int fd, const void *data, size_t length, int flags)
{
	int error = fault_met_error_on(FAULT_send, fd, length);
	REAL(send);

	return error > 0 ? -1 : real(fd, data, fault_cut(error, fd, length), flags);
}

ssize_t sendto(int fd, const void *data, size_t length, int flags, const struct sockaddr *address,
	       socklen_t address_length)
{
	int error = fault_met_error_on(FAULT_send, fd, length);
	REAL(sendto);

	if (error > 0)
		return -1;
	return real(fd, data, fault_cut(error, fd, length), flags, address, address_length);
}

ssize_t recv(int fd, void *data, size_t length, int flags)
{
	int error = fault_met_error_on(FAULT_recv, fd, length);
	REAL(recv);

	return error > 0 ? -1 : real(fd, data, fault_cut(error, fd, length), flags);
}

ssize_t sendfile(int socket, int file, off_t *offset, size_t count)
{
	int error = fault_met_error_on(FAULT_sendfile, socket, SIZE_MAX);
	REAL(sendfile);

	return error > 0 ? -1 : real(socket, file, offset, fault_cut(error, socket, count));
}

/* The message, or only its first byte. */
static const struct msghdr *cut_message(int error, int fd, const struct msghdr *message,
					struct msghdr *copy, struct iovec *one)
{
	int count = (int)message->msg_iovlen;

	*copy = *message;
	copy->msg_iov = (struct iovec *)fault_cut_vector(error, fd, message->msg_iov, &count, one);
	copy->msg_iovlen = (size_t)count;
	return copy;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	int error = fault_met_error_on(FAULT_sendmsg, fd, SIZE_MAX);
	struct msghdr copy;
	struct iovec one;
	REAL(sendmsg);

	if (error > 0)
		return -1;
	return real(fd, cut_message(error, fd, message, &copy, &one), flags);
}

/* As if this process had no space for the received descriptors. */
static void cut_rights(struct msghdr *message)
{
	struct cmsghdr *at = CMSG_FIRSTHDR(message);
	size_t i;

	for (; at; at = CMSG_NXTHDR(message, at)) {
		const int *fds = (const int *)CMSG_DATA(at);

		if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
			continue;
		for (i = 0; i < (at->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++)
			close(fds[i]);
		/* The kernel leaves none: only credentials can follow, and these come before. */
		message->msg_flags |= MSG_CTRUNC;
		message->msg_controllen = (size_t)((char *)at - (char *)message->msg_control);
		return;
	}
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	int error = fault_met_error_on(FAULT_recvmsg, fd, SIZE_MAX);
	struct iovec *vector = message->msg_iov;
	size_t count = message->msg_iovlen;
	struct iovec one;
	struct msghdr copy;
	ssize_t result;
	REAL(recvmsg);

	if (error > 0)
		return -1;
	*message = *cut_message(error, fd, message, &copy, &one);
	result = real(fd, message, flags);
	message->msg_iov = vector;
	message->msg_iovlen = count;
	if (error == FAULT_CUT && result > 0)
		cut_rights(message);
	return result;
}
