/* SPDX-License-Identifier: MIT */
/*
 * config-effect.c - see config-effect.h.
 *
 * What a section sets counts for the scopes and hosts that inherit it.  So each of them marks the keys
 * that do something there; a key that no mark has reached does nothing.  Where that cannot be known
 * from the configuration alone, a key counts as one that does something.
 */
#include <glib.h>
#include <nabc.h>
#include <stdbool.h>
#include <string.h>

#include "coding/compress-rule.h"
#include "config/config-chain.h"
#include "config/config-effect.h"
#include "config/config-key.h"
#include "config/config-tree.h"
#include "config/configuration.h"
#include "config/effect-of-scope.h"
#include "config/pool-config.h"
#include "log/span-send.h"
#include "tls/tls.h"

/* --- the tables: what each key needs; those that are not here always have an effect --------- */

struct need {
	const char *key;
	unsigned any; /* it works with one of these */
	const char *why;
	bool grave; /* without it, the server does what the operator did not want */
};

#define NO_FILES "no request is answered with a file there"
#define NO_FOLDERS "no folder is answered with files there (its path ends with a slash)"
#define NO_PROGRAMS "no program answers there"
#define NO_CODINGS "compress has no coding there, or a field of header forbids it"

static const struct need of_scopes[] = {
	{"index", EFFECT_FOLDERS | EFFECT_SCRIPTS, NO_FOLDERS, false},
	{"listing", EFFECT_FOLDERS, NO_FOLDERS, false},
	{"precompressed", EFFECT_FILES, NO_FILES, false},
	{"cache-control", EFFECT_FILES, NO_FILES, false},
	{"charset", EFFECT_FILES | EFFECT_PAGES, NO_FILES, false},
	{"default-type", EFFECT_FILES | EFFECT_PAGES, NO_FILES, false},
	{"types", EFFECT_FILES | EFFECT_PAGES, NO_FILES, false},
	{"hidden", EFFECT_FILES | EFFECT_SCRIPTS, NO_FILES, false},
	{"alias", EFFECT_FILES | EFFECT_PAGES | EFFECT_VARIABLES,
	 "neither files nor programs take a folder there", false},
	{"compress", EFFECT_FILES | EFFECT_PROGRAMS, "nothing is sent there", false},
	{"compress-types", EFFECT_CODINGS, NO_CODINGS, false},
	{"compress-min", EFFECT_CODINGS, NO_CODINGS, false},
	{"compress-max", EFFECT_CODINGS, NO_CODINGS, false},
	{"compress-uncached", EFFECT_CODED_PROGRAMS,
	 "no program answers there, or compress has no coding", false},
	{"intercept-errors", EFFECT_PAGED_PROGRAMS,
	 "no program answers there, or there is no error-page", false},
	{"cache", EFFECT_PROGRAMS, NO_PROGRAMS, false},
	{"request-header", EFFECT_PROGRAMS, NO_PROGRAMS, false},
	{"variable", EFFECT_VARIABLES, "no program that gets variables answers there", false},
	{"max-body", EFFECT_PROGRAMS | EFFECT_WRITERS, "no program answers there", false},
	{"try-files", EFFECT_TRIES, "something else answers there: a nearer pool, or an option",
	 false},
	{"pool", EFFECT_POOL, "try-files, or an option (worker, cgi, fastcgi), answers instead",
	 false},
	{"rewrite", EFFECT_REWRITES, "root or alias of a path below it comes first", false},
	{"auth-file", EFFECT_REALM, "without auth-realm, nobody is asked for a password", true},
	{"request-burst", EFFECT_RATE, "there is no request-rate", false},
	{"slow-time", EFFECT_SLOW, "there is no slow-log", false},
};

enum { TLS = 1, CLIENTS = 2, HTTPS = 4, LOG = 8, CLOSED = 16 };

#define NO_TLS "no address of listen has TLS"

static const struct need of_hosts[] = {
	{"certificate", TLS, NO_TLS, false},
	{"key", TLS, NO_TLS, false},
	{"ocsp-staple", TLS, NO_TLS, false},
	{"tls-profile", TLS, NO_TLS, false},
	{"tls-groups", TLS, NO_TLS, false},
	{"client-certificate", TLS | CLOSED, NO_TLS, false},
	{"client-ca", CLIENTS, "without client-certificate, no client is asked for one", true},
	{"tls-alpn-01", TLS, NO_TLS, false},
	{"hsts", HTTPS, NO_TLS ", and there are no trusted-proxies", false},
	{"log-format", LOG, "there is no access-log", false},
};

enum {
	WORKERS = 1,
	PROXIES = 2,
	TRACE = 4,
	EXPORT = 8,
	SECURE_EXPORT = 16,
	STATUS = 32,
	HTTP2 = 64,
	STREAMS = 128,
	SECURE = 256
};

static const struct need of_server[] = {
	{"workers", WORKERS, "there is no option worker; pools have processes", false},
	{"worker-memory", WORKERS, "there is no option worker; pools have memory", false},
	{"forwarded", PROXIES, "there are no trusted-proxies", false},
	{"trace-sample", TRACE, "trace is off", false},
	{"trace-service", EXPORT, "there is no trace-export", false},
	{"trace-header", EXPORT, "there is no trace-export", false},
	{"trace-ca", SECURE_EXPORT, "trace-export has no https URL", false},
	{"status-allow", STATUS, "status is off", false},
	{"status-listen", STATUS, "status is off", false},
	{"max-streams", HTTP2, "http2 is off", false},
	{"compress-streams", STREAMS, "no path has compress-uncached", false},
	{"tls-records", SECURE, NO_TLS, false},
};

enum {
	FASTCGI = 1,
	COMMAND = 2,
	MANY = 4,
	UPSTREAM = 8,
	UPGRADE = 16,
	WORKER = 32,
	KEPT = 64,
	NO_WORKER = 128,
	NAMES = 256
};

static const struct need of_pools[] = {
	{"script-suffix", FASTCGI, "the pool has a suffix, or is not of FastCGI", false},
	{"processes", COMMAND, "the server does not start programs at upstream", false},
	{"in-flight", MANY, "each of these programs has one request at a time", false},
	{"keep-connection", UPSTREAM, "it is about connections to upstream", false},
	{"resolve-interval", NAMES, "no address of upstream is a name", false},
	{"upgrade-timeout", UPGRADE, "there is no upgrade", false},
	{"max-tunnels", UPGRADE, "there is no upgrade", false},
	{"tunnels-per-client", UPGRADE, "there is no upgrade", false},
	{"memory", WORKER, "the pool has no workers", false},
	{"max-requests", KEPT, "no process of the server has more than one request", false},
	{"request-buffering", NO_WORKER, "workers read their requests' bodies themselves", false},
	{"response-buffering", NO_WORKER, "workers keep their responses themselves", false},
};

/* --- marks --------------------------------------------------------------------------------- */

static const struct need *find(const struct need *needs, size_t count, const char *key)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(needs[i].key, key) == 0)
			return &needs[i];
	return NULL;
}

static const struct need *need_of(const struct key *key)
{
	if (key->levels & KEY_GLOBAL)
		return find(of_server, G_N_ELEMENTS(of_server), key->name);
	if (key->levels & KEY_POOL)
		return find(of_pools, G_N_ELEMENTS(of_pools), key->name);
	if (key->levels & KEY_SITE)
		return find(of_hosts, G_N_ELEMENTS(of_hosts), key->name);
	if (key->levels & (KEY_SCOPE | KEY_PATH | KEY_PATTERN))
		return find(of_scopes, G_N_ELEMENTS(of_scopes), key->name);
	return NULL;
}

/* Marks the nearest of each key of these levels; lost: why nothing of the scope works, or NULL. */
static void mark(unsigned levels, const struct section *const *chain, unsigned has,
		 const char *lost)
{
	for (unsigned i = 0; i < config_key_count; i++) {
		const struct section *of;
		const struct need *need;

		if (!(config_keys[i].levels & levels))
			continue;
		of = chain[chain_nearest(chain, i)];
		if (!of || of->given[i].works)
			continue;
		need = need_of(&config_keys[i]);
		if (!need || need->any & has)
			of->given[i].works = true;
		else if (lost)
			of->given[i].lost = lost;
	}
}

static bool given(char *const *list)
{
	return list && list[0];
}

void config_effect_host(const struct config *config, const struct host *host,
			const struct section *const *chain)
{
	unsigned has = 0;

	if (config->tls)
		has |= TLS | HTTPS;
	if (given(config->trusted_proxies))
		has |= HTTPS;
	if (host->client_certificate)
		has |= CLIENTS;
	/* It refuses what is in clear text. */
	if (host->client_certificate == TLS_CLIENT_REQUIRED)
		has |= CLOSED;
	if (g_strcmp0(host->access_log, "off") != 0)
		has |= LOG;
	mark(KEY_SITE, chain, has, NULL);
}

static void mark_pool(const struct section *section, const struct pool_config *pool)
{
	const struct section *const chain[] = {section, NULL};
	bool upstream = given(pool->upstream);
	unsigned has = 0;

	if (pool->protocol == POOL_FASTCGI && !pool->suffix)
		has |= FASTCGI;
	if (!upstream)
		has |= COMMAND;
	if (pool->protocol == POOL_WORKER || upstream)
		has |= MANY;
	if (upstream)
		has |= UPSTREAM;
	if (pool_config_has_names(pool))
		has |= NAMES;
	if (given(pool->upgrade))
		has |= UPGRADE;
	has |= pool->protocol == POOL_WORKER ? WORKER : NO_WORKER;
	if (!upstream && pool->protocol != POOL_CGI)
		has |= KEPT;
	mark(KEY_POOL, chain, has, NULL);
}

static void mark_server(const struct section *section, const struct config *config, bool streams)
{
	const struct section *const chain[] = {section, NULL};
	const char *url = config->collector_url;
	unsigned has = 0;

	if (given(config->worker))
		has |= WORKERS;
	if (given(config->trusted_proxies))
		has |= PROXIES;
	if (config->trace)
		has |= TRACE;
	if (url)
		has |= EXPORT | (g_ascii_strncasecmp(url, "https:", 6) == 0 ? SECURE_EXPORT : 0);
	if (config->status)
		has |= STATUS;
	if (config->http2 != HTTP2_OFF)
		has |= HTTP2;
	if (streams)
		has |= STREAMS;
	if (config->tls)
		has |= SECURE;
	mark(KEY_GLOBAL, chain, has, NULL);
}

static bool has_pages(const struct config *config)
{
	for (unsigned i = 0; i < config->host_count; i++)
		for (unsigned k = 0; k < config->hosts[i].scope_count; k++)
			if (config->hosts[i].scopes[k].error_page_count)
				return true;
	return false;
}

/* Returns whether a path has compress-uncached. */
static bool mark_scopes(const struct config *config)
{
	unsigned pages = has_pages(config) ? EFFECT_PAGES : 0;
	bool streams = false;

	for (unsigned i = 0; i < config->host_count; i++)
		for (unsigned k = 0; k < config->hosts[i].scope_count; k++) {
			const struct scope *scope = &config->hosts[i].scopes[k];
			const char *lost;
			unsigned has;

			if (!scope->chain)
				continue;
			has = pages | effect_of_scope(config, &config->hosts[i], scope, &lost);
			mark(KEY_SCOPE | KEY_PATH | (scope->rule ? KEY_PATTERN : 0), scope->chain,
			     has, lost);
			streams |= scope->compress.uncached && has & EFFECT_CODED_PROGRAMS;
		}
	return streams;
}

/* --- what no mark has reached -------------------------------------------------------------- */

/* Off, or an empty list, is what would be without the key, too. */
static bool says_nothing(char *const *values)
{
	return !values[0] || (!values[1] && strcmp(values[0], "off") == 0);
}

static void report_key(struct config_tree *tree, const struct given *given, const struct key *key)
{
	const struct need *need = need_of(key);
	char *name, *why;

	if (!given->values || given->works || !need || says_nothing(given->values))
		return;
	name = g_strconcat(given->place ? "" : "--", key->name, NULL);
	why = given->lost ? g_strdup_printf("%s of this path leads all requests to another one, "
					    "whose keys apply",
					    given->lost)
			  : g_strdup(need->why);
	if (need->grave || (given->lost && strcmp(key->name, "pool") == 0))
		config_tree_complain(tree, given->place, "%s has no effect: %s", name, why);
	else
		config_tree_warn(tree, given->place, "%s has no effect: %s", name, why);
	g_free(name);
	g_free(why);
}

static bool has_keys(const struct section *section)
{
	for (unsigned i = 0; i < config_key_count; i++)
		if (section->given[i].values)
			return true;
	return false;
}

static bool is_used(const struct config *config, const struct pool_config *pool)
{
	for (unsigned i = 0; !pool->suffix && i < config->host_count; i++)
		for (unsigned k = 0; k < config->hosts[i].scope_count; k++) {
			const struct scope *scope = &config->hosts[i].scopes[k];

			if (scope->pool == pool ||
			    (scope->try_count && scope->tries[scope->try_count - 1].pool == pool))
				return true;
		}
	return pool->suffix;
}

/* A pattern with the expression of an earlier one of its host never has its turn. */
static void report_pattern(struct config_tree *tree, unsigned at)
{
	const struct section *section = tree->sections->pdata[at];
	int match = key_find("match", KEY_PATTERN);

	for (unsigned i = 1; i < at; i++) {
		const struct section *before = tree->sections->pdata[i];

		if (before->pattern && g_strcmp0(before->host, section->host) == 0 &&
		    g_strcmp0(before->given[match].values ? before->given[match].values[0] : NULL,
			      section->given[match].values ? section->given[match].values[0]
							   : NULL) == 0)
			config_tree_complain(
				tree, section->place,
				"[pattern %s] has no effect: [pattern %s] has the same "
				"expression, and comes first",
				section->pattern, before->pattern);
	}
}

static void report_section(struct config_tree *tree, const struct config *config, unsigned at)
{
	const struct section *section = tree->sections->pdata[at];
	const char *name = section->prefix;

	if (section->levels & KEY_PATH && !section->exact && !has_keys(section)) {
		config_tree_warn(tree, section->place, "[path %s%s] has no effect: it has no keys",
				 section->host ? section->host : "", *name ? name : "/");
	} else if (section->levels & KEY_MAP) {
		for (unsigned i = 0; i < config->map_count; i++)
			if (strcmp(config->maps[i].name, name) == 0 && !config->maps[i].used)
				config_tree_warn(tree, section->place,
						 "[map %s] has no effect: no value has {map:%s}",
						 name, name);
	} else if (section->levels & KEY_POOL) {
		for (unsigned i = 0; i < config->pool_count; i++) {
			const struct pool_config *pool = config->pools[i];

			/* Pools of options have the names of paths. */
			if (strcmp(pool->name, name) != 0 || pool->mounted)
				continue;
			mark_pool(section, pool);
			if (!is_used(config, pool))
				config_tree_warn(tree, section->place,
						 "[pool %s] has no effect: no path has pool=%s or "
						 "try-files=pool:%s, and it has no suffix",
						 name, name, name);
		}
	} else if (section->pattern) {
		report_pattern(tree, at);
	}
}

void config_effect_check(struct config_tree *tree, struct config *config)
{
	/* What is missing or wrong would look like a reason. */
	if (tree->errors->len)
		return;
	mark_server(tree->sections->pdata[0], config, mark_scopes(config));
	for (unsigned i = 0; i < tree->sections->len; i++) {
		const struct section *section = tree->sections->pdata[i];

		report_section(tree, config, i);
		for (unsigned k = 0; k < config_key_count; k++)
			report_key(tree, &section->given[k], &config_keys[k]);
	}
}
