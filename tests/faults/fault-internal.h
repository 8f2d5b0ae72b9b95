/* SPDX-License-Identifier: MIT */
/*
 * fault-internal.h - shared by the parts of fault.so: which call must fail, and how.
 * Hidden except for the plan, since the program may use the same names.
 */
#ifndef FAULT_INTERNAL_H
#define FAULT_INTERNAL_H

#include "fault.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct iovec;

/* In a wrapper: `real` is the function that it replaces. */
#define REAL(name)                                                                                 \
	static __typeof__(&name) real;                                                             \
	if (!real)                                                                                 \
	real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* The plan; NULL: nothing fails. library.c looks it up by name. */
extern struct fault_plan *fault_plan;

#pragma GCC visibility push(hidden)

extern __thread bool fault_inside; /* calls of this module, which never fail */

/* Returns whether an address is in GLib's code. */
bool fault_is_glib(uintptr_t address);

/* Returns 0, or the error with which this call, on a descriptor if that is not -1, must fail. */
int fault_met_on(enum fault_kind kind, int fd, size_t length);
int fault_met(enum fault_kind kind);

/* The same with errno set: positive, 0, or the way in which the call is modified. */
int fault_met_error_on(enum fault_kind kind, int fd, size_t length);
int fault_met_error(enum fault_kind kind);

/* Returns the length of a call, which is shorter if that is armed. */
size_t fault_cut(int error, int fd, size_t length);

/* The same for buffers: the first byte of the first non-empty one. */
const struct iovec *fault_cut_vector(int error, int fd, const struct iovec *vector, int *count,
				     struct iovec *one);

/* Detects whether submissions to a ring can be made to fail. */
void fault_probe_ring(void);

#pragma GCC visibility pop

#endif
