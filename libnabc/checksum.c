/* SPDX-License-Identifier: MIT */
/*
 * checksum.c - the Internet checksum, vectorised.
 *
 * A ones' complement sum may be taken in wider words and folded at the end
 * (RFC 1071 section 2), so 32-bit words are added into 64-bit lanes.  The
 * loop is written with the compiler's vectors and built twice; the CPU is
 * asked at run time.  Pure, any thread.
 */
#include <string.h>

#include "checksum.h"

typedef uint64_t lanes __attribute__((vector_size(32)));

static uint16_t fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/*
 * Sums whole blocks of 64 bytes.  A lane grows by less than 2^33 a block, so
 * 2^30 blocks (64 GiB) cannot overflow it; callers pass less at a time.
 */
#define SUM_BLOCKS(name, attribute)                                                                \
	attribute static uint64_t name(const unsigned char *at, size_t blocks)                     \
	{                                                                                          \
		lanes low = {0}, high = {0};                                                       \
                                                                                                   \
		while (blocks--) {                                                                 \
			lanes a, b;                                                                \
                                                                                                   \
			memcpy(&a, at, sizeof(a));                                                 \
			memcpy(&b, at + sizeof(a), sizeof(b));                                     \
			low += (a & 0xffffffff) + (b & 0xffffffff);                                \
			high += (a >> 32) + (b >> 32);                                             \
			at += 2 * sizeof(lanes);                                                   \
		}                                                                                  \
		return (uint64_t)fold(low[0]) + fold(low[1]) + fold(low[2]) + fold(low[3]) +       \
		       fold(high[0]) + fold(high[1]) + fold(high[2]) + fold(high[3]);              \
	}

SUM_BLOCKS(sum_blocks, )
#ifdef __x86_64__
SUM_BLOCKS(sum_blocks_avx2, __attribute__((target("avx2"))))
#endif

static uint64_t sum_whole(const unsigned char *at, size_t blocks)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2"))
		return sum_blocks_avx2(at, blocks);
#endif
	return sum_blocks(at, blocks);
}

uint16_t nc_checksum(const void *data, size_t length)
{
	const unsigned char *at = data;
	size_t blocks = length / 64;
	unsigned char tail[64] = {0};
	uint64_t sum = 0;

	while (blocks) {
		size_t now = blocks < 1u << 24 ? blocks : 1u << 24;

		sum += sum_whole(at, now);
		at += now * 64;
		blocks -= now;
	}
	if (length % 64) {
		memcpy(tail, at, length % 64);
		sum += sum_whole(tail, 1);
	}
	return fold(sum);
}

uint16_t nc_checksum_add(uint16_t a, uint16_t b, int odd)
{
	/* Behind an odd byte the words of b are split the other way. */
	if (odd)
		b = (uint16_t)(b << 8 | b >> 8);
	return fold((uint64_t)a + b);
}
