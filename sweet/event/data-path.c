/* SPDX-License-Identifier: MIT */
/*
 * data-path.c - see data-path.h; and the path that sends by cache id.
 */
#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>

#include "event/data-path.h"

static ssize_t nabc_send(int socket, const struct NC_send *message)
{
	return NC_send(NULL, socket, message);
}

static ssize_t nabc_send_apart(int socket, const struct NC_send *message)
{
	return data_path_part(&data_path_nabc, socket, message);
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
		head = path->send(socket, &header);
		if (head < 0 || rest.skip + (size_t)head < rest.header_length)
			return head;
		rest.skip += (size_t)head;
	}
	body = NC_sendfile(NULL, socket, &rest);
	return body >= 0 ? head + body : head ? head : -1;
}

ssize_t data_path_part(const struct data_path *path, int socket, const struct NC_send *message)
{
	struct NC_send rest = *message;
	ssize_t head = 0, body;

	if (rest.skip < rest.header_length && (rest.range_count || rest.text_count)) {
		do {
			head = send(socket, (const char *)rest.header + rest.skip,
				    rest.header_length - rest.skip, MSG_NOSIGNAL | MSG_DONTWAIT);
		} while (head < 0 && errno == EINTR);
		if (head < 0)
			return -1;
		rest.skip += (size_t)head;
		if (rest.skip < rest.header_length)
			return head;
		if (rest.limit)
			rest.limit -= (size_t)head;
	}
	body = path->send(socket, &rest);
	/* If the rest could not be sent, the next call will report why. */
	if (body < 0 && head > 0)
		return head;
	return body < 0 ? -1 : head + body;
}
