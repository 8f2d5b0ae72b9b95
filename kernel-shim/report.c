// SPDX-License-Identifier: GPL-2.0-only
/* Reports about a unit, all units, and the module. */
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "nabc.h"

DEFINE_PER_CPU(struct nabc_counters, nabc_counters);
struct nabc_gauges nabc_gauges;

/* Fills in stat and returns true if the caller has any right to the unit. */
static bool unit_stat(struct nabc_file *file, struct nabc_unit *unit, struct nabc_stat *stat)
{
	bool held = nabc_holds(file, unit->id);
	u32 rights;

	mutex_lock(&unit->lock);
	rights = nabc_rights_locked(unit, file) | (held ? NABC_RIGHT_SEND : 0);
	if (!rights ||
	    !(nabc_known_locked(unit, file) || (held && unit->state == NABC_STATE_DESTROYED))) {
		mutex_unlock(&unit->lock);
		return false;
	}
	*stat = (struct nabc_stat){
		.id = unit->id,
		.size = unit->size,
		.memory = (u64)unit->pages << PAGE_SHIFT,
		.sent = atomic64_read(&unit->sent),
		.state = unit->state,
		.rights = rights,
		.holds = unit->holds,
		.grants = unit->grant_count,
		.maker_pid = nabc_program_runs(&unit->maker->program)
				     ? pid_vnr(unit->maker->program.pid)
				     : 0,
		.maker_uid = from_kuid_munged(current_user_ns(), unit->uid),
		.linger = unit->linger,
		.flags = (unit->summed ? NABC_UNIT_SUMMED : 0) |
			 (unit->orphan ? NABC_UNIT_ORPHAN : 0) | (held ? NABC_UNIT_HELD : 0),
	};
	mutex_unlock(&unit->lock);
	return true;
}

/* Whether the caller may know that the unit exists. */
static bool unit_is_known(struct nabc_file *file, struct nabc_unit *unit)
{
	bool known;

	mutex_lock(&unit->lock);
	known = nabc_known_locked(unit, file);
	mutex_unlock(&unit->lock);
	return known;
}

int nabc_stat(struct nabc_file *file, struct nabc_stat *stat)
{
	struct nabc_unit *unit = nabc_unit_get(stat->id);
	int ret = 0;

	if (!unit)
		return -ENOENT;
	if (!unit_stat(file, unit, stat))
		ret = unit_is_known(file, unit) ? -EACCES : -ENOENT;
	nabc_unit_put(unit);
	return ret;
}

int nabc_list(struct nabc_file *file, struct nabc_list *call)
{
	struct nabc_stat __user *to = u64_to_user_ptr(call->units);
	struct nabc_unit *unit;
	struct nabc_stat stat;
	bool listed;

	if (!call->count || call->count > NABC_LIST_MAX)
		return -EINVAL;
	call->found = 0;
	while (call->found < call->count && (unit = nabc_unit_next(call->cursor))) {
		call->cursor = unit->id;
		listed = unit_stat(file, unit, &stat);
		nabc_unit_put(unit);
		if (listed && copy_to_user(&to[call->found++], &stat, sizeof(stat)))
			return -EFAULT;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

static u64 counted(enum nabc_counter counter)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu(nabc_counters, cpu).n[counter];
	return sum;
}

static u64 bytes(atomic_long_t *pages)
{
	return (u64)atomic_long_read(pages) << PAGE_SHIFT;
}

void nabc_statistics(struct nabc_file *file, struct nabc_statistics *to)
{
	u64 pooled = bytes(&nabc_gauges.pooled), in_flight = bytes(&nabc_gauges.in_flight);
	u64 all = bytes(&nabc_gauges.pages);

	*to = (struct nabc_statistics){
		.units = atomic_long_read(&nabc_gauges.units),
		.unit_memory = all > pooled + in_flight ? all - pooled - in_flight : 0,
		.pooled_memory = pooled,
		.orphans = atomic_long_read(&nabc_gauges.orphans),
		.orphan_memory = bytes(&nabc_gauges.orphan_pages),
		.files = atomic_long_read(&nabc_gauges.files),
		.sum_memory = atomic_long_read(&nabc_gauges.sum_bytes),
		.hooks = atomic_long_read(&nabc_gauges.hooks),
		.allocated = counted(NABC_ALLOCATED),
		.pool_hits = counted(NABC_POOL_HITS),
		.pool_misses = counted(NABC_POOL_MISSES),
		.inserted = counted(NABC_INSERTED),
		.destroyed = counted(NABC_DESTROYED),
		.collected = counted(NABC_COLLECTED),
		.read_bytes = counted(NABC_READ_BYTES),
		.sends = counted(NABC_SENDS),
		.sent_bytes = counted(NABC_SENT_BYTES),
		.header_bytes = counted(NABC_HEADER_BYTES),
		.refused = counted(NABC_REFUSED),
		.shrunk = counted(NABC_SHRUNK),
		.aged = counted(NABC_AGED),
		.sum_made = counted(NABC_SUM_MADE),
		.sum_reused = counted(NABC_SUM_REUSED),
		.sum_touched = counted(NABC_SUM_TOUCHED),
		.sum_packets = counted(NABC_SUM_PACKETS),
		.sum_fallbacks = counted(NABC_SUM_FALLBACKS),
		.file_units = READ_ONCE(file->unit_count),
		.file_charged = (u64)READ_ONCE(file->charged) << PAGE_SHIFT,
		.file_pooled = (u64)READ_ONCE(file->pool.idle_pages) << PAGE_SHIFT,
		.file_held = READ_ONCE(file->hold_count),
		.file_left = bytes(&file->user->left),
		.in_flight_memory = in_flight,
	};
}
