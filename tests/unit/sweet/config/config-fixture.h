/* SPDX-License-Identifier: MIT */
/*
 * config-fixture.h - reads a configuration from a command line and one file, which
 * it writes and removes; single-threaded.
 */
#ifndef CONFIG_FIXTURE_H
#define CONFIG_FIXTURE_H

#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/arch.h"
#include "config/config-read.h"
#include "core/socket-options.h"
#include "event/client-limit.h"

#include "suite.h"

static char directory[64], path[100];

static inline void set_up(void)
{
	make_directory(directory);
	snprintf(path, sizeof(path), "%s/sweet.conf", directory);
}

static inline void tear_down(void)
{
	(void)unlink(path);
	ck_assert_int_eq(rmdir(directory), 0);
}

static inline void write_config(const char *text)
{
	FILE *file = fopen(path, "we");

	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	ck_assert_int_eq(fclose(file), 0);
}

/* Reads a command line of words; argv must be unchanged afterwards. */
static inline struct config *read_line(const char *words, struct config_request *request,
				       GPtrArray *errors)
{
	char **argv, **before;
	int argc;
	struct config *config;

	if (!g_shell_parse_argv(words, &argc, &argv, NULL))
		ck_abort_msg("not a command line: %s", words);
	before = g_new0(char *, argc + 1);
	memcpy(before, argv, (size_t)argc * sizeof(*argv));
	config = config_read(argc, argv, request, errors);
	ck_assert_mem_eq(before, argv, ((size_t)argc + 1) * sizeof(*argv));
	g_free(before);
	g_strfreev(argv);
	return config;
}

static inline struct config *must_read(const char *words)
{
	GPtrArray *errors = g_ptr_array_new_with_free_func(g_free);
	struct config_request request;
	struct config *config = read_line(words, &request, errors);

	ck_assert_msg(config, "%s: %s", words, errors->len ? (char *)errors->pdata[0] : "");
	ck_assert_uint_eq(errors->len, 0);
	g_ptr_array_free(errors, TRUE);
	return config;
}

/* Returns the configuration of a file with that text. */
static inline struct config *must_read_file(const char *text)
{
	char words[256];

	write_config(text);
	snprintf(words, sizeof(words), "sweet --config=%s", path);
	return must_read(words);
}

/* The input is refused with `count` lines; the last of them contains `names`. */
static inline void check_errors(const char *words, const char *names, unsigned count)
{
	GPtrArray *errors = g_ptr_array_new_with_free_func(g_free);
	struct config_request request;
	const char *why;

	ck_assert_msg(!read_line(words, &request, errors), "%s: %s", words, names);
	ck_assert_uint_ge(errors->len, 1);
	why = errors->pdata[errors->len - 1];
	ck_assert_msg(errors->len == count, "%s: %u errors, the last: %s", words, errors->len, why);
	ck_assert_msg(strstr(why, names), "%s: %s", words, why);
	ck_assert_msg(!strchr(why, '\n') && *why, "%s: %s", words, why);
	g_ptr_array_free(errors, TRUE);
}

static inline void check_refused(const char *words, const char *names)
{
	check_errors(words, names, 1);
}

#endif
