/* SPDX-License-Identifier: MIT */
/*
 * tls-kernel.c - see tls-kernel.h.
 */
#include <errno.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tls/tls-kernel.h"

bool tls_kernel_probe(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool good;

	if (fd < 0)
		return false;
	/* A kernel without it says ENOENT; one that has it refuses this socket for its state. */
	good = setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) == 0 || errno == ENOTCONN;
	close(fd);
	return good;
}

void tls_kernel_alert(int socket, unsigned char description)
{
	const unsigned char type = 21; /* of a record: alert */
	unsigned char alert[] = {2, description};
	struct iovec data = {.iov_base = alert, .iov_len = sizeof(alert)};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(type))];
	} control = {0};
	const struct msghdr message = {.msg_iov = &data,
				       .msg_iovlen = 1,
				       .msg_control = &control,
				       .msg_controllen = CMSG_SPACE(sizeof(type))};

	control.header.cmsg_level = SOL_TLS;
	control.header.cmsg_type = TLS_SET_RECORD_TYPE;
	control.header.cmsg_len = CMSG_LEN(sizeof(type));
	memcpy(CMSG_DATA(&control.header), &type, sizeof(type));
	/* If the socket is full, the client gets the end of the connection alone. */
	(void)sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}
