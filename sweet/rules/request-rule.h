/* SPDX-License-Identifier: MIT */
/*
 * request-rule.h - rules of the operator for the fields of requests that programs get: set, remove.
 */
#ifndef SWEET_REQUEST_RULE_H
#define SWEET_REQUEST_RULE_H

#include <stdbool.h>

#include "base/slice.h"
#include "rules/template.h"

struct request;

#define REQUEST_RULES_MAX 2048 /* bytes that the rules of one path add to a head */

struct request_rule {
	char *name;
	struct template *value; /* NULL: removes the field */
};

/* Rules, as those see them who write a request for a program; count 0: none. */
struct request_rules {
	const struct request_rule *rules;
	unsigned count;
};

/*
 * Reads "Name: value" (set) or "-Name" (remove).  Returns NULL, or what the text must be; call
 * request_rule_free() in both cases.
 */
const char *request_rule_parse(struct request_rule *rule, const char *text);
void request_rule_free(struct request_rule *rule);

/*
 * Makes the request of a program from the client's: without the client's fields that the rules
 * name, and with theirs; a value that is empty removes a field.  Returns the head that the new
 * request points into (g_free()), and that request_parse() accepts; NULL if the lines of the rules
 * have more than REQUEST_RULES_MAX bytes or the request more than REQUEST_HEADERS_MAX fields.
 */
char *request_rules_apply(struct request_rules rules, const struct request *request,
			  template_value *value, const void *context, struct request *changed);

/* Whether a rule decides about that field: what the request has of it is the operator's. */
bool request_rules_have(struct request_rules rules, struct slice name);

#endif
