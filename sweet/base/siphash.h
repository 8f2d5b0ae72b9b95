/* SPDX-License-Identifier: MIT */
/*
 * siphash.h - SipHash-2-4, a keyed hash (Aumasson and Bernstein, 2012): without the
 * key, nobody can choose colliding inputs.
 */
#ifndef SWEET_SIPHASH_H
#define SWEET_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t siphash(const uint8_t key[16], const void *data, size_t length);

#endif
