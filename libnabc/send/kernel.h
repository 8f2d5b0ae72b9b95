/* SPDX-License-Identifier: MIT */
/*
 * kernel.h - the method by which the kernel module sends units that lie in it,
 * with the header before them, in one call.
 */
#ifndef NC_KERNEL_H
#define NC_KERNEL_H

#include "send/method.h"

extern const struct nc_method nc_kernel_method;

/* Whether the unit is one that the module can send. */
static inline bool nc_kernel_has(const struct nc_unit *unit)
{
	return unit->store->device;
}

/* What one call offered, and what came of it. */
struct nc_kernel_step {
	size_t offered; /* bytes */
	bool closed;	/* all went, and the end of the stream with it */
};

/* Whether the module can go on with the message from where it is. */
bool nc_kernel_next(const struct nc_message *message);

/*
 * Sends from where the message is to the end of the module's units in a row,
 * which nc_kernel_next() said there are.  flags: NC_SEND_DONTWAIT.  Bytes that
 * the socket took; -EOPNOTSUPP: it is not plain TCP; errors of send(2).
 */
ssize_t nc_kernel_send(const struct nc_message *message, int socket, unsigned flags,
		       struct nc_kernel_step *step);

#endif
