// SPDX-License-Identifier: GPL-2.0-only
/*
 * Creates a unit from user memory in one call.
 *
 * Mapping a small unit, faulting it in and unmapping it at the insert costs more
 * than copying its bytes.  So they are copied into pages that never were in the
 * arena.  The unit is unknown to others until it is complete: then it enters the
 * table, which is the only step that others see.
 */
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "nabc.h"

static int put_bytes(struct nabc_unit *unit, const char __user *from)
{
	u64 left = unit->size;
	unsigned int i;

	for (i = 0; i < unit->chunk_count; i++) {
		size_t part = min_t(u64, left, NABC_CHUNK_SIZE);

		/* 64 bits: all memory is mapped, and a chunk is contiguous. */
		if (copy_from_user(page_address(unit->chunks[i]->page), from, part))
			return -EFAULT;
		from += part;
		left -= part;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

static int put_check(const struct nabc_put *call)
{
	if (!call->size || call->flags & ~NABC_INSERT_SUMS || call->linger > NABC_LINGER_MAX ||
	    call->reserved)
		return -EINVAL;
	if (call->size > NABC_UNIT_MAX)
		return -EFBIG;
	if (!call->principal)
		return call->who || call->rights ? -EINVAL : 0;
	return nabc_rights_valid(call->rights) ? 0 : -EINVAL;
}

int nabc_put(struct nabc_file *file, struct nabc_put *call)
{
	struct nabc_unit *unit;
	int ret;

	ret = put_check(call);
	if (ret)
		return ret;
	unit = nabc_unit_new(file, call->size);
	if (IS_ERR(unit))
		return PTR_ERR(unit);
	ret = put_bytes(unit, u64_to_user_ptr(call->data));
	if (!ret && call->principal)
		ret = nabc_grant_first(unit, call->principal, call->who, call->rights);
	if (ret)
		goto out;
	unit->state = NABC_STATE_CACHED;
	unit->linger = call->linger;
	ret = nabc_unit_publish(unit);
	if (ret)
		goto out;
	call->id = unit->id;
	nabc_count(NABC_INSERTED, 1);
	/* Without kept checksums, they are computed when the bytes are sent. */
	if (call->flags & NABC_INSERT_SUMS)
		nabc_sums_make(unit);
out:
	nabc_unit_put(unit);
	return ret;
}
