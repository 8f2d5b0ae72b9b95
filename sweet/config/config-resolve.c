/* SPDX-License-Identifier: MIT */
/*
 * config-resolve.c - see config-resolve.h.
 */
#include <glib.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "config/arch.h"
#include "config/config-chain.h"
#include "config/config-effect.h"
#include "config/config-key.h"
#include "config/config-log.h"
#include "config/config-map.h"
#include "config/config-pool.h"
#include "config/config-resolve.h"
#include "config/config-rule.h"
#include "config/config-scope.h"
#include "config/config-script.h"
#include "config/config-trace.h"
#include "config/config-tree.h"
#include "config/config-webdav.h"
#include "config/configuration.h"
#include "event/data-path.h"

#define HTTPS_PORT 443

static bool is_host_name(const char *name)
{
	if (g_str_has_prefix(name, "*."))
		name += 2;
	return *name && strlen(name) <= CONFIG_NAME_MAX &&
	       name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-._~:[]")] == '\0';
}

static void name_host(struct config_tree *tree, struct config *config, struct host *host,
		      const struct section *section)
{
	if (!host->names) {
		host->names = g_new0(char *, 2);
		host->names[0] = g_strdup(host->name);
	}
	for (unsigned i = 0; host->names[i]; i++) {
		char *name = g_ascii_strdown(host->names[i], -1);

		g_free(host->names[i]);
		host->names[i] = name;
		if (!is_host_name(name))
			config_tree_complain(tree, section->place,
					     "host \"%s\": must be a name like "
					     "example.org or *.example.org",
					     name);
		else if (!config_name_host(config, name, host))
			config_tree_complain(tree, section->place, "host \"%s\" is named twice",
					     name);
	}
}

static bool has_many_unix(char **listen)
{
	unsigned count = 0;

	for (; *listen; listen++)
		count += g_str_has_prefix(*listen, ADDRESS_UNIX);
	return count > 1;
}

/* Whether that is one of the server's addresses; it may repeat ",tls". */
static bool listens_at(const struct config *config, const char *text)
{
	struct listen_address wanted, own;

	if (!address_parse(text, &wanted))
		return false;
	for (unsigned i = 0; config->listen[i]; i++)
		if (address_parse(config->listen[i], &own) && address_equal(&own, &wanted) &&
		    (own.tls || !wanted.tls))
			return true;
	return false;
}

/* Call it before the host is named: hosts at different addresses may share a name. */
static void read_listen(struct config_tree *tree, struct config *config, struct host *host,
			const struct section *section)
{
	/* Invalid values were reported and are missing here. */
	if (!host->listen || !config->listen)
		return;
	host->addresses = g_new0(struct listen_address, g_strv_length(host->listen));
	for (unsigned i = 0; host->listen[i]; i++) {
		struct listen_address *address = &host->addresses[host->address_count];

		if (!listens_at(config, host->listen[i]))
			config_tree_complain(tree, section->place,
					     "listen \"%s\": must be one of listen of [sweet]",
					     host->listen[i]);
		else if (g_str_has_prefix(host->listen[i], ADDRESS_UNIX) &&
			 has_many_unix(config->listen))
			config_tree_complain(
				tree, section->place,
				"listen \"%s\": hosts are distinguished by addresses and ports, "
				"not by Unix sockets",
				host->listen[i]);
		/* Other forms are reported by the code that binds the address. */
		else if (address_parse(host->listen[i], address))
			host->address_count++;
	}
	config->by_address |= host->address_count > 0;
}

/* Returns the place of the host's key; NULL: on the command line, or nowhere. */
static const char *given_place(const struct section *const *chain, const char *name)
{
	unsigned at = (unsigned)key_find(name, KEY_SITE);
	const struct section *of = chain[chain_nearest(chain, at)];

	return of ? of->given[at].place : NULL;
}

/* The same, or the place of its group. */
static const char *site_place(const struct section *const *chain, const char *name)
{
	const char *place = given_place(chain, name);

	return place ? place : chain[0]->place;
}

static void read_tls(struct config_tree *tree, const struct config *config, struct host *host,
		     const struct section *const *chain)
{
	unsigned certificates = host->certificates ? g_strv_length(host->certificates) : 0;
	unsigned keys = host->keys ? g_strv_length(host->keys) : 0;

	host->tls_place = g_strdup(site_place(chain, "certificate"));
	if (config->tls && certificates == 0)
		config_tree_complain(tree, host->tls_place ? host->tls_place : "--listen",
				     "an address has TLS, but %s%s has no certificate",
				     *host->name ? "host " : "[sweet]", host->name);
	if (keys && keys != certificates)
		config_tree_complain(tree, site_place(chain, "key"),
				     "key: there must be one for each certificate, in the same "
				     "order, or none if the certificates' files have them");
	if (host->staples && host->staples[0] && g_strv_length(host->staples) != certificates)
		config_tree_complain(tree, site_place(chain, "ocsp-staple"),
				     "ocsp-staple: there must be one for each certificate, in the "
				     "same order, or none");
	if (host->client_certificate && !host->client_ca)
		config_tree_complain(tree, site_place(chain, "client-certificate"),
				     "client-certificate needs a client-ca");
}

static void find_tls(struct config *config)
{
	struct listen_address address;

	for (unsigned i = 0; config->listen && config->listen[i] && !config->tls; i++)
		if (address_parse(config->listen[i], &address) && address.tls) {
			config->tls = true;
			config->tls_port = address_port(&address);
		}
	for (unsigned i = 0; config->status_listen && config->status_listen[i]; i++)
		config->tls |= address_parse(config->status_listen[i], &address) && address.tls;
	if (config->tls_port == HTTPS_PORT)
		config->tls_port = 0;
}

static void free_hosts(void *hosts)
{
	g_ptr_array_unref(hosts);
}

static void resolve_hosts(struct config_tree *tree, struct config *config)
{
	GPtrArray *sections = tree->sections;
	struct section *top = sections->pdata[0];

	config->hosts = g_new0(struct host, sections->len);
	config->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_hosts);
	for (unsigned i = 0; i < sections->len; i++) {
		struct section *section = sections->pdata[i];
		const struct section *chain[] = {section, i ? top : NULL, NULL};
		struct host *host = &config->hosts[config->host_count];

		if (i && !(section->levels & KEY_HOST))
			continue;
		config->host_count++;
		host->name = g_strdup(i ? section->host : "");
		if (i) {
			chain_resolve(tree, KEY_HOST, chain, host);
			read_listen(tree, config, host, section);
			name_host(tree, config, host, section);
		} else {
			host->names = g_new0(char *, 1);
			host->listen = g_new0(char *, 1);
		}
		chain_resolve(tree, KEY_SITE, chain, host);
		read_tls(tree, config, host, chain);
		config_log_add(config, host, given_place(chain, "access-log"));
		config_effect_host(config, host, chain);
		scope_add_host(tree, config, host, section);
	}
	for (unsigned exact = 0; exact < 2; exact++)
		for (unsigned i = 1; i < sections->len; i++) {
			struct section *section = sections->pdata[i];

			if (section->levels & KEY_PATH && section->exact == (bool)exact)
				scope_resolve_path(tree, config, section);
		}
	scope_resolve_patterns(tree, config);
	scope_add_folders(tree, config);
	config_pools_check(tree, config);
	config_scripts(tree, config);
	config_webdav_check(tree, config);
	config_log_add_slow(config);
	if (!config_log_number_fields(config))
		config_tree_complain(tree, NULL,
				     "log-format: the templates name %u fields of requests; "
				     "together they may name 16 different ones",
				     config->log_field_count);
}

static void resolve_pool(struct config_tree *tree, const struct section *section,
			 struct pool_config *pool)
{
	const struct section *chain[] = {section, NULL};

	chain_resolve(tree, KEY_POOL, chain, pool);
}

/* The sections end with the tree. */
static void drop_chains(struct config *config)
{
	for (unsigned i = 0; i < config->host_count; i++)
		for (unsigned k = 0; k < config->hosts[i].scope_count; k++)
			g_clear_pointer(&config->hosts[i].scopes[k].chain, g_free);
}

/* By these numbers what is open for each part is found. */
static void number_parts(struct config *config)
{
	for (unsigned i = 0; i < config->host_count; i++) {
		config->hosts[i].number = i;
		for (unsigned k = 0; k < config->hosts[i].scope_count; k++)
			config->hosts[i].scopes[k].number = config->scope_count++;
		for (unsigned k = 0; k < config->hosts[i].rule_count; k++)
			config->hosts[i].rules[k]->number = config->rule_count++;
	}
}

static void check_method(struct config_tree *tree, const struct config *config)
{
	if (config->data_path == DATA_PATH_POSIX && config->sockets.send_method > SEND_COPY)
		config_tree_complain(tree, config_place(config, "send-method"),
				     "send-method: must be auto or copy with data-path posix, "
				     "which copies whatever it sends");
}

/* The system chooses a port 0, so two of them are different addresses. */
static void check_status_listen(struct config_tree *tree, const struct config *config)
{
	struct listen_address address, site;

	for (unsigned i = 0; config->status_listen && config->status_listen[i]; i++) {
		bool web = address_parse(config->status_listen[i], &address) &&
			   address.address.ss_family != AF_UNIX;

		if (web && address_port(&address) == 0)
			continue;
		for (unsigned k = 0; config->listen && config->listen[k]; k++)
			if (address_parse(config->listen[k], &site) &&
			    address_equal(&address, &site))
				config_tree_complain(
					tree, config_place(config, "status-listen"),
					"status-listen \"%s\": listen has this address, "
					"too; the status needs one of its own",
					config->status_listen[i]);
	}
}

struct config *config_resolve(struct config_tree *tree)
{
	struct config *config = g_new0(struct config, 1);
	const struct section *chain[] = {tree->sections->pdata[0], NULL};
	char *nobody[] = {(char *)"all", NULL};

	atomic_init(&config->references, 1);
	config->limits.max_connections = CONFIG_CONNECTIONS_UNSET;
	config->file = g_strdup(tree->path);
	config->places = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
	for (unsigned i = 0; i < config_key_count; i++)
		if (chain[0]->given[i].place)
			g_hash_table_insert(config->places, (void *)(uintptr_t)config_keys[i].name,
					    g_strdup(chain[0]->given[i].place));
	chain_resolve(tree, KEY_GLOBAL, chain, config);
	find_tls(config);
	check_status_listen(tree, config);
	config_arch_threads(tree, config);
	/* An empty list means nobody here. */
	config->status_access = config->status_allow && config->status_allow[0]
					? rule_access_list(config->status_allow, NULL)
					: rule_access_list(NULL, nobody);
	config->proxy_access = rule_access_list(config->proxy_protocol, NULL);
	config->proxies = rule_access_list(config->trusted_proxies, NULL);
	check_method(tree, config);
	config_trace_check(tree, config);
	config_maps(tree, config);
	config_pools(tree, config, resolve_pool);
	config_arch_pools(tree, config);
	config->listen_given = chain[0]->given[key_find("listen", KEY_GLOBAL)].values != NULL;
	resolve_hosts(tree, config);
	config_effect_check(tree, config);
	drop_chains(config);
	number_parts(config);
	config->warnings = g_steal_pointer(&tree->warnings);
	return config;
}
