/* SPDX-License-Identifier: MIT */
/*
 * data-path.c - see data-path.h; and the path that sends by cache id.
 */
#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>

#include "event/data-path.h"

/* Sends the message, then the tail as a second message. */
static ssize_t send_tailed(int socket, const struct NC_send *message, const struct iovec *tail)
{
	struct NC_send first = *message;
	struct NC_send second =
		NC_SEND_INIT(.header = tail->iov_base, .header_length = tail->iov_len,
			     .flags = message->flags);
	size_t total = message->header_length;
	ssize_t sent = 0, more;

	for (unsigned i = 0; i < message->range_count; i++)
		total += message->ranges[i].length;
	if (message->skip < total) {
		first.flags = (first.flags | NC_SEND_MORE) & ~NC_SEND_CLOSE;
		sent = NC_send(NULL, socket, &first);
		if (sent < 0 || message->skip + (size_t)sent < total)
			return sent;
	}
	second.skip = message->skip + (size_t)sent - total;
	more = NC_send(NULL, socket, &second);
	/* If the tail could not be sent, the next call will report why. */
	return more >= 0 ? sent + more : sent ? sent : -1;
}

static ssize_t nabc_send(int socket, const struct NC_send *message, const struct iovec *tail)
{
	return tail->iov_len ? send_tailed(socket, message, tail) : NC_send(NULL, socket, message);
}

static ssize_t nabc_send_apart(int socket, const struct NC_send *message, const struct iovec *tail)
{
	return data_path_part(&data_path_nabc, socket, message, tail);
}

const struct data_path data_path_nabc = {
	.name = "nabc", .send = nabc_send, .send_apart = nabc_send_apart};

const struct data_path *const data_paths[DATA_PATHS] = {
	[DATA_PATH_NABC] = &data_path_nabc,
	[DATA_PATH_POSIX] = &data_path_posix,
};

ssize_t data_path_file(const struct data_path *path, int socket, const struct NC_sendfile *message,
		       bool apart)
{
	const struct NC_send header =
		NC_SEND_INIT(.header = message->header, .header_length = message->header_length,
			     .skip = message->skip);
	struct NC_sendfile rest = *message;
	ssize_t head = 0, body;

	if (apart && rest.skip < rest.header_length) {
		head = path->send(socket, &header, &(struct iovec){0});
		if (head < 0 || rest.skip + (size_t)head < rest.header_length)
			return head;
		rest.skip += (size_t)head;
	}
	body = NC_sendfile(NULL, socket, &rest);
	return body >= 0 ? head + body : head ? head : -1;
}

ssize_t data_path_part(const struct data_path *path, int socket, const struct NC_send *message,
		       const struct iovec *tail)
{
	struct NC_send rest = *message;
	ssize_t head = 0, body;

	if (rest.skip < rest.header_length && (rest.range_count || tail->iov_len)) {
		do {
			head = send(socket, (const char *)rest.header + rest.skip,
				    rest.header_length - rest.skip, MSG_NOSIGNAL | MSG_DONTWAIT);
		} while (head < 0 && errno == EINTR);
		if (head < 0)
			return -1;
		rest.skip += (size_t)head;
		if (rest.skip < rest.header_length)
			return head;
	}
	body = path->send(socket, &rest, tail);
	/* If the rest could not be sent, the next call will report why. */
	if (body < 0 && head > 0)
		return head;
	return body < 0 ? -1 : head + body;
}
