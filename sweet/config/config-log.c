/* SPDX-License-Identifier: MIT */
/*
 * config-log.c - see config-log.h.
 */
#include <glib.h>
#include <nabc.h>
#include <stdbool.h>
#include <string.h>

#include "base/slice.h"
#include "config/config-log.h"
#include "config/configuration.h"
#include "log/log-format.h"

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
