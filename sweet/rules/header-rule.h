/* SPDX-License-Identifier: MIT */
/*
 * header-rule.h - rules of the operator for fields of responses: set, add, remove.
 */
#ifndef SWEET_HEADER_RULE_H
#define SWEET_HEADER_RULE_H

#include <stdbool.h>
#include <stddef.h>

#include "http/fields.h"
#include "rules/template.h"

#define HEADER_RULES_MAX 2048 /* bytes that the rules of one path add to a head */

struct header_rule {
	enum header_rule_kind { HEADER_SET, HEADER_ADD, HEADER_REMOVE } kind;
	bool always; /* whatever the status is */
	char *name;
	enum field_id id; /* of the name */
	char *line;	  /* "Name: value\r\n"; NULL: HEADER_REMOVE, or its value has variables */
	size_t length;
	struct field field;	/* of that line; without one: no name */
	struct template *value; /* with variables; else NULL */
};

/*
 * Reads "[always ]Name: value" (set), "[always ]+Name: value" (add) or "[always ]-Name" (remove).
 * Returns NULL, or what the text must be; call header_rule_free() in both cases.
 */
const char *header_rule_parse(struct header_rule *rule, const char *text);
void header_rule_free(struct header_rule *rule);

/*
 * Writes the lines of rules with variables, in their order, each ended by a NUL; g_free().  Returns
 * NULL if there are none; *fits: whether all lines of the rules have at most HEADER_RULES_MAX
 * bytes, else it returns NULL, too.
 */
char *header_rules_expand(const struct header_rule *rules, unsigned count, template_value *value,
			  const void *context, bool *fits);

/*
 * Changes the fields of a response's head as the rules say; expanded: of header_rules_expand(), or
 * NULL: then rules with variables only remove fields.  The fields refer to the rules and to that.
 */
void header_rules_apply(const struct header_rule *rules, unsigned count, const char *expanded,
			int status, struct fields *fields);

#endif
