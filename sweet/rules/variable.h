/* SPDX-License-Identifier: MIT */
/*
 * variable.h - variables of the operator for programs, "NAME=value", whose values may name what a
 * request has (template.h).
 */
#ifndef SWEET_VARIABLE_H
#define SWEET_VARIABLE_H

#include "rules/template.h"

struct variables {
	char **list;		  /* as they are if no value is a template; NULL: none */
	struct template **values; /* of each; NULL: no value is one */
};

/*
 * Sets *variables, which is zero, from a list that may be empty.  Returns NULL, or what the
 * variable in *wrong must be; call variables_free() in both cases.
 */
const char *variables_compile(struct variables *variables, char **list, const char **wrong);
void variables_free(struct variables *variables);

/* Returns the list for a request, g_strfreev(); NULL: variables->list is that of all requests. */
char **variables_expand(const struct variables *variables, template_value *value,
			const void *context);

#endif
