/* SPDX-License-Identifier: MIT */
/*
 * tcp-info.h - what the kernel says of a TCP socket, by the kernel's own structure, which has more
 * than the C library's.
 */
#ifndef TCP_INFO_H
#define TCP_INFO_H

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "suite.h"

static inline struct tcp_info tcp_info(int fd)
{
	struct tcp_info info = {0};
	socklen_t length = sizeof(info);

	ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
	return info;
}

#endif
