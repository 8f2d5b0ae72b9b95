/* SPDX-License-Identifier: MIT */
/*
 * sendfile.c - see sendfile.h: the send_file() of Nahum, Barzilai and Kandlur.
 *
 * The bytes do not belong to a unit: the kernel lends the file's own pages to the
 * socket.  If a process writes to the file, the bytes change until they are
 * acknowledged.  The caller is responsible for that.
 *
 * sendfile(2) has no flags: it raises SIGPIPE, blocks like the socket, and pushes a
 * partial segment at its end.  If the caller does not want one of the first two, or
 * the socket takes no pages, the bytes are copied; a cork holds the partial segment
 * back.
 */
#include <errno.h>
#include <limits.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/cork.h"
#include "os/ring.h"
#include "os/socket.h"
#include "send/route.h"
#include "send/sendfile.h"
#include "send/transmit.h"
#include "send/zerocopy.h"

#define FLAGS (NC_SEND_MORE | NC_SEND_CLOSE | NC_SEND_DONTWAIT)
#define COPY_MAX ((size_t)16 << 10) /* bytes per call; on the stack */

struct task {
	const struct NC_sendfile *spec;
	int socket;
	size_t total, at; /* bytes of the message; bytes sent or skipped */
	bool lend;	  /* lend pages instead of copying */
	bool retry_short; /* see struct nc_sending */
};

static int check(const struct NC_sendfile *spec)
{
	if (!spec || spec->flags & ~FLAGS || (spec->header_length && !spec->header))
		return -EINVAL;
	if (spec->length > SIZE_MAX - spec->header_length || spec->offset > INT64_MAX ||
	    spec->length > INT64_MAX - spec->offset)
		return -ERANGE;
	return spec->skip > spec->header_length + spec->length ? -EINVAL : 0;
}

static int send_flags(const struct task *task, size_t planned)
{
	const struct NC_sendfile *spec = task->spec;
	bool more =
		task->at + planned < task->total || spec->flags & (NC_SEND_MORE | NC_SEND_CLOSE);

	return MSG_NOSIGNAL | (more ? MSG_MORE : 0) |
	       (spec->flags & NC_SEND_DONTWAIT ? MSG_DONTWAIT : 0);
}

/* Accounts for a call.  Returns 1 to continue, 0 if the socket is full, or -errno. */
static int moved(struct task *task, size_t offered, ssize_t sent)
{
	if (sent < 0)
		return -errno;
	task->at += (size_t)sent;
	return (size_t)sent == offered || task->retry_short;
}

static int send_memory(struct task *task, const void *data, size_t length)
{
	ssize_t sent;

	do {
		sent = send(task->socket, data, length, send_flags(task, length));
	} while (sent < 0 && errno == EINTR);
	return moved(task, length, sent);
}

static int copy_pages(struct task *task, off_t from, size_t length)
{
	char bytes[COPY_MAX];
	ssize_t got;

	do {
		got = pread(task->spec->file, bytes,
			    length < sizeof(bytes) ? length : sizeof(bytes), from);
	} while (got < 0 && errno == EINTR);
	if (got <= 0)
		return got < 0 ? -errno : -ERANGE; /* the file is shorter now */
	return send_memory(task, bytes, (size_t)got);
}

static int lend_pages(struct task *task, off_t from, size_t length)
{
	ssize_t sent = nc_socket_sendfile(task->socket, task->spec->file, &from, length);

	if (sent == 0)
		return -ERANGE;
	if (sent < 0 && (errno == EINVAL || errno == EOPNOTSUPP)) {
		task->lend = false; /* the socket or the file does not support it */
		return 1;
	}
	return moved(task, length, sent);
}

static int send_all(struct task *task)
{
	const struct NC_sendfile *spec = task->spec;
	int result = 1;

	while (result > 0 && task->at < task->total) {
		size_t left = task->total - task->at;

		if (task->at < spec->header_length)
			result = send_memory(task, (const char *)spec->header + task->at,
					     spec->header_length - task->at);
		else
			result = (task->lend ? lend_pages : copy_pages)(
				task, (off_t)(spec->offset + spec->length - left), left);
	}
	return result;
}

ssize_t nc_sendfile(struct nc_transmit *transmit, int socket, const struct NC_sendfile *spec)
{
	int error = check(spec), result;
	struct nc_route_use route = {0};
	struct task task;

	if (error)
		return error;
	task = (struct task){.spec = spec,
			     .socket = socket,
			     .total = spec->header_length + spec->length,
			     .at = spec->skip,
			     .lend = !(spec->flags & NC_SEND_DONTWAIT) &&
				     nc_socket_sigpipe_ignored(),
			     .retry_short = nc_ring_waits(&transmit->zerocopy.ring)};
	/* A continued message was checked when it began. */
	if (!spec->skip && task.total >= NC_ROUTE_CLASS_MIN) {
		error = nc_route_find(&transmit->routes, socket, NULL, &route);
		if (error)
			return error;
		if (task.lend)
			nc_transmit_bound(transmit, socket, task.total - task.at, &route);
	}
	/* sendfile(2) pushes its last segment unless corked; right if nothing follows. */
	if (task.at < task.total && spec->length && spec->flags & (NC_SEND_MORE | NC_SEND_CLOSE))
		(void)nc_cork_set(&transmit->corks, socket);
	result = send_all(&task);
	if (result >= 0 && task.at == task.total) {
		result = nc_transmit_end(transmit, socket, spec->flags, false);
	} else {
		/* As in nc_transmit_send(). */
		nc_cork_lift(&transmit->corks, socket);
		nc_cork_push(socket);
	}
	if (result < 0 && task.at <= spec->skip)
		return result;
	return (ssize_t)(task.at - spec->skip);
}
