// SPDX-License-Identifier: GPL-2.0-only
/*
 * What counts against whom.
 *
 * Each page counts against RLIMIT_MEMLOCK of the process that opened the file
 * (also while it is pooled), and against the limit of the machine.  A holder
 * is charged too, so that a unit that outlives its maker is paid for.
 *
 * Pages come and go faster than mmap_lock can be had, so charging runs behind:
 * used is what ought to be charged; charged is never less, and the collector
 * brings it down.
 */
#include <linux/moduleparam.h>
#include <linux/sched/mm.h>

#include "nabc.h"

static unsigned int memory_limit;
module_param(memory_limit, uint, 0644);
MODULE_PARM_DESC(memory_limit, "MiB that all units may have; 0: a quarter of the memory");

static unsigned int pool_limit = 16;
module_param(pool_limit, uint, 0644);
MODULE_PARM_DESC(pool_limit, "MiB of destroyed units that a file keeps for its next ones");

static unsigned long limit_pages(void)
{
	unsigned int limit = READ_ONCE(memory_limit);

	return limit ? (unsigned long)limit << (20 - PAGE_SHIFT) : totalram_pages() / 4;
}

u64 nabc_limit_bytes(void)
{
	return (u64)limit_pages() << PAGE_SHIFT;
}

unsigned long nabc_pool_limit(void)
{
	return (unsigned long)READ_ONCE(pool_limit) << (20 - PAGE_SHIFT);
}

int nabc_limit_take(unsigned long pages)
{
	if (atomic_long_add_return(pages, &nabc_gauges.pages) <= limit_pages())
		return 0;
	nabc_limit_give(pages);
	return -ENOSPC;
}

void nabc_limit_give(unsigned long pages)
{
	atomic_long_sub(pages, &nabc_gauges.pages);
}

/* By the file's own process. */
int nabc_charge(struct nabc_file *file, unsigned long pages)
{
	unsigned long used;
	int ret = 0;

	mutex_lock(&file->charge_lock);
	used = atomic_long_read(&file->used) + pages;
	if (used > file->charged) {
		ret = account_locked_vm(file->mm, used - file->charged, true);
		if (!ret)
			file->charged = used;
	}
	if (!ret)
		atomic_long_add(pages, &file->used);
	mutex_unlock(&file->charge_lock);
	return ret;
}

/* Anywhere: takes no lock. */
void nabc_uncharge(struct nabc_file *file, unsigned long pages)
{
	atomic_long_sub(pages, &file->used);
}

/*
 * By the collector, which must not wait for one process's mmap_lock.  No
 * mapping is changed under it, so the sequence count of mmap_write_lock(), of
 * which newer kernels have no trylock, is not needed.
 */
void nabc_charge_trim(struct nabc_file *file)
{
	long spare;

	if (!mutex_trylock(&file->charge_lock))
		return;
	spare = file->charged - atomic_long_read(&file->used);
	if (spare > 0 && !file->charge_closed && down_write_trylock(&file->mm->mmap_lock)) {
		__account_locked_vm(file->mm, spare, false, current, true);
		up_write(&file->mm->mmap_lock);
		file->charged -= spare;
	}
	mutex_unlock(&file->charge_lock);
}

/* The file is closed: orphans of it are paid for by their holders alone. */
void nabc_charge_close(struct nabc_file *file)
{
	mutex_lock(&file->charge_lock);
	account_locked_vm(file->mm, file->charged, false);
	file->charged = 0;
	file->charge_closed = true;
	mutex_unlock(&file->charge_lock);
}
