/* SPDX-License-Identifier: MIT */
/*
 * config-read.c - see config-read.h.  First this collects the settings as text, in
 * a section for each group of the file; then config-resolve.c makes the
 * configuration from them.
 */
#include <glib.h>
#include <nabc.h>
#include <stdbool.h>
#include <string.h>

#include "config/config-tree.h"
#include "config/config-file.h"
#include "config/config-key.h"
#include "config/config-read.h"
#include "config/config-resolve.h"
#include "config/config-value.h"
#include "config/configuration.h"

#define MAIN_GROUP "sweet"

/* --- the command line -------------------------------------------------------- */

/* GLib copies the entry, but not its strings. */
static void add_key(GOptionGroup *group, const struct key *key, char ***values)
{
	GOptionEntry entries[2] = {{key->name, 0, G_OPTION_FLAG_NONE, G_OPTION_ARG_FILENAME_ARRAY,
				    values, key->help, key->argument}};

	g_option_group_add_entries(group, entries);
}

static void add_requests(GOptionGroup *group, struct config_tree *tree,
			 struct config_request *request, gboolean *version, gboolean *check)
{
	GOptionEntry entries[] = {
		{"config", 0, G_OPTION_FLAG_NONE, G_OPTION_ARG_FILENAME, &tree->path,
		 "Configuration file with the same keys", "FILE"},
		{"check-config", 0, G_OPTION_FLAG_NONE, G_OPTION_ARG_NONE, check,
		 "Check the configuration, report errors, and exit", NULL},
		{"reload", 0, G_OPTION_FLAG_NONE, G_OPTION_ARG_FILENAME, &request->reload,
		 "Make a running server reload, report errors, and exit", "PID-FILE"},
		{"version", 'V', G_OPTION_FLAG_NONE, G_OPTION_ARG_NONE, version,
		 "Print the version and exit", NULL},
		{.long_name = NULL},
	};

	g_option_group_add_entries(group, entries);
}

/* Experiments have their own group, so that --help lists only the product's options. */
static GOptionContext *make_context(char ***values, struct config_tree *tree,
				    struct config_request *request, gboolean *version,
				    gboolean *check)
{
	GOptionContext *context = g_option_context_new(NULL);
	GOptionGroup *product = g_option_group_new(NULL, NULL, NULL, NULL, NULL);
	GOptionGroup *experiments = g_option_group_new(
		"experiments", "Options that only repeat experiments of papers:",
		"Show options that only repeat experiments of papers", NULL, NULL);

	for (unsigned i = 0; i < config_key_count; i++)
		if (config_keys[i].help)
			add_key(config_keys[i].experiment ? experiments : product, &config_keys[i],
				&values[i]);
	add_requests(product, tree, request, version, check);
	g_option_context_set_main_group(context, product);
	g_option_context_add_group(context, experiments);
	g_option_context_set_summary(context, "Serves files and workers' pages by cache id.");
	g_option_context_set_description(context,
					 "See sweet(8) and sweet.conf(5).  Experiments: "
					 "sweet --help-experiments, sweet-experiments(8).");
	return context;
}

static bool read_arguments(struct config_tree *tree, struct config_request *request, int argc,
			   char **argv)
{
	char ***values = g_new0(char **, config_key_count);
	struct section *section = config_tree_add(tree, KEY_GLOBAL | KEY_SITE | KEY_SCOPE, NULL);
	char **copy = g_new0(char *, argc + 1), **left = copy;
	gboolean version = FALSE, check = FALSE;
	bool parsed;
	GOptionContext *context;
	GError *error = NULL;

	for (int i = 0; i < argc; i++)
		copy[i] = argv[i];
	request->reload = NULL;
	context = make_context(values, tree, request, &version, &check);
	parsed = g_option_context_parse(context, &argc, &left, &error);
	if (!parsed) {
		config_tree_complain(tree, NULL, "%s (sweet --help-all lists the options)",
				     error->message);
		g_error_free(error);
	} else if (argc > 1) {
		config_tree_complain(
			tree, NULL, "\"%s\": not an option (sweet --help-all lists them)", left[1]);
	}
	g_option_context_free(context);
	g_free(copy);
	for (unsigned i = 0; i < config_key_count; i++) {
		guint count = values[i] ? g_strv_length(values[i]) : 0;

		/* If a key has one value, the last option counts. */
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
	return parsed && (check || tree->errors->len == 0);
}

/* --- the file ------------------------------------------------------------------ */

static void take_keys(struct config_tree *tree, const struct config_file *file, const char *group,
		      struct section *section)
{
	char **names = config_file_keys(file, group);

	for (unsigned i = 0; names && names[i]; i++) {
		const char *place = config_file_place(file, group, names[i]);
		int at = key_find(names[i], section->levels);
		struct given *given = at < 0 ? NULL : &section->given[at];

		if (!given && key_find(names[i], ~0u) < 0) {
			const char *like = key_like(names[i], section->levels);

			config_tree_complain(tree, place, "unknown key \"%s\"%s%s%s", names[i],
					     like ? ": is \"" : " (sweet.conf(5) lists the keys)",
					     like ? like : "", like ? "\" meant?" : "");
		} else if (!given) {
			config_tree_complain(tree, place,
					     "key \"%s\" does not belong into [%s], but into %s",
					     names[i], group, key_home(names[i]));
		} else if (!given->values) {
			given->values = config_file_values(file, group, names[i],
							   config_keys[at].list, tree->errors);
			given->place = g_strdup(place);
		}
	}
	g_strfreev(names);
}

/* Splits "[HOST]/prefix", which is "" for "/", or "[HOST]=/path". */
static void split_path(struct config_tree *tree, struct section *section, const char *text)
{
	const char *slash = strchr(text, '/'), *end = slash;
	const char *must = slash ? value_path(slash) : "must begin with '/'";

	section->exact = slash && slash != text && slash[-1] == '=';
	if (section->exact)
		end--;
	if (must) {
		config_tree_complain(tree, section->place, "path \"%s\": %s", text, must);
		slash = NULL;
	}
	g_free(section->prefix);
	section->prefix = g_strdup(!slash ? "/?" : slash[1] || section->exact ? slash : "");
	if (slash && end != text)
		section->host = g_strndup(text, (gsize)(end - text));
}

/* Splits "[HOST/]NAME". */
static void split_pattern(struct section *section, const char *text)
{
	const char *slash = strchr(text, '/');

	if (slash)
		section->host = g_strndup(text, (gsize)(slash - text));
	section->pattern = g_strdup(slash ? slash + 1 : text);
}

static bool read_file(struct config_tree *tree, bool go_on)
{
	struct config_file *file = config_file_read(tree->path, go_on, tree->errors);
	char **groups;

	if (!file)
		return false;
	groups = config_file_groups(file);
	for (unsigned i = 0; groups[i]; i++) {
		const char *place = config_file_place(file, groups[i], NULL);
		struct section *section = tree->sections->pdata[0];

		if (g_str_has_prefix(groups[i], "host ") && groups[i][5]) {
			section = config_tree_add(tree, KEY_HOST | KEY_SITE | KEY_SCOPE, place);
			section->host = g_strdup(groups[i] + 5);
		} else if (g_str_has_prefix(groups[i], "path ")) {
			section = config_tree_add(tree, KEY_SCOPE | KEY_PATH, place);
			split_path(tree, section, groups[i] + 5);
		} else if (g_str_has_prefix(groups[i], "pattern ") && groups[i][8]) {
			section = config_tree_add(tree, KEY_SCOPE | KEY_PATTERN, place);
			split_pattern(section, groups[i] + 8);
		} else if (g_str_has_prefix(groups[i], "map ") && groups[i][4]) {
			section = config_tree_add(tree, KEY_MAP, place);
			g_free(section->prefix);
			section->prefix = g_strdup(groups[i] + 4);
		} else if (g_str_has_prefix(groups[i], "pool ") && groups[i][5]) {
			section = config_tree_add(tree, KEY_POOL, place);
			g_free(section->prefix);
			section->prefix = g_strdup(groups[i] + 5);
		} else if (strcmp(groups[i], MAIN_GROUP) != 0) {
			config_tree_complain(
				tree, place,
				"unknown group [%s]: must be [sweet], [host NAME], [path "
				"PREFIX], [pattern NAME], [map NAME] or [pool NAME]",
				groups[i]);
			continue;
		}
		take_keys(tree, file, groups[i], section);
	}
	g_strfreev(groups);
	config_file_free(file);
	return true;
}

struct config *config_read(int argc, char **argv, struct config_request *request, GPtrArray *errors)
{
	struct config *config = NULL;
	struct config_tree tree;

	config_tree_init(&tree, errors);
	if (read_arguments(&tree, request, argc, argv) &&
	    (!tree.path || request->version || request->reload || read_file(&tree, request->check)))
		config = config_resolve(&tree);
	/* A check continues to what the values lead to; those that are invalid are missing. */
	if (config && errors->len && !request->check) {
		config_release(config);
		config = NULL;
	}
	config_tree_fini(&tree);
	return config;
}
