/* SPDX-License-Identifier: MIT */
/*
 * pace.c - the key rate: how fast a response is sent.  The kernel paces what leaves the
 * socket (SO_MAX_PACING_RATE), so that a response with a limit is a response to a slow client, and
 * what protects the server's memory from these applies.
 *
 * The streams of a session share a socket: as long as one of them has a limit, the lowest one counts
 * for all of them.  Otherwise a client could lift the limit with another request.
 */
#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "log/log.h"
#include "pressure/pace.h"

#define UNLIMITED UINT32_MAX /* of the kernel */

static void set_rate(struct pace *pace, uint32_t rate, int fd, const char *remote)
{
	uint32_t value = rate ? rate : UNLIMITED;

	/* Other sockets than those of TCP ignore it; after the end of a session there is none. */
	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &value, sizeof(value)) < 0)
		log_info("%s: cannot limit the rate of the response: %s", remote, strerror(errno));
	pace->rate = rate;
}

void pace_begin(struct pace *pace, bool *paced, uint64_t most, int fd, const char *remote)
{
	uint32_t rate = (uint32_t)MIN(most, UNLIMITED - 1);

	pace_end(pace, paced);
	/* When the last response with a limit has ended, the limit remains until the next one. */
	if (!pace->responses ? rate != pace->rate : rate && rate < pace->rate)
		set_rate(pace, rate, fd, remote);
	if (rate) {
		*paced = true;
		pace->responses++;
	}
}

void pace_end(struct pace *pace, bool *paced)
{
	if (*paced)
		pace->responses--;
	*paced = false;
}
