/* SPDX-License-Identifier: MIT */
/*
 * checksum.c - the Internet checksum, vectorised.
 *
 * A ones' complement sum may be computed in any order and in wider words, and
 * folded at the end (RFC 1071 section 2).  The AVX2 loop spends three instructions
 * on 32 bytes: it flips the top bit of each 16-bit word, which makes it a signed
 * word that is 0x8000 too small, lets the multiplier add neighbours, and adds these
 * to 32-bit lanes; what was subtracted is added again in one step.  Everything else
 * uses the compiler's vectors.  The CPU is queried at run time.  No state, any
 * thread.
 */
#include <string.h>
#ifdef __x86_64__
#include <emmintrin.h>
#include <immintrin.h>
#endif

#include "base/checksum.h"

/* Adds a word to itself with exchanged halves: the upper half is their sum, including the carry. */
static uint16_t fold(uint64_t sum)
{
	uint32_t half = (uint32_t)((sum + (sum << 32 | sum >> 32)) >> 32);

	return (uint16_t)((half + (half << 16 | half >> 16)) >> 16);
}

/* Bytes that 32-bit lanes can sum: they contain at most 2^30 then. */
#define RUN_MAX ((size_t)64 << 10)

static uint16_t swap(uint16_t sum)
{
	return (uint16_t)(sum << 8 | sum >> 8);
}

static uint64_t sum_word(uint64_t word)
{
	return (word & 0xffffffff) + (word >> 32);
}

typedef uint64_t lanes __attribute__((vector_size(16)));

static uint16_t sum_plain(const unsigned char *at, size_t length)
{
	lanes low = {0}, high = {0};
	uint64_t parts[2], word, sum;

	for (; length >= sizeof(lanes); length -= sizeof(lanes), at += sizeof(lanes)) {
		lanes words;

		memcpy(&words, at, sizeof(words));
		low += words & 0xffffffff;
		high += words >> 32;
	}
	low += high;
	memcpy(parts, &low, sizeof(low));
	sum = parts[0] + parts[1];
	while (length) {
		size_t now = length < sizeof(word) ? length : sizeof(word);

		word = 0;
		memcpy(&word, at, now);
		sum += sum_word(word);
		at += now;
		length -= now;
	}
	return fold(sum);
}

#ifdef __x86_64__
#define VECTOR sizeof(__m256i)
#define TURN (8 * VECTOR)

#define PAIRS(i)                                                                                   \
	_mm256_madd_epi16(_mm256_xor_si256(_mm256_loadu_si256((const __m256i *)at + (i)), flip),   \
			  ones)

/* length: at least a vector. */
__attribute__((target("avx2"))) static uint16_t sum_avx2(const unsigned char *at, size_t length)
{
	/* Both neighbours will be too small by the top bit. */
	__m256i a = _mm256_set1_epi32((int)(length / VECTOR * 0x10000));
	__m256i b = _mm256_setzero_si256(), all = _mm256_cmpeq_epi16(a, a), ones, flip;
	const unsigned char *end = at + length;
	uint64_t sum, word;
	__m128i half;

	/* Hides the value from the compiler, which would otherwise load constants from memory. */
	__asm__("" : "+x"(all));
	ones = _mm256_abs_epi16(all);
	flip = _mm256_slli_epi16(all, 15);
	for (const unsigned char *last = at + length / TURN * TURN; at < last; at += TURN) {
		a = _mm256_add_epi32(a, _mm256_add_epi32(PAIRS(0), PAIRS(1)));
		b = _mm256_add_epi32(b, _mm256_add_epi32(PAIRS(2), PAIRS(3)));
		a = _mm256_add_epi32(a, _mm256_add_epi32(PAIRS(4), PAIRS(5)));
		b = _mm256_add_epi32(b, _mm256_add_epi32(PAIRS(6), PAIRS(7)));
	}
	for (; (size_t)(end - at) >= VECTOR; at += VECTOR)
		a = _mm256_add_epi32(a, PAIRS(0));
	a = _mm256_add_epi32(a, b);
	half = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
	half = _mm_add_epi32(half, _mm_unpackhi_epi64(half, half));
	sum = (uint64_t)_mm_cvtsi128_si64(half);
	if (at == end)
		return fold(sum);
	sum = sum_word(sum);
	for (; (size_t)(end - at) >= sizeof(word); at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		sum += sum_word(word);
	}
	if (at < end) {
		/* The last 8 bytes, without those already summed. */
		memcpy(&word, end - sizeof(word), sizeof(word));
		sum += sum_word(word >> 8 * (sizeof(word) - (size_t)(end - at)));
	}
	return fold(sum);
}
#endif

/* length: at most RUN_MAX bytes. */
static inline uint16_t sum_run(const unsigned char *at, size_t length)
{
#ifdef __x86_64__
	if (length >= VECTOR && __builtin_cpu_supports("avx2"))
		return sum_avx2(at, length);
#endif
	return sum_plain(at, length);
}

static uint16_t sum_long(const unsigned char *at, size_t length)
{
	uint64_t sum = 0;

	for (; length > RUN_MAX; length -= RUN_MAX, at += RUN_MAX)
		sum += sum_run(at, RUN_MAX);
	return fold(sum + sum_run(at, length));
}

uint16_t nc_checksum(const void *data, size_t length)
{
	return length <= RUN_MAX ? sum_run(data, length) : sum_long(data, length);
}

uint16_t nc_checksum_plain(const void *data, size_t length)
{
	const unsigned char *at = data;
	uint64_t sum = 0;

	for (; length > RUN_MAX; length -= RUN_MAX, at += RUN_MAX)
		sum += sum_plain(at, RUN_MAX);
	return fold(sum + sum_plain(at, length));
}

uint16_t nc_checksum_add(uint16_t a, uint16_t b, int odd)
{
	/* After an odd number of bytes, the words of b are split the other way. */
	return fold((uint64_t)a + (odd ? swap(b) : b));
}

uint16_t nc_checksum_add_many(const uint16_t *parts, size_t count, int odd)
{
	uint64_t even_sum = 0, odd_sum = 0;

	if (!odd)
		return nc_checksum(parts, count * sizeof(*parts));
	for (size_t i = 0; i + 1 < count; i += 2) {
		even_sum += parts[i];
		odd_sum += parts[i + 1];
	}
	if (count % 2)
		even_sum += parts[count - 1];
	return nc_checksum_add(fold(even_sum), fold(odd_sum), 1);
}

uint16_t nc_checksum_update(uint16_t sum, uint16_t before, uint16_t after, int odd)
{
	uint16_t added = nc_checksum_add((uint16_t)~before, after, 0);

	return nc_checksum_add(sum, added, odd);
}
