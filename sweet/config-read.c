/* SPDX-License-Identifier: MIT */
/*
 * config-read.c - see config-read.h.  What was given is gathered as text
 * first, a section for each group of the file; then every section takes what
 * it lacks from the one that it lies in, and only what counts in the end is
 * looked at.
 */
#include <string.h>
#include <unistd.h>

#include <access.h>
#include <config-file.h>
#include <config-key.h>
#include <config-read.h>
#include <config-value.h>
#include <limit.h>

#define MAIN_GROUP "sweet"

struct given {
	char **values; /* NULL: not given */
	char *place;   /* "FILE:LINE" or "--"; see complain_of() */
};

/* [sweet], [host NAME] or [path PREFIX], as given. */
struct section {
	unsigned levels; /* of the keys that may stand there */
	char *place;
	char *host;   /* its name; NULL in [sweet] and for the default host's paths */
	char *prefix; /* "" but in [path] */
	struct given *given;
};

struct reader {
	GPtrArray *errors;
	GPtrArray *sections; /* [0] is [sweet] with the command line */
	char *path;	     /* of the file */
};

static void complain(struct reader *reader, const char *place, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void complain(struct reader *reader, const char *place, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = g_strdup_vprintf(format, arguments);
	va_end(arguments);
	g_ptr_array_add(reader->errors,
			place ? g_strdup_printf("%s: %s", place, text) : g_strdup(text));
	g_free(text);
}

static struct section *add_section(struct reader *reader, unsigned levels, const char *place)
{
	struct section *section = g_new0(struct section, 1);

	section->levels = levels;
	section->place = g_strdup(place);
	section->prefix = g_strdup("");
	section->given = g_new0(struct given, config_key_count);
	g_ptr_array_add(reader->sections, section);
	return section;
}

static void free_section(void *data)
{
	struct section *section = data;

	for (unsigned i = 0; i < config_key_count; i++) {
		g_strfreev(section->given[i].values);
		g_free(section->given[i].place);
	}
	g_free(section->given);
	g_free(section->place);
	g_free(section->host);
	g_free(section->prefix);
	g_free(section);
}

/* --- the command line -------------------------------------------------------- */

static bool read_arguments(struct reader *reader, struct config_request *request, int argc,
			   char **argv)
{
	GOptionEntry *entries = g_new0(GOptionEntry, config_key_count + 4);
	GOptionContext *context = g_option_context_new(NULL);
	char ***values = g_new0(char **, config_key_count);
	struct section *section = add_section(reader, KEY_GLOBAL | KEY_SCOPE, NULL);
	char **copy = g_new0(char *, argc + 1), **left = copy;
	gboolean version = FALSE, check = FALSE;
	GError *error = NULL;
	size_t n = 0;

	for (int i = 0; i < argc; i++)
		copy[i] = argv[i];
	for (unsigned i = 0; i < config_key_count; i++)
		if (config_keys[i].help)
			entries[n++] = (GOptionEntry){
				config_keys[i].name,	     0,		 G_OPTION_FLAG_NONE,
				G_OPTION_ARG_FILENAME_ARRAY, &values[i], config_keys[i].help,
				config_keys[i].argument};
	entries[n++] = (GOptionEntry){"config",
				      0,
				      G_OPTION_FLAG_NONE,
				      G_OPTION_ARG_FILENAME,
				      &reader->path,
				      "File with the same keys",
				      "FILE"};
	entries[n++] = (GOptionEntry){"check-config",
				      0,
				      G_OPTION_FLAG_NONE,
				      G_OPTION_ARG_NONE,
				      &check,
				      "Look at the configuration, tell what is wrong, and end",
				      NULL};
	entries[n++] = (GOptionEntry){"version",
				      'V',
				      G_OPTION_FLAG_NONE,
				      G_OPTION_ARG_NONE,
				      &version,
				      "Print the version and end",
				      NULL};
	g_option_context_add_main_entries(context, entries, NULL);
	g_option_context_set_summary(context, "Serves files and workers' pages by cache id.");
	g_option_context_set_description(context, "See sweet(8) and sweet.conf(5).");
	if (!g_option_context_parse(context, &argc, &left, &error)) {
		complain(reader, NULL, "%s (sweet --help lists the options)", error->message);
		g_error_free(error);
	} else if (argc > 1) {
		complain(reader, NULL, "\"%s\": not an option (sweet --help lists them)", left[1]);
	}
	g_option_context_free(context);
	g_free(copy);
	g_free(entries);
	for (unsigned i = 0; i < config_key_count; i++) {
		guint count = values[i] ? g_strv_length(values[i]) : 0;

		/* Of a key with one value the last word counts. */
		for (guint k = 0; !config_keys[i].list && k + 1 < count; k++)
			g_free(values[i][k]);
		if (!config_keys[i].list && count > 1) {
			values[i][0] = values[i][count - 1];
			values[i][1] = NULL;
		}
		section->given[i].values = values[i];
	}
	g_free(values);
	request->version = version;
	request->check = check;
	return reader->errors->len == 0;
}

/* --- the file ------------------------------------------------------------------ */

static void take_keys(struct reader *reader, const struct config_file *file, const char *group,
		      struct section *section)
{
	char **names = config_file_keys(file, group);

	for (unsigned i = 0; names && names[i]; i++) {
		const char *place = config_file_place(file, group, names[i]);
		int at = key_find(names[i], section->levels);
		struct given *given = at < 0 ? NULL : &section->given[at];

		if (!given && key_find(names[i], ~0u) < 0) {
			const char *like = key_like(names[i], section->levels);

			complain(reader, place, "unknown key \"%s\"%s%s%s", names[i],
				 like ? ": is \"" : " (sweet.conf(5) has all)", like ? like : "",
				 like ? "\" meant?" : "");
		} else if (!given) {
			complain(reader, place, "key \"%s\" does not belong into [%s], but into %s",
				 names[i], group, key_home(names[i]));
		} else if (!given->values) {
			given->values = config_file_values(file, group, names[i],
							   config_keys[at].list, reader->errors);
			given->place = g_strdup(place);
		}
	}
	g_strfreev(names);
}

/* "NAME/prefix" or "/prefix". */
static void split_path(struct reader *reader, struct section *section, const char *text)
{
	const char *slash = strchr(text, '/');
	const char *must = slash ? value_path(slash) : "must begin with '/'";

	if (must || !slash[1]) {
		complain(reader, section->place, "path \"%s\": %s", text,
			 must ? must : "is the host itself: put its keys there");
		slash = NULL;
	}
	g_free(section->prefix);
	section->prefix = g_strdup(slash ? slash : "/?");
	if (slash && slash != text)
		section->host = g_strndup(text, (gsize)(slash - text));
}

static bool read_file(struct reader *reader)
{
	struct config_file *file = config_file_read(reader->path, reader->errors);
	char **groups;

	if (!file)
		return false;
	groups = config_file_groups(file);
	for (unsigned i = 0; groups[i]; i++) {
		const char *place = config_file_place(file, groups[i], NULL);
		struct section *section = reader->sections->pdata[0];

		if (g_str_has_prefix(groups[i], "host ") && groups[i][5]) {
			section = add_section(reader, KEY_HOST | KEY_SCOPE, place);
			section->host = g_strdup(groups[i] + 5);
		} else if (g_str_has_prefix(groups[i], "path ")) {
			section = add_section(reader, KEY_SCOPE | KEY_PATH, place);
			split_path(reader, section, groups[i] + 5);
		} else if (strcmp(groups[i], MAIN_GROUP) != 0) {
			complain(
				reader, place,
				"unknown group [%s]: must be [sweet], [host NAME] or [path PREFIX]",
				groups[i]);
			continue;
		}
		take_keys(reader, file, groups[i], section);
	}
	g_strfreev(groups);
	config_file_free(file);
	return true;
}

/* --- from sections to the configuration ------------------------------------------ */

static void complain_of(struct reader *reader, const struct key *key, const char *place,
			const char *wrong, const char *must)
{
	if (place)
		complain(reader, place, "%s \"%s\": %s", key->name, wrong, must);
	else
		complain(reader, NULL, "--%s \"%s\": %s", key->name, wrong, must);
}

/* The values of the first section of the chain that has them, or the default. */
static void settle_key(struct reader *reader, unsigned at, const struct section *const *chain,
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
		complain_of(reader, key, given ? given->place : "default", wrong, must);
	g_free(must);
	g_strfreev(otherwise);
}

static void settle(struct reader *reader, unsigned levels, const struct section *const *chain,
		   void *base)
{
	for (unsigned i = 0; i < config_key_count; i++) {
		const struct section *own[] = {chain[0], NULL, NULL};

		if (!(config_keys[i].levels & levels))
			continue;
		/* A path has it from its host, a host has it not from [sweet]. */
		if (config_keys[i].levels & KEY_OWN && chain[0]->levels & KEY_PATH)
			own[1] = chain[1];
		settle_key(reader, i, config_keys[i].levels & (KEY_OWN | KEY_PATH) ? own : chain,
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

static void name_host(struct reader *reader, struct config *config, struct host *host,
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
			complain(reader, section->place,
				 "host \"%s\": must be a name like "
				 "example.org or *.example.org",
				 name);
		else if (!config_name_host(config, name, host))
			complain(reader, section->place, "host \"%s\" is named twice", name);
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
static void read_listen(struct reader *reader, struct config *config, struct host *host,
			const struct section *section)
{
	host->addresses = g_new0(struct listen_address, g_strv_length(host->listen));
	for (unsigned i = 0; host->listen[i]; i++) {
		struct listen_address *address = &host->addresses[host->address_count];

		if (!g_strv_contains((const char *const *)config->listen, host->listen[i]))
			complain(reader, section->place,
				 "listen \"%s\": must be one of listen of [sweet]",
				 host->listen[i]);
		else if (g_str_has_prefix(host->listen[i], ADDRESS_UNIX) &&
			 has_many_unix(config->listen))
			complain(reader, section->place,
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

static void add_scope(struct reader *reader, struct host *host, struct section *section,
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
	settle(reader, KEY_SCOPE | (section->levels & KEY_PATH), chain, scope);
	scope->root_place = g_strdup(place_of(chain, scope->alias ? "alias" : "root"));
	scope->auth_place = g_strdup(place_of(chain, "auth-file"));
	finish_scope(scope, chain);
	if (scope->alias && scope->rewrite)
		complain(reader, section->place, "alias and rewrite exclude each other");
	/* For who inherits it, it was told already. */
	if (scope->auth_realm && !scope->auth_file && giver(chain, "auth-realm") == section) {
		const char *place = place_of(chain, "auth-realm");

		complain(reader, place ? place : "--auth-realm", "auth-realm needs an auth-file");
	}
}

static void free_hosts(void *hosts)
{
	g_ptr_array_unref(hosts);
}

static void settle_hosts(struct reader *reader, struct config *config)
{
	GPtrArray *sections = reader->sections;
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
			settle(reader, KEY_HOST, chain, host);
			read_listen(reader, config, host, section);
			name_host(reader, config, host, section);
		} else {
			host->names = g_new0(char *, 1);
			host->listen = g_new0(char *, 1);
		}
		add_scope(reader, host, section, chain);
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
			complain(reader, section->place, "there is no [host %s]", section->host);
		else
			add_scope(reader, host, section,
				  (const struct section *[]){section, of ? of : top,
							     of ? top : NULL, NULL});
	}
}

static struct config *settle_all(struct reader *reader)
{
	struct config *config = g_new0(struct config, 1);
	const struct section *chain[] = {reader->sections->pdata[0], NULL};
	char *nobody[] = {(char *)"all", NULL};
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	atomic_init(&config->references, 1);
	config->file = g_strdup(reader->path);
	config->threads = cpus < 1 ? 1 : cpus > 64 ? 64 : (unsigned)cpus;
	settle(reader, KEY_GLOBAL, chain, config);
	/* An empty list is nobody here. */
	config->status_access = config->status_allow && config->status_allow[0]
					? make_list(config->status_allow, NULL)
					: make_list(NULL, nobody);
	config->proxy_access = make_list(config->proxy_protocol, NULL);
	config->listen_given = chain[0]->given[key_find("listen", KEY_GLOBAL)].values != NULL;
	settle_hosts(reader, config);
	return config;
}

struct config *config_read(int argc, char **argv, struct config_request *request, GPtrArray *errors)
{
	struct reader reader = {.errors = errors,
				.sections = g_ptr_array_new_with_free_func(free_section)};
	struct config *config = NULL;

	if (read_arguments(&reader, request, argc, argv) &&
	    (!reader.path || request->version || read_file(&reader)))
		config = settle_all(&reader);
	if (config && errors->len) {
		config_unref(config);
		config = NULL;
	}
	g_ptr_array_free(reader.sections, TRUE);
	g_free(reader.path);
	return config;
}
