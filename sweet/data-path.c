/* SPDX-License-Identifier: MIT */
/*
 * data-path.c - see data-path.h; and the path of cache ids.
 */
#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

#include <data-path.h>

static ssize_t send_ids(int socket, const struct NC_send *message, const struct iovec *tail)
{
	/* Workers have named all there is. */
	assert(tail->iov_len == 0);
	(void)tail;
	return NC_socksendv(socket, message);
}

static ssize_t send_ids_apart(int socket, const struct NC_send *message, const struct iovec *tail)
{
	return data_path_part(&data_path_nabc, socket, message, tail);
}

const struct data_path data_path_nabc = {
	.name = "nabc", .send = send_ids, .send_apart = send_ids_apart};

const struct data_path *const data_paths[DATA_PATHS] = {
	[DATA_PATH_NABC] = &data_path_nabc,
	[DATA_PATH_POSIX] = &data_path_posix,
};

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
	/* What keeps the rest back is met again by the next call. */
	if (body < 0 && head > 0)
		return head;
	return body < 0 ? -1 : head + body;
}
