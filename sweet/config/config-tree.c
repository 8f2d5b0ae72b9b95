/* SPDX-License-Identifier: MIT */
/*
 * config-tree.c - see config-tree.h.
 */
#include <glib.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <nabc.h>

#include "config/config-key.h"
#include "config/config-tree.h"

/* Adds a line once, although many paths may inherit the setting from their host. */
static void add_line(GPtrArray *lines, char *line)
{
	if (g_ptr_array_find_with_equal_func(lines, line, g_str_equal, NULL))
		g_free(line);
	else
		g_ptr_array_add(lines, line);
}

static void add_message(GPtrArray *lines, const char *place, const char *kind, const char *format,
			va_list arguments) __attribute__((format(printf, 4, 0)));

static void add_message(GPtrArray *lines, const char *place, const char *kind, const char *format,
			va_list arguments)
{
	char *text = g_strdup_vprintf(format, arguments);

	add_line(lines,
		 g_strdup_printf("%s%s%s%s", place ? place : "", place ? ": " : "", kind, text));
	g_free(text);
}

void config_tree_complain(struct config_tree *tree, const char *place, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	add_message(tree->errors, place, "", format, arguments);
	va_end(arguments);
}

void config_tree_warn(struct config_tree *tree, const char *place, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	add_message(tree->warnings, place, "warning: ", format, arguments);
	va_end(arguments);
}

struct section *config_tree_add(struct config_tree *tree, unsigned levels, const char *place)
{
	struct section *section = g_new0(struct section, 1);

	section->levels = levels;
	section->place = g_strdup(place);
	section->prefix = g_strdup("");
	section->given = g_new0(struct given, config_key_count);
	g_ptr_array_add(tree->sections, section);
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
	g_free(section->pattern);
	g_free(section);
}

void config_tree_init(struct config_tree *tree, GPtrArray *errors)
{
	*tree = (struct config_tree){.errors = errors,
				     .warnings = g_ptr_array_new_with_free_func(g_free),
				     .sections = g_ptr_array_new_with_free_func(free_section)};
}

void config_tree_fini(struct config_tree *tree)
{
	g_ptr_array_free(tree->sections, TRUE);
	if (tree->warnings)
		g_ptr_array_free(tree->warnings, TRUE);
	g_free(tree->path);
}

static void complain_of(struct config_tree *tree, const struct key *key, const char *place,
			const char *wrong, const char *must)
{
	if (place)
		config_tree_complain(tree, place, "%s \"%s\": %s", key->name, wrong, must);
	else
		config_tree_complain(tree, NULL, "--%s \"%s\": %s", key->name, wrong, must);
}

/* Returns what the section at that place of the chain says about the key, or NULL. */
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
		looks = place == 0 || chain[place - 1]->levels & (KEY_PATH | KEY_PATTERN);
	return looks && section->given[at].values ? &section->given[at] : NULL;
}

unsigned chain_nearest(const struct section *const *chain, unsigned at)
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
	const struct section *of = chain[chain_nearest(chain, at)];
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

void chain_resolve(struct config_tree *tree, unsigned levels, const struct section *const *chain,
		   void *base)
{
	for (unsigned i = 0; i < config_key_count; i++)
		if (config_keys[i].levels & levels)
			resolve_key(tree, i, chain, base);
}

unsigned chain_index(const struct section *const *chain, const char *name)
{
	return chain_nearest(chain, (unsigned)key_find(name, KEY_SCOPE | KEY_PATH));
}

const struct section *chain_giver(const struct section *const *chain, const char *name)
{
	return chain[chain_index(chain, name)];
}

const char *chain_place(const struct section *const *chain, const char *name)
{
	const struct section *section = chain_giver(chain, name);

	return section ? section->given[key_find(name, KEY_SCOPE | KEY_PATH)].place : NULL;
}

size_t chain_skip(const struct section *const *chain, unsigned place)
{
	return chain[place] ? strlen(chain[place]->prefix) : 0;
}
