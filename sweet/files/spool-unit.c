/* SPDX-License-Identifier: MIT */
/*
 * spool-unit.c - see spool-unit.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "files/spool-unit.h"

static void dropped(struct spool_op *op)
{
	struct spool_unit *unit = (struct spool_unit *)op;

	if (!unit->taken)
		(void)NC_free(&unit->handle);
	free(unit);
}

int spool_unit_read(struct spool *spool, uint64_t offset, size_t length, size_t fragment,
		    void (*done)(struct spool_op *op, int result), void *user)
{
	struct spool_unit *unit = calloc(1, sizeof(*unit));
	size_t run;
	int error;

	if (!unit)
		return -ENOMEM;
	if (NC_unit_alloc(NULL, &unit->handle, length, fragment, NC_KIND_RECYCLED,
			  NC_UNIT_UNSUMMED) < 0) {
		error = -errno;
		free(unit);
		return error;
	}
	unit->user = user;
	unit->bytes = (struct iovec){NC_fragment(&unit->handle, 0, &run), length};
	unit->op = (struct spool_op){
		.iov = &unit->bytes, .count = 1, .offset = offset, .done = done, .drop = dropped};
	error = unit->bytes.iov_base && run >= length ? spool_read(spool, &unit->op) : -ENOMEM;
	if (error)
		dropped(&unit->op);
	return error;
}
