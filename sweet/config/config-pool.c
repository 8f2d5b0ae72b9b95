/* SPDX-License-Identifier: MIT */
/*
 * config-pool.c - see config-pool.h.
 */
#include <glib.h>
#include <nabc.h>
#include <stdbool.h>
#include <string.h>

#include "config/config-key.h"
#include "config/config-map.h"
#include "config/config-pool.h"
#include "config/config-tree.h"
#include "config/config-value.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "rules/template.h"
#include "rules/variable.h"

#define CGI_PROCESSES 32 /* at a time, for an option, which has no number */

typedef void resolver(struct config_tree *tree, const struct section *section,
		      struct pool_config *pool);

const struct pool_config *config_pool(const struct config *config, const char *name)
{
	for (unsigned i = 0; i < config->pool_count; i++)
		if (strcmp(config->pools[i]->name, name) == 0)
			return config->pools[i];
	return NULL;
}

static void add_pool(struct config *config, struct pool_config *pool)
{
	config->pools = g_renew(const struct pool_config *, config->pools, config->pool_count + 1);
	pool->number = config->pool_count;
	config->pools[config->pool_count++] = pool;
	config->scripts |= pool->suffix != NULL;
	config->methods |= pool->methods && pool->methods[0];
}

static void finish(struct config_tree *tree, struct pool_config *pool)
{
	char *why = NULL;

	if (pool_config_finish(pool, &why))
		return;
	if (pool->place)
		config_tree_complain(tree, pool->place, "%s", why);
	else
		config_tree_complain(tree, NULL, "%s", why);
	g_free(why);
}

/* Splits "/PREFIX=WHAT" of an option; returns the prefix without trailing slashes, or NULL. */
static char *split(const char *spec, const char **what)
{
	const char *equals = strchr(spec, '=');
	size_t length;

	if (!equals || spec[0] != '/')
		return NULL;
	length = (size_t)(equals - spec);
	while (length > 1 && spec[length - 1] == '/')
		length--;
	*what = equals + 1;
	return length < 2 ? NULL : g_strndup(spec, length);
}

static void mount(struct config_tree *tree, struct config *config, const char *key,
		  enum pool_protocol protocol, const char *spec, resolver *resolve)
{
	const struct section none = {.given = g_new0(struct given, config_key_count)};
	struct given *given = tree->sections->len ? &((struct section *)tree->sections->pdata[0])
							     ->given[key_find(key, KEY_GLOBAL)]
						  : NULL;
	const char *what = NULL, *place = given ? given->place : NULL, *must;
	char *prefix = split(spec, &what);
	char *label = g_strdup_printf("%s%s \"%s\"", place ? "" : "--", key, spec);
	struct pool_config *pool;

	if (!prefix) {
		config_tree_complain(tree, place, "%s: must be /PREFIX=%s%s", label,
				     protocol == POOL_WORKER ? "COMMAND"
				     : protocol == POOL_CGI  ? "FOLDER"
							     : "ADDRESS",
				     what ? ", the prefix more than \"/\"" : "");
		g_free(none.given);
		g_free(label);
		return;
	}
	must = value_path(prefix);
	if (must)
		config_tree_complain(tree, place, "%s: the prefix %s", label, must);
	for (unsigned i = 0; i < config->mount_count; i++)
		if (strcmp(config->mounts[i].prefix, prefix) == 0)
			config_tree_complain(
				tree, place,
				"%s: %s answers below %s already, so this one would get "
				"no request",
				label, config->mounts[i].pool->label, prefix);
	pool = pool_config_new(prefix, place, label);
	g_free(label);
	resolve(tree, &none, pool);
	g_free(none.given);
	pool->mounted = true;
	pool->protocol = protocol;
	if (protocol == POOL_WORKER) {
		pool->command = g_strdup(what);
		pool->processes = config->workers;
		pool->memory = config->worker_memory;
	} else if (protocol == POOL_CGI) {
		pool->folder = g_strdup(what);
		pool->processes = CGI_PROCESSES;
	} else {
		g_strfreev(pool->upstream);
		pool->upstream = g_strsplit(what, ",", 0);
	}
	finish(tree, pool);
	add_pool(config, pool);
	config->mounts = g_renew(struct mount, config->mounts, config->mount_count + 1);
	config->mounts[config->mount_count++] =
		(struct mount){.prefix = prefix, .length = strlen(prefix), .pool = pool};
}

/* A pool is of all paths: it has no groups of a pattern. */
static void check_variables(struct config_tree *tree, struct config *config,
			    const struct section *section, const struct variables *variables)
{
	const char *place = section->given[key_find("variable", KEY_POOL)].place;

	for (unsigned i = 0; variables->values && variables->list[i]; i++) {
		const struct template *value = variables->values[i];

		if (!value)
			continue;
		config_map_check(tree, config, value, place);
		if (template_last_capture(value) >= 0)
			config_tree_complain(tree, place, "{%d}: only a [pattern] has groups",
					     template_last_capture(value));
	}
}

void config_pools(struct config_tree *tree, struct config *config, resolver *resolve)
{
	for (unsigned i = 1; i < tree->sections->len; i++) {
		const struct section *section = tree->sections->pdata[i];
		struct pool_config *pool;

		if (!(section->levels & KEY_POOL))
			continue;
		pool = pool_config_new(section->prefix, section->place, NULL);
		resolve(tree, section, pool);
		check_variables(tree, config, section, &pool->variables);
		finish(tree, pool);
		add_pool(config, pool);
	}
	for (unsigned i = 0; config->worker && config->worker[i]; i++)
		mount(tree, config, "worker", POOL_WORKER, config->worker[i], resolve);
	for (unsigned i = 0; config->cgi && config->cgi[i]; i++)
		mount(tree, config, "cgi", POOL_CGI, config->cgi[i], resolve);
	for (unsigned i = 0; config->fastcgi && config->fastcgi[i]; i++)
		mount(tree, config, "fastcgi", POOL_FASTCGI, config->fastcgi[i], resolve);
}

static void check_scope(struct config_tree *tree, const struct config *config,
			const struct host *host, const struct scope *scope)
{
	for (unsigned i = 0; scope->variables.list && i < config->pool_count; i++) {
		const struct pool_config *pool = config->pools[i];
		const char *wrong = pool_config_withholds(pool, &scope->variables);

		if (wrong && scope_leads(config, host, scope, pool))
			config_tree_complain(tree, scope->variable_place,
					     "variable \"%s\": %s gets the server's, which finds "
					     "the programs of its folder (variable= in the path of "
					     "the pool inherits none)",
					     wrong, pool->label);
	}
}

void config_pools_check(struct config_tree *tree, const struct config *config)
{
	for (unsigned i = 0; i < config->host_count; i++)
		for (unsigned k = 0; k < config->hosts[i].scope_count; k++)
			check_scope(tree, config, &config->hosts[i], &config->hosts[i].scopes[k]);
}
