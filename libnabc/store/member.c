/* SPDX-License-Identifier: MIT */
/*
 * member.c - the memory of this process as a whole: limits, initialisation and
 * cleanup; see member.h.
 */
#include <errno.h>
#include <limits.h>
#include <nabc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fragment.h"
#include "base/id.h"
#include "base/lock.h"
#include "os/segment.h"
#include "policy/expiry.h"
#include "policy/replacement.h"
#include "store/member-internal.h"
#include "store/member.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit.h"

#define SEGMENT_MIN ((size_t)256 << 10)
#define SEGMENT_MAX ((size_t)8 << 20)
/* limits the size if descriptors are few: pages are counted in 32 bits */
#define SEGMENT_LIMIT ((size_t)8 << 40)
#define SEGMENTS_AIMED_AT 32u
#define HIGH_WATER 95u
#define LOW_WATER 90u
#define CLEAN_LIMIT 50u
#define CLEAN_LIMIT_MAX 90u
#define DESCRIPTORS_MIN 4u
#define DESCRIPTORS_SHARE 4u /* the default is one in this many descriptors of the process */

static int member_init(struct nc_member *member, unsigned number, uint32_t slots,
		       uint32_t generation)
{
	*member = (struct nc_member){
		.number = number, .max_descriptors = UINT_MAX, .waiting = &member->own_waiting};
	for (unsigned i = 0; i < NC_PRIORITIES; i++)
		(void)nc_replacement_init(&member->orders[i], NC_POLICY_DEFAULT);
	pthread_mutex_init(&member->growing, NULL);
	nc_lock_init(&member->lock);
	return nc_units_init(&member->units, slots, generation);
}

static size_t percent(size_t of, unsigned percent)
{
	return of / 100 * percent + of % 100 * percent / 100;
}

int nc_member_init_owner(struct nc_member *member, size_t budget, bool huge)
{
	size_t size = budget / SEGMENTS_AIMED_AT;
	int error = member_init(member, 0, NC_ID_SLOTS_MAX, 1);

	if (size < SEGMENT_MIN)
		size = SEGMENT_MIN;
	if (size > SEGMENT_MAX)
		size = SEGMENT_MAX;
	member->segment_size = size / NC_PAGE * NC_PAGE;
	member->budget = budget;
	member->huge = huge;
	member->high = percent(budget, HIGH_WATER);
	member->low = percent(budget, LOW_WATER);
	member->clean_limit = CLEAN_LIMIT;
	return error;
}

static unsigned default_descriptors(void)
{
	struct rlimit limit;
	rlim_t share;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return DESCRIPTORS_MIN;
	share = limit.rlim_cur / DESCRIPTORS_SHARE;
	if (share < DESCRIPTORS_MIN)
		return DESCRIPTORS_MIN;
	return share < UINT_MAX ? (unsigned)share : UINT_MAX;
}

/*
 * With few descriptors, segments are larger: half of the descriptors suffice for
 * the whole budget, and all of them suffice for units with their own stores.
 */
static void bound_descriptors(struct nc_member *member, unsigned descriptors)
{
	size_t size = member->budget / (descriptors / 2);

	member->max_descriptors = descriptors;
	if (member->segment_size < size)
		member->segment_size = (size + NC_PAGE - 1) / NC_PAGE * NC_PAGE;
	if (member->segment_size > SEGMENT_LIMIT)
		member->segment_size = SEGMENT_LIMIT;
}

int nc_member_configure(struct nc_member *member, const struct NC_cache_options *options)
{
	unsigned high = options->high_water ? options->high_water : HIGH_WATER;
	unsigned low = options->low_water ? options->low_water : LOW_WATER;

	/* A default low mark never exceeds the high mark. */
	if (!options->low_water && low > high)
		low = high;
	if (high > 100 || low > high || options->clean_limit > CLEAN_LIMIT_MAX ||
	    (options->max_descriptors && options->max_descriptors < DESCRIPTORS_MIN))
		return -EINVAL;
	for (unsigned i = 0; i < NC_PRIORITIES; i++) {
		int error = nc_replacement_init(&member->orders[i], options->policy);

		if (error)
			return error;
	}
	member->high = percent(member->budget, high);
	member->low = percent(member->budget, low);
	if (options->clean_limit)
		member->clean_limit = options->clean_limit;
	member->protect = options->flags & NC_CACHE_PROTECT;
	bound_descriptors(member, options->max_descriptors ? options->max_descriptors
							   : default_descriptors());
	return 0;
}

int nc_member_init_attached(struct nc_member *member, unsigned number,
			    const struct nc_segment *segment, size_t first, uint32_t slots,
			    uint32_t generation)
{
	struct nc_store *store;
	int error = member_init(member, number, slots, generation);

	if (error)
		return error;
	store = nc_store_over(segment, first, &error);
	if (!store) {
		nc_units_fini(&member->units);
		return error;
	}
	member->shared = (struct nc_unit_shared *)(void *)segment->base;
	member->waiting = &member->shared[0].waiting;
	member->budget = member->used = member->high = segment->size;
	nc_pool_add_store(member, store);
	return 0;
}

void nc_member_use_device(struct nc_member *member, struct nc_device *device, int owner_pidfd)
{
	member->device = device;
	member->owner_pidfd = owner_pidfd;
	member->pid = getpid();
	if (member->shared)
		member->budget = member->high = 2 * member->used;
}

bool nc_member_has_device(const struct nc_member *member)
{
	return member->device && (!member->shared || atomic_load_explicit(&member->shared[0].maker,
									  memory_order_relaxed) ==
							     (uint64_t)member->pid);
}

void nc_member_fini(struct nc_member *member)
{
	while (member->stores) {
		struct nc_store *store = member->stores;

		member->stores = store->next;
		nc_store_close(store);
	}
	nc_units_fini(&member->units);
	nc_expiry_fini(&member->expiry);
	for (unsigned i = 0; i < NC_PRIORITIES; i++)
		nc_replacement_fini(&member->orders[i]);
	pthread_mutex_destroy(&member->growing);
	pthread_mutex_destroy(&member->lock);
}

void nc_member_leave_growing_locked(struct nc_member *member)
{
	if (member->used > member->high || member->empties > 1)
		nc_pool_due(member);
	pthread_mutex_unlock(&member->growing);
}

uint32_t nc_member_filling(struct nc_member *member)
{
	uint32_t filling = 0;

	/* Exclude copies that a compaction is making. */
	pthread_mutex_lock(&member->growing);
	nc_pool_lock(member);
	for (struct nc_store *store = member->stores; store; store = store->next)
		filling += atomic_load_explicit(&store->filling, memory_order_acquire);
	nc_member_leave_growing_locked(member);
	nc_pool_unlock(member);
	return filling;
}
