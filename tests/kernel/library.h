/* SPDX-License-Identifier: MIT */
/*
 * library.h - shared by the programs that test libnabc with the module: units of the
 * library with bytes that guest_holds() knows, and their kinds.
 */
#ifndef NC_TEST_LIBRARY_H
#define NC_TEST_LIBRARY_H

#include <nabc-uapi.h>
#include <nabc.h>
#include <stddef.h>
#include <stdint.h>

#include "device.h"

/* An unused user and group, which may or may not open the device. */
#define LIBRARY_USER 1000
#define LIBRARY_STRANGER 1001

/* Inserts a unit with the bytes of a seed; ends the program on failure. */
size_t library_unit(uint64_t seed, size_t size, enum NC_kind kind);

enum NC_kind library_kind(size_t id);

struct NC_cache_stat library_stat(void);

/*
 * Sends a message in as many calls as necessary; a child reads, and compares a header
 * of the seed 99 and one range.  Ends the program unless all arrived.
 */
void library_send(int near, int far, size_t id, uint64_t seed, size_t offset, size_t length,
		  unsigned flags, const struct NC_hold *hold);

/* Returns the units and open files of the module; the caller itself does not count. */
struct nabc_statistics library_module(void);

#endif
