/* SPDX-License-Identifier: MIT */
/*
 * example.h - what the example servers share, apart from libnabc: a listening
 * socket, and as much of HTTP as an example needs.  Each program answers every
 * request with one file:
 *
 * 	epoll-server PORT FILE
 *
 * PORT 0 selects a free port; the first line of output states it.
 */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nabc.h>

#define REQUEST_MAX 4096

/* Bytes received from one client. */
struct input {
	char data[REQUEST_MAX];
	size_t have;
};

/* Returns the length of the first request in the input; 0: it is not complete. */
static inline size_t input_request(const struct input *input)
{
	const char *end = memmem(input->data, input->have, "\r\n\r\n", 4);

	return end ? (size_t)(end - input->data) + 4 : 0;
}

/* Removes the request; returns whether the client asks to close the connection afterwards. */
static inline bool input_take(struct input *input, size_t length)
{
	bool last = memmem(input->data, length, "\r\nConnection: close\r\n", 21);

	input->have -= length;
	memmove(input->data, input->data + length, input->have);
	return last;
}

static inline size_t response_head(char *head, size_t room, size_t length, bool last)
{
	return (size_t)snprintf(head, room, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n%s\r\n",
				length, last ? "Connection: close\r\n" : "");
}

/* Opens a cache and inserts the file; the range covers all of it. */
static inline NC_cache *example_cache(const char *path, struct NC_range *range)
{
	NC_cache *cache = NC_cache_open(NULL);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	NC_handle unit;
	struct stat st;

	if (!cache)
		err(1, "cache");
	if (fd < 0 || fstat(fd, &st) < 0 || NC_alloc(&unit, (size_t)st.st_size, 0) < 0 ||
	    NC_read(fd, &unit, 0, (size_t)st.st_size) != st.st_size || NC_insert(&unit) < 0)
		err(1, "%s", path);
	*range = (struct NC_range){.id = NC_cache_id(&unit), .length = (size_t)st.st_size};
	NC_free(&unit);
	close(fd);
	return cache;
}

/* Returns a descriptor that is readable when the program must exit. */
static inline int example_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

/* Listens on 127.0.0.1 and prints the address. */
static inline int example_listen(const char *port, int flags)
{
	struct sockaddr_in here = {.sin_family = AF_INET};
	socklen_t length = sizeof(here);
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	here.sin_port = htons((unsigned short)atoi(port));
	here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&here, sizeof(here)) < 0 || listen(fd, 100) < 0 ||
	    getsockname(fd, (struct sockaddr *)&here, &length) < 0)
		err(1, "port %s", port);
	printf("http://127.0.0.1:%u/\n", ntohs(here.sin_port));
	fflush(stdout);
	/*
	 * Report closed connections as errors of sends; the library splices only
	 * with SIGPIPE ignored.
	 */
	signal(SIGPIPE, SIG_IGN);
	return fd;
}

#endif
