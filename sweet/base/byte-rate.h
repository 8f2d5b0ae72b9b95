/* SPDX-License-Identifier: MIT */
/*
 * byte-rate.h - limits how many bytes a second are taken from a program that may write without end.
 * The caller has the clock, and waits for BYTE_RATE_MS, always the same: timers prefer that.
 */
#ifndef SWEET_BYTE_RATE_H
#define SWEET_BYTE_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BYTE_RATE_MS 1000u

/* All zero: nothing was taken yet. */
struct byte_rate {
	uint64_t since_ms; /* when the period began */
	size_t bytes;	   /* taken in it */
};

/* Bytes were taken.  Returns true if they are enough: the next are for after a pause. */
static inline bool byte_rate_take(struct byte_rate *rate, size_t bytes, size_t most,
				  uint64_t now_ms)
{
	if (now_ms - rate->since_ms >= BYTE_RATE_MS)
		*rate = (struct byte_rate){.since_ms = now_ms};
	rate->bytes += bytes;
	return rate->bytes >= most;
}

#endif
