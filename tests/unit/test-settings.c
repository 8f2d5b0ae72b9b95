/* SPDX-License-Identifier: MIT */
/*
 * test-settings.c - unit tests of settings.c: command line over file over
 * defaults, and every mistake in one line that names it.  Writes one
 * configuration file and removes it; single-threaded.
 */
#include <glib.h>

#include <server.h>
#include <settings.h>

#include "suite.h"

#define MIB ((size_t)1 << 20)

static char directory[64], config[100];

static void set_up(void)
{
	make_directory(directory);
	snprintf(config, sizeof(config), "%s/sweet.conf", directory);
}

static void tear_down(void)
{
	(void)unlink(config);
	ck_assert_int_eq(rmdir(directory), 0);
}

static void write_config(const char *text)
{
	FILE *file = fopen(config, "we");

	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	ck_assert_int_eq(fclose(file), 0);
}

/* Reads a command line of words; argv must be as it was afterwards. */
static bool read_line(struct settings *settings, const char *words, char **why)
{
	char **argv, **before;
	int argc;
	bool good;

	if (!g_shell_parse_argv(words, &argc, &argv, NULL))
		ck_abort_msg("not a command line: %s", words);
	before = g_new0(char *, argc + 1);
	memcpy(before, argv, (size_t)argc * sizeof(*argv));
	good = settings_read(settings, argc, argv, why);
	ck_assert_mem_eq(before, argv, ((size_t)argc + 1) * sizeof(*argv));
	g_free(before);
	g_strfreev(argv);
	return good;
}

static void must_read(struct settings *settings, const char *words)
{
	char *why = NULL;

	ck_assert_msg(read_line(settings, words, &why), "%s: %s", words, why);
	ck_assert_ptr_null(why);
}

/* Refused with one line in which `names` stands. */
static void check_refused(const char *words, const char *names)
{
	struct settings settings;
	char *why = NULL;

	ck_assert_msg(!read_line(&settings, words, &why), "%s", words);
	ck_assert_ptr_nonnull(why);
	ck_assert_msg(strstr(why, names), "%s: %s", words, why);
	ck_assert_msg(!strchr(why, '\n') && *why, "%s: %s", words, why);
	g_free(why);
	settings_free(&settings);
}

START_TEST(test_defaults)
{
	struct settings settings;

	must_read(&settings, "sweet");
	ck_assert_str_eq(settings.listen[0], "127.0.0.1:8080");
	ck_assert_ptr_null(settings.listen[1]);
	ck_assert_str_eq(settings.root, ".");
	ck_assert_ptr_null(settings.worker[0]);
	ck_assert_int_eq(settings.workers, 2);
	ck_assert_uint_eq(settings.worker_memory, 64 * MIB);
	ck_assert_uint_eq(settings.cache_size, 256 * MIB);
	ck_assert_int_eq(settings.io, LOOP_AUTO);
	ck_assert_str_eq(settings.access_log, "off");
	ck_assert_ptr_null(settings.cache_socket);
	ck_assert_int_eq(settings.revalidate, 0);
	ck_assert(!settings.version);
	ck_assert_int_ge(settings.threads, 1);
	ck_assert_int_le(settings.threads, SERVER_THREADS_MAX);
	settings_free(&settings);
}
END_TEST

START_TEST(test_command_line)
{
	struct settings settings;

	must_read(&settings,
		  "sweet --listen=:80 --listen '[::1]:81' --root /srv --threads=3 "
		  "--worker '/a=prog x' --worker=/b=other --workers 5 --worker-memory=2M "
		  "--io=epoll --access-log=- --cache-size 1g --revalidate=1000");
	ck_assert_str_eq(settings.listen[0], ":80");
	ck_assert_str_eq(settings.listen[1], "[::1]:81");
	ck_assert_ptr_null(settings.listen[2]);
	ck_assert_str_eq(settings.root, "/srv");
	ck_assert_int_eq(settings.threads, 3);
	ck_assert_str_eq(settings.worker[0], "/a=prog x");
	ck_assert_str_eq(settings.worker[1], "/b=other");
	ck_assert_ptr_null(settings.worker[2]);
	ck_assert_int_eq(settings.workers, 5);
	ck_assert_uint_eq(settings.worker_memory, 2 * MIB);
	ck_assert_int_eq(settings.io, LOOP_EPOLL);
	ck_assert_str_eq(settings.access_log, "-");
	ck_assert_uint_eq(settings.cache_size, 1024 * MIB);
	ck_assert_int_eq(settings.revalidate, 1000);
	settings_free(&settings);
	/* The last word counts. */
	must_read(&settings, "sweet --threads=3 --root a --threads=4 --root b --io uring");
	ck_assert_int_eq(settings.threads, 4);
	ck_assert_str_eq(settings.root, "b");
	ck_assert_int_eq(settings.io, LOOP_URING);
	settings_free(&settings);
}
END_TEST

START_TEST(test_file)
{
	struct settings settings;
	char words[256];

	write_config("# a comment\n"
		     "[sweet]\n"
		     "listen = :80;[::1]:81\n"
		     "root = /srv/with blank\n"
		     "threads=3\n"
		     "worker=/a=prog --option=1 x;/b=other\n"
		     "workers=7\n"
		     "worker-memory=3M\n"
		     "io=epoll\n"
		     "access-log=/var/log/x\n"
		     "cache-size=2048k\n"
		     "revalidate=5\n");
	snprintf(words, sizeof(words), "sweet --config=%s", config);
	must_read(&settings, words);
	ck_assert_str_eq(settings.listen[0], ":80");
	ck_assert_str_eq(settings.listen[1], "[::1]:81");
	ck_assert_ptr_null(settings.listen[2]);
	ck_assert_str_eq(settings.root, "/srv/with blank");
	ck_assert_int_eq(settings.threads, 3);
	ck_assert_str_eq(settings.worker[0], "/a=prog --option=1 x");
	ck_assert_str_eq(settings.worker[1], "/b=other");
	ck_assert_ptr_null(settings.worker[2]);
	ck_assert_int_eq(settings.workers, 7);
	ck_assert_uint_eq(settings.worker_memory, 3 * MIB);
	ck_assert_int_eq(settings.io, LOOP_EPOLL);
	ck_assert_str_eq(settings.access_log, "/var/log/x");
	ck_assert_uint_eq(settings.cache_size, 2 * MIB);
	ck_assert_int_eq(settings.revalidate, 5);
	settings_free(&settings);
	/* Each key by itself: the command line wins, lists as a whole. */
	snprintf(words, sizeof(words),
		 "sweet --workers=9 --config=%s --listen=:82 --io=auto --root=here", config);
	must_read(&settings, words);
	ck_assert_str_eq(settings.listen[0], ":82");
	ck_assert_ptr_null(settings.listen[1]);
	ck_assert_str_eq(settings.root, "here");
	ck_assert_int_eq(settings.workers, 9);
	ck_assert_int_eq(settings.io, LOOP_AUTO);
	ck_assert_int_eq(settings.threads, 3);
	settings_free(&settings);
	/* Nothing in it: the defaults. */
	write_config("");
	snprintf(words, sizeof(words), "sweet --config=%s", config);
	must_read(&settings, words);
	ck_assert_int_eq(settings.workers, 2);
	settings_free(&settings);
}
END_TEST

static const struct {
	const char *key;
	const char *good, *bad; /* values, parted by blanks */
} values[] = {
	{"threads", "1 2 64", "0 65 -1 +1 1.5 x 2x 0x2 99999999999999999999 '' ' 1' '1 '"},
	{"workers", "1 256", "0 257 -2 two '' 1M"},
	{"revalidate", "0 1 3600000", "-1 3600001 1s '' x"},
	{"cache-size", "1M 1m 1024K 1048576 1G 1023G",
	 "0 1 1023K 1048575 1T 1MB 1MiB 1.5G -1M +1M M K '' x '1 M' 1024G 2000000M "
	 "18446744073709551616 99999999999999999999G 17179869184G"},
	{"worker-memory", "1M 64m 2G", "0 512K '' -5M 1X"},
	{"io", "auto uring epoll", "'' EPOLL io_uring select 'epoll '"},
};

/* By the command line and by the file alike. */
START_TEST(test_values)
{
	for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		for (unsigned bad = 0; bad < 2; bad++) {
			char **list, text[200];
			int count;

			ck_assert(g_shell_parse_argv(bad ? values[i].bad : values[i].good, &count,
						     &list, NULL));
			for (int k = 0; k < count; k++) {
				char words[300], expected[100];
				struct settings settings;

				snprintf(words, sizeof(words), "sweet '--%s=%s'", values[i].key,
					 list[k]);
				snprintf(expected, sizeof(expected), "%s \"%s\": must be ",
					 values[i].key, list[k]);
				if (bad) {
					check_refused(words, expected);
				} else {
					must_read(&settings, words);
					settings_free(&settings);
				}
				/* A file's values have no blanks round them. */
				if (strchr(list[k], ' '))
					continue;
				snprintf(text, sizeof(text), "[sweet]\n%s=%s\n", values[i].key,
					 list[k]);
				write_config(text);
				snprintf(words, sizeof(words), "sweet --config '%s'", config);
				if (bad) {
					check_refused(words, expected);
				} else {
					must_read(&settings, words);
					settings_free(&settings);
				}
			}
			g_strfreev(list);
		}
	}
}
END_TEST

START_TEST(test_bad_command_lines)
{
	check_refused("sweet --nonsense", "nonsense");
	check_refused("sweet --nonsense=1", "nonsense");
	check_refused("sweet -x", "-x");
	check_refused("sweet file", "\"file\"");
	check_refused("sweet --threads=2 file", "\"file\"");
	check_refused("sweet --threads", "threads");
	check_refused("sweet --config", "config");
	check_refused("sweet --config=/nonexistent/file", "/nonexistent/file");
	check_refused("sweet --config=/", "/");
	check_refused("sweet --root=a --bad --threads=0", "bad");
}
END_TEST

START_TEST(test_bad_files)
{
	static const struct {
		const char *text, *names;
	} bad[] = {
		{"threads=1\n", ""},
		{"[sweet]\nthreads\n", "threads"},
		{"[sweet]\nthreats=1\n", "\"threats\""},
		{"[sweet]\nconfig=/other\n", "\"config\""},
		{"[sweet]\nversion=1\n", "\"version\""},
		{"[sweet]\nThreads=1\n", "\"Threads\""},
		{"[Sweet]\nthreads=1\n", "[Sweet]"},
		{"[sweet]\nthreads=1\n[more]\n", "[more]"},
		{"[sweet]\nroot=\xff\xfe\n", "root"},
		{"[sweet]\nlisten=:80;\xff\n", "listen"},
		{"[sweet]\nroot=a\\qb\n", "root"},
		{"[sweet\nthreads=1\n", ""},
		{"\x01\x02\x03", ""},
	};
	char words[256];

	snprintf(words, sizeof(words), "sweet --config %s", config);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_config(bad[i].text);
		check_refused(words, bad[i].names);
		/* The file is what is at fault. */
		check_refused(words, config);
	}
}
END_TEST

/* Asked for with whatever else. */
START_TEST(test_version)
{
	struct settings settings;

	must_read(&settings, "sweet --version");
	ck_assert(settings.version);
	settings_free(&settings);
	must_read(&settings, "sweet -V --config=/nonexistent/file");
	ck_assert(settings.version);
	settings_free(&settings);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_defaults);
	tcase_add_test(tcase, test_command_line);
	tcase_add_test(tcase, test_file);
	tcase_add_test(tcase, test_values);
	tcase_add_test(tcase, test_bad_command_lines);
	tcase_add_test(tcase, test_bad_files);
	tcase_add_test(tcase, test_version);
}

RUN_SUITE("settings", fill)
