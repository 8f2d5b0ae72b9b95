/* SPDX-License-Identifier: MIT */
/*
 * kernel.h - the method by which the kernel module sends its units, with the
 * preceding header, in one call.
 */
#ifndef NC_KERNEL_H
#define NC_KERNEL_H

#include <stdbool.h>
#include <sys/types.h>

#include "send/method.h"
#include "store/store.h"
#include "store/unit.h"

struct nc_message;

extern const struct nc_method nc_kernel_method;

/* Whether the module can send the unit. */
static inline bool nc_kernel_has(const struct nc_unit *unit)
{
	return unit->store->device;
}

/* What one call offered, and its result. */
struct nc_kernel_step {
	size_t offered; /* bytes */
	bool closed;	/* all bytes were sent, and the FIN */
};

/* Whether the module can send the next part of the message. */
bool nc_kernel_next(const struct nc_message *message);

/*
 * Sends from the message's current position to the end of the module's consecutive
 * units; only if nc_kernel_next() returned true.  flags: NC_SEND_DONTWAIT, NC_DEVICE_SUMS.
 * Returns the bytes that the socket took, -EOPNOTSUPP if it is not plain TCP, or errors of
 * send(2).
 */
ssize_t nc_kernel_send(const struct nc_message *message, int socket, unsigned flags,
		       struct nc_kernel_step *step);

#endif
