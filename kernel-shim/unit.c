// SPDX-License-Identifier: GPL-2.0-only
/*
 * Units, their ids and states.
 *
 * FILLING -> CACHED -> DESTROYED, or FILLING -> DESTROYED.  Ids count up and are
 * the index of the table.  The table has a reference to each unit until it is
 * destroyed and no longer held; memory is freed with the last reference.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "nabc.h"

static DEFINE_XARRAY(table);
static atomic64_t last_id;
/* A reserved index, or 0: see id_next(). */
static unsigned long anchor;

static LIST_HEAD(orphans); /* in the order of becoming orphans */
static DEFINE_SPINLOCK(orphans_lock);

bool nabc_unit_tryget(struct nabc_unit *unit)
{
	return refcount_inc_not_zero(&unit->refs);
}

void nabc_unit_put(struct nabc_unit *unit)
{
	struct nabc_file *maker = unit->maker;

	if (!refcount_dec_and_test(&unit->refs))
		return;
	nabc_memory_put(maker, unit, 0);
	nabc_grants_free(unit);
	nabc_file_put(maker);
	kvfree_rcu(unit, rcu);
}

struct nabc_unit *nabc_unit_get(u64 id)
{
	struct nabc_unit *unit;

	rcu_read_lock();
	unit = xa_load(&table, id);
	if (unit && !nabc_unit_tryget(unit))
		unit = NULL;
	rcu_read_unlock();
	return unit;
}

/* Returns the first unit with a greater id, with a reference. */
struct nabc_unit *nabc_unit_next(u64 after)
{
	unsigned long index = after;
	struct nabc_unit *unit;

	rcu_read_lock();
	do {
		unit = xa_find_after(&table, &index, ULONG_MAX, XA_PRESENT);
	} while (unit && !nabc_unit_tryget(unit));
	rcu_read_unlock();
	return unit;
}

/*
 * Returns a unit that is not published yet, with a reference, or an error.  It has
 * its memory, but no id.
 */
struct nabc_unit *nabc_unit_new(struct nabc_file *file, u64 size)
{
	unsigned int count = DIV_ROUND_UP_ULL(size, NABC_CHUNK_SIZE);
	struct nabc_unit *unit;
	int ret;

	unit = kvzalloc(struct_size(unit, chunks, count), GFP_KERNEL_ACCOUNT);
	if (!unit)
		return ERR_PTR(-ENOMEM);
	refcount_set(&unit->refs, 1);
	unit->uid = current_euid();
	unit->size = size;
	unit->chunk_count = count;
	unit->state = NABC_STATE_FILLING;
	mutex_init(&unit->lock);
	INIT_LIST_HEAD(&unit->link);
	ret = nabc_memory_get(file, unit);
	if (ret) {
		kvfree(unit);
		return ERR_PTR(ret);
	}
	refcount_inc(&file->refs);
	unit->maker = file;
	return unit;
}

/*
 * The table would allocate and free a node for each one-shot unit, since no other
 * unit is near.  So the first index of each node is not used as an id, but reserved
 * while ids of that node are assigned.  This only saves time, so it may fail.
 */
static u64 id_next(void)
{
	u64 id = atomic64_inc_return(&last_id);

	while (!(id % XA_CHUNK_SIZE)) {
		if (!xa_reserve(&table, id, GFP_KERNEL_ACCOUNT))
			xa_release(&table, xchg(&anchor, id));
		id = atomic64_inc_return(&last_id);
	}
	return id;
}

/* From now on others find the unit by its id.  After an error it remains unpublished. */
static int unit_publish_locked(struct nabc_unit *unit)
{
	struct nabc_file *file = unit->maker;
	int ret;

	unit->id = id_next();
	ret = xa_insert(&table, unit->id, unit, GFP_KERNEL_ACCOUNT);
	if (ret)
		return ret;
	refcount_inc(&unit->refs);
	unit->in_table = true;
	spin_lock(&file->units_lock);
	list_add_tail(&unit->link, &file->units);
	file->unit_count++;
	spin_unlock(&file->units_lock);
	atomic_long_inc(&nabc_gauges.units);
	nabc_count(NABC_ALLOCATED, 1);
	return 0;
}

int nabc_unit_publish(struct nabc_unit *unit)
{
	int ret;

	mutex_lock(&unit->lock);
	ret = unit_publish_locked(unit);
	mutex_unlock(&unit->lock);
	return ret;
}

/* Returns a new unit to be filled through the arena, with a reference, or an error. */
struct nabc_unit *nabc_unit_make(struct nabc_file *file, u64 size)
{
	struct nabc_unit *unit = nabc_unit_new(file, size);
	int ret;

	if (IS_ERR(unit))
		return unit;
	mutex_lock(&unit->lock);
	ret = nabc_arena_reserve(file, unit);
	if (!ret)
		ret = unit_publish_locked(unit);
	if (ret && unit->in_arena)
		nabc_arena_leave_locked(unit);
	mutex_unlock(&unit->lock);
	if (ret) {
		nabc_unit_put(unit);
		return ERR_PTR(ret);
	}
	return unit;
}

static void unit_unlink_locked(struct nabc_unit *unit)
{
	if (unit->orphan) {
		spin_lock(&orphans_lock);
		list_del_init(&unit->link);
		spin_unlock(&orphans_lock);
		atomic_long_dec(&nabc_gauges.orphans);
		atomic_long_sub(unit->pages, &nabc_gauges.orphan_pages);
	} else {
		spin_lock(&unit->maker->units_lock);
		list_del_init(&unit->link);
		unit->maker->unit_count--;
		spin_unlock(&unit->maker->units_lock);
	}
}

static void unit_leave_table_locked(struct nabc_unit *unit)
{
	xa_erase(&table, unit->id);
	unit->in_table = false;
	atomic_long_dec(&nabc_gauges.units);
	/* Not the last one: the caller has its own. */
	refcount_dec(&unit->refs);
}

/* The caller has a reference. */
void nabc_unit_destroy_locked(struct nabc_unit *unit)
{
	lockdep_assert_held(&unit->lock);
	if (unit->state == NABC_STATE_DESTROYED)
		return;
	unit->state = NABC_STATE_DESTROYED;
	if (unit->in_arena)
		nabc_arena_leave_locked(unit);
	unit_unlink_locked(unit);
	nabc_count(NABC_DESTROYED, 1);
	if (unit->holds)
		nabc_charge_holders(unit->maker, unit->pages);
	else
		unit_leave_table_locked(unit);
}

/* Removes a hold of one file; the caller passes on the reference of that hold. */
void nabc_unit_drop_hold(struct nabc_unit *unit)
{
	mutex_lock(&unit->lock);
	unit->holds--;
	if (!unit->holds && unit->state == NABC_STATE_DESTROYED && unit->in_table) {
		nabc_charge_maker(unit->maker, unit->pages);
		unit_leave_table_locked(unit);
	}
	mutex_unlock(&unit->lock);
	nabc_unit_put(unit);
}

/* Called when the file of the unit's maker is being closed. */
void nabc_unit_orphan(struct nabc_unit *unit)
{
	mutex_lock(&unit->lock);
	if (unit->state == NABC_STATE_CACHED && unit->linger) {
		unit_unlink_locked(unit);
		unit->orphan = true;
		unit->expires = jiffies + msecs_to_jiffies(unit->linger);
		atomic_long_inc(&nabc_gauges.orphans);
		atomic_long_add(unit->pages, &nabc_gauges.orphan_pages);
		spin_lock(&orphans_lock);
		list_add_tail(&unit->link, &orphans);
		spin_unlock(&orphans_lock);
		nabc_collector_wake();
	} else if (unit->state != NABC_STATE_DESTROYED) {
		nabc_count(NABC_COLLECTED, 1);
		nabc_unit_destroy_locked(unit);
	}
	mutex_unlock(&unit->lock);
}

/* Destroys expired orphans, or all of them.  Returns whether others are left. */
bool nabc_orphans_collect(bool all)
{
	struct nabc_unit *unit;
	bool left;

	do {
		spin_lock(&orphans_lock);
		left = !list_empty(&orphans);
		list_for_each_entry(unit, &orphans, link) {
			/* Unlinked before the table's reference is dropped, so it has one. */
			if ((all || time_after_eq(jiffies, unit->expires)) &&
			    nabc_unit_tryget(unit))
				break;
		}
		if (list_entry_is_head(unit, &orphans, link))
			unit = NULL;
		spin_unlock(&orphans_lock);
		if (unit) {
			mutex_lock(&unit->lock);
			if (unit->state != NABC_STATE_DESTROYED)
				nabc_count(NABC_COLLECTED, 1);
			nabc_unit_destroy_locked(unit);
			mutex_unlock(&unit->lock);
			nabc_unit_put(unit);
			cond_resched();
		}
	} while (unit);
	return left;
}

int nabc_unit_insert(struct nabc_file *file, const struct nabc_insert *call)
{
	struct nabc_unit *unit;
	int ret;

	if (call->flags & ~NABC_INSERT_SUMS || call->linger > NABC_LINGER_MAX)
		return -EINVAL;
	unit = nabc_unit_get(call->id);
	if (!unit)
		return -ENOENT;
	mutex_lock(&unit->lock);
	ret = nabc_fillable_locked(unit, file);
	if (!ret && unit->fills)
		ret = -EBUSY;
	else if (!ret && call->length > unit->size)
		ret = -ERANGE;
	if (!ret) {
		/* From here on faults are refused; then the mapped pages are removed. */
		unit->state = NABC_STATE_CACHED;
		unit->linger = call->linger;
		nabc_arena_leave_locked(unit);
		if (call->length) {
			unit->size = call->length;
			nabc_memory_put(file, unit, DIV_ROUND_UP_ULL(unit->size, NABC_CHUNK_SIZE));
		}
		nabc_count(NABC_INSERTED, 1);
	}
	mutex_unlock(&unit->lock);
	/* Without kept checksums, they are computed when the bytes are sent. */
	if (!ret && call->flags & NABC_INSERT_SUMS)
		nabc_sums_make(unit);
	nabc_unit_put(unit);
	return ret;
}

int nabc_unit_destroy(struct nabc_file *file, u64 id)
{
	struct nabc_unit *unit = nabc_unit_get(id);
	int ret = 0;

	if (!unit)
		return -ENOENT;
	mutex_lock(&unit->lock);
	if (!nabc_known_locked(unit, file))
		ret = -ENOENT;
	else if (unit->fills)
		ret = -EBUSY;
	else if (!(nabc_rights_locked(unit, file) & NABC_RIGHT_DESTROY))
		ret = -EACCES;
	else
		nabc_unit_destroy_locked(unit);
	mutex_unlock(&unit->lock);
	nabc_unit_put(unit);
	return ret;
}

/* No file is open any more, so only orphans exist. */
void nabc_units_exit(void)
{
	nabc_orphans_collect(true);
	xa_release(&table, anchor);
	WARN_ON(!xa_empty(&table));
	xa_destroy(&table);
}
