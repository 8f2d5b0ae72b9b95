/* SPDX-License-Identifier: MIT */
/*
 * status-metrics.c - see status-metrics.h.  Units are seconds and bytes, as is usual for this
 * format.  No I/O and no state.
 */
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/histogram.h"
#include "handler/status-data.h"
#include "handler/status-field.h"
#include "handler/status-metrics.h"

#define U "%" G_GUINT64_FORMAT

/* Adds the lines before the samples of a metric. */
static void add_head(GString *text, const char *metric, const char *type, const char *help)
{
	g_string_append_printf(text, "# HELP sweet_%s %s\n# TYPE sweet_%s %s\n", metric, help,
			       metric, type);
}

/* Writes microseconds as seconds, with all digits. */
static void add_seconds(GString *text, uint64_t us)
{
	g_string_append_printf(text, U ".%06u\n", us / 1000000, (unsigned)(us % 1000000));
}

/* Adds a quoted label: backslash, quote and newline are escaped, the rest is UTF-8. */
static void add_label(GString *text, const char *name, const char *value)
{
	char *valid = g_utf8_make_valid(value, -1);

	g_string_append_printf(text, "%s=\"", name);
	for (const char *at = valid; *at; at++) {
		if (*at == '\n')
			g_string_append(text, "\\n");
		else if (*at == '"' || *at == '\\')
			g_string_append_printf(text, "\\%c", *at);
		else
			g_string_append_c(text, *at);
	}
	g_string_append_c(text, '"');
	g_free(valid);
}

static void add_fields(GString *text, const struct status_data *data)
{
	const char *before = "";

	for (unsigned i = 0; i < status_field_count; i++) {
		const struct status_field *field = &status_fields[i];

		if (strcmp(field->metric, before) != 0)
			add_head(text, field->metric, field->gauge ? "gauge" : "counter",
				 field->help);
		before = field->metric;
		g_string_append_printf(text, "sweet_%s", field->metric);
		if (field->label)
			g_string_append_printf(text, "{%s}", field->label);
		g_string_append_printf(text, " " U "\n", status_field_value(field, data));
	}
}

static void add_process(GString *text, const struct status_data *data)
{
	add_head(text, "info", "gauge", "What runs, on what, and why on that.");
	g_string_append(text, "sweet_info{version=\"" PACKAGE_VERSION "\",");
	add_label(text, "io", data->io);
	g_string_append_c(text, ',');
	add_label(text, "data_path", data->data_path);
	g_string_append_c(text, ',');
	add_label(text, "arch", data->arch);
	g_string_append_c(text, ',');
	add_label(text, "io_uring", data->cache.uring);
	g_string_append_c(text, ',');
	add_label(text, "module", data->cache.kernel);
	g_string_append(text, "} 1\n");
	add_head(text, "start_time_seconds", "gauge", "When the server started.");
	g_string_append(text, "sweet_start_time_seconds ");
	add_seconds(text, data->started_ms * 1000);
	add_head(text, "config_loaded_time_seconds", "gauge",
		 "When the present configuration was read.");
	g_string_append(text, "sweet_config_loaded_time_seconds ");
	add_seconds(text, data->loaded_ms * 1000);
	add_head(text, "cpu_seconds_total", "counter", "Processor time, by mode.");
	g_string_append(text, "sweet_cpu_seconds_total{mode=\"user\"} ");
	add_seconds(text, data->cpu_user_us);
	g_string_append(text, "sweet_cpu_seconds_total{mode=\"system\"} ");
	add_seconds(text, data->cpu_system_us);
}

/* Adds a bucket for each power of two, from 1 us on. */
static void add_latency(GString *text, const struct histogram_sum *latency)
{
	add_head(text, "response_seconds", "histogram",
		 "Time from a whole request to its answer sent.");
	for (unsigned bits = 0; bits <= HISTOGRAM_TOP_BITS; bits++) {
		uint64_t us = (uint64_t)1 << bits;

		g_string_append_printf(text,
				       "sweet_response_seconds_bucket{le=\"%u.%06u\"} " U "\n",
				       (unsigned)(us / 1000000), (unsigned)(us % 1000000),
				       histogram_below(latency, bits));
	}
	g_string_append_printf(text, "sweet_response_seconds_bucket{le=\"+Inf\"} " U "\n",
			       latency->count);
	g_string_append(text, "sweet_response_seconds_sum ");
	add_seconds(text, latency->sum);
	g_string_append_printf(text, "sweet_response_seconds_count " U "\n", latency->count);
}

#define EACH(type, field) offsetof(struct type, field)

struct column {
	const char *metric, *help;
	bool gauge;
	size_t offset;
};

static void add_value(GString *text, const void *row, const struct column *column)
{
	uint64_t value;

	memcpy(&value, (const char *)row + column->offset, sizeof(value));
	g_string_append_printf(text, "} " U "\n", value);
}

static void add_threads(GString *text, const struct status_data *data)
{
	static const struct column columns[] = {
		{"thread_connections_accepted_total", "Connections accepted, by thread.", false,
		 EACH(status_thread, accepted)},
		{"thread_connections_open", "Connections open, by thread.", true,
		 EACH(status_thread, open)},
		{"thread_requests_total", "Requests received, by thread.", false,
		 EACH(status_thread, requests)},
		{"thread_body_bytes_total", "Bytes of bodies sent, by thread.", false,
		 EACH(status_thread, bytes)},
	};

	for (unsigned c = 0; c < G_N_ELEMENTS(columns); c++) {
		add_head(text, columns[c].metric, columns[c].gauge ? "gauge" : "counter",
			 columns[c].help);
		for (unsigned i = 0; i < data->threads; i++) {
			g_string_append_printf(text, "sweet_%s{thread=\"%u\"", columns[c].metric,
					       i);
			add_value(text, &data->thread[i], &columns[c]);
		}
	}
}

/* Whether an earlier pool has the same prefix and gets its requests: labels would repeat. */
static bool repeats(const struct status_data *data, unsigned pool)
{
	for (unsigned i = 0; i < pool; i++)
		if (strcmp(data->pools[i].prefix, data->pools[pool].prefix) == 0)
			return true;
	return false;
}

static void add_workers(GString *text, const struct status_data *data)
{
	static const struct column of_pools[] = {
		{"pool_waiting", "Requests that wait for a worker of a pool.", true,
		 EACH(status_pool, waiting)},
		{"pool_tunnels", "Connections in another protocol, and requests for one.", true,
		 EACH(status_pool, tunnels)},
		{"pool_tunnels_refused_total", "Requests that the limits of these refused.", false,
		 EACH(status_pool, tunnels_refused)},
	};
	static const struct column columns[] = {
		{"worker_in_flight", "Requests that a worker has.", true,
		 EACH(status_worker, in_flight)},
		{"worker_requests_total", "Requests given to a worker.", false,
		 EACH(status_worker, requests)},
		{"worker_failures_total", "Requests that a worker has failed.", false,
		 EACH(status_worker, failures)},
		{"worker_restarts_total", "How often a worker was started again.", false,
		 EACH(status_worker, restarts)},
		{"worker_up", "1 while a worker runs.", true, EACH(status_worker, up)},
	};

	if (!data->pool_count)
		return;
	for (unsigned c = 0; c < G_N_ELEMENTS(of_pools); c++) {
		add_head(text, of_pools[c].metric, of_pools[c].gauge ? "gauge" : "counter",
			 of_pools[c].help);
		for (unsigned i = 0; i < data->pool_count; i++) {
			if (repeats(data, i))
				continue;
			g_string_append_printf(text, "sweet_%s{", of_pools[c].metric);
			add_label(text, "pool", data->pools[i].prefix);
			add_value(text, &data->pools[i], &of_pools[c]);
		}
	}
	for (unsigned c = 0; c < G_N_ELEMENTS(columns); c++) {
		add_head(text, columns[c].metric, columns[c].gauge ? "gauge" : "counter",
			 columns[c].help);
		for (unsigned i = 0; i < data->pool_count; i++)
			for (unsigned k = 0; k < data->pools[i].count && !repeats(data, i); k++) {
				g_string_append_printf(text, "sweet_%s{", columns[c].metric);
				add_label(text, "pool", data->pools[i].prefix);
				g_string_append_printf(text, ",worker=\"%u\"", k);
				add_value(text, &data->pools[i].workers[k], &columns[c]);
			}
	}
}

GString *status_metrics(const struct status_data *data)
{
	GString *text = g_string_sized_new(16384);

	add_process(text, data);
	add_fields(text, data);
	add_latency(text, &data->latency);
	add_threads(text, data);
	add_workers(text, data);
	return text;
}
