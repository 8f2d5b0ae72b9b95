/* SPDX-License-Identifier: MIT */
/*
 * pace.h - limits the rate of responses.
 */
#ifndef SWEET_PACE_H
#define SWEET_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* Of a socket. */
struct pace {
	unsigned responses; /* that have a limit */
	uint32_t rate;	    /* bytes per second; 0: no limit */
};

/*
 * A response begins: limits its rate to bytes per second; 0: no limit.  *paced: it is counted.  fd: the
 * socket, or below 0; remote: its client, for the log.
 */
void pace_begin(struct pace *pace, bool *paced, uint64_t most, int fd, const char *remote);

/* It has ended; again does nothing. */
void pace_end(struct pace *pace, bool *paced);

#endif
