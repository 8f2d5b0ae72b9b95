// SPDX-License-Identifier: GPL-2.0-only
/*
 * Accounting of memory.
 *
 * Each page counts against RLIMIT_MEMLOCK of the process that opened the file (also
 * while it is in the pool, or sockets refer to it), and against the machine's
 * limit, until it is no longer referenced (rule 5).  A holder is charged too, so
 * that a unit that outlives its maker is accounted for.
 *
 * A closed file can leave pages behind: units that linger, and pages that sockets
 * refer to.  Its process may be gone, so they are charged to the user who opened
 * it, and count against the limit of each process of that user: closing, exiting
 * and executing another program free no quota.  Pages that only holders keep are
 * excluded: the holders are charged for them.
 *
 * Pages are allocated and freed too often to take mmap_lock each time, so charging
 * is delayed: `used` is what should be charged; `charged` is never less, and the
 * collector reduces it.
 */
#include <linux/hashtable.h>
#include <linux/moduleparam.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

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

static DEFINE_HASHTABLE(users, 6);
static DEFINE_SPINLOCK(users_lock); /* protects users and their refs */

static struct nabc_user *user_find_locked(kuid_t uid)
{
	struct nabc_user *user;

	hash_for_each_possible(users, user, node, __kuid_val(uid)) {
		if (uid_eq(user->uid, uid))
			return user;
	}
	return NULL;
}

/* Returns the user of the calling process, with a reference, or NULL. */
struct nabc_user *nabc_user_get(void)
{
	struct nabc_user *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT), *user;

	if (!fresh)
		return NULL;
	fresh->uid = current_uid();
	spin_lock(&users_lock);
	user = user_find_locked(fresh->uid);
	if (!user) {
		user = fresh;
		fresh = NULL;
		hash_add(users, &user->node, __kuid_val(user->uid));
	}
	user->refs++;
	spin_unlock(&users_lock);
	kfree(fresh);
	return user;
}

void nabc_user_put(struct nabc_user *user)
{
	bool last;

	spin_lock(&users_lock);
	last = !--user->refs;
	if (last)
		hash_del(&user->node);
	spin_unlock(&users_lock);
	if (!last)
		return;
	WARN_ON_ONCE(atomic_long_read(&user->left));
	kfree(user);
}

/* Like account_locked_vm(), plus the pages that its user left behind. */
static int process_charge(struct nabc_file *file, unsigned long pages)
{
	unsigned long left = atomic_long_read(&file->user->left);
	bool unlimited = capable(CAP_IPC_LOCK);
	int ret = -ENOMEM;

	mmap_write_lock(file->mm);
	if (unlimited || file->mm->locked_vm + left + pages <= rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT)
		ret = __account_locked_vm(file->mm, pages, true, current, unlimited);
	mmap_write_unlock(file->mm);
	return ret;
}

/* Called by the file's own process. */
int nabc_charge(struct nabc_file *file, unsigned long pages)
{
	unsigned long used;
	int ret = 0;

	mutex_lock(&file->charge_lock);
	/* `used` grows only under charge_lock. */
	used = READ_ONCE(file->used) + pages;
	if (used > file->charged) {
		ret = process_charge(file, used - file->charged);
		if (!ret)
			file->charged = used;
	}
	if (!ret) {
		spin_lock(&file->used_lock);
		file->used += pages;
		spin_unlock(&file->used_lock);
	}
	mutex_unlock(&file->charge_lock);
	return ret;
}

/* Can be called anywhere: takes no sleeping lock. */
void nabc_uncharge(struct nabc_file *file, unsigned long pages)
{
	spin_lock(&file->used_lock);
	file->used -= pages;
	if (file->charge_closed)
		atomic_long_sub(pages, &file->user->left);
	spin_unlock(&file->used_lock);
}

/*
 * Called when a unit is destroyed but has holders: after the close of the file only
 * they are charged.
 */
void nabc_charge_holders(struct nabc_file *file, unsigned long pages)
{
	spin_lock(&file->used_lock);
	file->held += pages;
	if (file->charge_closed)
		atomic_long_sub(pages, &file->user->left);
	spin_unlock(&file->used_lock);
}

/*
 * Called when the last hold is released; pages that sockets refer to are charged to
 * the maker again.
 */
void nabc_charge_maker(struct nabc_file *file, unsigned long pages)
{
	spin_lock(&file->used_lock);
	file->held -= pages;
	if (file->charge_closed)
		atomic_long_add(pages, &file->user->left);
	spin_unlock(&file->used_lock);
}

/*
 * Called by the collector, which must not wait for a process's mmap_lock.  It
 * changes no mapping, so it does not need the sequence count of mmap_write_lock(),
 * for which newer kernels have no trylock.
 */
void nabc_charge_trim(struct nabc_file *file)
{
	long spare;

	if (!mutex_trylock(&file->charge_lock))
		return;
	spare = file->charged - READ_ONCE(file->used);
	if (spare > 0 && !file->charge_closed && down_write_trylock(&file->mm->mmap_lock)) {
		__account_locked_vm(file->mm, spare, false, current, true);
		up_write(&file->mm->mmap_lock);
		file->charged -= spare;
	}
	mutex_unlock(&file->charge_lock);
}

/* Charges what is left of a closed file to its user. */
void nabc_charge_close(struct nabc_file *file)
{
	mutex_lock(&file->charge_lock);
	spin_lock(&file->used_lock);
	file->charge_closed = true;
	atomic_long_add(file->used - file->held, &file->user->left);
	spin_unlock(&file->used_lock);
	account_locked_vm(file->mm, file->charged, false);
	file->charged = 0;
	mutex_unlock(&file->charge_lock);
}
