/* SPDX-License-Identifier: MIT */
/*
 * config-webdav.c - see config-webdav.h.
 *
 * A client that writes a file where programs are run can run whatever it wants.  So the folder of a
 * path with webdav must not have, nor lie in, one whose scripts run, under whatever path.
 */
#include <glib.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/path-prefix.h"
#include "config/arch.h"
#include "config/config-tree.h"
#include "config/config-webdav.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "tls/tls.h"

/* The folder that one of the scope's paths leads to, without links where it exists. */
static char *folder_of(const struct scope *scope, const char *path)
{
	const char *rest = path + (scope->alias ? scope->alias_skip : 0);
	char *joined = g_strconcat(scope->alias ? scope->alias : scope->root, rest, NULL);
	char *whole = g_canonicalize_filename(joined, NULL), *real = realpath(whole, NULL);

	g_free(joined);
	if (!real)
		return whole;
	g_free(whole);
	whole = g_strdup(real);
	free(real);
	return whole;
}

struct checking {
	struct config_tree *tree;
	const struct config *config;
	const struct host *host;
	const struct scope *scope; /* with webdav */
};

static void complain(const struct checking *checking, const char *why)
{
	const struct scope *scope = checking->scope;

	config_tree_complain(checking->tree, scope->webdav_place, "webdav for %s%s%s%s: %s",
			     checking->host->name, *scope->prefix ? scope->prefix : "/",
			     scope->rule ? ", pattern " : "", scope->rule ? scope->rule->name : "",
			     why);
}

static void complain_of(const struct checking *checking, const char *what, const char *name)
{
	char *why = g_strdup_printf(what, name);

	complain(checking, why);
	g_free(why);
}

/* Whether one of two folders lies in the other. */
static bool overlap(const char *one, const char *other)
{
	return path_lies_in(one, other) || path_lies_in(other, one);
}

/* The programs of a CGI folder, and those that a command names. */
static void check_programs(const struct checking *checking, const struct pool_config *pool,
			   const char *folder)
{
	struct scope programs = {.root = pool->folder};
	char *other = pool->folder ? folder_of(&programs, "") : NULL;

	if (other && overlap(folder, other))
		complain_of(checking, "%s runs the programs of that folder", pool->label);
	g_free(other);
	for (char **part = pool->argv; part && *part; part++) {
		other = g_canonicalize_filename(*part, pool->directory);
		if (strchr(*part, '/') && path_lies_in(other, folder))
			complain_of(checking, "the command of %s names a file in that folder",
				    pool->label);
		g_free(other);
	}
}

/* A FastCGI application may run what is in the folders of the paths that lead to it. */
static void check_scripts(const struct checking *checking, const struct pool_config *pool,
			  const char *folder)
{
	const struct config *config = checking->config;

	for (unsigned i = 0; i < config->host_count; i++)
		for (unsigned k = 0; k < config->hosts[i].scope_count; k++) {
			const struct host *host = &config->hosts[i];
			const struct scope *scope = &host->scopes[k];
			const char *path = scope_leads(config, host, scope, pool);
			char *other = path ? folder_of(scope, path) : NULL;

			if (other && overlap(folder, other))
				complain_of(checking,
					    "%s may run scripts of that folder: give it another "
					    "root or alias",
					    pool->label);
			g_free(other);
		}
}

static void check_pools(const struct checking *checking, const char *folder)
{
	const struct config *config = checking->config;

	for (unsigned i = 0; i < config->pool_count; i++) {
		const struct pool_config *pool = config->pools[i];

		if (pool->suffix)
			complain_of(checking,
				    "%s runs files by their suffix, wherever they are; a server "
				    "with it cannot let clients write",
				    pool->label);
		check_programs(checking, pool, folder);
		if (pool->protocol == POOL_FASTCGI)
			check_scripts(checking, pool, folder);
	}
}

/* What a client must not change, as it decides what the server does. */
static void check_file(const struct checking *checking, const char *folder, const char *file,
		       const char *what)
{
	char *whole = file ? g_canonicalize_filename(file, NULL) : NULL;

	if (whole && path_lies_in(whole, folder))
		complain_of(checking, "%s lies in that folder, where clients could write it", what);
	g_free(whole);
}

static void check_users(const struct checking *checking, const char *folder)
{
	const struct scope *scope = checking->scope;

	if (!(scope->auth_realm && scope->auth_file) &&
	    checking->host->client_certificate != TLS_CLIENT_REQUIRED)
		complain(checking,
			 "needs auth-realm and auth-file, or client-certificate=required: "
			 "without them, anybody could write");
	check_file(checking, folder, scope->auth_file, "auth-file");
	check_file(checking, folder, checking->config->file, "the configuration");
}

static void check(const struct checking *checking)
{
	const struct scope *scope = checking->scope;
	char *folder = folder_of(scope, scope->prefix);

	check_users(checking, folder);
	if (checking->config->read_only)
		complain(checking, "read-only=on permits no writing");
	if (checking->config->arch == ARCH_MP)
		complain(checking, "not with arch=mp, whose processes do not share locks");
	if (scope->pool)
		complain_of(checking, "%s answers there, and no file (pool=off for this path)",
			    scope->pool->label);
	if (scope->rewrite || scope->rewrite_text)
		complain(checking, "excludes rewrite");
	if (scope->try_count)
		complain(checking, "excludes try-files (try-files=off for this path)");
	check_pools(checking, folder);
	g_free(folder);
}

void config_webdav_check(struct config_tree *tree, struct config *config)
{
	struct checking checking = {.tree = tree, .config = config};

	for (unsigned i = 0; i < config->host_count; i++)
		for (unsigned k = 0; k < config->hosts[i].scope_count; k++) {
			checking.host = &config->hosts[i];
			checking.scope = &config->hosts[i].scopes[k];
			if (!checking.scope->webdav || checking.scope->accel_pool)
				continue;
			config->webdav = true;
			check(&checking);
		}
}
