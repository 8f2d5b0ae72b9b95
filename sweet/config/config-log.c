/* SPDX-License-Identifier: MIT */
/*
 * config-log.c - see config-log.h.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <nabc.h>

#include "base/slice.h"
#include "base/syntax.h"
#include "config/config-key.h"
#include "config/config-log.h"
#include "config/config-rule.h"
#include "config/config-store.h"
#include "config/config-tree.h"
#include "config/configuration.h"
#include "log/log-format.h"
#include "log/span-send.h"

#define SLOW                                                                                       \
	"template:{time} {client} {status} total={time-total}us queue={time-queue}us "             \
	"program={time-program}us send={time-send}us bytes={bytes} pool={pool} cache={cache} "     \
	"id={request-id} host={host} \"{request}\""

/* What is off is the same log, whatever its format. */
static bool is_same(const struct config_log *log, const struct host *host)
{
	return strcmp(log->file, host->access_log) == 0 &&
	       (strcmp(log->file, "off") == 0 ||
		strcmp(log->format->text, host->log_format->text) == 0);
}

static unsigned add(struct config *config, struct config_log log)
{
	config->logs = g_renew(struct config_log, config->logs, config->log_count + 1);
	config->logs[config->log_count] = log;
	return config->log_count++;
}

void config_log_add(struct config *config, struct host *host, const char *place)
{
	/* An invalid value was reported. */
	if (!host->access_log || !host->log_format)
		return;
	for (unsigned i = 0; i < config->log_count; i++)
		if (is_same(&config->logs[i], host)) {
			host->log = i;
			return;
		}
	host->log = add(config, (struct config_log){.kind = "access",
						    .file = host->access_log,
						    .format = host->log_format,
						    .place = g_strdup(place)});
}

void config_log_add_slow(struct config *config)
{
	const char *wrong;

	config->slow_number = config->log_count;
	if (!config->slow_log || strcmp(config->slow_log, "off") == 0)
		return;
	/* It has no mistake, as its test shows. */
	(void)log_format_read(SLOW, &config->slow_format, &wrong);
	(void)add(config, (struct config_log){.kind = "slow",
					      .file = config->slow_log,
					      .format = config->slow_format,
					      .place = g_strdup(config_place(config, "slow-log"))});
}

static unsigned find(const GPtrArray *names, struct slice name)
{
	unsigned at = 0;

	while (at < names->len && !slice_is(name, names->pdata[at]))
		at++;
	return at;
}

static void number(struct log_format *format, GPtrArray *names)
{
	for (unsigned i = 0; i < format->part_count; i++) {
		struct log_part *part = &format->parts[i];

		if (part->variable != LOG_REQUEST_FIELD)
			continue;
		part->field = find(names, part->text);
		if (part->field == names->len)
			g_ptr_array_add(names, g_strndup(part->text.at, part->text.length));
	}
}

bool config_log_number_fields(struct config *config)
{
	GPtrArray *names = g_ptr_array_new();

	for (unsigned i = 0; i < config->log_count; i++)
		number(config->logs[i].format, names);
	config->log_field_count = names->len;
	g_ptr_array_add(names, NULL);
	config->log_fields = (char **)g_ptr_array_free(names, FALSE);
	return config->log_field_count <= LOG_FIELDS_MAX;
}

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
