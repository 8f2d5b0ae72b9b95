/* SPDX-License-Identifier: MIT */
/*
 * fault-internal.h - what the parts of fault.so share: which call is to fail, and how.
 * Hidden but for the plan, since the program may have names of its own like them.
 */
#ifndef FAULT_INTERNAL_H
#define FAULT_INTERNAL_H

#include "fault.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

/* In a wrapper: `real` is the function that it stands before. */
#define REAL(name)                                                                                 \
	static __typeof__(&name) real;                                                             \
	if (!real)                                                                                 \
	real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* The plan; NULL: nothing fails.  library.c finds it by its name. */
extern struct fault_plan *fault_plan;

#pragma GCC visibility push(hidden)

extern __thread bool fault_inside; /* calls of this module, which never fail */

/* Whether an address is in GLib's code. */
bool fault_is_glib(uintptr_t address);

/* 0, or the error with which this call, of a descriptor if that is not -1, is to fail. */
int fault_met_on(enum fault_kind kind, int fd, size_t length);
int fault_met(enum fault_kind kind);

/* The same with errno set: more than 0, 0, or how the call is to be maimed. */
int fault_met_error_on(enum fault_kind kind, int fd, size_t length);
int fault_met_error(enum fault_kind kind);

/* The length of a call, of which there is less if that is armed. */
size_t fault_cut(int error, int fd, size_t length);

/* The same of buffers: the first byte of the first that is not empty. */
const struct iovec *fault_cut_vector(int error, int fd, const struct iovec *vector, int *count,
				     struct iovec *one);

/* Finds out whether submissions to a ring can be made to fail. */
void fault_probe_ring(void);

#pragma GCC visibility pop

#endif
