/* SPDX-License-Identifier: MIT */
/*
 * log-set.c - see log-set.h.  Any thread.
 */
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "base/user-open.h"
#include "config/configuration.h"
#include "core/access-log.h"
#include "core/log-set.h"
#include "log/log-format.h"

struct log_set *log_set_hold(struct log_set *set)
{
	atomic_fetch_add_explicit(&set->references, 1, memory_order_relaxed);
	return set;
}

void log_set_release(struct log_set *set)
{
	if (!set || atomic_fetch_sub_explicit(&set->references, 1, memory_order_acq_rel) != 1)
		return;
	for (unsigned i = 0; i < set->count; i++)
		if (set->fds[i] >= 0)
			close(set->fds[i]);
	config_release(set->config);
	g_free(set);
}

struct log_set *log_set_open(const struct config *config, char **why)
{
	unsigned count = config->log_count;
	struct log_set *set = g_malloc0(sizeof(*set) + count * sizeof(set->fds[0]));

	atomic_init(&set->references, 1);
	set->config = config_hold(config);
	for (; set->count < count; set->count++) {
		const struct config_log *log = &config->logs[set->count];
		int *fd = &set->fds[set->count], error = access_log_open(log->file, fd);

		if (error) {
			*why = g_strdup_printf("cannot write the %s log \"%s\": %s", log->kind,
					       log->file, user_open_error(error));
			log_set_release(set);
			return NULL;
		}
		set->wants |= *fd >= 0 ? log->format->wants : 0;
	}
	return set;
}

unsigned log_set_number(const struct log_set *set, const struct config *config,
			const struct host *host)
{
	const struct config *own = set->config;

	if (!host)
		return own->hosts[0].log;
	if (config == own)
		return host->log;
	for (unsigned i = 0; i < own->host_count; i++)
		if (strcmp(own->hosts[i].name, host->name) == 0)
			return own->hosts[i].log;
	return own->hosts[0].log;
}
