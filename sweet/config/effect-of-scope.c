/* SPDX-License-Identifier: MIT */
/*
 * effect-of-scope.c - see effect-of-scope.h.
 */
#include <glib.h>
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/path-prefix.h"
#include "coding/compress-rule.h"
#include "config/config-tree.h"
#include "config/configuration.h"
#include "config/effect-of-scope.h"
#include "config/pool-config.h"
#include "rules/template.h"

/* --- whether requests come there at all ------------------------------------------------- */

/* Whether rewrite or try-files of another path of the host leads to one of the scope. */
static bool is_led(const struct host *host, const struct scope *scope)
{
	for (unsigned i = 0; i < host->scope_count; i++) {
		const struct scope *other = &host->scopes[i];
		const struct try_file *last =
			other->try_count ? &other->tries[other->try_count - 1] : NULL;

		/* Where a text with variables leads is not known. */
		if (other->rewrite_text ||
		    (other->rewrite && path_lies_in(other->rewrite, scope->prefix)))
			return true;
		/* "/" leads everywhere, but is not meant so. */
		if (other->rewrite && other->rewrite[1] &&
		    g_strcmp0(other->rewrite, scope->rewrite) != 0 &&
		    path_lies_in(scope->prefix, other->rewrite))
			return true;
		if (last && last->kind == TRY_PATH && path_lies_in(last->text, scope->prefix))
			return true;
	}
	return false;
}

static bool always_redirects(const struct scope *scope)
{
	return scope->redirect_to && !scope->redirect_tls &&
	       !(scope->redirect_text && template_uses(scope->redirect_text, TEMPLATE_MAP));
}

static const char *find_lost(const struct host *host, const struct scope *scope)
{
	const char *key = always_redirects(scope) ? "redirect" : scope->rewrite ? "rewrite" : NULL;

	/* An exact path, or that of a pattern, may be an index, which is not led on. */
	if (!key || scope->rule || scope->chain[0]->exact || is_led(host, scope))
		return NULL;
	return key;
}

/* --- what answers ------------------------------------------------------------------------ */

static unsigned effect_of_pool(const struct pool_config *pool)
{
	unsigned has = EFFECT_PROGRAMS;

	if (pool->protocol != POOL_HTTP)
		has |= EFFECT_VARIABLES;
	if (pool->protocol == POOL_FASTCGI || pool->protocol == POOL_CGI)
		has |= EFFECT_SCRIPTS;
	if (pool->accel && pool->accel[0])
		has |= EFFECT_FILES;
	return has;
}

/* Of what try-files tries. */
static unsigned effect_of_tries(const struct scope *scope)
{
	unsigned has = EFFECT_TRIES;

	for (unsigned i = 0; i < scope->try_count; i++) {
		const struct try_file *item = &scope->tries[i];

		if (item->kind == TRY_POOL && item->pool)
			has |= effect_of_pool(item->pool) |
			       (item->pool == scope->pool ? EFFECT_POOL : 0);
		/* A path is tried once: behind it may be a file. */
		else if (item->kind != TRY_STATUS && item->kind != TRY_POOL)
			has |= EFFECT_FILES;
		/* It runs the index of a folder. */
		if (item->kind == TRY_FOLDER && scope->pool &&
		    scope->pool->protocol == POOL_FASTCGI)
			has |= effect_of_pool(scope->pool) | EFFECT_POOL;
	}
	return has;
}

static unsigned effect_of_answers(const struct config *config, const struct scope *scope)
{
	unsigned has = 0;

	for (unsigned i = 0; i < config->mount_count; i++) {
		const struct mount *mount = &config->mounts[i];

		/* The option answers all requests. */
		if (path_lies_in(scope->prefix, mount->prefix))
			return effect_of_pool(mount->pool);
		if (path_lies_in(mount->prefix, scope->prefix))
			has |= effect_of_pool(mount->pool);
	}
	if (scope->try_count)
		has |= effect_of_tries(scope);
	else if (scope->pool)
		has |= effect_of_pool(scope->pool) | EFFECT_POOL;
	else
		has |= EFFECT_FILES;
	if (config->scripts && !scope->pool && !scope->no_scripts)
		has |= EFFECT_PROGRAMS | EFFECT_VARIABLES | EFFECT_SCRIPTS;
	if (scope->webdav)
		has |= EFFECT_WRITERS;
	return has;
}

unsigned effect_of_scope(const struct config *config, const struct host *host,
			 const struct scope *scope, const char **lost)
{
	unsigned has = 0;

	*lost = find_lost(host, scope);
	if (!*lost)
		has |= effect_of_answers(config, scope);
	if (scope->compress.codings && has & (EFFECT_FILES | EFFECT_PROGRAMS))
		has |= EFFECT_CODINGS | (has & EFFECT_PROGRAMS ? EFFECT_CODED_PROGRAMS : 0);
	if (scope->error_page_count && has & EFFECT_PROGRAMS)
		has |= EFFECT_PAGED_PROGRAMS;
	if ((scope->rewrite || scope->rewrite_text) &&
	    !(always_redirects(scope) && !is_led(host, scope)))
		has |= EFFECT_REWRITES;
	/* An exact path of a folder is without the slash at its end, which is redirected. */
	if (has & EFFECT_FILES && !(scope->chain[0]->exact && scope->prefix[1]))
		has |= EFFECT_FOLDERS;
	if (scope->auth_realm)
		has |= EFFECT_REALM;
	if (scope->request_rate)
		has |= EFFECT_RATE;
	if (config->slow_log && strcmp(config->slow_log, "off") != 0)
		has |= EFFECT_SLOW;
	return has;
}
