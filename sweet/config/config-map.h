/* SPDX-License-Identifier: MIT */
/*
 * config-map.h - tables of the operator, [map NAME]: from a value of a request to another value.
 */
#ifndef SWEET_CONFIG_MAP_H
#define SWEET_CONFIG_MAP_H

#include "base/slice.h"
#include "rules/template.h"

struct config;
struct config_tree;
struct map_table;
struct template;

/* Makes the tables of a configuration. */
void config_maps(struct config_tree *tree, struct config *config);

void config_map_free(struct map_table *table);

/* Returns the table of that name, or NULL. */
const struct map_table *config_map(const struct config *config, const char *name);

/* Complains about tables that the template names and that do not exist. */
void config_map_check(struct config_tree *tree, struct config *config,
		      const struct template *template, const char *place);

/* Returns what the table has for a request; empty: nothing.  Valid as long as the table. */
struct slice config_map_value(const struct map_table *table, template_value *value,
			      const void *context);

#endif
