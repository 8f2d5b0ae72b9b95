// SPDX-License-Identifier: GPL-2.0-only
/*
 * What counts against whom.
 *
 * Each page counts against RLIMIT_MEMLOCK of the process that opened the file
 * (also while it is pooled, or sockets refer to it), and against the limit of
 * the machine, until nobody refers to it (rule 5).  A holder is charged too, so
 * that a unit that outlives its maker is paid for.
 *
 * A file that is closed can leave pages behind: units that linger, and what
 * sockets refer to.  Its process may be gone, so they are charged to the user
 * who opened it, and count against the limit of each process of that user: to
 * close, to exit and to execute another program makes no room.  What holders
 * alone keep is not among them: those who hold it pay.
 *
 * Pages come and go faster than mmap_lock can be had, so charging runs behind:
 * used is what ought to be charged; charged is never less, and the collector
 * brings it down.
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
static DEFINE_SPINLOCK(users_lock); /* of users and their refs */

static struct nabc_user *user_find_locked(kuid_t uid)
{
	struct nabc_user *user;

	hash_for_each_possible(users, user, node, __kuid_val(uid)) {
		if (uid_eq(user->uid, uid))
			return user;
	}
	return NULL;
}

/* The user of the calling process, referenced, or NULL. */
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

/* As account_locked_vm(), to which the pages that its user left behind count. */
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

/* By the file's own process. */
int nabc_charge(struct nabc_file *file, unsigned long pages)
{
	unsigned long used;
	int ret = 0;

	mutex_lock(&file->charge_lock);
	/* What is used grows under charge_lock only. */
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

/* Anywhere: no lock that sleeps. */
void nabc_uncharge(struct nabc_file *file, unsigned long pages)
{
	spin_lock(&file->used_lock);
	file->used -= pages;
	if (file->charge_closed)
		atomic_long_sub(pages, &file->user->left);
	spin_unlock(&file->used_lock);
}

/* A unit is destroyed and stays for its holders: once the file is closed they pay alone. */
void nabc_charge_holders(struct nabc_file *file, unsigned long pages)
{
	spin_lock(&file->used_lock);
	file->held += pages;
	if (file->charge_closed)
		atomic_long_sub(pages, &file->user->left);
	spin_unlock(&file->used_lock);
}

/* None holds it any more; what sockets refer to is paid for again. */
void nabc_charge_maker(struct nabc_file *file, unsigned long pages)
{
	spin_lock(&file->used_lock);
	file->held -= pages;
	if (file->charge_closed)
		atomic_long_add(pages, &file->user->left);
	spin_unlock(&file->used_lock);
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
	spare = file->charged - READ_ONCE(file->used);
	if (spare > 0 && !file->charge_closed && down_write_trylock(&file->mm->mmap_lock)) {
		__account_locked_vm(file->mm, spare, false, current, true);
		up_write(&file->mm->mmap_lock);
		file->charged -= spare;
	}
	mutex_unlock(&file->charge_lock);
}

/* The file is closed: what is left of it is its user's. */
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
