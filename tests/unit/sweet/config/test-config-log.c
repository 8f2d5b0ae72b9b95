/* SPDX-License-Identifier: MIT */
/*
 * test-config-log.c - unit tests of config-log.c: which hosts share a log, and the numbers of the
 * fields of requests that templates name.
 */
#include <glib.h>
#include <string.h>

#include "config-fixture.h"
#include "suite.h"
#include "config/configuration.h"
#include "log/log-format.h"

static struct config *read_text(const char *text)
{
	char *words = g_strdup_printf("sweet --config=%s", path);
	struct config *config;

	write_config(text);
	config = must_read(words);
	g_free(words);
	return config;
}

static void check_bad(const char *text, const char *says)
{
	char *words = g_strdup_printf("sweet --config=%s", path);

	write_config(text);
	check_refused(words, says);
	g_free(words);
}

START_TEST(test_shared)
{
	struct config *config = read_text("[sweet]\naccess-log=/x\n"
					  "[host a]\n"
					  "[host b]\nlog-format=json\n"
					  "[host c]\naccess-log=/c\nlog-format=json\n"
					  "[host d]\naccess-log=/x\nlog-format=short\n"
					  "[host e]\naccess-log=off\nlog-format=json\n"
					  "[host f]\naccess-log=off\n");
	static const unsigned logs[] = {0, 0, 1, 2, 0, 3, 3};

	ck_assert_uint_eq(config->host_count, 7);
	ck_assert_uint_eq(config->log_count, 4);
	for (unsigned i = 0; i < 7; i++)
		ck_assert_uint_eq(config->hosts[i].log, logs[i]);
	ck_assert_str_eq(config->logs[1].file, "/x");
	ck_assert_int_eq(config->logs[1].format->kind, ACCESS_JSON);
	ck_assert_ptr_nonnull(strstr(config->logs[0].place, ":2"));
	ck_assert_ptr_nonnull(strstr(config->logs[2].place, ":7"));
	ck_assert_uint_eq(config->log_field_count, 0);
	config_release(config);
	config = must_read("sweet --access-log=-");
	ck_assert_ptr_null(config->logs[0].place);
	config_release(config);
}
END_TEST

START_TEST(test_slow)
{
	struct config *config = read_text("[sweet]\nslow-log=/slow\nslow-time=2s\n"
					  "[path /a]\nslow-time=300\n[path /b]\nslow-time=0\n");
	const struct config_log *log;

	ck_assert_uint_eq(config->log_count, 2);
	ck_assert_uint_eq(config->slow_number, 1);
	log = &config->logs[1];
	ck_assert_str_eq(log->kind, "slow");
	ck_assert_str_eq(log->file, "/slow");
	ck_assert_ptr_nonnull(log->format);
	ck_assert_ptr_nonnull(strstr(log->place, ":2"));
	ck_assert_uint_eq(host_scope(&config->hosts[0], "/")->slow_ms, 2000);
	ck_assert_uint_eq(host_scope(&config->hosts[0], "/a/x")->slow_ms, 300);
	ck_assert_uint_eq(host_scope(&config->hosts[0], "/b")->slow_ms, 0);
	config_release(config);
	config = read_text("[sweet]\naccess-log=/slow\n");
	ck_assert_uint_eq(config->slow_number, config->log_count);
	config_release(config);
}
END_TEST

START_TEST(test_fields)
{
	struct config *config =
		read_text("[sweet]\naccess-log=/x\n"
			  "log-format=template:{request.B} {request.A} {request.b} {response.C}\n"
			  "[host a]\nlog-format=template:{status} {request.D} {request.a}\n"
			  "[host b]\naccess-log=off\nlog-format=template:{request.E}\n");
	const struct log_format *format = config->logs[0].format;

	ck_assert_uint_eq(config->log_field_count, 4);
	ck_assert_str_eq(config->log_fields[0], "B");
	ck_assert_str_eq(config->log_fields[1], "A");
	ck_assert_str_eq(config->log_fields[2], "D");
	ck_assert_ptr_null(config->log_fields[4]);
	ck_assert_uint_eq(format->parts[0].field, 0);
	ck_assert_uint_eq(format->parts[2].field, 1);
	ck_assert_uint_eq(format->parts[4].field, 0);
	ck_assert_uint_eq(config->logs[1].format->parts[2].field, 2);
	ck_assert_uint_eq(config->logs[1].format->parts[4].field, 1);
	config_release(config);
}
END_TEST

START_TEST(test_errors)
{
	GString *text = g_string_new("[sweet]\naccess-log=/x\nlog-format=template:");

	check_bad("[sweet]\n\nlog-format=template:{client} {clint}\n",
		  ":3: log-format \"{clint}\": names no variable here; variables are client, "
		  "client-port, ");
	check_bad("[host a]\nlog-format=xml\n", ":2: log-format \"xml\": must be short, common");
	check_bad("[sweet]\nlog-format=template:{status\n", "single brace here");
	check_bad("[path /a]\nlog-format=json\n",
		  "does not belong into [path /a], but into [sweet]");
	for (unsigned i = 0; i < LOG_FIELDS_MAX; i++)
		g_string_append_printf(text, "{request.x%u}", i);
	g_string_append_c(text, '\n');
	config_release(read_text(text->str));
	g_string_append(text, "[host a]\nlog-format=template:{request.y}\n");
	check_bad(text->str, "name 17 fields of requests");
	g_string_free(text, TRUE);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_shared);
	tcase_add_test(tcase, test_slow);
	tcase_add_test(tcase, test_fields);
	tcase_add_test(tcase, test_errors);
}

RUN_SUITE("config-log", fill)
