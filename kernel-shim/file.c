// SPDX-License-Identifier: GPL-2.0-only
/*
 * One open /dev/nabc, which serves the process that opened it.
 *
 * A process is identified by its thread group's struct pid, which is never reused
 * while it is referenced, together with the program that it runs (its mm, and its
 * number of calls of execve()).  So an inherited file is of no use after fork() or
 * execve(), and a program has none of the rights of the previous one.
 *
 * After its close, a file's structure remains for units that others use, and for
 * memory that sockets refer to.
 */
#include <linux/idr.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "nabc.h"

/* 2^28 arenas of 2^34 bytes fit below the greatest loff_t. */
#define FILES_MAX BIT(28)

LIST_HEAD(nabc_files);
DEFINE_SPINLOCK(nabc_files_lock);
static DEFINE_IDA(indices);

/*
 * Finds the program that a process runs now, without a reference to the pid; false
 * if there is no such process.  execve() increments its counter after it has
 * changed the mm, so this never finds a program that has not started.
 */
bool nabc_program_find(struct pid *pid, struct nabc_program *program)
{
	struct task_struct *leader;

	rcu_read_lock();
	leader = pid_task(pid, PIDTYPE_TGID);
	if (leader)
		*program = (struct nabc_program){pid, READ_ONCE(leader->self_exec_id)};
	rcu_read_unlock();
	return leader;
}

bool nabc_program_runs(const struct nabc_program *program)
{
	struct nabc_program now;

	return nabc_program_find(program->pid, &now) && nabc_program_same(program, &now);
}

struct nabc_file *nabc_file_open(struct address_space *mapping)
{
	struct nabc_file *file;
	int index;

	if (!current->mm)
		return ERR_PTR(-EPERM);
	file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		return ERR_PTR(-ENOMEM);
	file->user = nabc_user_get();
	if (!file->user) {
		kfree(file);
		return ERR_PTR(-ENOMEM);
	}
	index = ida_alloc_max(&indices, FILES_MAX - 1, GFP_KERNEL);
	if (index < 0) {
		nabc_user_put(file->user);
		kfree(file);
		return ERR_PTR(index);
	}
	file->index = index;
	refcount_set(&file->refs, 1);
	file->program.pid = get_pid(task_tgid(current));
	file->program.exec = current->self_exec_id;
	file->mm = current->mm;
	mmgrab(file->mm);
	file->mapping = mapping;
	spin_lock_init(&file->units_lock);
	INIT_LIST_HEAD(&file->units);
	spin_lock_init(&file->arena_lock);
	file->arena = RB_ROOT;
	xa_init(&file->holds);
	mutex_init(&file->holds_lock);
	nabc_pool_init(&file->pool);
	mutex_init(&file->charge_lock);
	spin_lock_init(&file->used_lock);
	mutex_init(&file->empty_lock);

	spin_lock(&nabc_files_lock);
	list_add_tail(&file->link, &nabc_files);
	spin_unlock(&nabc_files_lock);
	atomic_long_inc(&nabc_gauges.files);
	nabc_collector_wake();
	return file;
}

/*
 * Frees what the file owns when its process is gone or closes it: no call is in
 * progress and nothing is mapped any more.  Units that linger or are held remain,
 * and so do pages that sockets refer to; all other memory is returned to the kernel
 * now.
 */
static void file_empty(struct nabc_file *file)
{
	struct nabc_unit *unit;

	mutex_lock(&file->empty_lock);
	if (file->emptied)
		goto out;
	file->emptied = true;
	nabc_holds_end(file);
	for (;;) {
		spin_lock(&file->units_lock);
		unit = list_first_entry_or_null(&file->units, struct nabc_unit, link);
		/* Destruction unlinks a unit before it drops the table's reference. */
		if (unit && !nabc_unit_tryget(unit))
			unit = NULL;
		spin_unlock(&file->units_lock);
		if (!unit)
			break;
		nabc_unit_orphan(unit);
		nabc_unit_put(unit);
	}
	spin_lock(&file->pool.lock);
	file->pool.closed = true;
	spin_unlock(&file->pool.lock);
	nabc_pool_sweep(file);
	nabc_charge_close(file);
	kvfree(file->slots);
	file->slots = NULL;
out:
	mutex_unlock(&file->empty_lock);
}

void nabc_file_close(struct nabc_file *file)
{
	file_empty(file);
	atomic_long_dec(&nabc_gauges.files);
	/* The index may be reused: nothing of this file is in the arena. */
	WARN_ON_ONCE(!RB_EMPTY_ROOT(&file->arena));
	ida_free(&indices, file->index);
	nabc_file_put(file);
}

/*
 * Called by the collector: a child may have inherited the open file, which it
 * cannot use, and keep it open after the process has ended or executed another
 * program.
 */
void nabc_file_collect(struct nabc_file *file)
{
	if (!READ_ONCE(file->emptied) &&
	    (!atomic_read(&file->mm->mm_users) || !nabc_program_runs(&file->program)))
		file_empty(file);
}

void nabc_file_put(struct nabc_file *file)
{
	if (!refcount_dec_and_test(&file->refs))
		return;
	spin_lock(&nabc_files_lock);
	list_del(&file->link);
	spin_unlock(&nabc_files_lock);
	WARN_ON_ONCE(file->used);
	xa_destroy(&file->holds);
	nabc_user_put(file->user);
	put_pid(file->program.pid);
	mmdrop(file->mm);
	kfree(file);
}

/*
 * For a loop that sleeps: returns the next file, open or not, with a reference,
 * after one for which the loop has a reference (NULL: the first).
 */
struct nabc_file *nabc_file_next(struct nabc_file *after)
{
	struct list_head *at = after ? &after->link : &nabc_files;
	struct nabc_file *next = NULL;

	spin_lock(&nabc_files_lock);
	while (!next && !list_is_last(at, &nabc_files)) {
		at = at->next;
		next = list_entry(at, struct nabc_file, link);
		/* Otherwise it is being freed. */
		if (!refcount_inc_not_zero(&next->refs))
			next = NULL;
	}
	spin_unlock(&nabc_files_lock);
	if (after)
		nabc_file_put(after);
	return next;
}

/* Called when no file is open and no unit exists: only pages that sockets refer to are left. */
void nabc_files_exit(void)
{
	struct nabc_file *file = NULL;

	while ((file = nabc_file_next(file)))
		nabc_pool_forget(file);
	WARN_ON(!list_empty(&nabc_files));
}

int nabc_file_check(struct nabc_file *file)
{
	return task_tgid(current) == file->program.pid && current->mm == file->mm ? 0 : -EPERM;
}
