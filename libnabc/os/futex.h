/* SPDX-License-Identifier: MIT */
/*
 * futex.h - threads that wait until a word changes: of this process, for a half of a 64-bit word;
 * of any process that maps it, for a word of 32 bits.
 */
#ifndef NC_FUTEX_H
#define NC_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline uint32_t *nc_futex_high(_Atomic uint64_t *word)
{
	return (uint32_t *)(void *)word + (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 1 : 0);
}

/* Sleeps while the high half has that value, until a wake or that many nanoseconds have passed. */
static inline void nc_futex_wait_high(_Atomic uint64_t *word, uint32_t value, long most_ns)
{
	struct timespec most = {.tv_nsec = most_ns};

	(void)syscall(SYS_futex, nc_futex_high(word), FUTEX_WAIT_PRIVATE, value, &most, NULL, 0);
}

static inline void nc_futex_wait_shared(_Atomic uint32_t *word, uint32_t value, uint64_t most_ns)
{
	struct timespec most = {.tv_sec = (time_t)(most_ns / 1000000000u),
				.tv_nsec = (long)(most_ns % 1000000000u)};

	(void)syscall(SYS_futex, (uint32_t *)(void *)word, FUTEX_WAIT, value, &most, NULL, 0);
}

static inline void nc_futex_wake_shared(_Atomic uint32_t *word)
{
	(void)syscall(SYS_futex, (uint32_t *)(void *)word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static inline void nc_futex_wake_high(_Atomic uint64_t *word)
{
	(void)syscall(SYS_futex, nc_futex_high(word), FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

#endif
