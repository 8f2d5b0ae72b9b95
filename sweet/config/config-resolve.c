/* SPDX-License-Identifier: MIT */
/*
 * config-resolve.c - see config-resolve.h.
 */
#include <string.h>
#include <unistd.h>

#include "auth/ip-acl.h"
#include "config/arch.h"
#include "config/config-key.h"
#include "config/config-pool.h"
#include "config/config-resolve.h"
#include "config/config-value.h"
#include "event/client-limit.h"

#define HTTPS_PORT 443

static void complain_of(struct config_tree *tree, const struct key *key, const char *place,
			const char *wrong, const char *must)
{
	if (place)
		config_tree_complain(tree, place, "%s \"%s\": %s", key->name, wrong, must);
	else
		config_tree_complain(tree, NULL, "--%s \"%s\": %s", key->name, wrong, must);
}

/*
 * A chain is a section and those that contain it: the enclosing paths, its host,
 * [sweet].  Returns what the section at that place of the chain says about the key,
 * or NULL.
 */
static const struct given *given_at(const struct section *const *chain, unsigned place, unsigned at)
{
	const struct section *section = chain[place];
	unsigned levels = config_keys[at].levels;
	bool looks = true;

	if (levels & KEY_PATH)
		looks = section->levels & KEY_PATH;
	/*
	 * [sweet] also defines the default host, but other hosts do not inherit
	 * this key from it.
	 */
	if (levels & KEY_OWN && section->levels & KEY_GLOBAL)
		looks = place == 0 || chain[place - 1]->levels & KEY_PATH;
	return looks && section->given[at].values ? &section->given[at] : NULL;
}

/* Returns the place in the chain of the nearest section with the key, or the chain's length. */
static unsigned nearest(const struct section *const *chain, unsigned at)
{
	unsigned place = 0;

	while (chain[place] && !given_at(chain, place, at))
		place++;
	return place;
}

/* Stores the nearest values, or the default. */
static void resolve_key(struct config_tree *tree, unsigned at, const struct section *const *chain,
			void *base)
{
	const struct key *key = &config_keys[at];
	const struct section *of = chain[nearest(chain, at)];
	const struct given *given = of ? &of->given[at] : NULL;
	char **otherwise = NULL, *must;
	const char *wrong = "";

	if (!given && key->otherwise)
		otherwise = key->list ? g_strsplit(key->otherwise, ";", 0)
				      : g_strsplit(key->otherwise, "\n", 0);
	if (!given && !otherwise)
		return;
	must = key_store(key, given ? given->values : otherwise, base, &wrong);
	if (must)
		complain_of(tree, key, given ? given->place : "default", wrong, must);
	g_free(must);
	g_strfreev(otherwise);
}

static void resolve(struct config_tree *tree, unsigned levels, const struct section *const *chain,
		    void *base)
{
	for (unsigned i = 0; i < config_key_count; i++)
		if (config_keys[i].levels & levels)
			resolve_key(tree, i, chain, base);
}

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

static struct ip_acl *make_list(char **allow, char **deny)
{
	char *why = NULL;
	struct ip_acl *list = NULL;

	if ((allow && allow[0]) || (deny && deny[0]))
		list = ip_acl_new(allow, deny, &why);
	/* Each rule was checked as the value of its key; errors are reported already. */
	g_free(why);
	return list;
}

static unsigned index_of(const struct section *const *chain, const char *name)
{
	return nearest(chain, (unsigned)key_find(name, KEY_SCOPE | KEY_PATH));
}

static const struct section *giver(const struct section *const *chain, const char *name)
{
	return chain[index_of(chain, name)];
}

/* Returns the place of the key; NULL: on the command line, or nowhere. */
static const char *place_of(const struct section *const *chain, const char *name)
{
	const struct section *section = giver(chain, name);

	return section ? section->given[key_find(name, KEY_SCOPE | KEY_PATH)].place : NULL;
}

static size_t skip_at(const struct section *const *chain, unsigned place)
{
	return chain[place] ? strlen(chain[place]->prefix) : 0;
}

/*
 * Of root, alias and rewrite, the nearest counts; returns true if two of them are
 * equally near.
 */
static bool choose_files(struct scope *scope, const struct section *const *chain)
{
	unsigned root = index_of(chain, "root"), alias = index_of(chain, "alias");
	unsigned rewrite = index_of(chain, "rewrite");

	scope->alias_skip = skip_at(chain, alias);
	scope->rewrite_skip = skip_at(chain, rewrite);
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
	const struct section *of = giver(chain, "request-rate");

	scope->redirect_skip = skip_at(chain, index_of(chain, "redirect"));
	scope->access = make_list(scope->allow, scope->deny);
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
	scope->pool_skip = skip_at(chain, index_of(chain, "pool"));
	if (!scope->pool)
		config_tree_complain(tree, place_of(chain, "pool"),
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
	scope->try_skip = skip_at(chain, index_of(chain, "try-files"));
	if (!last->pool)
		config_tree_complain(tree, place_of(chain, "try-files"),
				     "try-files \"pool:%s\": there is no [pool %s]", last->text,
				     last->text);
}

static void add_scope(struct config_tree *tree, struct config *config, struct host *host,
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
	resolve(tree, KEY_SCOPE | (section->levels & KEY_PATH), chain, scope);
	finish_scope(scope, chain);
	if (choose_files(scope, chain))
		config_tree_complain(tree, section->place, "alias and rewrite exclude each other");
	choose_pool(tree, config, scope, chain);
	choose_tried(tree, config, scope, chain);
	scope->root_place = g_strdup(place_of(chain, scope->alias ? "alias" : "root"));
	scope->auth_place = g_strdup(place_of(chain, "auth-file"));
	if (scope->auth_realm && !scope->auth_file) {
		const char *place = place_of(chain, "auth-realm");

		config_tree_complain(tree, place ? place : "--auth-realm",
				     "auth-realm needs an auth-file");
	}
}

/* Returns the place of the host's key, or of its group. */
static const char *site_place(const struct section *const *chain, const char *name)
{
	unsigned at = (unsigned)key_find(name, KEY_SITE);
	const struct section *of = chain[nearest(chain, at)];

	return of && of->given[at].place ? of->given[at].place : chain[0]->place;
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
	if (config->tls_port == HTTPS_PORT)
		config->tls_port = 0;
}

static void free_hosts(void *hosts)
{
	g_ptr_array_unref(hosts);
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

static void resolve_path(struct config_tree *tree, struct config *config, struct section *section)
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
	add_scope(tree, config, host, section, (const struct section *const *)(void *)chain->pdata);
	g_ptr_array_unref(chain);
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
			resolve(tree, KEY_HOST, chain, host);
			read_listen(tree, config, host, section);
			name_host(tree, config, host, section);
		} else {
			host->names = g_new0(char *, 1);
			host->listen = g_new0(char *, 1);
		}
		resolve(tree, KEY_SITE, chain, host);
		read_tls(tree, config, host, chain);
		add_scope(tree, config, host, section, chain);
	}
	for (unsigned i = 1; i < sections->len; i++) {
		struct section *section = sections->pdata[i];

		if (section->levels & KEY_PATH)
			resolve_path(tree, config, section);
	}
}

static void resolve_pool(struct config_tree *tree, const struct section *section,
			 struct pool_config *pool)
{
	const struct section *chain[] = {section, NULL};

	resolve(tree, KEY_POOL, chain, pool);
}

static void check_method(struct config_tree *tree, const struct config *config)
{
	if (config->data_path == DATA_PATH_POSIX && config->sockets.send_method > SEND_COPY)
		config_tree_complain(tree, config_place(config, "send-method"),
				     "send-method: must be auto or copy with data-path posix, "
				     "which copies whatever it sends");
}

struct config *config_resolve(struct config_tree *tree)
{
	struct config *config = g_new0(struct config, 1);
	const struct section *chain[] = {tree->sections->pdata[0], NULL};
	char *nobody[] = {(char *)"all", NULL};

	atomic_init(&config->references, 1);
	config->file = g_strdup(tree->path);
	config->places = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
	for (unsigned i = 0; i < config_key_count; i++)
		if (chain[0]->given[i].place)
			g_hash_table_insert(config->places, (void *)(uintptr_t)config_keys[i].name,
					    g_strdup(chain[0]->given[i].place));
	resolve(tree, KEY_GLOBAL, chain, config);
	find_tls(config);
	config_arch_threads(tree, config);
	/* An empty list means nobody here. */
	config->status_access = config->status_allow && config->status_allow[0]
					? make_list(config->status_allow, NULL)
					: make_list(NULL, nobody);
	config->proxy_access = make_list(config->proxy_protocol, NULL);
	config->proxies = make_list(config->trusted_proxies, NULL);
	check_method(tree, config);
	config_pools(tree, config, resolve_pool);
	config_arch_pools(tree, config);
	config->listen_given = chain[0]->given[key_find("listen", KEY_GLOBAL)].values != NULL;
	resolve_hosts(tree, config);
	return config;
}
