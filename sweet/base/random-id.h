/* SPDX-License-Identifier: MIT */
/*
 * random-id.h - ids that cannot be guessed and do not repeat, without a system call for each:
 * hashes of a counter with a random key.  A source belongs to one thread.
 */
#ifndef SWEET_RANDOM_ID_H
#define SWEET_RANDOM_ID_H

#include <stdbool.h>
#include <stdint.h>

/* Zeros at first. */
struct random_id {
	bool keyed;
	uint8_t key[16];
	uint64_t count;
};

/* Returns 64 bits. */
uint64_t random_id_next(struct random_id *source);

/* Writes digits hexadecimal digits of the number, the last ones; returns the end. */
char *random_id_write(char *to, uint64_t number, unsigned digits);

#endif
