/* SPDX-License-Identifier: MIT */
/*
 * data-path.c - see data-path.h; and the path of cache ids.
 */
#include <assert.h>

#include <data-path.h>

static ssize_t send_ids(int socket, const struct NC_send *message, const struct iovec *tail)
{
	/* Workers have named all there is. */
	assert(tail->iov_len == 0);
	(void)tail;
	return NC_socksendv(socket, message);
}

const struct data_path data_path_nabc = {.name = "nabc", .send = send_ids};

const struct data_path *const data_paths[DATA_PATHS] = {
	[DATA_PATH_NABC] = &data_path_nabc,
	[DATA_PATH_POSIX] = &data_path_posix,
};
