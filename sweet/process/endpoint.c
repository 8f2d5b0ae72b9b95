/* SPDX-License-Identifier: MIT */
/*
 * endpoint.c - see endpoint.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process/endpoint.h"

#define BACKLOG 4096

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* since Linux 6.16 */
#endif

bool endpoint_refuse_descriptors(int fd)
{
	int off = 0;

	return setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off)) == 0;
}

static int make_socket(const struct listen_address *address, bool shared)
{
	int family = address->address.ss_family, one = 1;
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (family == AF_UNIX) {
		(void)endpoint_refuse_descriptors(fd);
		return fd;
	}
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	/* Accepted connections inherit it. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (shared)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	if (family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	return fd;
}

static const struct sockaddr *raw(const struct listen_address *address)
{
	return (const struct sockaddr *)&address->address;
}

/* Returns true if the path is a socket on which nobody listens. */
static bool is_stale(const struct listen_address *address)
{
	struct stat file;
	bool refused;
	int fd;

	if (lstat(address_path(address), &file) < 0 || !S_ISSOCK(file.st_mode))
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	/* EAGAIN (a full queue) and EACCES mean that there is a listener. */
	refused = connect(fd, raw(address), address->length) < 0 && errno == ECONNREFUSED;
	close(fd);
	return refused;
}

int endpoint_set_mode(const char *path, mode_t mode)
{
	/* Others may write the folder, and have put a link there. */
	return fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int bind_unix(int fd, const struct listen_address *address)
{
	const char *path = address_path(address);
	int error;

	/* The file gets the socket's mode, minus umask: never too many permissions. */
	(void)fchmod(fd, address->mode);
	if (bind(fd, raw(address), address->length) < 0) {
		if (errno != EADDRINUSE)
			return -errno;
		if (!path || !is_stale(address))
			return -EADDRINUSE;
		if (unlink(path) < 0 || bind(fd, raw(address), address->length) < 0)
			return -errno;
	}
	error = path ? endpoint_set_mode(path, address->mode) : 0;
	if (error)
		unlink(path);
	return error;
}

int endpoint_bind(const struct listen_address *address, bool shared)
{
	int fd = make_socket(address, shared), error = 0;

	if (fd < 0)
		return fd;
	if (address->address.ss_family == AF_UNIX)
		error = bind_unix(fd, address);
	else if (bind(fd, raw(address), address->length) < 0)
		error = -errno;
	if (!error && listen(fd, BACKLOG) < 0)
		error = -errno;
	if (!error)
		return fd;
	close(fd);
	return error;
}

static void read_name(int fd, struct listen_address *address)
{
	address->length = sizeof(address->address);
	if (getsockname(fd, (struct sockaddr *)&address->address, &address->length) == 0)
		address_write(address);
}

/* SO_REUSEPORT sockets of another program would accept ours: check that nobody listens yet. */
static int claim(struct listen_address *address)
{
	int fd = make_socket(address, false), error = 0;

	if (fd < 0)
		return fd;
	/* It does not listen, so closing it disconnects no client. */
	if (bind(fd, raw(address), address->length) < 0)
		error = -errno;
	else
		read_name(fd, address);
	close(fd);
	return error;
}

/* Duplicates one socket for all threads. */
static int duplicate(struct endpoint *endpoint, int fd)
{
	endpoint->fds[0] = fd;
	for (unsigned i = 1; i < endpoint->threads; i++) {
		endpoint->fds[i] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (endpoint->fds[i] < 0)
			return -errno;
	}
	return 0;
}

static int open_unix(struct endpoint *endpoint)
{
	const char *path = address_path(&endpoint->wanted);
	int fd = endpoint_bind(&endpoint->wanted, false);
	struct stat file;

	if (fd < 0)
		return fd;
	if (path && lstat(path, &file) == 0) {
		endpoint->has_file = true;
		endpoint->device = file.st_dev;
		endpoint->inode = file.st_ino;
	}
	return duplicate(endpoint, fd);
}

static int open_one_queue(struct endpoint *endpoint)
{
	int fd = endpoint_bind(&endpoint->bound, false);

	if (fd < 0)
		return fd;
	read_name(fd, &endpoint->bound);
	return duplicate(endpoint, fd);
}

static int open_ip(struct endpoint *endpoint)
{
	bool shared = endpoint->threads > 1;
	int error = shared ? claim(&endpoint->bound) : 0;

	for (unsigned i = 0; i < endpoint->threads && !error; i++) {
		endpoint->fds[i] = endpoint_bind(&endpoint->bound, shared);
		if (endpoint->fds[i] < 0)
			error = endpoint->fds[i];
		else if (i == 0)
			read_name(endpoint->fds[0], &endpoint->bound);
	}
	return error;
}

static struct endpoint *make_endpoint(unsigned threads)
{
	struct endpoint *endpoint = calloc(1, sizeof(*endpoint) + threads * sizeof(int));

	if (!endpoint)
		return NULL;
	endpoint->threads = threads;
	for (unsigned i = 0; i < threads; i++)
		endpoint->fds[i] = -1;
	return endpoint;
}

struct endpoint *endpoint_open(const struct listen_address *address, unsigned threads,
			       bool one_queue)
{
	struct endpoint *endpoint = make_endpoint(threads);
	int error;

	if (!endpoint)
		return NULL;
	endpoint->wanted = endpoint->bound = *address;
	if (address->address.ss_family == AF_UNIX)
		error = open_unix(endpoint);
	else
		error = one_queue ? open_one_queue(endpoint) : open_ip(endpoint);
	if (!error)
		return endpoint;
	endpoint_close(endpoint);
	errno = -error;
	return NULL;
}

static bool is_listening(int fd, int *family)
{
	int type = 0, listening = 0;
	socklen_t length = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) < 0 || type != SOCK_STREAM)
		return false;
	length = sizeof(int);
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) < 0 || !listening)
		return false;
	length = sizeof(int);
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, family, &length) == 0 &&
	       (*family == AF_INET || *family == AF_INET6 || *family == AF_UNIX);
}

struct endpoint *endpoint_adopt(int fd, unsigned threads)
{
	struct endpoint *endpoint;
	int family, one = 1, error;

	if (!is_listening(fd, &family)) {
		errno = EINVAL;
		return NULL;
	}
	endpoint = make_endpoint(threads);
	if (!endpoint)
		return NULL;
	endpoint->inherited = true;
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	if (family == AF_UNIX)
		(void)endpoint_refuse_descriptors(fd);
	else
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	read_name(fd, &endpoint->bound);
	endpoint->wanted = endpoint->bound;
	error = duplicate(endpoint, fd);
	if (!error)
		return endpoint;
	endpoint->fds[0] = -1;
	endpoint_close(endpoint);
	errno = -error;
	return NULL;
}

int endpoint_take(struct endpoint *endpoint, unsigned thread)
{
	int fd = endpoint->fds[thread];

	endpoint->fds[thread] = -1;
	return fd;
}

/* Removes the file of a Unix socket if it is still the one that was created. */
static void remove_file(struct endpoint *endpoint)
{
	const char *path = address_path(&endpoint->wanted);
	struct stat file;

	if (endpoint->has_file && lstat(path, &file) == 0 && file.st_dev == endpoint->device &&
	    file.st_ino == endpoint->inode)
		(void)unlink(path);
	endpoint->has_file = false;
}

void endpoint_close(struct endpoint *endpoint)
{
	if (!endpoint)
		return;
	remove_file(endpoint);
	for (unsigned i = 0; i < endpoint->threads; i++)
		if (endpoint->fds[i] >= 0)
			close(endpoint->fds[i]);
	free(endpoint);
}
