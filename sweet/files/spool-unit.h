/* SPDX-License-Identifier: MIT */
/*
 * spool-unit.h - a unit of one fragment, filled from a spool (spool.h).
 */
#ifndef SWEET_SPOOL_UNIT_H
#define SWEET_SPOOL_UNIT_H

#include <nabc.h>

#include "files/spool.h"

struct spool_unit {
	struct spool_op op; /* must be first: done() receives it */
	void *user;
	struct iovec bytes;
	NC_handle handle; /* not inserted; done() may take it, and then sets taken */
	bool taken;
};

/*
 * Reads length bytes from offset into a new unit whose fragments have fragment
 * bytes, at least length.  Returns 0, and done() follows as for spool_read(); or
 * -errno.
 */
int spool_unit_read(struct spool *spool, uint64_t offset, size_t length, size_t fragment,
		    void (*done)(struct spool_op *op, int result), void *user);

#endif
