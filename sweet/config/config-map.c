/* SPDX-License-Identifier: MIT */
/*
 * config-map.c - see config-map.h.
 */
#include <glib.h>
#include <nabc.h>
#include <stdbool.h>
#include <string.h>

#include "base/slice.h"
#include "base/syntax.h"
#include "config/config-chain.h"
#include "config/config-key.h"
#include "config/config-map.h"
#include "config/config-tree.h"
#include "config/configuration.h"

static bool is_value(const char *text)
{
	while (syntax_is_value(*text))
		text++;
	return *text == '\0';
}

/* Adds "KEY VALUE"; returns NULL or what the text must be. */
static const char *add_pair(struct map_table *table, const char *pair)
{
	char *text = g_strstrip(g_strdup(pair));
	size_t length = strcspn(text, " \t");
	const char *must = NULL;

	if (!length || !text[length])
		must = "must be KEY VALUE, with a blank between them";
	else if (!is_value(text))
		must = "must have no control characters";
	else if (!g_hash_table_insert(table->values, g_strndup(text, length),
				      g_strdup(text + length + strspn(text + length, " \t"))))
		must = "has a key that is given twice";
	g_free(text);
	return must;
}

static void read_file(struct config_tree *tree, struct map_table *table)
{
	GError *error = NULL;
	char *text = NULL, **lines;

	if (!g_file_get_contents(table->file, &text, NULL, &error)) {
		config_tree_complain(tree, table->place, "file: %s", error->message);
		g_error_free(error);
		return;
	}
	lines = g_strsplit(text, "\n", -1);
	for (unsigned i = 0; lines[i]; i++) {
		const char *line = g_strstrip(lines[i]), *must;

		if (!*line || *line == '#')
			continue;
		must = add_pair(table, line);
		if (must)
			config_tree_complain(tree, table->place, "file: %s:%u: \"%s\" %s",
					     table->file, i + 1, line, must);
	}
	g_strfreev(lines);
	g_free(text);
}

static void make(struct config_tree *tree, struct map_table *table)
{
	const char *must;

	table->values = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	table->lookup =
		template_compile(table->text ? table->text : "{path}", TEMPLATE_OF_URL, &must);
	if (must)
		config_tree_complain(tree, table->place, "lookup \"%s\": %s", table->text, must);
	for (unsigned i = 0; table->pairs && table->pairs[i]; i++) {
		const char *wrong = add_pair(table, table->pairs[i]);

		if (wrong)
			config_tree_complain(tree, table->place, "values \"%s\": %s",
					     table->pairs[i], wrong);
	}
	if (table->file)
		read_file(tree, table);
}

void config_maps(struct config_tree *tree, struct config *config)
{
	for (unsigned i = 1; i < tree->sections->len; i++) {
		const struct section *section = tree->sections->pdata[i];
		const struct section *chain[] = {section, NULL};
		struct map_table *table;

		if (!(section->levels & KEY_MAP))
			continue;
		config->maps = g_renew(struct map_table, config->maps, config->map_count + 1);
		table = &config->maps[config->map_count++];
		*table = (struct map_table){.name = g_strdup(section->prefix),
					    .place = g_strdup(section->place)};
		chain_resolve(tree, KEY_MAP, chain, table);
		make(tree, table);
	}
}

void config_map_free(struct map_table *table)
{
	g_free(table->name);
	g_free(table->place);
	g_free(table->text);
	g_strfreev(table->pairs);
	g_free(table->file);
	g_free(table->otherwise);
	template_free(table->lookup);
	g_hash_table_destroy(table->values);
}

const struct map_table *config_map(const struct config *config, const char *name)
{
	for (unsigned i = 0; i < config->map_count; i++)
		if (strcmp(config->maps[i].name, name) == 0)
			return &config->maps[i];
	return NULL;
}

struct slice config_map_value(const struct map_table *table, template_value *value,
			      const void *context)
{
	GString *key = g_string_new(NULL);
	const char *found;

	template_expand(table->lookup, TEMPLATE_PLAIN, value, context, key);
	found = g_hash_table_lookup(table->values, key->str);
	g_string_free(key, TRUE);
	if (!found)
		found = table->otherwise ? table->otherwise : "";
	return (struct slice){found, strlen(found)};
}

static const char *find_map(void *context, const char *name)
{
	struct config *config = context;

	for (unsigned i = 0; i < config->map_count; i++)
		if (strcmp(config->maps[i].name, name) == 0) {
			config->maps[i].used = true;
			return NULL;
		}
	return "there is no such [map]";
}

void config_map_check(struct config_tree *tree, struct config *config,
		      const struct template *template, const char *place)
{
	const char *name, *must = template_each_map(template, find_map, config, &name);

	if (must)
		config_tree_complain(tree, place, "{map:%s}: %s", name, must);
}
