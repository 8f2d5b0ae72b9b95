/* SPDX-License-Identifier: MIT */
/*
 * diagnostics.h - reports to the operator what is slower than it could be or has run
 * out, and which limit to raise.  Each thing is reported once in a cache's life.
 */
#ifndef NC_DIAGNOSTICS_H
#define NC_DIAGNOSTICS_H

#include <stdatomic.h>

#include <nabc.h>

enum nc_diagnostic {
	NC_DIAGNOSTIC_URING,	     /* io_uring cannot be had */
	NC_DIAGNOSTIC_SEALS,	     /* memfds cannot be sealed */
	NC_DIAGNOSTIC_DESCRIPTORS,   /* none left */
	NC_DIAGNOSTIC_MEMLOCK,	     /* no memory may be pinned */
	NC_DIAGNOSTIC_MAPPINGS,	     /* none left */
	NC_DIAGNOSTIC_DEVICE,	     /* the kernel module is there, and cannot be used */
	NC_DIAGNOSTIC_DEVICE_MEMORY, /* it has no more memory */
	NC_DIAGNOSTIC_VERSION,	     /* a process speaks other versions of the protocol */
	NC_DIAGNOSTICS,
};

struct nc_diagnostics {
	NC_log log; /* NULL: nobody listens */
	void *context;
	_Atomic unsigned said; /* bits */
};

void nc_diagnostics_init(struct nc_diagnostics *diagnostics, NC_log log, void *context);

/* Any thread; text as printf(3). */
void nc_diagnostics_report(struct nc_diagnostics *diagnostics, enum nc_diagnostic what,
			   const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Reports what an errno calls for, if any. */
void nc_diagnostics_report_error(struct nc_diagnostics *diagnostics, int error);

#endif
