/* SPDX-License-Identifier: MIT */
/*
 * status-json.c - see status-json.h.  Each object has its own line, for human readers.  No I/O and
 * no state.
 */
#include <nabc.h>
#include <stdint.h>
#include <string.h>

#include "base/histogram.h"
#include "base/json.h"
#include "core/server.h"
#include "files/file-cache.h"
#include "handler/status-data.h"
#include "handler/status-field.h"
#include "handler/status-json.h"

/* Adds the members of a group to the open object. */
static void add_fields(struct json *json, const struct status_data *data, const char *group)
{
	for (unsigned i = 0; i < status_field_count; i++) {
		const struct status_field *field = &status_fields[i];

		if (field->group && strcmp(field->group, group) == 0)
			json_number(json, field->key, status_field_value(field, data));
	}
}

static void add_group(struct json *json, const struct status_data *data, const char *group)
{
	json_open_as(json, group, '{', JSON_SPACED);
	add_fields(json, data, group);
	json_close(json, '}');
}

static void add_thread(struct json *json, const struct status_thread *thread)
{
	json_open_as(json, NULL, '{', JSON_SPACED);
	json_text(json, "io", thread->io);
	json_number(json, "accepted", thread->accepted);
	json_number(json, "open", thread->open);
	json_number(json, "requests", thread->requests);
	json_number(json, "bytes", thread->bytes);
	json_close(json, '}');
}

static void add_process(struct json *json, const struct status_data *data)
{
	json_text(json, "software", SERVER_SOFTWARE);
	json_number(json, "pid", data->pid);
	json_number(json, "now_ms", data->now_ms);
	json_number(json, "started_ms", data->started_ms);
	json_number(json, "uptime_s", data->uptime_ms / 1000);
	json_number(json, "uptime_ms", data->uptime_ms);
	json_bool(json, "draining", data->draining);
	json_open_as(json, "process", '{', JSON_SPACED);
	json_number(json, "memory", data->memory);
	json_number(json, "locked", data->locked);
	json_number(json, "pinned", data->pinned);
	json_number(json, "cpu_user_us", data->cpu_user_us);
	json_number(json, "cpu_system_us", data->cpu_system_us);
	json_close(json, '}');
	json_open_as(json, "config", '{', JSON_SPACED);
	json_number(json, "generation", data->generation);
	json_number(json, "loaded_ms", data->loaded_ms);
	json_close(json, '}');
	json_number(json, "threads", data->threads);
	json_text(json, "io", data->io);
	json_text(json, "data_path", data->data_path);
	json_text(json, "arch", data->arch);
	json_text(json, "socket_options", data->socket_options);
	json_open(json, "each_thread", '[');
	for (unsigned i = 0; i < data->threads; i++)
		add_thread(json, &data->thread[i]);
	json_close(json, ']');
}

/* Leaves out empty ranges; null: no upper end. */
static void add_latency(struct json *json, const struct histogram_sum *latency)
{
	static const struct {
		const char *key;
		double share;
	} quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}};

	json_open_as(json, "latency_us", '{', JSON_SPACED);
	json_number(json, "count", latency->count);
	json_number(json, "sum", latency->sum);
	for (unsigned i = 0; i < G_N_ELEMENTS(quantiles); i++)
		json_real(json, quantiles[i].key, histogram_quantile(latency, quantiles[i].share),
			  1);
	json_number(json, "max", latency->most);
	json_open(json, "below", '[');
	for (unsigned i = 0; i < HISTOGRAM_RANGES; i++) {
		if (!latency->counts[i])
			continue;
		json_open(json, NULL, '[');
		if (i + 1 < HISTOGRAM_RANGES)
			json_number(json, NULL, histogram_limit(i));
		else
			json_null(json, NULL);
		json_number(json, NULL, latency->counts[i]);
		json_close(json, ']');
	}
	json_close(json, ']');
	json_close(json, '}');
}

static void add_files(struct json *json, const struct status_data *data)
{
	const struct file_cache_stat *files = &data->files;

	json_open_as(json, "files", '{', JSON_SPACED);
	add_fields(json, data, "files");
	json_real(json, "hit_ratio", status_share(files->hits, files->misses), 4);
	json_real(json, "byte_hit_ratio", status_share(files->hit_bytes, files->miss_bytes), 4);
	json_close(json, '}');
}

static void add_worker(struct json *json, unsigned number, const struct status_worker *worker)
{
	json_open_as(json, NULL, '{', JSON_SPACED);
	json_number(json, "number", number);
	json_bool(json, "up", worker->up);
	json_number(json, "pid", worker->pid);
	json_number(json, "in_flight", worker->in_flight);
	json_number(json, "requests", worker->requests);
	json_number(json, "restarts", worker->restarts);
	json_number(json, "failures", worker->failures);
	json_close(json, '}');
}

static void add_pool(struct json *json, const struct status_pool *pool)
{
	json_open_as(json, NULL, '{', JSON_SPACED);
	json_text(json, "prefix", pool->prefix);
	json_open(json, "command", '[');
	for (unsigned i = 0; pool->argv && pool->argv[i]; i++)
		json_text(json, NULL, pool->argv[i]);
	json_close(json, ']');
	json_open(json, "addresses", '[');
	for (unsigned i = 0; pool->addresses && pool->addresses[i]; i++)
		json_text(json, NULL, pool->addresses[i]);
	json_close(json, ']');
	json_number(json, "waiting", pool->waiting);
	json_number(json, "tunnels", pool->tunnels);
	json_number(json, "tunnels_refused", pool->tunnels_refused);
	json_open_as(json, "processes", '[', JSON_LINES);
	for (unsigned i = 0; i < pool->count; i++)
		add_worker(json, i, &pool->workers[i]);
	json_close(json, ']');
	json_close(json, '}');
}

static void add_workers(struct json *json, const struct status_data *data)
{
	json_open_as(json, "workers", '{', JSON_SPACED);
	add_fields(json, data, "workers");
	json_open_as(json, "pools", '[', JSON_LINES);
	for (unsigned i = 0; i < data->pool_count; i++)
		add_pool(json, &data->pools[i]);
	json_close(json, ']');
	json_close(json, '}');
}

static const char *const methods[4] = {
	[NC_METHOD_COPY] = "copy",
	[NC_METHOD_SPLICE] = "splice",
	[NC_METHOD_ZEROCOPY] = "zerocopy",
	[NC_METHOD_KERNEL] = "kernel",
};

/* The counters of a route or cache, by NC_METHOD_*. */
/* clang-format off */
#define BY_METHOD(of) {&(of)->by_copy, &(of)->by_splice, &(of)->by_zerocopy, &(of)->by_kernel}
/* clang-format on */

/* Opens an object for the method; the caller closes it. */
static void open_method(struct json *json, unsigned method, const struct NC_method_count *count)
{
	json_open_as(json, methods[method], '{', JSON_SPACED);
	json_number(json, "sends", count->sends);
	json_number(json, "bytes", count->bytes);
}

static void add_route(struct json *json, const struct NC_route *route)
{
	const struct NC_method_count *const by[] = BY_METHOD(route);

	json_open_as(json, NULL, '{', JSON_SPACED);
	json_text(json, "address", route->address);
	json_bool(json, "local", route->local);
	json_bool(json, "fixed", route->method != NC_ROUTE_LEARN);
	json_text(json, "recycled", methods[route->recycled & 3]);
	json_text(json, "lasting", methods[route->lasting & 3]);
	for (unsigned i = 0; i < 4; i++) {
		open_method(json, i, by[i]);
		json_close(json, '}');
	}
	json_text(json, "why", route->why);
	json_close(json, '}');
}

static void add_transmit(struct json *json, const struct status_data *data)
{
	const struct NC_cache_stat *cache = &data->cache;
	const struct NC_method_count *const by[] = BY_METHOD(cache);

	json_open(json, "transmit", '{');
	for (unsigned i = 0; i < 4; i++) {
		open_method(json, i, by[i]);
		if (i == NC_METHOD_ZEROCOPY)
			json_number(json, "copied", cache->zerocopy_copied);
		json_close(json, '}');
	}
	add_fields(json, data, "transmit");
	json_text(json, "io_uring", cache->uring);
	json_text(json, "module", cache->kernel);
	json_open(json, "routes", '[');
	for (unsigned i = 0; i < data->route_count; i++)
		add_route(json, &data->routes[i]);
	json_close(json, ']');
	json_close(json, '}');
}

GString *status_json(const struct status_data *data)
{
	struct json json = {.text = g_string_sized_new(8192)};

	json_open(&json, NULL, '{');
	add_process(&json, data);
	add_group(&json, data, "connections");
	add_group(&json, data, "tls");
	json_number(&json, "requests", data->requests);
	add_group(&json, data, "responses");
	add_group(&json, data, "bodies");
	add_group(&json, data, "loops");
	add_latency(&json, &data->latency);
	add_files(&json, data);
	add_group(&json, data, "logs");
	add_group(&json, data, "jobs");
	add_group(&json, data, "caches");
	add_group(&json, data, "answers");
	add_group(&json, data, "compress");
	add_group(&json, data, "spans");
	add_group(&json, data, "slow");
	add_group(&json, data, "spool");
	add_workers(&json, data);
	add_group(&json, data, "cache");
	add_transmit(&json, data);
	json_close(&json, '}');
	return json.text;
}
