/* SPDX-License-Identifier: MIT */
/*
 * tls-kernel.c - see tls-kernel.h.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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
