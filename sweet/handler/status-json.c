/* SPDX-License-Identifier: MIT */
/*
 * status-json.c - see status-json.h.  Each object has its own line, for human readers.  No I/O and
 * no state.
 */
#include <string.h>

#include "base/escape.h"
#include "handler/status-field.h"
#include "handler/status-json.h"

#define U "%" G_GUINT64_FORMAT

static void add_string(GString *text, const char *string)
{
	struct slice slice = {.at = string, .length = strlen(string)};
	size_t before = text->len;
	char *end;

	g_string_set_size(text, before + slice.length * ESCAPE_MOST + 2);
	text->str[before] = '"';
	end = escape_json(text->str + before + 1, slice);
	*end++ = '"';
	g_string_set_size(text, (gsize)(end - text->str));
}

static void add_pair(GString *text, const char *key, const char *string)
{
	g_string_append_printf(text, "\"%s\": ", key);
	add_string(text, string);
}

/* Uses a decimal point in every locale. */
static void add_decimal(GString *text, const char *key, double value, const char *format)
{
	char number[G_ASCII_DTOSTR_BUF_SIZE];

	g_string_append_printf(text, "\"%s\": %s", key,
			       g_ascii_formatd(number, sizeof(number), format, value));
}

/* Adds the members of a group, without braces. */
static void add_fields(GString *text, const struct status_data *data, const char *group)
{
	const char *between = "";

	for (unsigned i = 0; i < status_field_count; i++) {
		const struct status_field *field = &status_fields[i];

		if (!field->group || strcmp(field->group, group) != 0)
			continue;
		g_string_append_printf(text, "%s\"%s\": " U, between, field->key,
				       status_field_value(field, data));
		between = ", ";
	}
}

static void add_group(GString *text, const struct status_data *data, const char *group)
{
	g_string_append_printf(text, "  \"%s\": { ", group);
	add_fields(text, data, group);
	g_string_append(text, " },\n");
}

static void add_process(GString *text, const struct status_data *data)
{
	g_string_append(text, "  \"software\": \"" SERVER_SOFTWARE "\",\n");
	g_string_append_printf(text,
			       "  \"pid\": " U ",\n"
			       "  \"now_ms\": " U ",\n"
			       "  \"started_ms\": " U ",\n"
			       "  \"uptime_s\": " U ",\n"
			       "  \"uptime_ms\": " U ",\n"
			       "  \"draining\": %s,\n",
			       data->pid, data->now_ms, data->started_ms, data->uptime_ms / 1000,
			       data->uptime_ms, data->draining ? "true" : "false");
	g_string_append_printf(text,
			       "  \"process\": { \"memory\": " U ", \"cpu_user_us\": " U
			       ", \"cpu_system_us\": " U " },\n"
			       "  \"config\": { \"generation\": " U ", \"loaded_ms\": " U " },\n"
			       "  \"threads\": " U ",\n  ",
			       data->memory, data->cpu_user_us, data->cpu_system_us,
			       data->generation, data->loaded_ms, data->threads);
	add_pair(text, "io", data->io);
	g_string_append(text, ",\n  ");
	add_pair(text, "data_path", data->data_path);
	g_string_append_c(text, ',');
	add_pair(text, "arch", data->arch);
	g_string_append(text, ",\n  ");
	add_pair(text, "socket_options", data->socket_options);
	g_string_append(text, ",\n  \"each_thread\": [");
	for (unsigned i = 0; i < data->threads; i++) {
		const struct status_thread *thread = &data->thread[i];

		g_string_append_printf(text, "%s\n    { ", i ? "," : "");
		add_pair(text, "io", thread->io);
		g_string_append_printf(text,
				       ", \"accepted\": " U ", \"open\": " U ", \"requests\": " U
				       ", \"bytes\": " U " }",
				       thread->accepted, thread->open, thread->requests,
				       thread->bytes);
	}
	g_string_append(text, "\n  ],\n");
}

/* Leaves out empty ranges; null: no upper end. */
static void add_latency(GString *text, const struct histogram_sum *latency)
{
	static const struct {
		const char *key;
		double share;
	} quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}};
	const char *between = "";

	g_string_append_printf(text, "  \"latency_us\": { \"count\": " U ", \"sum\": " U, //
			       latency->count, latency->sum);
	for (unsigned i = 0; i < G_N_ELEMENTS(quantiles); i++) {
		g_string_append(text, ", ");
		add_decimal(text, quantiles[i].key, histogram_quantile(latency, quantiles[i].share),
			    "%.1f");
	}
	g_string_append_printf(text, ", \"max\": " U ",\n    \"below\": [", latency->most);
	for (unsigned i = 0; i < HISTOGRAM_RANGES; i++) {
		if (!latency->counts[i])
			continue;
		if (i + 1 < HISTOGRAM_RANGES)
			g_string_append_printf(text, "%s[" U ", " U "]", between,
					       histogram_limit(i), latency->counts[i]);
		else
			g_string_append_printf(text, "%s[null, " U "]", between,
					       latency->counts[i]);
		between = ", ";
	}
	g_string_append(text, "] },\n");
}

static void add_files(GString *text, const struct status_data *data)
{
	const struct file_cache_stat *files = &data->files;

	g_string_append(text, "  \"files\": { ");
	add_fields(text, data, "files");
	g_string_append(text, ", ");
	add_decimal(text, "hit_ratio", status_share(files->hits, files->misses), "%.4f");
	g_string_append(text, ", ");
	add_decimal(text, "byte_hit_ratio", status_share(files->hit_bytes, files->miss_bytes),
		    "%.4f");
	g_string_append(text, " },\n");
}

static void add_pool(GString *text, const struct status_pool *pool)
{
	g_string_append(text, "\n      { ");
	add_pair(text, "prefix", pool->prefix);
	g_string_append(text, ", \"command\": [");
	for (unsigned i = 0; pool->argv && pool->argv[i]; i++) {
		g_string_append(text, i ? ", " : "");
		add_string(text, pool->argv[i]);
	}
	g_string_append_printf(text, "], \"waiting\": " U ", \"processes\": [", pool->waiting);
	for (unsigned i = 0; i < pool->count; i++) {
		const struct status_worker *worker = &pool->workers[i];

		g_string_append_printf(text,
				       "%s\n        { \"number\": %u, \"up\": %s, \"pid\": " U
				       ", \"in_flight\": " U ", \"requests\": " U
				       ", \"restarts\": " U ", \"failures\": " U " }",
				       i ? "," : "", i, worker->up ? "true" : "false", worker->pid,
				       worker->in_flight, worker->requests, worker->restarts,
				       worker->failures);
	}
	g_string_append(text, " ] }");
}

static void add_workers(GString *text, const struct status_data *data)
{
	g_string_append(text, "  \"workers\": { ");
	add_fields(text, data, "workers");
	g_string_append(text, ", \"pools\": [");
	for (unsigned i = 0; i < data->pool_count; i++) {
		g_string_append(text, i ? "," : "");
		add_pool(text, &data->pools[i]);
	}
	g_string_append(text, " ] },\n");
}

static const char *const methods[4] = {
	[NC_METHOD_COPY] = "copy",
	[NC_METHOD_SPLICE] = "splice",
	[NC_METHOD_ZEROCOPY] = "zerocopy",
	[NC_METHOD_KERNEL] = "kernel",
};

/* The counters of a route or cache, by NC_METHOD_*. */
#define BY_METHOD(of)                                                                              \
	{                                                                                          \
		&(of)->by_copy, &(of)->by_splice, &(of)->by_zerocopy, &(of)->by_kernel             \
	}

static void add_route(GString *text, const struct NC_route *route)
{
	const struct NC_method_count *const by[] = BY_METHOD(route);

	g_string_append(text, "\n      { ");
	add_pair(text, "address", route->address);
	g_string_append_printf(text,
			       ", \"local\": %s, \"fixed\": %s, \"recycled\": \"%s\""
			       ", \"lasting\": \"%s\", ",
			       route->local ? "true" : "false",
			       route->method == NC_ROUTE_LEARN ? "false" : "true",
			       methods[route->recycled & 3], methods[route->lasting & 3]);
	for (unsigned i = 0; i < 4; i++)
		g_string_append_printf(text, "\"%s\": { \"sends\": " U ", \"bytes\": " U " }, ",
				       methods[i], by[i]->sends, by[i]->bytes);
	add_pair(text, "why", route->why);
	g_string_append(text, " }");
}

static void add_transmit(GString *text, const struct status_data *data)
{
	const struct NC_cache_stat *cache = &data->cache;
	const struct NC_method_count *const by[] = BY_METHOD(cache);

	g_string_append(text, "  \"transmit\": {\n    ");
	for (unsigned i = 0; i < 4; i++) {
		g_string_append_printf(text, "\"%s\": { \"sends\": " U ", \"bytes\": " U,
				       methods[i], by[i]->sends, by[i]->bytes);
		if (i == NC_METHOD_ZEROCOPY)
			g_string_append_printf(text, ", \"copied\": " U, cache->zerocopy_copied);
		g_string_append(text, " },\n    ");
	}
	add_fields(text, data, "transmit");
	g_string_append(text, ",\n    ");
	add_pair(text, "io_uring", cache->uring);
	g_string_append(text, ", ");
	add_pair(text, "module", cache->kernel);
	g_string_append(text, ",\n    \"routes\": [");
	for (unsigned i = 0; i < data->route_count; i++) {
		g_string_append(text, i ? "," : "");
		add_route(text, &data->routes[i]);
	}
	g_string_append(text, " ] }\n");
}

GString *status_json(const struct status_data *data)
{
	GString *text = g_string_sized_new(8192);

	g_string_append(text, "{\n");
	add_process(text, data);
	add_group(text, data, "connections");
	g_string_append_printf(text, "  \"requests\": " U ",\n", data->requests);
	add_group(text, data, "responses");
	add_group(text, data, "bodies");
	add_latency(text, &data->latency);
	add_files(text, data);
	add_group(text, data, "caches");
	add_group(text, data, "answers");
	add_group(text, data, "slow");
	add_group(text, data, "spool");
	add_workers(text, data);
	add_group(text, data, "cache");
	add_transmit(text, data);
	g_string_append(text, "}\n");
	return text;
}
