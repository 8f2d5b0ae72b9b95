/* SPDX-License-Identifier: MIT */
/*
 * nabc-wait.c - NC_unit_alloc_wait(): an allocation that is tried again when memory is released.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <nabc.h>

#include "api/registry.h"
#include "base/fragment.h"
#include "cache/index.h"
#include "os/segment.h"
#include "policy/expiry.h"
#include "store/memory-wait.h"
#include "store/pool.h"
#include "store/store.h"

/*
 * The longest sleep between two attempts: not all that makes memory available wakes the thread,
 * such as a send without a copy that has ended, which the next attempt finds.
 */
#define SLEEP_MOST_NS UINT64_C(20000000)

/* Whether a unit of that size can ever have memory in a member's segment. */
static bool fits(const struct nc_member *own, size_t size, size_t fraglen)
{
	const struct nc_store *segment = own->runs;
	struct nc_layout layout;

	return nc_layout_init(&layout, size, fraglen) == 0 &&
	       layout.extent <= segment->segment.size - segment->first;
}

/* Whether the failed allocation can succeed when units are released. */
static bool may_wait(const struct nc_index *index, size_t size, size_t fraglen, enum NC_kind kind,
		     int error)
{
	if (index->owner)
		return error == ENOMEM || error == EMFILE;
	/* Sealed units have memory of their own. */
	return error == ENOMEM && index->own.shared && kind != NC_KIND_SEALED &&
	       fits(&index->own, size, fraglen);
}

/* Returns how long to sleep at most; 0: the time is over.  until: 0: no limit. */
static uint64_t sleep_most(uint64_t until)
{
	uint64_t now;

	if (!until)
		return SLEEP_MOST_NS;
	now = nc_clock_ns(CLOCK_MONOTONIC);
	if (now >= until)
		return 0;
	return until - now < SLEEP_MOST_NS ? until - now : SLEEP_MOST_NS;
}

int NC_unit_alloc_wait(NC_cache *cache, NC_handle *handle, size_t size, size_t fraglen,
		       enum NC_kind kind, unsigned flags, int milliseconds)
{
	uint64_t until = milliseconds > 0
				 ? nc_clock_ns(CLOCK_MONOTONIC) + (uint64_t)milliseconds * 1000000u
				 : 0;
	int result = NC_unit_alloc(cache, handle, size, fraglen, kind, flags), error;

	if (result == 0 || milliseconds == 0)
		return result;
	error = errno;
	cache = nc_registry_find(cache, &(int){0});
	while (cache && result < 0 && may_wait(&cache->index, size, fraglen, kind, error)) {
		uint64_t most = sleep_most(until);

		if (!most)
			return (int)nc_api_result(-ETIMEDOUT);
		nc_memory_expect(cache->index.own.waiting);
		result = NC_unit_alloc(cache, handle, size, fraglen, kind, flags);
		error = errno;
		if (result < 0)
			nc_memory_wait(cache->index.own.waiting, most);
	}
	errno = error;
	return result;
}
