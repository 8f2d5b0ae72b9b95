/* SPDX-License-Identifier: MIT */
/*
 * config-trace.c - see config-trace.h.
 */
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <glib.h>

#include "base/syntax.h"
#include "config/config-key.h"
#include "config/config-rule.h"
#include "config/config-store.h"
#include "config/config-trace.h"
#include "config/config-tree.h"
#include "config/configuration.h"
#include "log/span-send.h"

#define SHARE_PLACES 4u /* decimal places of a percentage */

static bool is_collector(const char *url)
{
	GUri *uri = g_uri_parse(url, G_URI_FLAGS_NONE, NULL);
	bool good = uri && g_uri_get_host(uri) && *g_uri_get_host(uri) &&
		    !g_uri_get_userinfo(uri) && !g_uri_get_fragment(uri) &&
		    (strcmp(g_uri_get_scheme(uri), "http") == 0 ||
		     strcmp(g_uri_get_scheme(uri), "https") == 0);

	if (uri)
		g_uri_unref(uri);
	for (; good && *url; url++)
		good = g_ascii_isgraph(*url);
	return good;
}

const char *store_collector(const struct key *key, char **values, void *base, const char **wrong)
{
	const char *missing;

	*wrong = values[0];
	if (strcmp(values[0], "off") == 0)
		return NULL;
	if (!is_collector(values[0]))
		return "must be a URL like http://127.0.0.1:4318/v1/traces, without a password, or "
		       "off";
	missing = span_send_missing();
	return missing ? missing : store_text(key, values, base, wrong);
}

/* Digits with at most SHARE_PLACES behind a dot; *value: in the unit of the last place. */
static bool read_percent(const char *text, uint64_t *value)
{
	unsigned places = 0;
	bool dot = false;

	*value = 0;
	if (!g_ascii_isdigit(*text))
		return false;
	for (; g_ascii_isdigit(*text) || (*text == '.' && !dot); text++) {
		if (*text == '.') {
			dot = true;
			continue;
		}
		places += dot;
		if (places > SHARE_PLACES || *value > UINT32_MAX)
			return false;
		*value = *value * 10 + (uint64_t)(*text - '0');
	}
	for (; places < SHARE_PLACES; places++)
		*value *= 10;
	return strcmp(text, "") == 0 || strcmp(text, "%") == 0;
}

const char *store_share(const struct key *key, char **values, void *base, const char **wrong)
{
	uint64_t all = 100, value;

	for (unsigned i = 0; i < SHARE_PLACES; i++)
		all *= 10;
	*wrong = values[0];
	if (!read_percent(values[0], &value) || value > all)
		return "must be a percentage from 0 to 100 with at most 4 decimal places, like "
		       "2.5%";
	/* In two steps, because the product has more than 64 bits. */
	*(uint64_t *)(void *)((char *)base + key->offset) =
		value == all
			? CONFIG_SHARE_ALL
			: CONFIG_SHARE_ALL / all * value + CONFIG_SHARE_ALL % all * value / all;
	return NULL;
}

const char *store_fields(const struct key *key, char **values, void *base, const char **wrong)
{
	for (unsigned i = 0; values[i]; i++) {
		size_t name = 0;

		while (syntax_is_token(values[i][name]))
			name++;
		*wrong = values[i];
		if (!name || values[i][name] != ':' || !values[i][name + 1] ||
		    !rule_is_field_text(values[i]))
			return "must be NAME: VALUE";
	}
	return store_list(key, values, base, wrong);
}

void config_trace_check(struct config_tree *tree, const struct config *config)
{
	if (config->collector_url && !config->trace)
		config_tree_complain(tree, config_place(config, "trace-export"),
				     "trace-export needs trace=on");
}
