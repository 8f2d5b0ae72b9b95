/* SPDX-License-Identifier: MIT */
/*
 * crc32c.c - CRC32C; see crc32c.h.
 *
 * Bit 31 of a word is the coefficient of x^0.  A CRC is the remainder of the data
 * as a polynomial, so appended bytes multiply it by a power of x: that power modulo
 * the polynomial is called an operator here.
 *
 * The CPU's instruction takes 8 bytes per cycle, but has a latency of 3 cycles:
 * three neighbouring lanes are processed at once and joined by operators.  No
 * state, any thread.
 */
#include <pthread.h>
#include <string.h>
#ifdef __x86_64__
#include <emmintrin.h>
#include <immintrin.h>
#include <nmmintrin.h>
#include <wmmintrin.h>
#endif

#include "base/crc32c.h"

#define POLYNOMIAL UINT32_C(0x82f63b78)
#define ONE UINT32_C(0x80000000)

/* x^(2^i); x^(2^31) is x again. */
static const uint32_t powers[31] = {
	0x40000000, 0x20000000, 0x08000000, 0x00800000, 0x00008000, 0x82f63b78, 0x6ea2d55c,
	0x18b8ea18, 0x510ac59a, 0xb82be955, 0xb8fdb1e7, 0x88e56f72, 0x74c360a4, 0xe4172b16,
	0x0d65762a, 0x35d73a62, 0x28461564, 0xbf455269, 0xe2ea32dc, 0xfe7740e6, 0xf946610b,
	0x3c204f8f, 0x538586e3, 0x59726915, 0x734d5309, 0xbc1ac763, 0x7d0722cc, 0xd289cabe,
	0xe94ca9bc, 0x05b74f3f, 0xa51e1f42,
};

static uint32_t multiply_plain(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (; a; a <<= 1) {
		product ^= a & ONE ? b : 0;
		b = b >> 1 ^ (b & 1 ? POLYNOMIAL : 0);
	}
	return product;
}

/* --- without CPU extensions --------------------------------------------------- */

/* table[n][byte]: the byte followed by n zero bytes. */
static uint32_t table[8][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void make_table(void)
{
	for (unsigned byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;

		for (unsigned n = 0; n < 8; n++) {
			for (unsigned bit = 0; bit < 8; bit++)
				crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
			table[n][byte] = crc;
		}
	}
}

uint32_t nc_crc32c_plain(uint32_t before, const void *data, size_t length)
{
	const unsigned char *at = data;
	uint32_t crc = ~before;

	pthread_once(&table_once, make_table);
	for (; length >= 8; length -= 8, at += 8)
		crc = table[7][at[0] ^ (crc & 0xff)] ^ table[6][at[1] ^ (crc >> 8 & 0xff)] ^
		      table[5][at[2] ^ (crc >> 16 & 0xff)] ^ table[4][at[3] ^ crc >> 24] ^
		      table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]] ^ table[0][at[7]];
	while (length--)
		crc = crc >> 8 ^ table[0][*at++ ^ (crc & 0xff)];
	return ~crc;
}

uint32_t nc_crc32c_add_plain(uint32_t a, uint32_t b, uint32_t length_of_b)
{
	return multiply_plain(a, length_of_b) ^ b;
}

/* --- with CPU extensions ------------------------------------------------------ */

#ifdef __x86_64__
#define CPU __attribute__((target("sse4.2,pclmul")))

static int has_cpu(void)
{
	return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

CPU static uint32_t multiply_cpu(uint32_t a, uint32_t b)
{
	uint64_t product = (uint64_t)_mm_cvtsi128_si64(
		_mm_clmulepi64_si128(_mm_cvtsi32_si128((int)a), _mm_cvtsi32_si128((int)b), 0));

	/* 63 bits; after the shift, its low half has powers higher by 32. */
	product <<= 1;
	return (uint32_t)(product >> 32) ^ _mm_crc32_u32(0, (uint32_t)product);
}

CPU static inline uint64_t step(uint64_t crc, const unsigned char *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return _mm_crc32_u64(crc, word);
}

/* Processes groups of three lanes of `lane` bytes each. */
CPU static inline __attribute__((always_inline)) uint32_t three_lanes(uint32_t crc,
								      const unsigned char **data,
								      size_t *length, size_t lane,
								      uint32_t once, uint32_t twice)
{
	while (*length >= 3 * lane) {
		const unsigned char *at = *data, *end = at + lane;
		uint64_t a = crc, b = 0, c = 0;

		for (; at < end; at += 8) {
			a = step(a, at);
			b = step(b, at + lane);
			c = step(c, at + 2 * lane);
		}
		crc = multiply_cpu((uint32_t)a, twice) ^ multiply_cpu((uint32_t)b, once) ^
		      (uint32_t)c;
		*data += 3 * lane;
		*length -= 3 * lane;
	}
	return crc;
}

CPU static uint32_t crc_cpu(uint32_t before, const unsigned char *at, size_t length)
{
	uint32_t crc = ~before;

	/* A page, a third of a packet, and small rests; with the operators of their lengths. */
	crc = three_lanes(crc, &at, &length, 1360, 0xd6a79573, 0x4672c7f2);
	crc = three_lanes(crc, &at, &length, 336, 0x7df9f615, 0x26b972a1);
	crc = three_lanes(crc, &at, &length, 64, 0xb82be955, 0xb8fdb1e7);
	for (; length >= 8; length -= 8, at += 8)
		crc = (uint32_t)step(crc, at);
	while (length--)
		crc = _mm_crc32_u8(crc, *at++);
	return ~crc;
}
#endif

/* --- either ------------------------------------------------------------------ */

static uint32_t multiply(uint32_t a, uint32_t b)
{
#ifdef __x86_64__
	if (has_cpu())
		return multiply_cpu(a, b);
#endif
	return multiply_plain(a, b);
}

uint32_t nc_crc32c(uint32_t before, const void *data, size_t length)
{
#ifdef __x86_64__
	if (has_cpu())
		return crc_cpu(before, data, length);
#endif
	return nc_crc32c_plain(before, data, length);
}

uint32_t nc_crc32c_operator(size_t length)
{
	uint32_t product = ONE;

	/* A byte is 8 powers, and powers repeat after 31 squarings. */
	for (unsigned i = 3; length; length >>= 1, i = i == 30 ? 0 : i + 1)
		if (length & 1)
			product = multiply(product, powers[i]);
	return product;
}

uint32_t nc_crc32c_add(uint32_t a, uint32_t b, uint32_t length_of_b)
{
	return multiply(a, length_of_b) ^ b;
}

uint32_t nc_crc32c_update(uint32_t crc, uint32_t before, uint32_t after, uint32_t behind)
{
	return crc ^ multiply(before ^ after, behind);
}
