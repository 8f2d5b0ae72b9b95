/* SPDX-License-Identifier: MIT */
/*
 * config-tree.c - see config-tree.h.
 */

#include <nabc.h>
#include <stdarg.h>
#include <stddef.h>

#include "config/config-tree.h"
#include "config/config-key.h"

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
