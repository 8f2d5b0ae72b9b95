/* SPDX-License-Identifier: MIT */
/*
 * template.h - values of the configuration with variables in braces, like "/users/{1}?from={host}".
 *
 * A brace that is not followed by a letter or digit is only a brace, and {{ is one.  A template is
 * constant: any thread may expand it.
 */
#ifndef SWEET_TEMPLATE_H
#define SWEET_TEMPLATE_H

#include <stdbool.h>

#include <glib.h>

#include "base/slice.h"

enum template_variable {
	TEMPLATE_CAPTURE, /* {1} to {9}, groups of the path's pattern; {0}, what matched it */
	TEMPLATE_CLIENT,  /* address */
	TEMPLATE_HOST,	  /* name of the Host field, without the port */
	TEMPLATE_MAP,	  /* {map:NAME}: a table */
	TEMPLATE_METHOD,
	TEMPLATE_PATH,	     /* decoded */
	TEMPLATE_QUERY,	     /* as sent */
	TEMPLATE_REQUEST_ID, /* of request-id */
	TEMPLATE_SCHEME,     /* http or https */
	TEMPLATE_SUBJECT,    /* of the client's certificate */
	TEMPLATE_USER,	     /* authenticated */
	TEMPLATE_VARIABLES
};

/* How what stands for a variable is written. */
enum template_escape {
	/* In a field: control characters are replaced by '?'. */
	TEMPLATE_FIELD,
	/* In a URI's path: all but unreserved characters, "/" and what else a path may contain. */
	TEMPLATE_URI_PATH,
	/* In a URI's query: a value, which cannot begin another one. */
	TEMPLATE_URI_QUERY,
	TEMPLATE_PLAIN,
};

struct template;

/* Variables that depend on the URL alone. */
#define TEMPLATE_OF_URL                                                                            \
	(1u << TEMPLATE_CAPTURE | 1u << TEMPLATE_HOST | 1u << TEMPLATE_PATH |                      \
	 1u << TEMPLATE_QUERY | 1u << TEMPLATE_SCHEME)

/*
 * Returns NULL if the text is invalid, and sets *must to what it must be, which lasts, else to
 * NULL.  permitted: a set of bits 1 << enum template_variable.
 */
struct template *template_compile(const char *text, unsigned permitted, const char **must);
void template_free(struct template *template);

/* Whether there are no variables. */
bool template_is_constant(const struct template *template);

bool template_uses(const struct template *template, enum template_variable variable);

/* Returns the highest number of a group, or -1. */
int template_last_capture(const struct template *template);

/* Calls visit() with each name of a table; it returns NULL or what the name must be. */
const char *template_each_map(const struct template *template,
			      const char *(*visit)(void *context, const char *name), void *context,
			      const char **name);

/* Returns what stands for the variable; number: of a group; name: of a table. */
typedef struct slice template_value(const void *context, enum template_variable variable,
				    unsigned number, const char *name);

/*
 * Appends the text; variables in the part after the first '?' of the template's own text are
 * written as in a query if escape is TEMPLATE_URI_PATH.
 */
void template_expand(const struct template *template, enum template_escape escape,
		     template_value *value, const void *context, GString *out);

#endif
