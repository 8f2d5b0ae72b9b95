/* SPDX-License-Identifier: MIT */
/*
 * nabc-hold.c - the calls of nabc.h about holds and what a held unit can be used as:
 * memory or a file.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nabc-worker.h>
#include <nabc.h>

#include "api/registry.h"
#include "base/fragment.h"
#include "cache/hold.h"
#include "cache/index.h"
#include "os/segment.h"
#include "store/store.h"
#include "store/unit.h"

static int hold_unit(NC_cache *cache, size_t id, struct NC_hold *hold, bool nowait)
{
	struct nc_view view;
	int error;

	if (!hold)
		return -EINVAL;
	cache = nc_registry_find(cache, &error);
	if (!cache)
		return error;
	error = nowait ? nc_index_hold_nowait(&cache->index, id, &view)
		       : nc_index_hold(&cache->index, id, false, &view);
	if (error)
		return error;
	nc_unit_end_grace(view.unit);
	nc_hold_write(hold, &cache->index, &view);
	return 0;
}

int NC_hold(NC_cache *cache, size_t cache_id, struct NC_hold *hold)
{
	return (int)nc_api_result(hold_unit(cache, cache_id, hold, false));
}

int NC_hold_nowait(NC_cache *cache, size_t cache_id, struct NC_hold *hold)
{
	return (int)nc_api_result(hold_unit(cache, cache_id, hold, true));
}

/* The cache of a hold, if it exists still; or NULL. */
static struct nc_index *index_of(const struct NC_hold *hold)
{
	struct nc_hold known;
	NC_cache *cache;
	int error;

	if (!hold)
		return NULL;
	known = nc_hold_read(hold);
	if (!known.index)
		return NULL;
	cache = nc_registry_find((NC_cache *)(void *)known.index, &error);
	return cache && cache->index.serial == known.serial ? &cache->index : NULL;
}

int NC_release(struct NC_hold *hold)
{
	struct nc_index *index = index_of(hold);
	int error = index ? nc_index_release(index, nc_hold_read(hold).id) : -EINVAL;

	if (!error)
		*hold = (struct NC_hold){0};
	/* What is not there is not held. */
	return (int)nc_api_result(error == -ENOENT ? -EINVAL : error);
}

/* The unit with its bytes in memory, to be returned; -EINVAL, -ERANGE, errors of fetching. */
static int look(struct nc_index *index, const struct NC_hold *hold, size_t offset,
		struct nc_view *view)
{
	int error = index ? nc_hold_borrow(hold, index, view) : -EINVAL;

	if (!error && offset >= view->unit->layout.size) {
		nc_index_return(index, view);
		return -ERANGE;
	}
	return error;
}

const void *NC_data(const struct NC_hold *hold, size_t *run, size_t offset)
{
	struct nc_index *index = run ? index_of(hold) : NULL;
	const char *data = NULL;
	struct nc_view view;
	int error = look(index, hold, offset, &view);

	if (!error) {
		error = nc_index_fetch(index, &view);
		if (!error)
			data = nc_unit_base(view.unit) +
			       nc_layout_at(&view.unit->layout, offset, run);
		nc_index_return(index, &view);
	}
	nc_api_result(error);
	return data;
}

int NC_file(const struct NC_hold *hold, uint64_t *position, size_t *run, size_t offset)
{
	struct nc_index *index = position && run ? index_of(hold) : NULL;
	struct nc_view view;
	int result = look(index, hold, offset, &view);

	if (!result) {
		struct nc_unit *unit = view.unit;

		/* Recycled memory is written again, and the module's is no file. */
		result = nc_unit_spliceable(unit) ? nc_segment_reader(&unit->store->segment)
						  : -EOPNOTSUPP;
		if (result >= 0)
			*position = unit->at + nc_layout_at(&unit->layout, offset, run);
		nc_index_return(index, &view);
	}
	return (int)nc_api_result(result);
}
