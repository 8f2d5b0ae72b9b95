/* SPDX-License-Identifier: MIT */
/*
 * variable-expand.h - the operator's variables (variable.h) as a request has them.
 */
#ifndef SWEET_VARIABLE_EXPAND_H
#define SWEET_VARIABLE_EXPAND_H

#include "rules/template.h"

struct variables;

/* Returns the list for a request, g_strfreev(); NULL: variables->list is that of all requests. */
char **variables_expand(const struct variables *variables, template_value *value,
			const void *context);

#endif
