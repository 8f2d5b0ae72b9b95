/* SPDX-License-Identifier: MIT */
/*
 * scan.h - finds the end of a run of bytes of one class (syntax.h), sixteen bytes
 * at a time with the compiler's vectors.
 *
 * The vector tests accept only the most common bytes of a class; the table tests
 * the other bytes, and those just before the end.  A byte before end must end every
 * run, as the newline after a head does, except for scan_all().
 */
#ifndef SWEET_SCAN_H
#define SWEET_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"
#include "base/syntax.h"

#define SCAN_WIDTH 16

typedef uint8_t scan_bytes __attribute__((vector_size(SCAN_WIDTH)));

static inline scan_bytes scan_load(const char *at)
{
	scan_bytes bytes;

	memcpy(&bytes, at, sizeof(bytes));
	return bytes;
}

static inline unsigned scan_first_in(uint64_t half)
{
	/* The first byte in memory is the least significant, or the most significant. */
	return (unsigned)(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_ctzll(half)
								    : __builtin_clzll(half)) /
	       8;
}

/* Returns the index of the first byte that is not 0; SCAN_WIDTH if there is none. */
static inline unsigned scan_first(scan_bytes mask)
{
	uint64_t halves[2];

	memcpy(halves, &mask, sizeof(halves));
	if (halves[0])
		return scan_first_in(halves[0]);
	return halves[1] ? 8 + scan_first_in(halves[1]) : SCAN_WIDTH;
}

/* SYNTAX_VALUE: all bytes but control characters; the table tests tabs. */
static inline scan_bytes scan_not_value(scan_bytes bytes)
{
	return (scan_bytes)(bytes < 0x20) | (scan_bytes)(bytes == 0x7f);
}

/* SYNTAX_TARGET: visible ASCII but '#'. */
static inline scan_bytes scan_not_target(scan_bytes bytes)
{
	return (scan_bytes)(bytes - 0x21 > 0x7e - 0x21) | (scan_bytes)(bytes == '#');
}

/* The common part of SYNTAX_TOKEN: letters and '-', as in field names. */
static inline scan_bytes scan_not_name(scan_bytes bytes)
{
	return (scan_bytes)((bytes | 0x20) - 'a' > 'z' - 'a') & (scan_bytes)(bytes != '-');
}

static inline const char *scan_end(const char *at, const char *end, unsigned syntax_class,
				   scan_bytes (*is_not)(scan_bytes bytes))
{
	unsigned run = SCAN_WIDTH;

	for (; run == SCAN_WIDTH && end - at >= SCAN_WIDTH; at += run)
		run = scan_first(is_not(scan_load(at)));
	while (syntax_is(*at, syntax_class))
		at++;
	return at;
}

/*
 * Whether the run has all bytes of the text, of which none needs to end it; memory behind it, before
 * end, may be read.
 */
static inline bool scan_all(struct slice text, const char *end, unsigned syntax_class,
			    scan_bytes (*is_not)(scan_bytes bytes))
{
	const char *at = text.at, *stop = text.at + text.length;
	unsigned run = SCAN_WIDTH;

	for (; run == SCAN_WIDTH && at < stop && end - at >= SCAN_WIDTH; at += run)
		run = scan_first(is_not(scan_load(at)));
	while (at < stop && syntax_is(*at, syntax_class))
		at++;
	return at >= stop;
}

static inline const char *scan_value(const char *at, const char *end)
{
	return scan_end(at, end, SYNTAX_VALUE, scan_not_value);
}

static inline const char *scan_target(const char *at, const char *end)
{
	return scan_end(at, end, SYNTAX_TARGET, scan_not_target);
}

static inline const char *scan_token(const char *at, const char *end)
{
	return scan_end(at, end, SYNTAX_TOKEN, scan_not_name);
}

#endif
