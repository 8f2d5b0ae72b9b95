/* SPDX-License-Identifier: MIT */
/* ring-fixture.h - the library's ring.  Without io_uring, tests are skipped, with one line. */
#ifndef RING_FIXTURE_H
#define RING_FIXTURE_H

#include <nabc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "os/ring.h"

#include "suite.h"

static struct nc_ring ring;

/* Returns false if io_uring is unavailable. */
static inline bool open_ring(void)
{
	/* Its threads would block those of the test: see check-valgrind.sh. */
	nc_ring_init(&ring, !getenv("NABC_TEST_NO_URING"));
	if (!ring.usable) {
		printf("without a ring: %s\n", ring.why);
		fflush(stdout);
		nc_ring_fini(&ring);
		return false;
	}
	ck_assert_str_eq(ring.why, "used");
	return true;
}

#endif
