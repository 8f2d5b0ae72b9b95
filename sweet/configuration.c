/* SPDX-License-Identifier: MIT */
/*
 * configuration.c - see configuration.h: what a configuration holds, and looking up in it.
 */
#include <string.h>

#include <access.h>
#include <configuration.h>
#include <limit.h>

static void free_rules(struct scope *scope)
{
	for (unsigned i = 0; i < scope->cache_rule_count; i++) {
		if (scope->cache_rules[i].pattern)
			g_pattern_spec_free(scope->cache_rules[i].pattern);
		g_free(scope->cache_rules[i].value);
	}
	for (unsigned i = 0; i < scope->error_page_count; i++)
		g_free(scope->error_pages[i].path);
	g_free(scope->cache_rules);
	g_free(scope->error_pages);
	g_free(scope->redirect_to);
}

static void free_scope(struct scope *scope)
{
	free_rules(scope);
	access_free(scope->access);
	rate_free(scope->rate);
	g_strfreev(scope->index);
	g_strfreev(scope->allow);
	g_strfreev(scope->deny);
	g_free(scope->prefix);
	g_free(scope->place);
	g_free(scope->root);
	g_free(scope->alias);
	g_free(scope->rewrite);
	g_free(scope->auth_realm);
	g_free(scope->auth_file);
}

static void free_host(struct host *host)
{
	for (unsigned i = 0; i < host->scope_count; i++)
		free_scope(&host->scopes[i]);
	g_free(host->scopes);
	g_strfreev(host->names);
	g_strfreev(host->listen);
	g_free(host->name);
}

struct config *config_ref(struct config *config)
{
	atomic_fetch_add_explicit(&config->references, 1, memory_order_relaxed);
	return config;
}

void config_unref(struct config *config)
{
	if (!config || atomic_fetch_sub_explicit(&config->references, 1, memory_order_acq_rel) != 1)
		return;
	if (config->let_go)
		config->let_go(config);
	for (unsigned i = 0; i < config->host_count; i++)
		free_host(&config->hosts[i]);
	g_free(config->hosts);
	if (config->names)
		g_hash_table_destroy(config->names);
	g_strfreev(config->listen);
	g_strfreev(config->worker);
	g_strfreev(config->proxy_protocol);
	g_strfreev(config->status_allow);
	access_free(config->status_access);
	access_free(config->proxy_access);
	g_free(config->file);
	g_free(config->cache_socket);
	g_free(config->user);
	g_free(config->group);
	g_free(config->pid_file);
	g_free(config->mime_types);
	g_free(config->access_log);
	g_free(config->error_log);
	g_free(config->server_header);
	g_free(config);
}

const struct host *config_host(const struct config *config, struct slice name)
{
	char text[CONFIG_NAME_MAX + 1];
	const struct host *host;
	size_t length = 0;

	if (config->host_count == 1)
		return &config->hosts[0];
	/* Without a port; the brackets of an address belong to it. */
	while (length < name.length && length < CONFIG_NAME_MAX && name.at[length] != ':') {
		if (name.at[length] == '[') {
			while (length < name.length && length < CONFIG_NAME_MAX &&
			       name.at[length] != ']') {
				text[length] = (char)g_ascii_tolower(name.at[length]);
				length++;
			}
			continue;
		}
		text[length] = (char)g_ascii_tolower(name.at[length]);
		length++;
	}
	if (length && text[length - 1] == '.')
		length--;
	text[length] = '\0';
	host = g_hash_table_lookup(config->names, text);
	/* "a.b.c": "*.b.c", then "*.c". */
	for (char *dot = strchr(text, '.'); !host && dot && dot > text;
	     dot = strchr(dot + 1, '.')) {
		dot[-1] = '*';
		host = g_hash_table_lookup(config->names, dot - 1);
	}
	return host ? host : &config->hosts[0];
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
