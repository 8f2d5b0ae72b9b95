/* SPDX-License-Identifier: MIT */
/*
 * config-scope.c - see config-scope.h.
 */
#include <string.h>

#include "config/config-chain.h"
#include "config/config-key.h"
#include "config/config-pool.h"
#include "config/config-rule.h"
#include "config/config-scope.h"
#include "event/client-limit.h"

/*
 * Of root, alias and rewrite, the nearest counts; returns true if two of them are
 * equally near.
 */
static bool choose_files(struct scope *scope, const struct section *const *chain)
{
	unsigned root = chain_index(chain, "root"), alias = chain_index(chain, "alias");
	unsigned rewrite = chain_index(chain, "rewrite");

	scope->alias_skip = chain_skip(chain, alias);
	scope->rewrite_skip = chain_skip(chain, rewrite);
	if (scope->alias && scope->rewrite && alias == rewrite)
		return true;
	if (scope->alias && (root < alias || rewrite < alias))
		g_clear_pointer(&scope->alias, g_free);
	if (scope->rewrite && (root < rewrite || alias < rewrite))
		g_clear_pointer(&scope->rewrite, g_free);
	return false;
}

/* Makes the fields that depend on several keys. */
static void finish_scope(struct scope *scope, const struct section *const *chain)
{
	const struct section *of = chain_giver(chain, "request-rate");

	scope->redirect_skip = chain_skip(chain, chain_index(chain, "redirect"));
	scope->access = rule_access_list(scope->allow, scope->deny);
	if (scope->request_rate && of) {
		/* One limit for all paths that inherit it. */
		char *name = g_strconcat(of->host ? of->host : "", of->prefix, NULL);

		scope->rate = rate_new(name, scope->request_rate, scope->request_burst + 1);
		g_free(name);
	}
}

static void choose_pool(struct config_tree *tree, const struct config *config, struct scope *scope,
			const struct section *const *chain)
{
	if (!scope->pool_name)
		return;
	scope->pool = config_pool(config, scope->pool_name);
	scope->pool_skip = chain_skip(chain, chain_index(chain, "pool"));
	if (!scope->pool)
		config_tree_complain(tree, chain_place(chain, "pool"),
				     "pool \"%s\": there is no [pool %s]", scope->pool_name,
				     scope->pool_name);
}

static void choose_tried(struct config_tree *tree, const struct config *config, struct scope *scope,
			 const struct section *const *chain)
{
	struct try_file *last = scope->try_count ? &scope->tries[scope->try_count - 1] : NULL;

	if (!last || last->kind != TRY_POOL)
		return;
	last->pool = config_pool(config, last->text);
	scope->try_skip = chain_skip(chain, chain_index(chain, "try-files"));
	if (!last->pool)
		config_tree_complain(tree, chain_place(chain, "try-files"),
				     "try-files \"pool:%s\": there is no [pool %s]", last->text,
				     last->text);
}

void scope_add(struct config_tree *tree, struct config *config, struct host *host,
	       struct section *section, const struct section *const *chain)
{
	struct scope *scope;
	unsigned at;

	for (at = 0; at < host->scope_count; at++)
		if (strlen(section->prefix) >= host->scopes[at].prefix_length)
			break;
	host->scopes = g_renew(struct scope, host->scopes, host->scope_count + 1);
	memmove(&host->scopes[at + 1], &host->scopes[at],
		(host->scope_count - at) * sizeof(*scope));
	host->scope_count++;
	scope = &host->scopes[at];
	*scope = (struct scope){.prefix = g_strdup(section->prefix),
				.prefix_length = strlen(section->prefix)};
	chain_resolve(tree, KEY_SCOPE | (section->levels & KEY_PATH), chain, scope);
	finish_scope(scope, chain);
	if (choose_files(scope, chain))
		config_tree_complain(tree, section->place, "alias and rewrite exclude each other");
	choose_pool(tree, config, scope, chain);
	choose_tried(tree, config, scope, chain);
	scope->root_place = g_strdup(chain_place(chain, scope->alias ? "alias" : "root"));
	scope->auth_place = g_strdup(chain_place(chain, "auth-file"));
	if (scope->auth_realm && !scope->auth_file) {
		const char *place = chain_place(chain, "auth-realm");

		config_tree_complain(tree, place ? place : "--auth-realm",
				     "auth-realm needs an auth-file");
	}
}

/* Of two enclosing paths, the longer one is nearer. */
static int compare_nearness(const void *a, const void *b)
{
	const struct section *const *left = a, *const *right = b;
	size_t left_length = strlen((*left)->prefix), right_length = strlen((*right)->prefix);

	return left_length > right_length ? -1 : left_length < right_length;
}

static bool lies_in(const struct section *section, const struct section *outer)
{
	size_t length = strlen(outer->prefix);

	return outer->levels & KEY_PATH && g_strcmp0(section->host, outer->host) == 0 &&
	       strncmp(section->prefix, outer->prefix, length) == 0 &&
	       section->prefix[length] == '/';
}

static const struct section *find_host(const struct config_tree *tree, const char *name)
{
	for (unsigned i = 1; i < tree->sections->len; i++) {
		const struct section *section = tree->sections->pdata[i];

		if (section->levels & KEY_HOST && strcmp(section->host, name) == 0)
			return section;
	}
	return NULL;
}

void scope_resolve_path(struct config_tree *tree, struct config *config, struct section *section)
{
	const struct section *of = section->host ? find_host(tree, section->host) : NULL;
	struct host *host = &config->hosts[0];
	GPtrArray *chain;

	if (section->host && !of) {
		config_tree_complain(tree, section->place, "there is no [host %s]", section->host);
		return;
	}
	for (unsigned i = 1; of && i < config->host_count; i++)
		if (strcmp(config->hosts[i].name, of->host) == 0)
			host = &config->hosts[i];
	chain = g_ptr_array_new();
	for (unsigned i = 1; i < tree->sections->len; i++)
		if (lies_in(section, tree->sections->pdata[i]))
			g_ptr_array_add(chain, tree->sections->pdata[i]);
	g_ptr_array_sort(chain, compare_nearness);
	g_ptr_array_insert(chain, 0, section);
	if (of)
		g_ptr_array_add(chain, (void *)(uintptr_t)of);
	g_ptr_array_add(chain, tree->sections->pdata[0]);
	g_ptr_array_add(chain, NULL);
	scope_add(tree, config, host, section, (const struct section *const *)(void *)chain->pdata);
	g_ptr_array_unref(chain);
}
