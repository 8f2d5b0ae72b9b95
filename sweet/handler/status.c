/* SPDX-License-Identifier: MIT */
/*
 * status.c - see status.h.  Runs on the thread of the request, and adds up the counters of all
 * threads without waiting for them.
 */
#include <errno.h>
#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>
#include <arpa/inet.h>

#include <glib.h>

#include "auth/ip-acl.h"
#include "backend/pool.h"
#include "backend/protocol.h"
#include "base/clock.h"
#include "base/histogram.h"
#include "base/slice.h"
#include "config/arch.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "core/server.h"
#include "core/site.h"
#include "core/socket-options.h"
#include "core/text-response.h"
#include "core/thread-counters.h"
#include "event/data-path.h"
#include "event/loop.h"
#include "event/thread-pool.h"
#include "files/compressor.h"
#include "files/spool.h"
#include "gateway/gateway.h"
#include "gateway/pool-process.h"
#include "gateway/worker-channel.h"
#include "gateway/worker.h"
#include "handler/status-data.h"
#include "handler/status-json.h"
#include "handler/status-metrics.h"
#include "handler/status-page.h"
#include "handler/status.h"
#include "http/request.h"
#include "log/log-output.h"
#include "log/span-export.h"
#include "respcache/respcache.h"

#define PREFIX "/.sweet/"

enum form { FORM_NONE, FORM_STATUS, FORM_JSON, FORM_HTML, FORM_METRICS, FORM_READY };

static const struct {
	const char *name;
	enum form form;
} forms[] = {
	{"status", FORM_STATUS},   {"status.json", FORM_JSON}, {"status.html", FORM_HTML},
	{"metrics", FORM_METRICS}, {"ready", FORM_READY},
};

static enum form find(const char *path)
{
	/* Nearly all paths differ in the second byte. */
	if (path[1] != PREFIX[1] || strncmp(path, PREFIX, strlen(PREFIX)) != 0)
		return FORM_NONE;
	for (unsigned i = 0; i < G_N_ELEMENTS(forms); i++)
		if (strcmp(path + strlen(PREFIX), forms[i].name) == 0)
			return forms[i].form;
	return FORM_NONE;
}

bool status_has(const char *path)
{
	return find(path) != FORM_NONE;
}

/* --- who may see it ------------------------------------------------------------- */

bool status_answers(const struct transaction *transaction)
{
	const struct config *config = transaction->config_ref->config;
	enum form form = find(transaction->path);

	if (form != FORM_NONE && config->status_listen && config->status_listen[0] &&
	    !transaction->peer.status_only)
		return false;
	return form != FORM_NONE && config->status &&
	       (form == FORM_READY ||
		ip_acl_allows(config->status_access, transaction->peer.remote));
}

/* --- what there is to tell --------------------------------------------------------- */

static uint64_t load(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void add_thread(struct status_data *data, const struct thread *thread)
{
	const struct thread_counters *counters = thread->counters;
	const struct loop_counts *loop = loop_counts(thread->loop);
	struct status_thread *row = &data->thread[thread->number];

	*row = (struct status_thread){.io = loop_name(thread->loop),
				      .accepted = load(&counters->connections),
				      .open = load(&counters->open),
				      .requests = load(&counters->requests),
				      .bytes = load(&counters->body_bytes)};
	data->accepted += row->accepted;
	data->open += row->open;
	data->requests += row->requests;
	data->bytes += row->bytes;
	for (unsigned i = 0; i < CONNECTION_STATES; i++)
		data->states[i] += load(&counters->states[i]);
	for (unsigned i = 0; i < G_N_ELEMENTS(data->responses); i++)
		data->responses[i] += load(&counters->responses[i]);
	data->pieces += load(&counters->body_units);
	data->ready += load(&counters->body_ready);
	data->loop_waits += load(&loop->waits);
	data->loop_sends += load(&loop->sends);
	data->loop_batched += load(&loop->batched);
	data->worker_requests += load(&counters->worker_requests);
	data->worker_messages += load(&counters->worker_messages);
	data->worker_bodies += load(&counters->worker_bodies);
	data->worker_failures += load(&counters->worker_failures);
	data->slow_clients += load(&counters->slow_clients);
	data->sessions += load(&counters->sessions);
	data->tls_handshakes += load(&counters->tls_handshakes);
	data->tls_resumed += load(&counters->tls_resumed);
	data->tls_kernel += load(&counters->tls_kernel);
	data->tls_failed += load(&counters->tls_failed);
	data->slow_files += load(&counters->slow_files);
	data->slow_spooled += load(&counters->slow_spooled);
	data->slow_reset += load(&counters->slow_reset);
	histogram_add(&data->latency, &counters->latency);
}

static void add_worker(struct status_worker *worker, const struct pool_process *from)
{
	uint64_t starts = load(&from->starts), ended = 0;
	/* Other processes accept their requests themselves, from a shared socket. */
	const struct worker_channel *channels =
		from->pool->protocol == &worker_protocol ? worker_channels(from) : NULL;

	worker->pid = (uint64_t)atomic_load_explicit(&from->pid, memory_order_relaxed);
	worker->up = worker->pid != 0;
	worker->restarts = starts ? starts - 1 : 0;
	for (unsigned i = 0; channels && i < from->parts; i++) {
		/* Read in this order, so that `ended` never exceeds `requests`. */
		ended += load(&channels[i].ended);
		worker->failures += load(&channels[i].failures);
		worker->requests += load(&channels[i].requests);
	}
	worker->in_flight = worker->requests > ended ? worker->requests - ended : 0;
}

static void add_gateway(struct status_data *data, const struct server *server,
			const struct site *site)
{
	const struct config *config = site->config;

	data->pool_count = config->pool_count;
	data->pools = g_new0(struct status_pool, config->pool_count);
	for (unsigned i = 0; i < config->pool_count; i++) {
		const struct gateway_pool *from = site->pools[i];
		struct status_pool *pool = &data->pools[i];

		pool->prefix = config->pools[i]->name;
		pool->argv = config->pools[i]->argv;
		if (from->protocol->addresses)
			pool->addresses = from->protocol->addresses(from);
		pool->tunnels = load(&from->tunnels);
		pool->tunnels_refused = load(&from->tunnels_refused);
		pool->count = from->count;
		pool->workers = g_new0(struct status_worker, from->count);
		for (unsigned k = 0; k < server->threads; k++)
			pool->waiting += load(&from->queues[k].count);
		for (unsigned k = 0; k < from->count; k++)
			add_worker(&pool->workers[k], &from->processes[k]);
	}
}

static void add_cache(struct status_data *data, NC_cache *cache)
{
	const struct NC_cache_stat *stat = &data->cache;
	int routes;

	(void)NC_cache_stat(cache, &data->cache, sizeof(data->cache));
	/* The kernel reports for how many sends it copied after all, not for how many bytes. */
	data->bytes_avoided = stat->by_splice.bytes + stat->by_kernel.bytes +
			      (uint64_t)((double)stat->by_zerocopy.bytes *
					 status_share(stat->zerocopy_kept, stat->zerocopy_copied));
	routes = NC_routes(cache, data->routes, sizeof(*(data->routes)), STATUS_ROUTES_MAX);
	data->route_count = routes < 0			      ? 0
			    : routes < (int)STATUS_ROUTES_MAX ? (unsigned)routes
							      : STATUS_ROUTES_MAX;
}

static uint64_t microseconds(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000u + (uint64_t)time->tv_usec;
}

/* Returns the bytes of a line "NAME: N kB"; 0 if there is none. */
static uint64_t line_bytes(const char *text, const char *name)
{
	const char *line = strstr(text, name);

	return line ? g_ascii_strtoull(line + strlen(name), NULL, 10) * 1024 : 0;
}

/* 0 if /proc cannot be read. */
static void add_memory(struct status_data *data)
{
	char *text = NULL;

	if (g_file_get_contents("/proc/self/status", &text, NULL, NULL)) {
		data->memory = line_bytes(text, "\nVmRSS:");
		data->locked = line_bytes(text, "\nVmLck:");
		data->pinned = line_bytes(text, "\nVmPin:");
	}
	g_free(text);
}

static void add_process(struct status_data *data, const struct server *server)
{
	struct rusage usage;

	data->uptime_ms = (clock_monotonic_ns() - server->started_ns) / 1000000u;
	data->now_ms = (uint64_t)g_get_real_time() / 1000;
	data->started_ms = server->started_ms;
	data->pid = (uint64_t)getpid();
	getrusage(RUSAGE_SELF, &usage);
	data->cpu_user_us = microseconds(&usage.ru_utime);
	data->cpu_system_us = microseconds(&usage.ru_stime);
	add_memory(data);
	data->io = server->io;
	data->data_path = server->path->name;
	data->arch = server->arch->name;
	data->threads = server->threads;
}

/* Each class has its jobs in one or two pools. */
static void add_jobs(struct thread_pool_stat *jobs, struct thread_pool *thread_pool)
{
	struct thread_pool_stat stat;

	thread_pool_stat(thread_pool, &stat);
	for (unsigned i = 0; i < JOB_CLASSES; i++) {
		jobs->waiting[i] += stat.waiting[i];
		jobs->run[i] += stat.run[i];
	}
	jobs->cancelled += stat.cancelled;
}

/* Returns NULL without memory. */
static struct status_data *data_new(unsigned threads)
{
	struct status_data *data = g_try_new0(struct status_data, 1);
	struct status_thread *thread = g_try_new0(struct status_thread, threads);

	if (!data || !thread) {
		g_free(data);
		g_free(thread);
		return NULL;
	}
	data->thread = thread;
	return data;
}

/* Returns NULL without memory. */
static struct status_data *collect(const struct transaction *transaction)
{
	const struct server *server = transaction->thread->server;
	const struct site *site = transaction->config_ref->site;
	const struct config *config = site->config;
	struct status_data *data = data_new(server->threads);

	if (!data)
		return NULL;
	add_process(data, server);
	socket_options_write(&config->sockets, data->socket_options);
	data->generation = site->number;
	data->loaded_ms = site->opened_ms;
	data->draining = atomic_load(&transaction->thread->server->leaving);
	for (unsigned i = 0; i < server->threads; i++)
		add_thread(data, server->per_thread[i]);
	data->connection_limit = server_connections_most(server, config);
	data->path_cache = config->path_cache;
	data->header_cache = config->header_cache;
	data->content_cache = config->content_cache;
	site_stat(site, &data->files);
	add_jobs(&data->jobs, server->thread_pool);
	add_jobs(&data->jobs, server->slow_pool);
	data->log_lost = log_output_lost();
	add_gateway(data, server, site);
	add_cache(data, server->cache);
	data->held = load(&server->held);
	data->unsent = load(&server->unsent);
	spools_stat(server->spools, &data->spool);
	if (server->compressor)
		compressor_stat(server->compressor, &data->compress);
	data->encoders = atomic_load(&server->encoders);
	data->encoded = load(&server->encoded);
	data->encoders_refused = load(&server->encoders_refused);
	if (server->spans)
		span_export_stat(server->spans, &data->spans);
	if (server->responses)
		respcache_stat(server->responses, &data->answers);
	return data;
}

static void data_free(struct status_data *data)
{
	for (unsigned i = 0; i < data->pool_count; i++) {
		g_free(data->pools[i].workers);
		g_strfreev(data->pools[i].addresses);
	}
	g_free(data->pools);
	g_free(data->thread);
	g_free(data);
}

/* --- the answer --------------------------------------------------------------------------- */

static bool wants_html(const struct request *request)
{
	const struct slice *accept = request_find(request, "Accept");
	static const char html[] = "text/html";

	for (size_t i = 0; accept && i + strlen(html) <= accept->length; i++)
		if (strncasecmp(accept->at + i, html, strlen(html)) == 0)
			return true;
	return false;
}

/* Returns NULL without memory. */
static GString *write_text(const struct transaction *transaction, enum form form, GString *head,
			   const char **type)
{
	struct status_data *data;
	GString *text;

	switch (form) {
	case FORM_READY:
		*type = "text/plain; charset=utf-8";
		return g_string_new(transaction->response.status == 503 ? "draining\n" : "ready\n");
	case FORM_HTML:
		*type = "text/html; charset=utf-8";
		status_page_policy(head);
		return status_page();
	default:
		*type = form == FORM_METRICS ? STATUS_METRICS_TYPE : "application/json";
		data = collect(transaction);
		if (!data)
			return NULL;
		text = form == FORM_METRICS ? status_metrics(data) : status_json(data);
		data_free(data);
		return text;
	}
}

enum respond status_respond(struct transaction *transaction)
{
	GString *head = g_string_new("Cache-Control: no-store\r\n"
				     "X-Content-Type-Options: nosniff\r\n"
				     "Referrer-Policy: no-referrer\r\n");
	enum form form = find(transaction->path);
	const char *type;
	GString *text;
	int error;

	if (form == FORM_STATUS) {
		form = wants_html(transaction->request) ? FORM_HTML : FORM_JSON;
		g_string_append(head, "Vary: Accept\r\n");
	}
	if (form == FORM_READY && atomic_load(&transaction->thread->server->leaving))
		transaction_refuse(transaction, 503, "the server is about to end");
	text = write_text(transaction, form, head, &type);
	transaction->response.head_length = head->len;
	memcpy(transaction->head_buffer, head->str, head->len);
	g_string_free(head, TRUE);
	error = text ? text_response_set(transaction, type, text) : -ENOMEM;
	if (!error)
		return RESPOND_NOW;
	transaction->response.head_length = 0;
	return transaction_fail(transaction, 503, "There is no memory for the status.");
}
