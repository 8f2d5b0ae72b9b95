/* SPDX-License-Identifier: MIT */
/*
 * status-fixture.h - figures for the tests of the code that writes them: all
 * numbers differ, and some texts need escapes.
 */
#ifndef STATUS_FIXTURE_H
#define STATUS_FIXTURE_H

#include <glib.h>
#include <stdint.h>
#include <string.h>
#include <nabc.h>

#include "base/histogram.h"
#include "handler/status-data.h"
#include "handler/status-field.h"

#include "suite.h"

#define HARD "/a\"b\\c\nd\xc3\xa9\xff" /* quote, backslash, newline, valid and invalid UTF-8 */

static char *hard_argv[] = {(char *)(intptr_t)("run"), (char *)(intptr_t)HARD, NULL};
static struct status_worker hard_workers[2] = {
	{.pid = 71, .up = 1, .in_flight = 72, .requests = 73, .restarts = 74, .failures = 75},
	{.requests = 76},
};
static struct status_pool hard_pools[2] = {
	{.prefix = HARD, .argv = hard_argv, .waiting = 77, .count = 2, .workers = hard_workers},
	{.prefix = "/none", .argv = hard_argv + 2},
};

static struct status_thread hard_threads[2] = {{"epoll", 11, 12, 13, 14},
					       {"epoll", 21, 22, 23, 24}};

static inline struct status_data *make_data(void)
{
	struct status_data *data = g_new0(struct status_data, 1);

	for (unsigned i = 0; i < status_field_count; i++) {
		uint64_t value = 1000 + i;

		memcpy((char *)data + status_fields[i].offset, &value, sizeof(value));
	}
	data->threads = 2;
	data->data_path = "posix";
	data->arch = "mt";
	strcpy(data->socket_options, "fastopen 16");
	data->io = "epoll (no io_uring: \"" HARD "\")";
	data->thread = hard_threads;
	data->started_ms = 1500000000123;
	data->cpu_user_us = 3000001;
	strcpy(data->cache.uring, "used");
	strcpy(data->cache.kernel, HARD);
	data->pools = hard_pools;
	data->pool_count = 2;
	data->route_count = 1;
	strcpy(data->routes[0].address, "192.0.2.1");
	strcpy(data->routes[0].why, HARD);
	data->routes[0].method = NC_ROUTE_LEARN;
	return data;
}

/* Three responses that took 1, 100 and 2^27 us. */
static inline void add_answers(struct status_data *data)
{
	struct histogram *histogram = g_new0(struct histogram, 1);

	histogram_record(histogram, 1);
	histogram_record(histogram, 100);
	histogram_record(histogram, 1u << 27);
	histogram_add(&data->latency, histogram);
	g_free(histogram);
}

static inline void has(const GString *text, const char *part)
{
	ck_assert_msg(strstr(text->str, part), "no \"%s\" in:\n%s", part, text->str);
}

static inline void has_not(const GString *text, const char *part)
{
	ck_assert_msg(!strstr(text->str, part), "\"%s\" in:\n%s", part, text->str);
}

#endif
