/* SPDX-License-Identifier: MIT */
/*
 * variable.h - variables of the operator for programs, "NAME=value", whose values may name what a
 * request has (template.h).
 */
#ifndef SWEET_VARIABLE_H
#define SWEET_VARIABLE_H

struct template;

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

#endif
