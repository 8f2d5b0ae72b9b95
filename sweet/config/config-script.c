/* SPDX-License-Identifier: MIT */
/*
 * config-script.c - see config-script.h.
 */
#include <glib.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "config/config-script.h"
#include "config/config-tree.h"
#include "config/configuration.h"
#include "config/pool-config.h"

#define DEFAULT_HOST "default" /* as {host} in root */

static const char *name_of(const struct host *host)
{
	return *host->name ? host->name : DEFAULT_HOST;
}

/* --- which pool has a suffix ------------------------------------------------------------- */

/* A pool that names the host comes before one that names none. */
enum nearness { NOT, OF_ALL, OF_HOST };

static enum nearness nearness_of(const struct pool_config *pool, const struct host *host)
{
	if (!pool->suffix)
		return NOT;
	if (!pool->hosts || !pool->hosts[0])
		return OF_ALL;
	return g_strv_contains((const char *const *)pool->hosts, name_of(host)) ? OF_HOST : NOT;
}

static void complain(struct config_tree *tree, const struct host *host,
		     const struct pool_config *pool, const struct pool_config *other,
		     enum nearness near)
{
	bool named = near == OF_HOST;

	config_tree_complain(
		tree, pool->place,
		"%s: suffix \"%s\"%s%s is also of %s (%s), so one of them would get no "
		"request: hosts=NAME says whose files a pool runs",
		pool->label, pool->suffix, named ? " of host " : "", named ? name_of(host) : "",
		other->label, other->place);
}

/* Adds a claim, or puts the pool in the place of one that is less near. */
static void claim(struct config_tree *tree, struct host *host, const struct pool_config *pool)
{
	enum nearness near = nearness_of(pool, host), other = NOT;
	unsigned i;

	if (near == NOT)
		return;
	for (i = 0; i < host->claim_count; i++)
		if (strcmp(host->claims[i].suffix, pool->suffix) == 0)
			break;
	if (i == host->claim_count)
		host->claims = g_renew(struct script_claim, host->claims, ++host->claim_count);
	else
		other = nearness_of(host->claims[i].pool, host);
	if (near == other)
		complain(tree, host, pool, host->claims[i].pool, near);
	if (near > other)
		host->claims[i] = (struct script_claim){pool->suffix, strlen(pool->suffix), pool};
}

/* The longest suffix first, so that .inc.php comes before .php. */
static int script_compare(const void *one, const void *other)
{
	const struct script_claim *left = one, *right = other;

	return left->length > right->length ? -1 : left->length < right->length;
}

static bool is_host(const struct config *config, const char *name)
{
	for (unsigned i = 0; i < config->host_count; i++)
		if (strcmp(name_of(&config->hosts[i]), name) == 0)
			return true;
	return false;
}

void config_scripts(struct config_tree *tree, struct config *config)
{
	for (unsigned i = 0; i < config->pool_count; i++)
		for (char **name = config->pools[i]->hosts; name && *name; name++)
			if (!is_host(config, *name))
				config_tree_complain(tree, config->pools[i]->place,
						     "%s: hosts \"%s\": there is no [host %s]",
						     config->pools[i]->label, *name, *name);
	for (unsigned i = 0; config->scripts && i < config->host_count; i++) {
		struct host *host = &config->hosts[i];

		for (unsigned k = 0; k < config->pool_count; k++)
			claim(tree, host, config->pools[k]);
		if (host->claim_count)
			qsort(host->claims, host->claim_count, sizeof(*host->claims),
			      script_compare);
	}
}

/* --- whether a path is a script ---------------------------------------------------------- */

const struct pool_config *config_script(const struct host *host, const char *path, size_t *length)
{
	const struct pool_config *found = NULL;

	for (unsigned i = 0; i < host->claim_count; i++) {
		const struct script_claim *claim = &host->claims[i];
		const char *at = path;

		while ((at = strstr(at, claim->suffix))) {
			at += claim->length;
			if (*at != '\0' && *at != '/')
				continue;
			if (!found || (size_t)(at - path) < *length) {
				found = claim->pool;
				*length = (size_t)(at - path);
			}
			break;
		}
	}
	return found;
}

/* Whether the pool would run a file of that path as a script. */
static bool runs(const struct pool_config *pool, const char *path)
{
	return pool && pool->protocol == POOL_FASTCGI && *pool->script_suffix &&
	       g_str_has_suffix(path, pool->script_suffix);
}

bool config_is_source(const struct config *config, const struct scope *scope, const char *path)
{
	const struct mount *mount = scope ? config_mount(config, path) : NULL;

	for (unsigned i = 0; config->scripts && i < config->pool_count; i++)
		if (config->pools[i]->suffix && g_str_has_suffix(path, config->pools[i]->suffix))
			return true;
	if (!scope)
		return false;
	return runs(scope->pool, path) || runs(mount ? mount->pool : NULL, path) ||
	       (scope->try_count && runs(scope->tries[scope->try_count - 1].pool, path));
}
