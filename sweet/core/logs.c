/* SPDX-License-Identifier: MIT */
/*
 * logs.c - see logs.h.  Only the main thread changes server->logs.
 */
#include <stdbool.h>
#include <string.h>

#include <glib.h>

#include "base/user-open.h"
#include "config/configuration.h"
#include "core/log-set.h"
#include "core/logs.h"
#include "core/server.h"
#include "core/thread-logs.h"
#include "log/log.h"
#include "log/span-export.h"
#include "log/span-send.h"

bool logs_apply(struct server *server, const struct config *config, char **why)
{
	struct log_set *set = log_set_open(config, why);
	int error = set ? log_open(config->error_log) : 0;

	if (error) {
		*why = g_strdup_printf("cannot write the error log \"%s\": %s", config->error_log,
				       user_open_error(error));
		g_clear_pointer(&set, log_set_release);
	}
	if (!set)
		return false;
	log_set_level((enum log_level)config->log_level);
	for (unsigned i = 0; i < server->threads && server->per_thread[i]; i++)
		thread_logs_change(server->per_thread[i]->logs, log_set_hold(set));
	logs_close(server);
	server->logs = set;
	if (server->spans)
		logs_use_collector(server, config);
	return true;
}

void logs_use_collector(struct server *server, const struct config *config)
{
	const struct span_target collector = {.url = config->collector_url,
					      .service = config->collector_service,
					      .ca = config->collector_ca,
					      .headers = config->collector_headers};
	int error = span_export_use(server->spans, &collector);

	if (error)
		log_error("trace-export %s: cannot start its thread: %s; no spans are sent",
			  config->collector_url, strerror(-error));
}

void logs_join(struct server *server, struct thread *thread)
{
	thread_logs_start(thread->logs, thread->loop, log_set_hold(server->logs));
}

void logs_close(struct server *server)
{
	g_clear_pointer(&server->logs, log_set_release);
}
