/* SPDX-License-Identifier: MIT */
/* nabc-name.c - the calls of nabc.h about names of units. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <nabc.h>

#include "api/registry.h"
#include "cache/hold.h"
#include "cache/index.h"
#include "membership/name-ops.h"
#include "store/unit.h"

/* Finds the cache for a call with a name. */
static struct NC_cache *find(NC_cache *cache, const char *name, int *error)
{
	size_t length = name ? strnlen(name, NC_NAME_MAX + 1) : 0;

	cache = nc_registry_find(cache, error);
	if (cache && (length == 0 || length > NC_NAME_MAX)) {
		*error = -EINVAL;
		return NULL;
	}
	return cache;
}

int NC_name_set(NC_cache *cache, const char *name, size_t cache_id, unsigned flags)
{
	int error;

	cache = find(cache, name, &error);
	return (int)nc_api_result(cache ? nc_name_ops_set(&cache->index, name, cache_id, flags)
					: error);
}

int NC_name_remove(NC_cache *cache, const char *name, size_t cache_id)
{
	int error;

	cache = find(cache, name, &error);
	return (int)nc_api_result(cache ? nc_name_ops_remove(&cache->index, name, cache_id)
					: error);
}

int NC_name_hold(NC_cache *cache, const char *name, struct NC_hold *hold, size_t *cache_id)
{
	struct nc_view view;
	int error;

	cache = find(cache, name, &error);
	if (!cache || !hold)
		return (int)nc_api_result(cache ? -EINVAL : error);
	error = nc_index_hold_name(&cache->index, name, &view);
	if (error)
		return (int)nc_api_result(error);
	nc_unit_end_grace(view.unit);
	nc_hold_write(hold, &cache->index, &view);
	if (cache_id)
		*cache_id = view.id;
	return 0;
}
