/* SPDX-License-Identifier: MIT */
/*
 * siphash.c - see siphash.h.  No state.
 */
#include <endian.h>
#include <string.h>

#include "base/siphash.h"

static uint64_t rotate(uint64_t value, unsigned by)
{
	return value << by | value >> (64 - by);
}

static void mix(uint64_t v[4], unsigned rounds)
{
	while (rounds--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

static void take(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	mix(v, 2);
	v[0] ^= word;
}

static uint64_t load(const uint8_t *from, size_t length)
{
	uint64_t word = 0;

	memcpy(&word, from, length);
	return le64toh(word);
}

uint64_t siphash(const uint8_t key[16], const void *data, size_t length)
{
	uint64_t k0 = load(key, 8), k1 = load(key + 8, 8);
	uint64_t v[4] = {k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d),
			 k0 ^ UINT64_C(0x6c7967656e657261), k1 ^ UINT64_C(0x7465646279746573)};
	const uint8_t *at = data;
	size_t left = length;

	for (; left >= 8; left -= 8, at += 8)
		take(v, load(at, 8));
	take(v, load(at, left) | (uint64_t)length << 56);
	v[2] ^= 0xff;
	mix(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
