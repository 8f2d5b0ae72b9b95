/* SPDX-License-Identifier: MIT */
/*
 * config-scope.c - see config-scope.h.
 */
#include <glib.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "config/config-chain.h"
#include "config/config-key.h"
#include "config/config-map.h"
#include "config/config-pool.h"
#include "config/config-rule.h"
#include "config/config-scope.h"
#include "config/config-tree.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "http/uri.h"
#include "rules/header-rule.h"
#include "rules/path-pattern.h"
#include "rules/request-rule.h"
#include "rules/template.h"
#include "rules/variable.h"

/* All patterns apply to all paths of their host: their product is limited. */
#define SCOPES_MAX 20000u

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
	rule_compress_finish(scope);
	if (scope->request_rate && of) {
		/* One limit for all paths that inherit it. */
		bool whole = of->levels & KEY_PATH && !*of->prefix;

		scope->rate_name = g_strconcat(of->host ? of->host : "", of->exact ? "=" : "",
					       whole ? "/" : of->prefix, of->pattern ? "~" : "",
					       of->pattern, NULL);
	}
}

static void choose_pool(struct config_tree *tree, const struct config *config, struct scope *scope,
			const struct section *const *chain)
{
	/* Its value is off. */
	scope->no_scripts = !scope->pool_name && chain_giver(chain, "pool");
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

	/* A nearer pool answers all requests itself. */
	if (last && scope->pool && chain_index(chain, "pool") < chain_index(chain, "try-files")) {
		scope_free_tries(scope);
		return;
	}
	if (!last || last->kind != TRY_POOL)
		return;
	last->pool = config_pool(config, last->text);
	scope->try_skip = chain_skip(chain, chain_index(chain, "try-files"));
	if (!last->pool)
		config_tree_complain(tree, chain_place(chain, "try-files"),
				     "try-files \"pool:%s\": there is no [pool %s]", last->text,
				     last->text);
}

/* Returns the highest group of a template, or -1. */
static int check_text(struct config_tree *tree, struct config *config,
		      const struct template *template, const char *place)
{
	config_map_check(tree, config, template, place);
	return template_last_capture(template);
}

/* The same of what responses and programs get. */
static int check_texts(struct config_tree *tree, struct config *config, const struct scope *scope,
		       const struct section *const *chain)
{
	const struct variables *variables = &scope->variables;
	int used = -1;

	for (unsigned i = 0; i < scope->header_rule_count; i++)
		if (scope->header_rules[i].value)
			used = MAX(used, check_text(tree, config, scope->header_rules[i].value,
						    chain_place(chain, "header")));
	for (unsigned i = 0; i < scope->request_rule_count; i++)
		if (scope->request_rules[i].value)
			used = MAX(used, check_text(tree, config, scope->request_rules[i].value,
						    chain_place(chain, "request-header")));
	for (unsigned i = 0; variables->values && variables->list[i]; i++)
		if (variables->values[i])
			used = MAX(used, check_text(tree, config, variables->values[i],
						    chain_place(chain, "variable")));
	return used;
}

/* Redirects and rewrites with variables, and those of patterns, replace the whole path. */
static void choose_texts(struct config_tree *tree, struct config *config, struct scope *scope,
			 const struct section *const *chain)
{
	const struct section *of = chain_giver(chain, "redirect");
	int groups = scope->rule && scope->rule->pattern
			     ? (int)path_pattern_groups(scope->rule->pattern)
			     : -1;
	int used = check_texts(tree, config, scope, chain);

	if (scope->redirect_text && template_is_constant(scope->redirect_text) &&
	    !(of && of->pattern))
		g_clear_pointer(&scope->redirect_text, template_free);
	if (scope->rewrite_text)
		g_clear_pointer(&scope->rewrite, g_free);
	if (scope->redirect_text)
		used = MAX(used, check_text(tree, config, scope->redirect_text,
					    chain_place(chain, "redirect")));
	if (scope->rewrite_text)
		used = MAX(used, check_text(tree, config, scope->rewrite_text, chain[0]->place));
	if (used <= groups || (scope->rule && !scope->rule->pattern))
		return;
	if (scope->rule)
		config_tree_complain(tree, chain[0]->place,
				     "{%d}: the expression of [pattern %s] has %d groups", used,
				     scope->rule->name, groups);
	else
		config_tree_complain(tree, chain[0]->place, "{%d}: only a [pattern] has groups",
				     used);
}

/* Replaces {host} in the name of a folder by the name of the host's section. */
static void name_folder(char **folder, const struct host *host)
{
	char **parts = g_strsplit(*folder ? *folder : "", "{host}", -1);

	if (parts[0] && parts[1]) {
		g_free(*folder);
		*folder = g_strjoinv(*host->name ? host->name : "default", parts);
	}
	g_strfreev(parts);
}

static const struct section **copy_chain(const struct section *const *chain)
{
	unsigned count = 0;

	while (chain[count])
		count++;
	return g_memdup2(chain, (count + 1) * sizeof(*chain));
}

/* Fills a scope of that prefix with what the chain's first section says or inherits. */
static void fill(struct config_tree *tree, struct config *config, const struct host *host,
		 struct scope *scope, unsigned levels, const struct section *const *chain)
{
	/* A pattern stands before what it is added to. */
	const struct section *of = chain[0]->pattern && chain[1] ? chain[1] : chain[0];
	const char *prefix = of->prefix;

	scope->prefix = g_strdup(prefix);
	scope->prefix_length = strlen(prefix);
	scope->chain = copy_chain(chain);
	chain_resolve(tree, levels, chain, scope);
	name_folder(&scope->root, host);
	name_folder(&scope->alias, host);
	finish_scope(scope, chain);
	if (choose_files(scope, chain)) {
		/* The section that has both, which others may inherit; they say the same line. */
		const struct section *has = chain_giver(chain, "alias");

		config_tree_complain(tree, has ? has->place : chain[0]->place,
				     "alias and rewrite exclude each other");
	}
	choose_texts(tree, config, scope, chain);
	choose_pool(tree, config, scope, chain);
	choose_tried(tree, config, scope, chain);
	scope->root_place = g_strdup(chain_place(chain, scope->alias ? "alias" : "root"));
	scope->auth_place = g_strdup(chain_place(chain, "auth-file"));
	scope->webdav_place = g_strdup(chain_place(chain, "webdav"));
	scope->variable_place = g_strdup(chain_place(chain, "variable"));
	if (scope->auth_realm && !scope->auth_file) {
		const char *place = chain_place(chain, "auth-realm");

		config_tree_complain(tree, place ? place : "--auth-realm",
				     "auth-realm needs an auth-file");
	}
}

/* Makes room for a scope before that one. */
static struct scope *insert(struct host *host, unsigned at)
{
	host->scopes = g_renew(struct scope, host->scopes, host->scope_count + 1);
	memmove(&host->scopes[at + 1], &host->scopes[at],
		(host->scope_count - at) * sizeof(host->scopes[0]));
	host->scope_count++;
	host->scopes[at] = (struct scope){0};
	return &host->scopes[at];
}

/* Adds the scope of a prefix. */
static void scope_add(struct config_tree *tree, struct config *config, struct host *host,
		      struct section *section, const struct section *const *chain)
{
	unsigned at;

	for (at = 0; at < host->scope_count; at++)
		if (strlen(section->prefix) >= host->scopes[at].prefix_length)
			break;
	fill(tree, config, host, insert(host, at), KEY_SCOPE | KEY_PATH, chain);
}

/* Call it when all prefixes have their scopes. */
static void scope_add_exact(struct config_tree *tree, struct config *config, struct host *host,
			    struct section *section, const struct section *const *chain)
{
	if (section->given[key_find("alias", KEY_PATH)].values)
		config_tree_complain(tree, section->place,
				     "alias: not for an exact path; rewrite leads to another file");
	if (!host->exact)
		host->exact = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	fill(tree, config, host, insert(host, host->scope_count), KEY_SCOPE | KEY_PATH, chain);
	g_hash_table_insert(host->exact, g_strdup(section->prefix),
			    GUINT_TO_POINTER(host->scope_count));
}

/* Of two enclosing paths, the longer one is nearer. */
static int scope_compare_nearness(const void *a, const void *b)
{
	const struct section *const *left = a, *const *right = b;
	size_t left_length = strlen((*left)->prefix), right_length = strlen((*right)->prefix);

	return left_length > right_length ? -1 : left_length < right_length;
}

static bool lies_in(const struct section *section, const struct section *outer)
{
	size_t length = strlen(outer->prefix);

	return outer->levels & KEY_PATH && !outer->exact && outer != section &&
	       g_strcmp0(section->host, outer->host) == 0 &&
	       strncmp(section->prefix, outer->prefix, length) == 0 &&
	       (section->prefix[length] == '/' || section->prefix[length] == '\0');
}

/* Returns the section of the host of a path or pattern, or NULL after a complaint. */
static const struct section *host_section(struct config_tree *tree, const struct section *section)
{
	for (unsigned i = 0; i < tree->sections->len; i++) {
		const struct section *of = tree->sections->pdata[i];

		if (section->host ? of->levels & KEY_HOST && strcmp(section->host, of->host) == 0
				  : of->levels & KEY_GLOBAL)
			return of;
	}
	config_tree_complain(tree, section->place, "there is no [host %s]", section->host);
	return NULL;
}

static struct host *host_of(const struct config *config, const struct section *of)
{
	for (unsigned i = 1; i < config->host_count; i++)
		if (g_strcmp0(config->hosts[i].name, of->host) == 0)
			return &config->hosts[i];
	return &config->hosts[0];
}

/* Returns the chain of a path, or of a host, which begins with its [path /]. */
static GPtrArray *make_chain(const struct config_tree *tree, const struct section *section,
			     const struct section *of)
{
	GPtrArray *chain = g_ptr_array_new();

	for (unsigned i = 1; i < tree->sections->len; i++)
		if (lies_in(section, tree->sections->pdata[i]))
			g_ptr_array_add(chain, tree->sections->pdata[i]);
	g_ptr_array_sort(chain, scope_compare_nearness);
	if (section != of)
		g_ptr_array_insert(chain, 0, (void *)(uintptr_t)section);
	g_ptr_array_add(chain, (void *)(uintptr_t)of);
	if (of != tree->sections->pdata[0])
		g_ptr_array_add(chain, tree->sections->pdata[0]);
	g_ptr_array_add(chain, NULL);
	return chain;
}

static const struct section *const *sections_of(const GPtrArray *chain)
{
	return (const struct section *const *)(void *)chain->pdata;
}

void scope_add_host(struct config_tree *tree, struct config *config, struct host *host,
		    struct section *section)
{
	GPtrArray *chain = make_chain(tree, section, section);

	scope_add(tree, config, host, section, sections_of(chain));
	g_ptr_array_unref(chain);
}

void scope_resolve_path(struct config_tree *tree, struct config *config, struct section *section)
{
	const struct section *of = host_section(tree, section);
	GPtrArray *chain;

	/* Its host has the scope of [path /]. */
	if (!of || !*section->prefix)
		return;
	if (strstr(section->prefix, "%2F") && host_of(config, of)->escaped_slash != URI_SLASH_KEEP)
		config_tree_complain(tree, section->place,
				     "path \"%s\": %%2F is a part of a path only with "
				     "escaped-slash=keep",
				     section->prefix);
	chain = make_chain(tree, section, of);
	(section->exact ? scope_add_exact : scope_add)(tree, config, host_of(config, of), section,
						       sections_of(chain));
	g_ptr_array_unref(chain);
}

/* Of a character; escaped-slash=keep leaves those of slashes. */
static bool has_escape(const char *text)
{
	for (; (text = strchr(text, '%')); text++)
		if (g_ascii_isxdigit(text[1]) && g_ascii_isxdigit(text[2]) &&
		    strncmp(text, "%2F", 3) != 0)
			return true;
	return false;
}

static void add_rule(struct config_tree *tree, struct host *host, const struct section *section)
{
	const struct given *given = &section->given[key_find("match", KEY_PATTERN)];
	struct path_rule *rule = g_new0(struct path_rule, 1);
	char *why = NULL;

	rule->name = g_strdup(section->pattern);
	host->rules = g_renew(struct path_rule *, host->rules, host->rule_count + 1);
	host->rules[host->rule_count++] = rule;
	if (!given->values) {
		config_tree_complain(tree, section->place, "[pattern %s] needs match=EXPRESSION",
				     section->pattern);
		return;
	}
	if (has_escape(given->values[0]))
		config_tree_warn(
			tree, given->place,
			"match \"%s\": paths are compared decoded, so no path has %%XX in it",
			given->values[0]);
	rule->pattern = path_pattern_compile(given->values[0], &why);
	if (!rule->pattern)
		config_tree_complain(tree, given->place, "match \"%s\": %s", given->values[0],
				     why ? why : "no memory");
	g_free(why);
}

/* Adds the scopes of all patterns for the paths of a prefix, or for the host itself. */
static void add_patterns(struct config_tree *tree, struct config *config, struct host *host,
			 const GPtrArray *patterns, const struct section *section,
			 const struct section *of)
{
	GPtrArray *chain = make_chain(tree, section, of);
	unsigned prefix = 0;

	while (strcmp(host->scopes[prefix].prefix, section->prefix) != 0)
		prefix++;
	host->scopes[prefix].first_pattern = host->scope_count;
	host->scopes[prefix].pattern_count = host->rule_count;
	g_ptr_array_insert(chain, 0, NULL);
	for (unsigned i = 0; i < patterns->len; i++) {
		struct scope *scope = insert(host, host->scope_count);

		chain->pdata[0] = patterns->pdata[i];
		scope->rule = host->rules[i];
		fill(tree, config, host, scope, KEY_SCOPE | KEY_PATH | KEY_PATTERN,
		     sections_of(chain));
	}
	g_ptr_array_unref(chain);
}

static void resolve_host(struct config_tree *tree, struct config *config, const struct section *of)
{
	struct host *host = host_of(config, of);
	GPtrArray *patterns = g_ptr_array_new();

	for (unsigned i = 1; i < tree->sections->len; i++) {
		const struct section *section = tree->sections->pdata[i];

		if (section->pattern && g_strcmp0(section->host, of->host) == 0) {
			add_rule(tree, host, section);
			g_ptr_array_add(patterns, (void *)(uintptr_t)section);
		}
	}
	if ((uint64_t)patterns->len * host->scope_count > SCOPES_MAX)
		config_tree_complain(tree, of->place,
				     "%u patterns for each of %u paths are too many: at most %u "
				     "in all",
				     patterns->len, host->scope_count, SCOPES_MAX);
	else if (patterns->len)
		for (unsigned i = 0; i < tree->sections->len; i++) {
			const struct section *section = tree->sections->pdata[i];

			if (section == of ||
			    (section->levels & KEY_PATH && !section->exact && *section->prefix &&
			     g_strcmp0(section->host, of->host) == 0))
				add_patterns(tree, config, host, patterns, section, of);
		}
	g_ptr_array_unref(patterns);
}

void scope_resolve_patterns(struct config_tree *tree, struct config *config)
{
	for (unsigned i = 0; i < tree->sections->len; i++) {
		const struct section *section = tree->sections->pdata[i];

		if (section->pattern)
			(void)host_section(tree, section);
		else if (section->levels & (KEY_GLOBAL | KEY_HOST))
			resolve_host(tree, config, section);
	}
}

/* They are opened as all folders are, but no path leads to them. */
void scope_add_folders(struct config_tree *tree, struct config *config)
{
	const struct section *of = tree->sections->pdata[0];
	GPtrArray *chain = make_chain(tree, of, of);

	config->first_folder = config->hosts[0].scope_count;
	for (unsigned i = 0; i < config->pool_count; i++) {
		const struct pool_config *pool = config->pools[i];

		for (char **folder = pool->accel; folder && *folder; folder++) {
			struct scope *scope;

			if (**folder != '/')
				continue;
			scope = insert(&config->hosts[0], config->hosts[0].scope_count);
			fill(tree, config, &config->hosts[0], scope, KEY_SCOPE, sections_of(chain));
			g_free(scope->alias);
			g_free(scope->root_place);
			scope->alias = g_strdup(*folder);
			scope->root_place = g_strdup(pool->place);
			scope->accel_pool = g_strdup(pool->name);
			g_clear_pointer(&scope->chain, g_free);
			scope->hidden = true;
		}
	}
	g_ptr_array_unref(chain);
}
