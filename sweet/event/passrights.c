/* SPDX-License-Identifier: MIT */
/*
 * passrights.c - see passrights.h.
 */
#include <sys/socket.h>

#include "event/passrights.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* since Linux 6.16 */
#endif

bool passrights_refuse(int fd)
{
	int off = 0;

	return setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off)) == 0;
}
