/* SPDX-License-Identifier: MIT */
/*
 * config-rule.c - see config-rule.h.
 */
#include <glib.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "auth/ip-acl.h"
#include "base/slice.h"
#include "coding/compress-rule.h"
#include "config/config-rule.h"
#include "config/config-value.h"
#include "config/configuration.h"
#include "http/cachecontrol.h"
#include "program/cacheable.h"
#include "rules/header-rule.h"
#include "rules/request-rule.h"
#include "http/request.h"
#include "rules/template.h"

bool rule_is_field_text(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	return true;
}

/* As the only value of a list: what a nearer path or host does not inherit. */
static bool is_off(char **values)
{
	return values[0] && !values[1] && strcmp(values[0], "off") == 0;
}

static bool forbids_transform(const char *value)
{
	struct cachecontrol control;

	cachecontrol_init(&control);
	/* A line ends with CR LF. */
	cachecontrol_add(&control, (struct slice){value, strcspn(value, "\r\n")});
	return control.no_transform;
}

/* The operator describes the bytes, or forbids to change them; with variables: may do so. */
static bool forbids_coding(const struct header_rule *rule)
{
	const char *value = rule->line ? strchr(rule->line, ':') : NULL;

	if (!value && !rule->value)
		return false;
	return g_ascii_strcasecmp(rule->name, "Content-Encoding") == 0 ||
	       (g_ascii_strcasecmp(rule->name, "Cache-Control") == 0 &&
		(!value || forbids_transform(value + 1)));
}

void rule_compress_finish(struct scope *scope)
{
	for (unsigned i = 0; i < scope->header_rule_count; i++)
		if (forbids_coding(&scope->header_rules[i]))
			scope->compress.codings = 0;
}

const char *rule_cache_control(struct scope *scope, char **values, const char **wrong)
{
	scope->cache_rules = g_new0(struct cache_rule, g_strv_length(values));
	for (unsigned i = 0; values[i]; i++) {
		struct cache_rule *rule = &scope->cache_rules[scope->cache_rule_count];
		char *text = g_strstrip(g_strdup(values[i]));
		char *blank = strchr(text, ' ');

		*wrong = values[i];
		if (!*text || !rule_is_field_text(text)) {
			g_free(text);
			return "must be [PATTERN ]VALUE, like \"*.css max-age=86400\"";
		}
		/* No directive's name contains a dot, but most file names do. */
		if (blank && strchr("*?.", text[strcspn(text, "*?.= ")])) {
			*blank = '\0';
			rule->pattern = g_pattern_spec_new(text);
			rule->value = g_strdup(g_strchug(blank + 1));
		} else {
			rule->value = g_strdup(text);
		}
		rule->no_transform = forbids_transform(rule->value);
		scope->cache_rule_count++;
		g_free(text);
	}
	return NULL;
}

const char *rule_cache(struct scope *scope, char **values, const char **wrong)
{
	static const char *const words[] = {[CACHEABLE_MARKED] = "marked",
					    [CACHEABLE_OFF] = "off",
					    [CACHEABLE_RESPONSE] = "response",
					    NULL};
	unsigned word = 0;
	uint64_t ms;

	*wrong = values[0];
	if (value_word(values[0], words, &word)) {
		scope->cache_mode = word;
		scope->cache_seconds = 0;
		return NULL;
	}
	if (value_time(values[0], 1000, &ms) || ms < 1000)
		return "must be marked, response, off, or a time of at least 1s";
	scope->cache_mode = CACHEABLE_TIME;
	scope->cache_seconds = (uint32_t)(ms / 1000);
	return NULL;
}

/* Whether another entry follows behind a blank: "404=/a.html 500=/b.html". */
static bool is_several(const char *text)
{
	for (const char *at = text; (at = strchr(at, ' ')); at++)
		if (g_ascii_isdigit(at[1]) && g_ascii_isdigit(at[2]) && g_ascii_isdigit(at[3]) &&
		    at[4] == '=')
			return true;
	return false;
}

/* Reads "STATUS=/PATH[=STATUS]"; a path may contain '='.  Returns NULL or what it must be. */
static const char *read_error_page(struct error_page *page, const char *text)
{
	const char *equals = strchr(text, '='), *last = strrchr(text, '=');
	char *number = g_strstrip(g_strndup(text, (gsize)(equals - text)));
	uint64_t status = 0, as;
	bool good = !value_number(number, 400, 599, &status);

	g_free(number);
	as = status;
	if (last == equals ||
	    (value_number(last + 1, 200, 200, &as) && value_number(last + 1, 400, 599, &as)))
		last = text + strlen(text);
	page->status = (int)status;
	page->as = (int)as;
	page->path = g_strndup(equals + 1, (gsize)(last - equals - 1));
	if (!good || *page->path != '/')
		return "must be STATUS=/PATH with a status from 400 to 599";
	return is_several(page->path) ? "must be one page: several are separated by ';'"
				      : value_path(page->path);
}

/* Returns false if an entry before that one has its status: it would never be sent. */
static bool is_first_page(const struct scope *scope)
{
	unsigned last = scope->error_page_count - 1;

	for (unsigned i = 0; i < last; i++)
		if (scope->error_pages[i].status == scope->error_pages[last].status)
			return false;
	return true;
}

const char *rule_error_pages(struct scope *scope, char **values, const char **wrong)
{
	const char *must;

	scope->error_pages = g_new0(struct error_page, g_strv_length(values));
	for (unsigned i = 0; values[i]; i++) {
		*wrong = values[i];
		if (!strchr(values[i], '='))
			return "must be STATUS=/PATH, like 404=/missing.html";
		must = read_error_page(&scope->error_pages[scope->error_page_count++], values[i]);
		if (must)
			return must;
		if (!is_first_page(scope))
			return "must have another status than the entries before it, which are "
			       "sent";
	}
	return NULL;
}

const char *rule_headers(struct scope *scope, char **values, const char **wrong)
{
	size_t bytes = 0;

	if (is_off(values))
		return NULL;
	scope->header_rules = g_new0(struct header_rule, g_strv_length(values));
	for (unsigned i = 0; values[i]; i++) {
		struct header_rule *rule = &scope->header_rules[scope->header_rule_count++];
		const char *must = header_rule_parse(rule, values[i]);

		*wrong = values[i];
		if (must)
			return must;
		bytes += rule->length;
		scope->header_variables |= rule->value != NULL;
		if (bytes > HEADER_RULES_MAX)
			return "must be shorter: the fields of a path may have 2048 bytes together";
	}
	return NULL;
}

const char *rule_request_headers(struct scope *scope, char **values, const char **wrong)
{
	if (is_off(values))
		return NULL;
	scope->request_rules = g_new0(struct request_rule, g_strv_length(values));
	for (unsigned i = 0; values[i]; i++) {
		const char *must = request_rule_parse(
			&scope->request_rules[scope->request_rule_count++], values[i]);

		*wrong = values[i];
		if (must)
			return must;
	}
	return NULL;
}

static const char *read_try(struct try_file *item, const char *text)
{
	static const char pool[] = "pool:";
	uint64_t status;

	if (strcmp(text, "file") == 0) {
		item->kind = TRY_FILE;
	} else if (strcmp(text, "folder") == 0) {
		item->kind = TRY_FOLDER;
	} else if (*text == '/') {
		item->kind = TRY_PATH;
		item->text = g_strdup(text);
		return strlen(text) > REQUEST_TARGET_MAX ? "must be shorter" : value_path(text);
	} else if (g_str_has_prefix(text, pool) && text[sizeof(pool) - 1]) {
		item->kind = TRY_POOL;
		item->text = g_strdup(text + sizeof(pool) - 1);
	} else if (*text == '=' && !value_number(text + 1, 400, 599, &status)) {
		item->kind = TRY_STATUS;
		item->status = (int)status;
	} else {
		return "must be file, folder, /PATH, pool:NAME, or =STATUS from 400 to 599";
	}
	return NULL;
}

const char *rule_try_files(struct scope *scope, char **values, const char **wrong)
{
	if (is_off(values))
		return NULL;
	scope->tries = g_new0(struct try_file, g_strv_length(values));
	for (unsigned i = 0; values[i]; i++) {
		struct try_file *item = &scope->tries[scope->try_count++];
		const char *must = read_try(item, values[i]);

		*wrong = values[i];
		if (must)
			return must;
		if (item->kind != TRY_FILE && item->kind != TRY_FOLDER && values[i + 1])
			return "must be the last one: it always answers";
	}
	return NULL;
}

static const char not_uri[] = "must be a URI: blanks and other characters are written %XX";

static bool is_uri(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text <= 0x20 || (unsigned char)*text >= 0x7f)
			return false;
	return true;
}

/* Where a request is sent depends on its URL alone, so that responses can be cached. */
#define REWRITE_VARIABLES (TEMPLATE_OF_URL | 1u << TEMPLATE_MAP)
#define REDIRECT_VARIABLES                                                                         \
	(REWRITE_VARIABLES | 1u << TEMPLATE_CLIENT | 1u << TEMPLATE_METHOD |                       \
	 1u << TEMPLATE_REQUEST_ID | 1u << TEMPLATE_USER)

const char *rule_redirect(struct scope *scope, char **values, const char **wrong)
{
	const char *text = values[0], *blank = strchr(text, ' '), *must;
	uint64_t status = 302;

	*wrong = text;
	if (strcmp(text, "off") == 0)
		return NULL;
	if (blank) {
		char *number = g_strndup(text, (gsize)(blank - text));
		bool good = !value_number(number, 301, 308, &status) && status != 304 &&
			    status != 305 && status != 306;

		g_free(number);
		if (!good)
			return "must be [STATUS ]TARGET with status 301, 302, 303, 307 or 308";
		text = blank + 1;
	}
	if (strcmp(text, "tls") == 0) {
		scope->redirect_status = (int)status;
		scope->redirect_tls = true;
		return NULL;
	}
	if (!g_str_has_prefix(text, "/") && !g_str_has_prefix(text, "http://") &&
	    !g_str_has_prefix(text, "https://") && !g_str_has_prefix(text, "{scheme}://") &&
	    !g_str_has_prefix(text, "{map:"))
		return "must go to a path (/new/), to http:// or https://, or to tls";
	if (!is_uri(text))
		return not_uri;
	scope->redirect_status = (int)status;
	scope->redirect_to = g_strdup(text);
	scope->redirect_text = template_compile(text, REDIRECT_VARIABLES, &must);
	return must;
}

const char *rule_rewrite_to(struct scope *scope, char **values, const char **wrong)
{
	const char *must;

	*wrong = values[0];
	if (*values[0] != '/' && !g_str_has_prefix(values[0], "{map:"))
		return "must begin with '/'";
	if (!is_uri(values[0]))
		return not_uri;
	scope->rewrite_text = template_compile(values[0], REWRITE_VARIABLES, &must);
	return must;
}

struct ip_acl *rule_access_list(char **allow, char **deny)
{
	char *why = NULL;
	struct ip_acl *list = NULL;

	if ((allow && allow[0]) || (deny && deny[0]))
		list = ip_acl_new(allow, deny, &why);
	/* Each rule was checked as the value of its key; errors are reported already. */
	g_free(why);
	return list;
}
