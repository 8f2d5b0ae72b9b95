/* SPDX-License-Identifier: MIT */
/*
 * content.h - bytes that identify themselves: their document, its version and their
 * offset.  Each word of 8 bytes is a scrambled number that can be unscrambled.
 * Therefore one complete word of a response shows which version all the others must
 * have.  Pure.
 *
 * Also the shared memory in which the process that changes files tells its clients
 * what it has done.
 */
#ifndef CONTENT_H
#define CONTENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Documents are identified by a letter, with which their paths begin, and a number. */
enum content_kind {
	CONTENT_STEADY = 's',  /* files that never change */
	CONTENT_RENAMED = 'r', /* files that others are renamed over */
	CONTENT_WRITTEN = 'w', /* files that are written in place */
	CONTENT_ONCE = 'o',    /* pages of a worker, made for one response ... */
	CONTENT_KEPT = 'k',    /* ... kept by it, and destroyed at any time ... */
	CONTENT_PARTS = 'l',   /* ... in several units, of which some stay ... */
	CONTENT_PIECES = 'p',  /* ... in pieces, one after the other ... */
	CONTENT_CACHED = 'c',  /* ... which the server caches */
	CONTENT_CGI = 'g',     /* pages of CGI programs, sealed, or through a pipe */
};

#define CONTENT_WORKER_KINDS "oklpcg"
#define CONTENT_FILE_KINDS "srw"
#define CONTENT_DOCUMENTS 96u /* of each kind */
#define CONTENT_FIRST 1u      /* version of each file, and the only one of those that are steady */
#define CONTENT_PAGE_MAX ((size_t)300000)
#define CONTENT_WRITTEN_MAX ((size_t)64 << 10) /* one write puts it in place */

static inline uint64_t content_scramble(uint64_t word)
{
	word ^= word >> 30;
	word *= UINT64_C(0xbf58476d1ce4e5b9);
	word ^= word >> 27;
	word *= UINT64_C(0x94d049bb133111eb);
	return word ^ word >> 31;
}

/*
 * Returns the next number of those that begin with a state (splitmix64).  Numbers from different
 * states differ from the first one on, however near the states are.
 */
static inline uint64_t content_next(uint64_t *state)
{
	return content_scramble(*state += UINT64_C(0x9e3779b97f4a7c15));
}

/* The factors are the inverses of those of content_scramble(), modulo 2^64. */
static inline uint64_t content_unscramble(uint64_t word)
{
	word ^= word >> 31 ^ word >> 62;
	word *= UINT64_C(0x319642b2d24d8ec3);
	word ^= word >> 27 ^ word >> 54;
	word *= UINT64_C(0x96de1b173f119089);
	return word ^ word >> 30 ^ word >> 60;
}

/* Returns the key that scrambles the numbers of a document. */
static inline uint64_t content_key(char kind, unsigned number)
{
	return content_scramble((uint64_t)(unsigned char)kind << 32 | (number + 1));
}

static inline uint64_t content_word(uint64_t key, uint32_t version, uint64_t place)
{
	return content_scramble(key ^ ((uint64_t)version << 32 | place));
}

/* Finds the version that has such a word at that offset.  Returns false if there is none. */
static inline bool content_version(uint64_t key, uint64_t word, uint64_t place, uint32_t *version)
{
	uint64_t number = content_unscramble(word) ^ key;

	*version = (uint32_t)(number >> 32);
	return (uint32_t)number == place;
}

/* Writes the bytes from an offset on. */
static inline void content_fill(uint64_t key, uint32_t version, size_t offset, void *bytes,
				size_t length)
{
	char *at = bytes, *end = at + length;

	while (at < end) {
		uint64_t word = content_word(key, version, offset / 8);
		size_t skip = offset % 8, part = 8 - skip;

		if (part > (size_t)(end - at))
			part = (size_t)(end - at);
		memcpy(at, (char *)&word + skip, part);
		at += part;
		offset += part;
	}
}

/* Returns how many of the bytes from an offset on belong to the version. */
static inline size_t content_match(uint64_t key, uint32_t version, size_t offset, const void *bytes,
				   size_t length)
{
	const char *start = bytes, *at = start, *end = at + length;

	while (at < end) {
		uint64_t word = content_word(key, version, offset / 8);
		size_t skip = offset % 8, part = 8 - skip;

		if (part > (size_t)(end - at))
			part = (size_t)(end - at);
		if (memcmp(at, (char *)&word + skip, part) != 0) {
			while (*at == ((char *)&word)[skip]) {
				at++;
				skip++;
			}
			break;
		}
		at += part;
		offset += part;
	}
	return (size_t)(at - start);
}

/* Returns the length of a version. */
static inline size_t content_size(char kind, unsigned number, uint32_t version)
{
	static const size_t sizes[] = {0,      1,	7,	 8,	  100,	   1000,
				       4000,   4096,	4097,	 10000,	  16384,   30000,
				       65536,  65537,	100000,	 131072,  200000,  300000,
				       500000, 1000000, 1 << 20, 1500000, 2500000, 5000000};
	size_t size = sizes[number % (sizeof(sizes) / sizeof(sizes[0]))];

	switch (kind) {
	case CONTENT_STEADY:
		return size;
	case CONTENT_WRITTEN:
		/* Except every 24th, which is too large for the cache. */
		return size <= CONTENT_WRITTEN_MAX || size == 5000000 ? size : size % 60000 + 1;
	case CONTENT_RENAMED:
		return size + content_scramble(version) % (size / 8 + 3);
	default:
		/* At least a word, which shows the version. */
		return 8 + (size <= CONTENT_PAGE_MAX ? size : size / 16) +
		       content_scramble(version) % (size / 8 + 3);
	}
}

/* Returns any document; each third time one of a few, whose changes are mostly noticed. */
static inline unsigned content_draw(uint64_t random)
{
	if (random % 3)
		return (unsigned)(random >> 8) % CONTENT_DOCUMENTS;
	return ((unsigned)(random >> 8) % 6 * 13 + 9) % CONTENT_DOCUMENTS;
}

/* The states of a file: each version from `least` to `most` is possible now. */
struct content_state {
	_Atomic uint32_t least, most;
};

struct content_board {
	_Atomic uint64_t changes;
	struct content_state states[3][CONTENT_DOCUMENTS]; /* as in CONTENT_FILE_KINDS */
};

/* Returns NULL if it is not a kind of file. */
static inline struct content_state *content_state(struct content_board *board, char kind,
						  unsigned number)
{
	const char *found = strchr(CONTENT_FILE_KINDS, kind);

	return found ? &board->states[found - CONTENT_FILE_KINDS][number] : NULL;
}

#endif
