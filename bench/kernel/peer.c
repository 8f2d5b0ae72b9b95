// SPDX-License-Identifier: MIT
/*
 * peer.c - connections to a process that receives and drops all data.  The peer is
 * told a number of bytes (8 bytes, little endian), reads as many, copies none of them
 * (MSG_TRUNC), and replies with one byte.  Outside of the guest it is a thread of
 * bench.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "guest.h"
#include "kernel.h"

#define RECEIVE_MOST ((size_t)1 << 20)

static int receive(void *context)
{
	struct guest_pair *pair = context;
	uint64_t left;
	ssize_t got;

	close(pair->near);
	while (recv(pair->far, &left, sizeof(left), MSG_WAITALL) == sizeof(left)) {
		left = le64toh(left);
		for (; left; left -= (uint64_t)got) {
			size_t most = left < RECEIVE_MOST ? (size_t)left : RECEIVE_MOST;

			got = recv(pair->far, NULL, most, MSG_TRUNC);
			must(got > 0);
		}
		must(write(pair->far, "", 1) == 1);
	}
	return 0;
}

static int connect_out(const char *sink)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	const char *port = strchr(sink, ':');
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char host[INET_ADDRSTRLEN];

	must(fd >= 0);
	must(port != NULL && (size_t)(port - sink) < sizeof(host));
	snprintf(host, sizeof(host), "%.*s", (int)(port - sink), sink);
	address.sin_port = htons((uint16_t)atoi(port + 1));
	must(inet_pton(AF_INET, host, &address.sin_addr) == 1);
	must(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	return fd;
}

int peer_connect(const char *sink)
{
	const struct timeval forever = {0};
	const int on = 1;
	int fd;

	if (sink) {
		fd = connect_out(sink);
	} else {
		struct guest_pair pair = guest_connect(AF_INET);

		guest_fork(receive, &pair);
		close(pair.far);
		fd = pair.near;
	}
	/* Without a timeout, deferred work of io_uring would cause EINTR. */
	must(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &forever, sizeof(forever)) == 0);
	/* The end of a document is sent at once, as servers do. */
	must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0);
	return fd;
}

void peer_expect(int socket, uint64_t bytes)
{
	bytes = htole64(bytes);
	must(write(socket, &bytes, sizeof(bytes)) == sizeof(bytes));
}

void peer_await(int socket)
{
	char answer;

	must(read(socket, &answer, 1) == 1);
}
