/* SPDX-License-Identifier: MIT */
/*
 * config-rule.h - the values of a scope's keys that are small rules.
 *
 * Each function reads a key's values into the scope.  It returns NULL, or what a
 * value must be, and sets *wrong to the invalid value.
 */
#ifndef SWEET_CONFIG_RULE_H
#define SWEET_CONFIG_RULE_H

#include <stdbool.h>

struct scope;

/* Returns true if the text is permitted in a response's field. */
bool rule_is_field_text(const char *text);

/* "[PATTERN ]VALUE"...; a pattern contains '*' or '?'. */
/* Call it when the scope has its header rules. */
void rule_compress_finish(struct scope *scope);

const char *rule_cache_control(struct scope *scope, char **values, const char **wrong);

/* "marked", "response", "off", or a time. */
const char *rule_cache(struct scope *scope, char **values, const char **wrong);

/* "STATUS=/PATH"... */
const char *rule_error_pages(struct scope *scope, char **values, const char **wrong);

/* As header_rule_parse(); or "off". */
const char *rule_headers(struct scope *scope, char **values, const char **wrong);

/* As request_rule_parse(); or "off". */
const char *rule_request_headers(struct scope *scope, char **values, const char **wrong);

/* "file", "folder", then "/PATH", "pool:NAME" or "=STATUS"; or "off". */
const char *rule_try_files(struct scope *scope, char **values, const char **wrong);

/* "[STATUS ]TARGET" or "off". */
const char *rule_redirect(struct scope *scope, char **values, const char **wrong);

/* "/PATH[?QUERY]" with variables, of a pattern. */
const char *rule_rewrite_to(struct scope *scope, char **values, const char **wrong);

/* Makes the list of valid entries, each NULL or a list; NULL if there are none. */
struct ip_acl *rule_access_list(char **allow, char **deny);

#endif
