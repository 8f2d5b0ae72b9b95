/* SPDX-License-Identifier: MIT */
/*
 * library.h - what the programs share that test libnabc on the module: units
 * of the library's with bytes that guest_holds() knows, and what they are.
 */
#ifndef NC_TEST_LIBRARY_H
#define NC_TEST_LIBRARY_H

#include <nabc.h>

#include "device.h"

/* A user and a group of no one's, whom the device may be opened for or not. */
#define LIBRARY_USER 1000
#define LIBRARY_STRANGER 1001

/* The bytes of a seed, in a unit that is inserted; ends the program on failure. */
size_t library_unit(uint64_t seed, size_t size, enum NC_kind kind);

enum NC_kind library_kind(size_t id);

struct NC_cache_stat library_stat(void);

/*
 * Sends a message in as many calls as it takes; a child reads, and compares a
 * header of the seed 99 and one range.  Ends the program unless all came.
 */
void library_send(int near, int far, size_t id, uint64_t seed, size_t offset, size_t length,
		  unsigned flags, const struct NC_hold *hold);

/* Units and open files of the module; the one that asks does not count. */
struct nabc_statistics library_module(void);

#endif
