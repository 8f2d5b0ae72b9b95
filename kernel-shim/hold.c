// SPDX-License-Identifier: GPL-2.0-only
/*
 * Holds: units that a file keeps even if they are destroyed.
 *
 * The holder is charged for the unit like its maker, so that no user gets memory
 * beyond RLIMIT_MEMLOCK by passing units to another process and exiting.
 */
#include <linux/slab.h>

#include "nabc.h"

bool nabc_holds(const struct nabc_file *file, u64 id)
{
	return xa_load((struct xarray *)&file->holds, id);
}

/* The file's own units are charged already, as long as it is open. */
static unsigned long hold_pages(const struct nabc_file *file, const struct nabc_unit *unit)
{
	return unit->maker == file ? 0 : unit->pages;
}

static int hold_begin(struct nabc_file *file, struct nabc_unit *unit)
{
	struct nabc_hold *hold;
	int ret;

	hold = kmalloc(sizeof(*hold), GFP_KERNEL_ACCOUNT);
	if (!hold)
		return -ENOMEM;
	hold->unit = unit;
	hold->count = 1;
	ret = nabc_charge(file, hold_pages(file, unit));
	if (ret)
		goto out_free;
	mutex_lock(&unit->lock);
	if (unit->state != NABC_STATE_CACHED)
		ret = -ENOENT;
	else if (unit->holds == U32_MAX)
		ret = -ENOSPC;
	else
		ret = xa_insert(&file->holds, unit->id, hold, GFP_KERNEL_ACCOUNT);
	if (!ret)
		unit->holds++;
	mutex_unlock(&unit->lock);
	if (ret)
		goto out_uncharge;
	file->hold_count++;
	return 0;

out_uncharge:
	nabc_uncharge(file, hold_pages(file, unit));
out_free:
	kfree(hold);
	return ret;
}

int nabc_hold(struct nabc_file *file, u64 id)
{
	struct nabc_hold *hold;
	struct nabc_unit *unit;
	int ret = 0;

	mutex_lock(&file->holds_lock);
	hold = xa_load(&file->holds, id);
	if (hold) {
		if (hold->count == U32_MAX)
			ret = -ENOSPC;
		else
			hold->count++;
	} else {
		ret = nabc_access(file, id, NABC_RIGHT_SEND, &unit);
		if (!ret) {
			ret = hold_begin(file, unit);
			/* Otherwise the hold keeps the reference. */
			if (ret)
				nabc_unit_put(unit);
		}
	}
	mutex_unlock(&file->holds_lock);
	return ret;
}

static void hold_end(struct nabc_file *file, struct nabc_hold *hold)
{
	nabc_uncharge(file, hold_pages(file, hold->unit));
	file->hold_count--;
	nabc_unit_drop_hold(hold->unit);
	kfree(hold);
}

int nabc_release(struct nabc_file *file, u64 id)
{
	struct nabc_hold *hold;
	int ret = 0;

	mutex_lock(&file->holds_lock);
	hold = xa_load(&file->holds, id);
	if (!hold) {
		ret = -EINVAL;
	} else if (!--hold->count) {
		xa_erase(&file->holds, id);
		hold_end(file, hold);
	}
	mutex_unlock(&file->holds_lock);
	return ret;
}

/* Releases all holds when the file is closed. */
void nabc_holds_end(struct nabc_file *file)
{
	struct nabc_hold *hold;
	unsigned long id;

	mutex_lock(&file->holds_lock);
	xa_for_each(&file->holds, id, hold) {
		xa_erase(&file->holds, id);
		hold_end(file, hold);
	}
	mutex_unlock(&file->holds_lock);
}
