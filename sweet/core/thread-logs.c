/* SPDX-License-Identifier: MIT */
/*
 * thread-logs.c - see thread-logs.h.  It belongs to its thread, except `coming`, where another
 * thread puts the next set.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <glib.h>

#include "base/container.h"
#include "config/configuration.h"
#include "core/access-log.h"
#include "core/log-set.h"
#include "core/thread-logs.h"
#include "event/loop.h"

/* Takes the reference of the caller to the set. */
static void use(struct thread_logs *logs, struct log_set *set)
{
	struct log_set *before = logs->set;

	logs->set = set;
	logs->wants = set->wants;
	if (set->count > logs->count) {
		logs->all = g_renew(struct access_log *, logs->all, set->count);
		while (logs->count < set->count)
			logs->all[logs->count++] = NULL;
	}
	for (unsigned i = 0; i < logs->count; i++) {
		bool used = i < set->count;

		if (logs->all[i])
			access_log_use(logs->all[i], used ? set->fds[i] : -1,
				       used ? set->config->logs[i].format : NULL);
	}
	log_set_release(before);
}

static void take(struct thread_logs *logs)
{
	struct log_set *set = atomic_exchange(&logs->coming, NULL);

	if (set)
		use(logs, set);
}

static void logs_take_task(struct loop_task *task)
{
	take(container_of(task, struct thread_logs, task));
}

void thread_logs_change(struct thread_logs *logs, struct log_set *set)
{
	struct log_set *before = atomic_exchange(&logs->coming, set);

	if (!before) {
		logs->task.run = logs_take_task;
		loop_post(logs->loop, &logs->task);
		return;
	}
	/* The thread has not taken the previous set, and never will. */
	log_set_release(before);
}

void thread_logs_start(struct thread_logs *logs, struct loop *loop, struct log_set *set)
{
	logs->loop = loop;
	use(logs, set);
}

/* Only a log with lines needs memory; without memory, its lines are lost. */
static struct access_log *open_log(struct thread_logs *logs, unsigned number)
{
	struct access_log *log = calloc(1, sizeof(*log));

	if (log)
		access_log_start(log, logs->loop, logs->set->fds[number],
				 logs->set->config->logs[number].format);
	logs->all[number] = log;
	return log;
}

void thread_logs_put(struct thread_logs *logs, unsigned number, const struct access_line *line)
{
	struct access_log *log;

	if (!logs->set || number >= logs->set->count || logs->set->fds[number] < 0)
		return;
	log = logs->all[number] ? logs->all[number] : open_log(logs, number);
	if (log)
		access_log_put(log, line);
}

void thread_logs_stop(struct thread_logs *logs)
{
	if (!logs || !logs->set)
		return;
	for (unsigned i = 0; i < logs->count; i++)
		if (logs->all[i])
			access_log_end(logs->all[i]);
	take(logs);
	for (unsigned i = 0; i < logs->count; i++)
		free(logs->all[i]);
	g_clear_pointer(&logs->all, g_free);
	g_clear_pointer(&logs->set, log_set_release);
	logs->count = logs->wants = 0;
}
