/* SPDX-License-Identifier: MIT */
/*
 * nabc-grant.c - the calls of nabc.h that grant and read units: each finds the
 * cache and calls one function of a lower folder.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include <nabc-worker.h>
#include <nabc.h>

#include "api/registry.h"
#include "base/versioned.h"
#include "cache/grant.h"
#include "cache/index.h"
#include "membership/grant-ops.h"
#include "os/identity.h"

#define LIST_MAX 256u /* units per call */

int NC_grant(NC_cache *cache, size_t cache_id, enum NC_principal principal, uint32_t who)
{
	struct nc_grantee grantee;
	int error;

	cache = nc_registry_find(cache, &error);
	if (!cache)
		return (int)nc_api_result(error);
	error = nc_grant_ops_grantee(principal, who, true, &grantee);
	return (int)nc_api_result(error ? error
					: nc_grant_ops_grant(&cache->index, cache_id, &grantee));
}

int NC_revoke(NC_cache *cache, size_t cache_id, enum NC_principal principal, uint32_t who)
{
	struct nc_grantee grantee;
	int error;

	cache = nc_registry_find(cache, &error);
	if (!cache)
		return (int)nc_api_result(error);
	error = nc_grant_ops_grantee(principal, who, false, &grantee);
	return (int)nc_api_result(error ? error
					: nc_grant_ops_revoke(&cache->index, cache_id, &grantee));
}

int NC_access(NC_cache *cache, size_t cache_id, enum NC_principal principal, uint32_t who)
{
	struct nc_identity identity;
	int error;

	cache = nc_registry_find(cache, &error);
	if (!cache)
		return (int)nc_api_result(error);
	error = nc_grant_ops_identify(principal, who, &identity);
	if (error)
		return (int)nc_api_result(error);
	error = nc_grant_ops_access(&cache->index, cache_id, &identity);
	nc_identity_close(&identity);
	return (int)nc_api_result(error);
}

int NC_grants(NC_cache *cache, size_t cache_id, struct NC_grant_info *grants, size_t stride,
	      unsigned count)
{
	int error;

	cache = nc_registry_find(cache, &error);
	if (!cache)
		return (int)nc_api_result(error);
	if (count && (!grants || !stride))
		return (int)nc_api_result(-EINVAL);
	return (int)nc_api_result(
		nc_grant_ops_grants(&cache->index, cache_id, grants, stride, count));
}

int NC_list(NC_cache *cache, size_t *cursor, struct NC_stat *units, size_t stride, unsigned count)
{
	struct NC_stat known[LIST_MAX];
	int error, found;

	cache = nc_registry_find(cache, &error);
	if (!cache)
		return (int)nc_api_result(error);
	if (!cursor || !units || !stride || count == 0)
		return (int)nc_api_result(-EINVAL);
	if (count > LIST_MAX)
		count = LIST_MAX;
	found = nc_grant_ops_list_all(&cache->index, cursor, known, count);
	if (found > 0)
		nc_versioned_write_all(units, stride, known, sizeof(known[0]), (size_t)found);
	return (int)nc_api_result(found);
}

ssize_t NC_pread(NC_cache *cache, size_t cache_id, void *data, size_t len, size_t offset)
{
	struct nc_view view;
	ssize_t result;
	int error;

	cache = nc_registry_find(cache, &error);
	if (!cache)
		return nc_api_result(error);
	if (!data && len)
		return nc_api_result(-EINVAL);
	error = nc_index_hold(&cache->index, cache_id, false, &view);
	if (error)
		return nc_api_result(error);
	result = nc_grant_ops_read(view.unit, data, len, offset);
	(void)nc_index_release(&cache->index, cache_id);
	return nc_api_result(result);
}
