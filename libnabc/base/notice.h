/* SPDX-License-Identifier: MIT */
/*
 * notice.h - what an operator should know: what is slower than it could be or
 * has run out, and what to raise.  Each thing is said once in a cache's life.
 */
#ifndef NC_NOTICE_H
#define NC_NOTICE_H

#include <stdatomic.h>

#include <nabc.h>

enum nc_notice {
	NC_NOTICE_URING,	 /* io_uring cannot be had */
	NC_NOTICE_SEALS,	 /* memfds cannot be sealed */
	NC_NOTICE_DESCRIPTORS,	 /* none left */
	NC_NOTICE_MEMLOCK,	 /* no memory may be pinned */
	NC_NOTICE_MAPPINGS,	 /* none left */
	NC_NOTICE_DEVICE,	 /* the kernel module is there, and cannot be used */
	NC_NOTICE_DEVICE_MEMORY, /* it has no more memory */
	NC_NOTICES,
};

struct nc_notices {
	NC_log log; /* NULL: nobody listens */
	void *context;
	_Atomic unsigned said; /* bits */
};

void nc_notices_init(struct nc_notices *notices, NC_log log, void *context);

/* Any thread; text as printf(3). */
void nc_notice(struct nc_notices *notices, enum nc_notice what, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The notice that an errno calls for, if any. */
void nc_notice_error(struct nc_notices *notices, int error);

#endif
