/* SPDX-License-Identifier: MIT */
/*
 * pin.h - locks the memory of a cache, so that it is not swapped out, and counts what
 * is locked.
 *
 * segment.c calls this for each segment that nc_segment_pin() names.  If the system
 * refuses (RLIMIT_MEMLOCK), the memory is used without a lock, and one message
 * says so; each later segment tries again.
 */
#ifndef NC_PIN_H
#define NC_PIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nc_diagnostics;

/* One way to lock memory; a table of them ends with an empty name. */
struct nc_pin_method {
	const char *name; /* of the system call */
	/*
	 * Locks whole pages.  filled: all of them contain data, so they become present
	 * now; otherwise each is locked when it is first used, if the method can.
	 * Returns 0; -ENOSYS: try the next method; or -errno, and nothing is locked.
	 */
	int (*lock)(void *base, size_t size, bool filled);
};

/* mlock2(2), and mlock(2) for kernels without it. */
extern const struct nc_pin_method nc_pin_methods[];

struct nc_pin {
	const struct nc_pin_method *methods;
	struct nc_diagnostics *diagnostics;
	size_t member_quota;	 /* bytes of memory of a member, beside its segment */
	_Atomic size_t expected; /* bytes that may become locked: of the owner, and of members */
	_Atomic uint64_t locked, unlocked; /* bytes; unlocked: refused by the system */
};

/* memory: limit of the owner's bytes.  The diagnostics must outlive the pin. */
void nc_pin_init(struct nc_pin *pin, const struct nc_pin_method *methods,
		 struct nc_diagnostics *diagnostics, size_t memory, size_t member_quota);

/* A member with a segment of that size comes and goes; only for the figure in the report. */
void nc_pin_expect_member(struct nc_pin *pin, size_t size);
void nc_pin_forget_member(struct nc_pin *pin, size_t size);

/*
 * Locks memory and counts it; reports it if it cannot be locked.  May block until
 * pages are read from swap, if filled is set.  Any thread.  Returns whether it is
 * locked.
 */
bool nc_pin_lock(struct nc_pin *pin, void *base, size_t size, bool filled);

/*
 * Locks memory that is already counted, after another mapping replaced the locked one;
 * locked: the earlier result.
 */
bool nc_pin_lock_again(struct nc_pin *pin, void *base, size_t size, bool locked);

/* The memory was unmapped, which also unlocked it: counts it no longer. */
void nc_pin_closed(struct nc_pin *pin, size_t size, bool locked);

#endif
