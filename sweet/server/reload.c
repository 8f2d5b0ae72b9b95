/* SPDX-License-Identifier: MIT */
/*
 * reload.c - see reload.h.
 */
#include <glib.h>
#include <nabc-worker.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "base/address.h"
#include "base/container.h"
#include "config/config-read.h"
#include "config/config-startup.h"
#include "config/configuration.h"
#include "conn/listener.h"
#include "core/logs.h"
#include "core/server.h"
#include "core/site.h"
#include "core/socket-options.h"
#include "gateway/gateway.h"
#include "log/log.h"
#include "process/endpoint.h"
#include "process/endpoints.h"
#include "server/reload.h"
#include "server/thread.h"

static void begin(struct reload *reload);

/* --- on a helper thread ------------------------------------------------------------ */

static void reload_read_next(struct job *job)
{
	struct reload *reload = container_of(job, struct reload, job);
	struct config_request request = {0};

	const struct config *config =
		config_read(reload->argc, reload->argv, &request, reload->errors);

	reload->next = config ? site_new(config) : NULL;
	if (reload->next)
		(void)site_open(
			reload->next, reload->site,
			&(struct site_options){.thread_pool = reload->server->thread_pool,
					       .compressor = reload->server->compressor,
					       .authenticator = reload->server->authenticator,
					       .tickets = reload->server->tickets,
					       .opener = reload->server->opener,
					       .max_unit = reload->server->max_unit},
			reload->errors);
}

/* --- on the main thread --------------------------------------------------------------- */

char *reload_lines(GPtrArray *errors)
{
	GString *lines = g_string_new(NULL);

	for (unsigned i = 0; errors && i < errors->len; i++)
		g_string_append_printf(lines, "%s\n", (const char *)errors->pdata[i]);
	g_string_append(lines, "the old configuration stays");
	return g_string_free(lines, FALSE);
}

struct endpoints_wanted reload_endpoints(const struct config *config)
{
	return (struct endpoints_wanted){.listen = config->listen,
					 .given = config->listen_given,
					 .status_listen = config->status_listen};
}

static void drop_next(struct reload *reload)
{
	site_release(reload->next);
	reload->next = NULL;
	if (reload->errors)
		g_ptr_array_free(reload->errors, TRUE);
	reload->errors = NULL;
}

static void finish(struct reload *reload, bool good)
{
	char *said = good ? g_steal_pointer(&reload->fixed) : reload_lines(reload->errors);

	drop_next(reload);
	reload->busy = false;
	if (!reload->ended)
		reload->over(reload, good);
	/* Last: a caller that gets the result finds the new server. */
	reload_calls_answer(&reload->calls, good, reload->ended && !good ? RELOAD_ENDING : said);
	g_free(said);
	if (reload->again && !reload->ended)
		begin(reload);
}

/* Frees the parts that no thread has taken over. */
static void free_change(struct thread_change *change)
{
	site_release(change->site);
	for (unsigned i = 0; i < change->fresh_count; i++) {
		close(change->fresh[i]->listener.fd);
		g_free(change->fresh[i]);
	}
	g_free(change->gone);
	g_free(change->tls);
	g_free(change->status_only);
	g_free(change->fresh);
	g_free(change);
}

static void reload_taken(struct thread_change *change)
{
	struct reload *reload = change->owner;

	g_ptr_array_remove_fast(reload->under_way, change);
	free_change(change);
	if (reload->under_way->len > 0)
		return;
	g_ptr_array_free(reload->under_way, TRUE);
	reload->under_way = NULL;
	gateway_renew(reload->site);
	finish(reload, true);
}

/* Makes a thread's part of the step. */
static struct thread_change *part_of(struct reload *reload, struct server_thread *runner,
				     const struct endpoints_change *endpoints)
{
	struct thread_change *change = g_new0(struct thread_change, 1);

	change->runner = runner;
	change->owner = reload;
	change->done = reload_taken;
	change->site = site_hold(reload->next);
	change->gone = g_new(unsigned, endpoints->gone->len);
	for (unsigned i = 0; i < endpoints->gone->len; i++)
		change->gone[change->gone_count++] =
			((struct endpoint *)endpoints->gone->pdata[i])->id;
	return change;
}

/* Lists the addresses with TLS and those for the status, of all that the server listens on now. */
static void list_kinds(const struct endpoints *endpoints, struct thread_change *change)
{
	change->tls = g_new(unsigned, endpoints->all->len);
	change->status_only = g_new(unsigned, endpoints->all->len);
	for (unsigned i = 0; i < endpoints->all->len; i++) {
		const struct endpoint *endpoint = endpoints->all->pdata[i];

		if (endpoint->wanted.tls)
			change->tls[change->tls_count++] = endpoint->id;
		if (endpoint->status_only)
			change->status_only[change->status_only_count++] = endpoint->id;
	}
}

static void hand_out(struct reload *reload, struct endpoints_change *endpoints)
{
	unsigned count = reload->runners->count;
	unsigned first = reload->endpoints->all->len - endpoints->gone->len;
	struct site *before = reload->site;
	char *fixed = config_startup_changes(before->config, reload->next->config);

	if (fixed) {
		reload->fixed = g_strdup_printf(
			"changed, but read at the start only: %s; restart to use it", fixed);
		log_warning("%s", reload->fixed);
	}
	g_free(fixed);
	reload->under_way = g_ptr_array_sized_new(count);
	for (unsigned i = 0; i < count; i++)
		g_ptr_array_add(reload->under_way,
				part_of(reload, &reload->runners->all[i], endpoints));
	endpoints_commit(reload->endpoints, endpoints);
	for (unsigned i = 0; i < count; i++) {
		struct thread_change *change = reload->under_way->pdata[i];

		list_kinds(reload->endpoints, change);
		/* New endpoints are at the end of the list. */
		change->fresh = g_new(struct seat *, reload->endpoints->all->len - first);
		for (unsigned k = first; k < reload->endpoints->all->len; k++)
			change->fresh[change->fresh_count++] = server_thread_seat(
				change->runner, reload->endpoints->all->pdata[k]);
	}
	reload->site = reload->next;
	reload->next = NULL;
	for (unsigned i = 0; i < count; i++)
		thread_change(reload->under_way->pdata[i]);
	site_release(before);
}

static void reload_was_read(struct job *job)
{
	struct reload *reload = container_of(job, struct reload, job);
	struct endpoints_wanted wanted;
	struct endpoints_change endpoints;
	char *why = NULL;

	if (reload->ended) {
		finish(reload, false);
		return;
	}
	if (reload->next)
		wanted = reload_endpoints(reload->next->config);
	if (reload->errors->len == 0 &&
	    endpoints_plan(reload->endpoints, &wanted, &endpoints, reload->errors)) {
		bool method = send_method_use(reload->server->cache, reload->site->config,
					      reload->next->config, &why);

		if (method && gateway_use(reload->server->gateway, reload->next, &why) == 0 &&
		    logs_apply(reload->server, reload->next->config, &why)) {
			hand_out(reload, &endpoints);
			return;
		}
		/* The method worked before, so it works again. */
		if (method)
			(void)send_method_use(reload->server->cache, reload->next->config,
					      reload->site->config, NULL);
		endpoints_abandon(&endpoints);
		g_ptr_array_add(reload->errors, why);
	}
	for (unsigned i = 0; i < reload->errors->len; i++)
		log_error("%s", (const char *)reload->errors->pdata[i]);
	log_error("the old configuration stays");
	finish(reload, false);
}

static void begin(struct reload *reload)
{
	reload->busy = true;
	reload->again = false;
	reload_calls_begin(&reload->calls);
	reload->errors = g_ptr_array_new_with_free_func(g_free);
	reload->job = (struct job){.work = reload_read_next,
				   .done = reload_was_read,
				   .loop = reload->runners->all[0].thread.loop,
				   .class = JOB_QUICK};
	thread_pool_submit(reload->server->thread_pool, &reload->job);
}

void reload_begin(struct reload *reload)
{
	if (reload->ended) {
		reload_calls_begin(&reload->calls);
		reload_calls_answer(&reload->calls, false, RELOAD_ENDING);
		return;
	}
	if (reload->busy)
		reload->again = true;
	else
		begin(reload);
}

void reload_end(struct reload *reload)
{
	reload->ended = true;
	reload->again = false;
	if (reload->busy)
		return;
	reload_calls_begin(&reload->calls);
	reload_calls_answer(&reload->calls, false, RELOAD_ENDING);
}

void reload_clear(struct reload *reload)
{
	for (unsigned i = 0; reload->under_way && i < reload->under_way->len; i++)
		free_change(reload->under_way->pdata[i]);
	if (reload->under_way)
		g_ptr_array_free(reload->under_way, TRUE);
	reload->under_way = NULL;
	drop_next(reload);
	g_free(reload->fixed);
	reload->fixed = NULL;
	reload_calls_begin(&reload->calls);
	reload_calls_answer(&reload->calls, false, RELOAD_ENDING);
	site_release(reload->site);
	reload->site = NULL;
}
