/* SPDX-License-Identifier: MIT */
/*
 * starter-keeper.h - the parent of the starter, from its fork on: when the
 * starter is ended from outside, it forks the next one.
 *
 * Nobody else could: a starter has rights that the server has given up, and is
 * forked by who has no threads.
 */
#ifndef SWEET_STARTER_KEEPER_H
#define SWEET_STARTER_KEEPER_H

#include "spawn/starter-program.h"

/*
 * Keeps a starter at the channels until the last of them is closed at the
 * server's end, and ends after it.
 */
_Noreturn void starter_keeper(const struct starter_program *programs, unsigned count,
			      const int *channels, unsigned channel_count);

#endif
