/* SPDX-License-Identifier: MIT */
/*
 * test-thread-logs.c - unit tests of thread-logs.c and log-set.c: a log for each host, the change
 * to other files while lines are written, and requests of an earlier configuration.
 */
#include <glib.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/slice.h"
#include "config/configuration.h"
#include "core/log-set.h"
#include "core/thread-logs.h"

#include "../config/config-fixture.h"
#include "event/loop.h"
#include "log/access-line.h"
#include "log/log-format.h"
#include "loop-fixture.h"
#include "suite.h"

static struct thread_logs logs;
static struct runner runner;
static struct config *config;
static unsigned next_number;
static char text[1 << 16];

/* %s is the directory of the test. */
static struct config *read_text(const char *format)
{
	char *whole = g_strdup_printf(format, directory, directory, directory);
	char *words = g_strdup_printf("sweet --config=%s", path);
	struct config *result;

	write_config(whole);
	result = must_read(words);
	g_free(whole);
	g_free(words);
	return result;
}

static struct log_set *open_set(struct config *of)
{
	char *why = NULL;
	struct log_set *set = log_set_open(of, &why);

	ck_assert_msg(set, "%s", why);
	return set;
}

/* Reads a file of the directory and removes it. */
static const char *content(const char *name)
{
	char whole[200];
	FILE *file;

	snprintf(whole, sizeof(whole), "%s/%s", directory, name);
	file = fopen(whole, "re");
	ck_assert_msg(file, "%s", whole);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	unlink(whole);
	return text;
}

static const char *log_name(unsigned host)
{
	return config->logs[config->hosts[host].log].file;
}

static void put(unsigned host)
{
	char request[64];
	struct access_line line = {.remote = "192.0.2.1",
				   .date = "Sun, 06 Nov 1994 08:49:37 GMT",
				   .request = {.at = request},
				   .status = 200};

	line.request.length =
		(size_t)snprintf(request, sizeof(request), "GET /%u HTTP/1.1", next_number++);
	thread_logs_put(&logs, config->hosts[host].log, &line);
}

#define SITES                                                                                      \
	"[sweet]\naccess-log=%s/all\nlog-format=template:all {path}\n"                             \
	"[host a]\naccess-log=%s/a\n[host b]\nlog-format=template:b {path}\n"                      \
	"[host c]\n[host d]\naccess-log=off\n"

/* Hosts with a file and a format of their own, with one of them, without, and without a log. */
START_TEST(test_hosts)
{
	unsigned before = open_descriptors();
	struct log_set *set;
	struct loop *loop;
	char why[128];

	config = read_text(SITES);
	set = open_set(config);
	ck_assert_uint_eq(set->count, 4);
	ck_assert_uint_eq(set->wants, LOG_WANTS_LINE);
	ck_assert_uint_eq(config->hosts[3].log, config->hosts[0].log);
	ck_assert_int_eq(set->fds[config->hosts[4].log], -1);
	ck_assert_str_eq(log_name(4), "off");
	loop = loop_open(LOOP_EPOLL, LOOP_MANY, why, sizeof(why));
	ck_assert_ptr_nonnull(loop);
	thread_logs_start(&logs, loop, set);
	ck_assert_uint_eq(logs.wants, LOG_WANTS_LINE);
	for (unsigned i = 0; i < 5; i++)
		put(i);
	ck_assert_ptr_null(logs.all[config->hosts[4].log]);
	/* A number that a set does not have. */
	thread_logs_put(&logs, 99, &(struct access_line){.remote = ""});
	thread_logs_stop(&logs);
	thread_logs_stop(&logs);
	ck_assert_uint_eq(logs.wants, 0);
	loop_close(loop);
	ck_assert_str_eq(content("a"), "all /1\n");
	/* Each format of a file has lines of its own order. */
	ck_assert_str_eq(content("all"), "all /0\nall /3\nb /2\n");
	config_release(config);
	ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

/* The log is that of the host with the name, whichever configuration the request has. */
START_TEST(test_numbers)
{
	struct config *old;
	struct log_set *set;

	old = read_text(
		"[sweet]\n[host c]\naccess-log=%s/c\n[host a]\naccess-log=%s/a\n[host x]\n");
	config = read_text(SITES);
	set = open_set(config);
	ck_assert_uint_eq(log_set_number(set, config, &config->hosts[1]), config->hosts[1].log);
	ck_assert_uint_eq(log_set_number(set, old, &old->hosts[0]), config->hosts[0].log);
	ck_assert_uint_eq(log_set_number(set, old, &old->hosts[1]), config->hosts[3].log);
	ck_assert_uint_eq(log_set_number(set, old, &old->hosts[2]), config->hosts[1].log);
	/* There is no such host any more; the host was not found yet. */
	ck_assert_uint_eq(log_set_number(set, old, &old->hosts[3]), config->hosts[0].log);
	ck_assert_uint_eq(log_set_number(set, old, NULL), config->hosts[0].log);
	log_set_release(set);
	log_set_release(NULL);
	config_release(old);
	config_release(config);
	(void)content("a");
	(void)content("all");
}
END_TEST

/* One file that cannot be opened: none stays open. */
START_TEST(test_failure)
{
	unsigned before = open_descriptors();
	char *why = NULL;

	config = read_text("[sweet]\naccess-log=%s/all\n[host a]\naccess-log=%s/none/a\n");
	ck_assert_ptr_null(log_set_open(config, &why));
	ck_assert_msg(strstr(why, "cannot write the access log \"") &&
			      strstr(why, "/none/a\": No such"),
		      "%s", why);
	g_free(why);
	config_release(config);
	(void)content("all");
	ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

static void begin(void *set)
{
	thread_logs_start(&logs, runner.loop, set);
}

static void put_some(void *count)
{
	for (unsigned i = 0; i < *(unsigned *)count; i++) {
		put(0);
		put(1);
	}
}

/* From file to file while lines are written: each line is in one of them, in order. */
START_TEST(test_change)
{
	unsigned some = 10, before = open_descriptors();
	char from[2][300], to[320];

	config = read_text("[sweet]\naccess-log=%s/all\nlog-format=template:{path}\n"
			   "[host a]\naccess-log=%s/a\n");
	runner_start(&runner, kind_of(_i));
	call(&runner, begin, open_set(config));
	for (unsigned i = 0; i < 40; i++) {
		call(&runner, put_some, &some);
		for (unsigned k = 0; k < 2; k++) {
			snprintf(from[k], sizeof(from[k]), "%s/%s", directory, k ? "a" : "all");
			snprintf(to, sizeof(to), "%s.%u", from[k], i);
			ck_assert_int_eq(rename(from[k], to), 0);
		}
		thread_logs_change(&logs, open_set(config));
		/* Sometimes twice, before the thread can have noticed. */
		if (i % 3 == 0)
			thread_logs_change(&logs, open_set(config));
		settle(&runner);
	}
	call(&runner, runner_end, &runner);
	pthread_join(runner.thread, NULL);
	/* At the end, a set that was not taken. */
	thread_logs_change(&logs, open_set(config));
	thread_logs_stop(&logs);
	loop_close(runner.loop);
	close(runner.ends[1]);
	config_release(config);
	for (unsigned i = 0; i < 40; i++)
		for (unsigned k = 0; k < 2; k++) {
			char name[32], expected[300] = "";

			snprintf(name, sizeof(name), "%s.%u", k ? "a" : "all", i);
			for (unsigned n = 0; n < some; n++)
				sprintf(expected + strlen(expected), "/%u\n",
					(i * some + n) * 2 + k);
			ck_assert_str_eq(content(name), expected);
		}
	ck_assert_str_eq(content("a"), "");
	ck_assert_str_eq(content("all"), "");
	ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

/* To more logs, and to fewer. */
START_TEST(test_count)
{
	unsigned one = 1;
	struct config *more, *fewer;

	fewer = read_text("[sweet]\naccess-log=%s/all\nlog-format=template:{path}\n");
	config = more = read_text("[sweet]\naccess-log=%s/all\nlog-format=template:{path}\n"
				  "[host a]\naccess-log=%s/a\n");
	runner_start(&runner, kind_of(_i));
	call(&runner, begin, open_set(fewer));
	call(&runner, put_some, &one);
	thread_logs_change(&logs, open_set(more));
	settle(&runner);
	call(&runner, put_some, &one);
	thread_logs_change(&logs, open_set(fewer));
	settle(&runner);
	call(&runner, put_some, &one);
	call(&runner, runner_end, &runner);
	pthread_join(runner.thread, NULL);
	thread_logs_stop(&logs);
	loop_close(runner.loop);
	close(runner.ends[1]);
	ck_assert_str_eq(content("a"), "/3\n");
	ck_assert_str_eq(content("all"), "/0\n/2\n/4\n");
	config_release(more);
	config_release(fewer);
}
END_TEST

static void fill(TCase *tcase)
{
	int first = first_kind();

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_hosts);
	tcase_add_test(tcase, test_numbers);
	tcase_add_test(tcase, test_failure);
	tcase_add_loop_test(tcase, test_change, first, KINDS);
	tcase_add_loop_test(tcase, test_count, first, KINDS);
}

RUN_SUITE("thread-logs", fill)
