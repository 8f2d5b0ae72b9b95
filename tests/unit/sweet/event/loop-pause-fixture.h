/* SPDX-License-Identifier: MIT */
/* loop-pause-fixture.h - a connection that a loop receives from. */
#ifndef LOOP_PAUSE_FIXTURE_H
#define LOOP_PAUSE_FIXTURE_H

#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loop-fixture.h"
#include "suite.h"

static struct runner runner;

/* --- receive ------------------------------------------------------------------- */

/* Starts an inlet at one end of a TCP connection; returns the other end. */
static inline int inlet_open(struct inlet *inlet, size_t room)
{
	int pair[2];

	tcp_pair(pair);
	inlet_init(inlet, &runner, pair[1], room);
	call(&runner, inlet_begin, inlet);
	return pair[0];
}

static inline void inlet_close(struct inlet *inlet)
{
	call(&runner, inlet_end, inlet);
	free(inlet->got);
}

static inline void write_pattern(int fd, uint64_t seed, size_t at, size_t length)
{
	char *data = must_alloc(length);

	pattern_fill(data, seed, at, length);
	for (size_t done = 0; done < length;) {
		ssize_t written = write(fd, data + done, length - done);

		ck_assert_int_gt(written, 0);
		done += (size_t)written;
	}
	free(data);
}

#endif
