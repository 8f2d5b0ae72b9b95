/* SPDX-License-Identifier: MIT */
/*
 * configuration.c - see configuration.h: frees a configuration, and finds hosts and
 * paths in it.
 */
#include <nabc.h>
#include <string.h>

#include "auth/ip-acl.h"
#include "base/address.h"
#include "base/path-prefix.h"
#include "config/config-map.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "rules/header-rule.h"
#include "rules/path-pattern.h"
#include "rules/request-rule.h"
#include "rules/template.h"
#include "log/log-format.h"

void scope_free_tries(struct scope *scope)
{
	for (unsigned i = 0; i < scope->try_count; i++)
		g_free(scope->tries[i].text);
	g_free(scope->tries);
	scope->tries = NULL;
	scope->try_count = 0;
}

static void free_rules(struct scope *scope)
{
	for (unsigned i = 0; i < scope->cache_rule_count; i++) {
		if (scope->cache_rules[i].pattern)
			g_pattern_spec_free(scope->cache_rules[i].pattern);
		g_free(scope->cache_rules[i].value);
	}
	scope_free_tries(scope);
	for (unsigned i = 0; i < scope->header_rule_count; i++)
		header_rule_free(&scope->header_rules[i]);
	g_free(scope->header_rules);
	for (unsigned i = 0; i < scope->request_rule_count; i++)
		request_rule_free(&scope->request_rules[i]);
	g_free(scope->request_rules);
	g_strfreev(scope->compress.types);
	for (unsigned i = 0; i < scope->error_page_count; i++)
		g_free(scope->error_pages[i].path);
	g_free(scope->cache_rules);
	g_free(scope->error_pages);
	g_free(scope->redirect_to);
	template_free(scope->redirect_text);
	template_free(scope->rewrite_text);
}

static void free_scope(struct scope *scope)
{
	free_rules(scope);
	g_free(scope->chain);
	ip_acl_free(scope->access);
	g_free(scope->rate_name);
	g_strfreev(scope->index);
	g_strfreev(scope->allow);
	g_strfreev(scope->deny);
	g_free(scope->prefix);
	g_free(scope->root_place);
	g_free(scope->auth_place);
	g_free(scope->webdav_place);
	g_free(scope->variable_place);
	g_free(scope->root);
	g_free(scope->alias);
	g_free(scope->rewrite);
	g_free(scope->auth_realm);
	g_free(scope->auth_file);
	g_free(scope->pool_name);
	g_free(scope->accel_pool);
	g_free(scope->charset);
	g_free(scope->default_type);
	g_strfreev(scope->types);
	variables_free(&scope->variables);
}

static void free_host(struct host *host)
{
	for (unsigned i = 0; i < host->scope_count; i++)
		free_scope(&host->scopes[i]);
	g_free(host->scopes);
	if (host->exact)
		g_hash_table_destroy(host->exact);
	for (unsigned i = 0; i < host->rule_count; i++) {
		path_pattern_free(host->rules[i]->pattern);
		g_free(host->rules[i]->name);
		g_free(host->rules[i]);
	}
	g_free(host->rules);
	g_free(host->claims);
	g_strfreev(host->names);
	g_strfreev(host->listen);
	g_free(host->addresses);
	g_strfreev(host->certificates);
	g_strfreev(host->keys);
	g_strfreev(host->staples);
	g_strfreev(host->tls_groups);
	g_free(host->client_ca);
	g_free(host->answer_folder);
	g_free(host->hsts);
	g_free(host->tls_place);
	g_free(host->access_log);
	log_format_free(host->log_format);
	g_free(host->name);
}

static void free_config(struct config *config)
{
	for (unsigned i = 0; i < config->host_count; i++)
		free_host(&config->hosts[i]);
	g_free(config->hosts);
	for (unsigned i = 0; i < config->log_count; i++)
		g_free(config->logs[i].place);
	g_free(config->logs);
	g_strfreev(config->log_fields);
	g_free(config->slow_log);
	log_format_free(config->slow_format);
	if (config->names)
		g_hash_table_destroy(config->names);
	g_strfreev(config->listen);
	g_strfreev(config->worker);
	g_strfreev(config->cgi);
	g_strfreev(config->include);
	g_strfreev(config->fastcgi);
	for (unsigned i = 0; i < config->pool_count; i++)
		pool_config_unref(config->pools[i]);
	g_free(config->pools);
	for (unsigned i = 0; i < config->map_count; i++)
		config_map_free(&config->maps[i]);
	g_free(config->maps);
	for (unsigned i = 0; i < config->mount_count; i++)
		g_free(config->mounts[i].prefix);
	g_free(config->mounts);
	g_strfreev(config->proxy_protocol);
	g_strfreev(config->trusted_proxies);
	g_strfreev(config->status_listen);
	g_strfreev(config->status_allow);
	ip_acl_free(config->status_access);
	ip_acl_free(config->proxy_access);
	ip_acl_free(config->proxies);
	if (config->places)
		g_hash_table_destroy(config->places);
	if (config->warnings)
		g_ptr_array_free(config->warnings, TRUE);
	g_free(config->file);
	g_free(config->collector_url);
	g_free(config->collector_service);
	g_free(config->collector_ca);
	g_strfreev(config->collector_headers);
	g_free(config->cache_socket);
	g_free(config->user);
	g_free(config->group);
	g_free(config->pid_file);
	g_free(config->spool_directory);
	g_free(config->mime_types);
	g_free(config->error_log);
	g_free(config->server_header);
	g_free(config);
}

/* Only its count changes after it has been read. */
static struct config *counted(const struct config *config)
{
	return (struct config *)(uintptr_t)config;
}

const struct config *config_hold(const struct config *config)
{
	atomic_fetch_add_explicit(&counted(config)->references, 1, memory_order_relaxed);
	return config;
}

void config_release(const struct config *config)
{
	if (config &&
	    atomic_fetch_sub_explicit(&counted(config)->references, 1, memory_order_acq_rel) == 1)
		free_config(counted(config));
}

static bool share_address(const struct host *one, const struct host *other)
{
	if (!one->address_count || !other->address_count)
		return true;
	for (unsigned i = 0; i < one->address_count; i++)
		for (unsigned k = 0; k < other->address_count; k++)
			if (address_equal(&one->addresses[i], &other->addresses[k]))
				return true;
	return false;
}

const char *config_place(const struct config *config, const char *key)
{
	return config->places ? g_hash_table_lookup(config->places, key) : NULL;
}

bool config_name_host(struct config *config, const char *name, struct host *host)
{
	GPtrArray *hosts = g_hash_table_lookup(config->names, name);

	for (unsigned i = 0; hosts && i < hosts->len; i++)
		if (share_address(hosts->pdata[i], host))
			return false;
	if (!hosts) {
		hosts = g_ptr_array_new();
		g_hash_table_insert(config->names, g_strdup(name), hosts);
	}
	g_ptr_array_add(hosts, host);
	return true;
}

static bool listens(const struct host *host, const struct sockaddr *local)
{
	for (unsigned i = 0; i < host->address_count; i++)
		if (address_accepts(&host->addresses[i], local))
			return true;
	return false;
}

static const struct host *find_name(const struct config *config, const char *name,
				    const struct sockaddr *local)
{
	const GPtrArray *hosts = g_hash_table_lookup(config->names, name);

	for (unsigned i = 0; hosts && i < hosts->len; i++) {
		const struct host *host = hosts->pdata[i];

		if (!host->address_count || listens(host, local))
			return host;
	}
	return NULL;
}

/* For requests whose name matches no host. */
static const struct host *find_address(const struct config *config, const struct sockaddr *local)
{
	for (unsigned i = 1; config->by_address && i < config->host_count; i++)
		if (listens(&config->hosts[i], local))
			return &config->hosts[i];
	return &config->hosts[0];
}

/*
 * Converts to lower case, and removes a port (but not the brackets of an address)
 * and a final dot; returns false if nothing remains.
 */
static bool plain_name(struct slice name, char text[CONFIG_NAME_MAX + 1])
{
	size_t length = 0;
	bool bracket = false;

	for (; length < name.length && (bracket || name.at[length] != ':'); length++) {
		if (length == CONFIG_NAME_MAX)
			return false;
		text[length] = (char)g_ascii_tolower(name.at[length]);
		bracket = (bracket || text[length] == '[') && text[length] != ']';
	}
	if (length && text[length - 1] == '.')
		length--;
	text[length] = '\0';
	return length > 0;
}

const struct host *config_host(const struct config *config, struct slice name,
			       const struct sockaddr *local)
{
	char text[CONFIG_NAME_MAX + 1];
	const struct host *host;

	if (config->host_count == 1)
		return &config->hosts[0];
	if (!plain_name(name, text))
		return find_address(config, local);
	host = find_name(config, text, local);
	/* For "a.b.c" try "*.b.c", then "*.c". */
	for (char *dot = strchr(text, '.'); !host && dot; dot = strchr(dot + 1, '.')) {
		/* A wildcard does not match an empty label. */
		if (dot == text)
			continue;
		dot[-1] = '*';
		host = find_name(config, dot - 1, local);
	}
	return host ? host : find_address(config, local);
}

const struct scope *host_scope(const struct host *host, const char *path)
{
	const struct scope *scope = host->scopes;

	for (; scope->prefix_length; scope++)
		if (strncmp(path, scope->prefix, scope->prefix_length) == 0 &&
		    (path[scope->prefix_length] == '/' || path[scope->prefix_length] == '\0'))
			break;
	return scope;
}

const struct mount *config_mount(const struct config *config, const char *path)
{
	const struct mount *best = NULL;

	for (unsigned i = 0; i < config->mount_count; i++) {
		const struct mount *mount = &config->mounts[i];

		if (strncmp(path, mount->prefix, mount->length) == 0 &&
		    (path[mount->length] == '/' || path[mount->length] == '\0') &&
		    (!best || mount->length > best->length))
			best = mount;
	}
	return best;
}

const char *scope_leads(const struct config *config, const struct host *host,
			const struct scope *scope, const struct pool_config *pool)
{
	if (scope->accel_pool)
		return NULL;
	if (scope->pool == pool)
		return scope->prefix;
	for (unsigned i = 0; i < scope->try_count; i++)
		if (scope->tries[i].pool == pool)
			return scope->prefix;
	for (unsigned i = 0; i < config->mount_count; i++) {
		const char *prefix = config->mounts[i].prefix;

		if (config->mounts[i].pool != pool)
			continue;
		if (path_lies_in(scope->prefix, prefix))
			return scope->prefix;
		/* The scope of its prefix, or of a pattern for that. */
		if (strcmp(scope->prefix, host_scope(host, prefix)->prefix) == 0)
			return prefix;
	}
	return NULL;
}
