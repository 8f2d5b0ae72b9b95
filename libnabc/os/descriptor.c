/* SPDX-License-Identifier: MIT */
/* descriptor.c - keeps the numbers of standard descriptors free; see descriptor.h. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "os/descriptor.h"

int nc_descriptor_copy(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	return copy < 0 ? -errno : copy;
}

int nc_descriptor(int fd)
{
	int kept;

	if (fd < 0)
		return -errno;
	if (fd > STDERR_FILENO)
		return fd;
	kept = nc_descriptor_copy(fd);
	close(fd);
	return kept;
}

int nc_descriptor_pair(int result, int pair[2])
{
	int error;

	if (result < 0)
		return -errno;
	pair[0] = nc_descriptor(pair[0]);
	pair[1] = nc_descriptor(pair[1]);
	error = pair[0] < 0 ? pair[0] : pair[1];
	for (unsigned i = 0; error < 0 && i < 2; i++)
		if (pair[i] >= 0)
			close(pair[i]);
	return error < 0 ? error : 0;
}
