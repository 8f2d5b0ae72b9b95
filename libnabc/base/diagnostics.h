/* SPDX-License-Identifier: MIT */
/*
 * diagnostics.h - reports to the operator which fast path is unavailable or which
 * resource is exhausted, and which limit to raise.  Each is reported once per
 * cache.
 */
#ifndef NC_DIAGNOSTICS_H
#define NC_DIAGNOSTICS_H

#include <stdatomic.h>

#include <nabc.h>

enum nc_diagnostic {
	NC_DIAGNOSTIC_URING,	     /* io_uring is unavailable */
	NC_DIAGNOSTIC_SEALS,	     /* memfds cannot be sealed */
	NC_DIAGNOSTIC_DESCRIPTORS,   /* descriptors are exhausted */
	NC_DIAGNOSTIC_FILE_SIZE,     /* RLIMIT_FSIZE is less than a segment */
	NC_DIAGNOSTIC_MEMLOCK,	     /* no memory may be locked */
	NC_DIAGNOSTIC_PIN,	     /* memory that should be locked is not */
	NC_DIAGNOSTIC_MAPPINGS,	     /* mappings are exhausted */
	NC_DIAGNOSTIC_DEVICE,	     /* the kernel module exists, but cannot be used */
	NC_DIAGNOSTIC_DEVICE_MEMORY, /* its memory is exhausted */
	NC_DIAGNOSTIC_VERSION,	     /* a process speaks other versions of the protocol */
	NC_DIAGNOSTIC_REGISTER,	     /* the kernel does not register memory with io_uring */
	NC_DIAGNOSTIC_PINS,	     /* no more memory may be registered */
	NC_DIAGNOSTICS,
};

struct nc_diagnostics {
	NC_log log; /* NULL: no reports */
	void *context;
	_Atomic unsigned said; /* bits of those reported */
};

void nc_diagnostics_init(struct nc_diagnostics *diagnostics, NC_log log, void *context);

/* Any thread; text as printf(3). */
void nc_diagnostics_report(struct nc_diagnostics *diagnostics, enum nc_diagnostic what,
			   const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Reports each time, for what concerns one process of many.  Any thread. */
void nc_diagnostics_warn(const struct nc_diagnostics *diagnostics, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Reports what an errno means for the operator, if anything. */
void nc_diagnostics_report_error(struct nc_diagnostics *diagnostics, int error);

#endif
