/* SPDX-License-Identifier: MIT */
/*
 * variable.c - see variable.h.  Variables are only read after they were compiled: any thread may
 * expand them.
 */
#include <glib.h>
#include <stdbool.h>
#include <string.h>

#include "rules/template.h"
#include "rules/variable-expand.h"
#include "rules/variable.h"

/* The server needs its own values of some. */
static bool is_own(const char *text)
{
	static const char *const own[] = {
		"CONTENT_LENGTH=", "NABC_SERVER_PID=", "GATEWAY_INTERFACE=", "REQUEST_METHOD="};

	for (unsigned i = 0; i < G_N_ELEMENTS(own); i++)
		if (g_str_has_prefix(text, own[i]))
			return true;
	return false;
}

static char *expand(const struct template *template, template_value *value, const void *context)
{
	GString *text = g_string_new(NULL);

	template_expand(template, TEMPLATE_FIELD, value, context, text);
	return g_string_free(text, FALSE);
}

/* Replaces a template that needs no request by its text. */
static void settle(struct variables *variables, unsigned index)
{
	struct template **template = &variables->values[index];

	if (!template_is_constant(*template))
		return;
	g_free(variables->list[index]);
	variables->list[index] = expand(*template, NULL, NULL);
	g_clear_pointer(template, template_free);
}

const char *variables_compile(struct variables *variables, char **list, const char **wrong)
{
	unsigned permitted = (1u << TEMPLATE_VARIABLES) - 1;
	bool any = false;

	variables->list = g_strdupv(list);
	variables->values = g_new0(struct template *, g_strv_length(list) + 1);
	for (unsigned i = 0; list[i]; i++) {
		size_t name = strspn(list[i], G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_");
		const char *must;

		*wrong = list[i];
		if (name == 0 || g_ascii_isdigit(list[i][0]) || list[i][name] != '=')
			return "must be NAME=VALUE with letters, digits and _ in the name";
		if (is_own(list[i]))
			return "must be another variable: programs rely on the server's";
		variables->values[i] = template_compile(list[i], permitted, &must);
		if (!variables->values[i])
			return must;
		settle(variables, i);
		any |= variables->values[i] != NULL;
	}
	if (!any)
		g_clear_pointer(&variables->values, g_free);
	return NULL;
}

void variables_free(struct variables *variables)
{
	for (unsigned i = 0; variables->values && variables->list[i]; i++)
		template_free(variables->values[i]);
	g_free(variables->values);
	g_strfreev(variables->list);
	*variables = (struct variables){0};
}

char **variables_expand(const struct variables *variables, template_value *value,
			const void *context)
{
	char **list;

	if (!variables->values)
		return NULL;
	list = g_new0(char *, g_strv_length(variables->list) + 1);
	for (unsigned i = 0; variables->list[i]; i++)
		list[i] = variables->values[i] ? expand(variables->values[i], value, context)
					       : g_strdup(variables->list[i]);
	return list;
}
