/* SPDX-License-Identifier: MIT */
/*
 * config-settle.c - see config-settle.h.
 */
#include <string.h>
#include <unistd.h>

#include <access.h>
#include <config-key.h>
#include <config-settle.h>
#include <config-value.h>
#include <limit.h>

static void complain_of(struct draft *draft, const struct key *key, const char *place,
			const char *wrong, const char *must)
{
	if (place)
		draft_complain(draft, place, "%s \"%s\": %s", key->name, wrong, must);
	else
		draft_complain(draft, NULL, "--%s \"%s\": %s", key->name, wrong, must);
}

/* The values of the first section of the chain that has them, or the default. */
static void settle_key(struct draft *draft, unsigned at, const struct section *const *chain,
		       void *base)
{
	const struct key *key = &config_keys[at];
	const struct given *given = NULL;
	char **otherwise = NULL, *must;
	const char *wrong = "";

	for (; *chain && !given; chain++)
		if ((*chain)->given[at].values)
			given = &(*chain)->given[at];
	if (!given && key->otherwise)
		otherwise = key->list ? g_strsplit(key->otherwise, ";", 0)
				      : g_strsplit(key->otherwise, "\n", 0);
	if (!given && !otherwise)
		return;
	must = key_store(key, given ? given->values : otherwise, base, &wrong);
	if (must)
		complain_of(draft, key, given ? given->place : "default", wrong, must);
	g_free(must);
	g_strfreev(otherwise);
}

static void settle(struct draft *draft, unsigned levels, const struct section *const *chain,
		   void *base)
{
	for (unsigned i = 0; i < config_key_count; i++) {
		const struct section *own[] = {chain[0], NULL, NULL};

		if (!(config_keys[i].levels & levels))
			continue;
		/* A path has it from its host, a host has it not from [sweet]. */
		if (config_keys[i].levels & KEY_OWN && chain[0]->levels & KEY_PATH)
			own[1] = chain[1];
		settle_key(draft, i, config_keys[i].levels & (KEY_OWN | KEY_PATH) ? own : chain,
			   base);
	}
}

static bool is_host_name(const char *name)
{
	if (g_str_has_prefix(name, "*."))
		name += 2;
	return *name && strlen(name) <= CONFIG_NAME_MAX &&
	       name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-._~:[]")] == '\0';
}

static void name_host(struct draft *draft, struct config *config, struct host *host,
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
			draft_complain(draft, section->place,
				       "host \"%s\": must be a name like "
				       "example.org or *.example.org",
				       name);
		else if (!config_name_host(config, name, host))
			draft_complain(draft, section->place, "host \"%s\" is named twice", name);
	}
}

static bool has_many_unix(char **listen)
{
	unsigned count = 0;

	for (; *listen; listen++)
		count += g_str_has_prefix(*listen, ADDRESS_UNIX);
	return count > 1;
}

/* Before it is named: the same name may mean another host at another address. */
static void read_listen(struct draft *draft, struct config *config, struct host *host,
			const struct section *section)
{
	host->addresses = g_new0(struct listen_address, g_strv_length(host->listen));
	for (unsigned i = 0; host->listen[i]; i++) {
		struct listen_address *address = &host->addresses[host->address_count];

		if (!g_strv_contains((const char *const *)config->listen, host->listen[i]))
			draft_complain(draft, section->place,
				       "listen \"%s\": must be one of listen of [sweet]",
				       host->listen[i]);
		else if (g_str_has_prefix(host->listen[i], ADDRESS_UNIX) &&
			 has_many_unix(config->listen))
			draft_complain(
				draft, section->place,
				"listen \"%s\": hosts are told apart by addresses and ports, "
				"not by Unix sockets",
				host->listen[i]);
		/* What is none of its forms is reported where it is bound. */
		else if (address_parse(host->listen[i], address))
			host->address_count++;
	}
	config->by_address |= host->address_count > 0;
}

/* The first section of the chain that gives a key, or NULL. */
static const struct section *giver(const struct section *const *chain, const char *name)
{
	int at = key_find(name, KEY_SCOPE | KEY_PATH);

	for (; *chain; chain++)
		if ((*chain)->given[at].values)
			return *chain;
	return NULL;
}

/* Where it does; NULL: on the command line, or nowhere. */
static const char *place_of(const struct section *const *chain, const char *name)
{
	const struct section *section = giver(chain, name);

	return section ? section->given[key_find(name, KEY_SCOPE | KEY_PATH)].place : NULL;
}

static struct access_list *make_list(char **allow, char **deny)
{
	char *why = NULL;
	struct access_list *list = NULL;

	if ((allow && allow[0]) || (deny && deny[0]))
		list = access_new(allow, deny, &why);
	/* Each rule was looked at as the value of its key; a bad one is reported already. */
	g_free(why);
	return list;
}

/* What is made of the values. */
static void finish_scope(struct scope *scope, const struct section *const *chain)
{
	const struct section *of = giver(chain, "redirect");

	if (of && *of->prefix)
		scope->redirect_skip = scope->prefix_length;
	scope->access = make_list(scope->allow, scope->deny);
	of = giver(chain, "request-rate");
	if (scope->request_rate && of) {
		/* Counted together wherever it holds. */
		char *name = g_strconcat(of->host ? of->host : "", of->prefix, NULL);

		scope->rate = rate_new(name, scope->request_rate, scope->request_burst + 1);
		g_free(name);
	}
}

static void add_scope(struct draft *draft, struct host *host, struct section *section,
		      const struct section *const *chain)
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
	settle(draft, KEY_SCOPE | (section->levels & KEY_PATH), chain, scope);
	scope->root_place = g_strdup(place_of(chain, scope->alias ? "alias" : "root"));
	scope->auth_place = g_strdup(place_of(chain, "auth-file"));
	finish_scope(scope, chain);
	if (scope->alias && scope->rewrite)
		draft_complain(draft, section->place, "alias and rewrite exclude each other");
	/* For who inherits it, it was told already. */
	if (scope->auth_realm && !scope->auth_file && giver(chain, "auth-realm") == section) {
		const char *place = place_of(chain, "auth-realm");

		draft_complain(draft, place ? place : "--auth-realm",
			       "auth-realm needs an auth-file");
	}
}

static void free_hosts(void *hosts)
{
	g_ptr_array_unref(hosts);
}

static void settle_hosts(struct draft *draft, struct config *config)
{
	GPtrArray *sections = draft->sections;
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
			settle(draft, KEY_HOST, chain, host);
			read_listen(draft, config, host, section);
			name_host(draft, config, host, section);
		} else {
			host->names = g_new0(char *, 1);
			host->listen = g_new0(char *, 1);
		}
		add_scope(draft, host, section, chain);
	}
	for (unsigned i = 1; i < sections->len; i++) {
		struct section *section = sections->pdata[i], *of = NULL;
		struct host *host = &config->hosts[0];

		if (!(section->levels & KEY_PATH))
			continue;
		for (unsigned k = 1; section->host && k < sections->len; k++) {
			of = sections->pdata[k];
			if (of->levels & KEY_HOST && strcmp(of->host, section->host) == 0)
				break;
			of = NULL;
		}
		for (unsigned k = 1; of && k < config->host_count; k++)
			if (strcmp(config->hosts[k].name, of->host) == 0)
				host = &config->hosts[k];
		if (section->host && !of)
			draft_complain(draft, section->place, "there is no [host %s]",
				       section->host);
		else
			add_scope(draft, host, section,
				  (const struct section *[]){section, of ? of : top,
							     of ? top : NULL, NULL});
	}
}

struct config *config_settle(struct draft *draft)
{
	struct config *config = g_new0(struct config, 1);
	const struct section *chain[] = {draft->sections->pdata[0], NULL};
	char *nobody[] = {(char *)"all", NULL};
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	atomic_init(&config->references, 1);
	config->file = g_strdup(draft->path);
	config->threads = cpus < 1 ? 1 : cpus > 64 ? 64 : (unsigned)cpus;
	settle(draft, KEY_GLOBAL, chain, config);
	/* An empty list is nobody here. */
	config->status_access = config->status_allow && config->status_allow[0]
					? make_list(config->status_allow, NULL)
					: make_list(NULL, nobody);
	config->proxy_access = make_list(config->proxy_protocol, NULL);
	config->listen_given = chain[0]->given[key_find("listen", KEY_GLOBAL)].values != NULL;
	settle_hosts(draft, config);
	return config;
}
