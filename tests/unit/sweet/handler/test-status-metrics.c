/* SPDX-License-Identifier: MIT */
/*
 * test-status-metrics.c - unit tests of status-metrics.c: labels with special bytes,
 * the histogram, units. tests/system/support/metrics.py is a strict parser.
 */
#include <glib.h>
#include <string.h>
#include <nabc.h>

#include "handler/status-data.h"
#include "handler/status-field.h"
#include "handler/status-metrics.h"

#include "status-fixture.h"
#include "suite.h"

START_TEST(test_values)
{
	struct status_data *data = make_data();
	GString *text = status_metrics(data);

	for (unsigned i = 0; i < status_field_count; i++) {
		const struct status_field *field = &status_fields[i];
		g_autofree char *line =
			g_strdup_printf("\nsweet_%s%s%s%s %" G_GUINT64_FORMAT "\n", field->metric,
					field->label ? "{" : "", field->label ? field->label : "",
					field->label ? "}" : "", status_field_value(field, data));

		has(text, line);
	}
	has(text, "\nsweet_start_time_seconds 1500000000.123000\n");
	has(text, "\nsweet_cpu_seconds_total{mode=\"user\"} 3.000001\n");
	has(text, "\nsweet_thread_requests_total{thread=\"1\"} 23\n");
	g_string_free(text, TRUE);
	g_free(data);
}
END_TEST

START_TEST(test_labels)
{
	struct status_data *data = make_data();
	GString *text = status_metrics(data);

	ck_assert(g_utf8_validate(text->str, (gssize)text->len, NULL));
	has(text,
	    "sweet_worker_up{pool=\"/a\\\"b\\\\c\\nd\xc3\xa9\xef\xbf\xbd\",worker=\"0\"} 1\n");
	has(text, "\",worker=\"1\"} 0\n");
	has(text, "sweet_pool_waiting{pool=\"/none\"} 0\n");
	has(text, ",data_path=\"posix\",");
	has(text, "io=\"epoll (no io_uring: \\\"/a\\\"b\\\\c\\nd");
	has(text, ",io_uring=\"used\",module=\"/a\\\"b\\\\c\\nd");
	g_string_free(text, TRUE);
	g_free(data);
}
END_TEST

START_TEST(test_histogram)
{
	struct status_data *data = make_data();
	GString *text;

	add_answers(data);
	text = status_metrics(data);
	has(text, "# TYPE sweet_response_seconds histogram\n"
		  "sweet_response_seconds_bucket{le=\"0.000001\"} 0\n"
		  "sweet_response_seconds_bucket{le=\"0.000002\"} 1\n");
	has(text, "{le=\"0.000064\"} 1\n");
	has(text, "{le=\"0.000128\"} 2\n");
	has(text, "{le=\"67.108864\"} 2\nsweet_response_seconds_bucket{le=\"+Inf\"} 3\n"
		  "sweet_response_seconds_sum 134.217829\nsweet_response_seconds_count 3\n");
	g_string_free(text, TRUE);
	g_free(data);
}
END_TEST

/* Two pools with one prefix, of which only the first gets requests, are not listed twice. */
START_TEST(test_same_prefix)
{
	struct status_pool pools[2] = {{.prefix = "/a", .count = 1, .workers = hard_workers},
				       {.prefix = "/a", .count = 1, .workers = hard_workers}};
	struct status_data *data = make_data();
	const char *line = "sweet_worker_up{pool=\"/a\",worker=\"0\"} 1\n";
	GString *text;

	data->pools = pools;
	text = status_metrics(data);
	has(text, line);
	ck_assert_ptr_null(strstr(strstr(text->str, line) + 1, line));
	g_string_free(text, TRUE);
	/* A name without samples would be an error. */
	data->pool_count = 0;
	text = status_metrics(data);
	has_not(text, "sweet_worker");
	has_not(text, "sweet_pool");
	g_string_free(text, TRUE);
	g_free(data);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_values);
	tcase_add_test(tcase, test_labels);
	tcase_add_test(tcase, test_histogram);
	tcase_add_test(tcase, test_same_prefix);
}

RUN_SUITE("status-metrics", fill)
