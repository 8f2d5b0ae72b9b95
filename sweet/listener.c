/* SPDX-License-Identifier: MIT */
/*
 * listener.c - see listener.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <connection.h>
#include <listener.h>

#define BACKLOG 4096
#define TELL_MS 10000

static bool parse_port(const char *text, uint16_t *port)
{
	unsigned long value;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	value = strtoul(text, &end, 10);
	*port = (uint16_t)value;
	return *end == '\0' && value <= 65535;
}

static void write_text(struct listen_address *address)
{
	char host[INET6_ADDRSTRLEN];

	if (address->address.ss_family == AF_INET6) {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&address->address;

		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		snprintf(address->text, sizeof(address->text), "[%s]:%u", host,
			 ntohs(in6->sin6_port));
	} else {
		struct sockaddr_in *in = (struct sockaddr_in *)(void *)&address->address;

		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(address->text, sizeof(address->text), "%s:%u", host, ntohs(in->sin_port));
	}
}

bool listener_parse(const char *text, struct listen_address *address)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&address->address;
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)&address->address;
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2]; /* with its brackets */
	uint16_t port;
	size_t length;

	memset(address, 0, sizeof(*address));
	if (!parse_port(colon ? colon + 1 : text, &port))
		return false;
	length = colon ? (size_t)(colon - text) : 0;
	if (length >= sizeof(host))
		return false;
	memcpy(host, text, length);
	host[length] = '\0';
	if (length > 1 && host[0] == '[' && host[length - 1] == ']') {
		host[length - 1] = '\0';
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		address->length = sizeof(*in6);
		if (inet_pton(AF_INET6, host + 1, &in6->sin6_addr) != 1)
			return false;
	} else {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		address->length = sizeof(*in);
		if (length == 0)
			in->sin_addr.s_addr = htonl(colon ? INADDR_ANY : INADDR_LOOPBACK);
		else if (strcmp(host, "*") != 0 && inet_pton(AF_INET, host, &in->sin_addr) != 1)
			return false;
	}
	write_text(address);
	return true;
}

int listener_bind(const struct listen_address *address, bool shared)
{
	int family = address->address.ss_family, one = 1, error;
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	/* Connections inherit it. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (shared)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	if (family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)&address->address, address->length) < 0 ||
	    listen(fd, BACKLOG) < 0) {
		error = -errno;
		close(fd);
		return error;
	}
	return fd;
}

void listener_name(int fd, struct listen_address *address)
{
	socklen_t length = sizeof(address->address);

	if (getsockname(fd, (struct sockaddr *)&address->address, &length) == 0)
		write_text(address);
}

/* Out of descriptors: one client is turned away, so that the rest are not stuck. */
static void turn_away(struct listener *listener, int error)
{
	uint64_t now = loop_now_ms(listener->server->loop);
	int fd;

	if (!listener->told_ms || now - listener->told_ms > TELL_MS) {
		log_error("accepting connections: %s", strerror(-error));
		listener->told_ms = now;
	}
	if (error != -EMFILE && error != -ENFILE)
		return;
	if (listener->reserve >= 0)
		close(listener->reserve);
	fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	listener->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void accepted(struct loop_accept *op, int fd)
{
	struct listener *listener = (struct listener *)op;

	if (fd < 0)
		turn_away(listener, fd);
	else
		connection_open(listener->server, fd);
}

int listener_start(struct listener *listener, struct server *server, int fd)
{
	*listener = (struct listener){.accept.accepted = accepted,
				      .server = server,
				      .fd = fd,
				      .reserve = open("/dev/null", O_RDONLY | O_CLOEXEC)};
	return loop_accept_start(server->loop, &listener->accept, fd);
}

void listener_stop(struct listener *listener)
{
	if (listener->fd >= 0)
		loop_close_fd(listener->server->loop, listener->fd);
	if (listener->reserve >= 0)
		close(listener->reserve);
	listener->fd = listener->reserve = -1;
}
