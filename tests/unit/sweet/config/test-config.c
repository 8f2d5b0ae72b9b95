/* SPDX-License-Identifier: MIT */
/*
 * test-config.c - unit tests of config-read.c and its helpers: command line over file
 * over defaults, and every error in one line that names its place.
 */
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/arch.h"
#include "config/config-read.h"
#include "config/configuration.h"
#include "event/loop.h"

#include "config-fixture.h"
#include "suite.h"

#define MIB ((size_t)1 << 20)

START_TEST(test_defaults)
{
	struct config *config;

	config = must_read("sweet");
	ck_assert_str_eq(config->listen[0], "127.0.0.1:8080");
	ck_assert_ptr_null(config->listen[1]);
	ck_assert_str_eq(config->hosts[0].scopes[0].root, ".");
	ck_assert_ptr_null(config->worker[0]);
	ck_assert_int_eq(config->workers, 2);
	ck_assert_uint_eq(config->worker_memory, 64 * MIB);
	ck_assert_uint_eq(config->cache_size, 0);
	ck_assert_ptr_null(config->spool_directory);
	ck_assert_uint_eq(config->spool_size, 1024 * MIB);
	ck_assert(!config->spool_memory);
	ck_assert_int_eq(config->io, LOOP_AUTO);
	ck_assert_str_eq(config->hosts[0].access_log, "off");
	ck_assert_ptr_null(config->cache_socket);
	ck_assert_int_eq(config->revalidate_ms, 0);
	ck_assert(config->path_cache && config->header_cache && config->content_cache);
	ck_assert_uint_eq(config->header_align, 0);
	ck_assert_int_ge(config->threads, 1);
	ck_assert_int_le(config->threads, 64);
	ck_assert(!config->sockets.defer_accept && !config->sockets.delay_ack);
	ck_assert_uint_eq(config->sockets.fastopen, 0);
	ck_assert_uint_eq(config->sockets.send_method, SEND_AUTO);
	ck_assert(config->sockets.header_option && config->sockets.close_option);
	ck_assert(config->sockets.linger);
	config_release(config);
}
END_TEST

START_TEST(test_command_line)
{
	struct config *config;

	config = must_read("sweet --listen=:80 --listen '[::1]:81' --root /srv --threads=3 "
			   "--worker '/a=prog x' --worker=/b=other --workers 5 --worker-memory=2M "
			   "--defer-accept=on --fastopen=16 --delay-ack=on --send-method=kernel "
			   "--header-option=off --close-option=off --linger=off "
			   "--io=epoll --access-log=- --cache-size 1g --revalidate=1000");
	ck_assert_str_eq(config->listen[0], ":80");
	ck_assert_str_eq(config->listen[1], "[::1]:81");
	ck_assert_ptr_null(config->listen[2]);
	ck_assert_str_eq(config->hosts[0].scopes[0].root, "/srv");
	ck_assert_int_eq(config->threads, 3);
	ck_assert_str_eq(config->worker[0], "/a=prog x");
	ck_assert_str_eq(config->worker[1], "/b=other");
	ck_assert_ptr_null(config->worker[2]);
	ck_assert_int_eq(config->workers, 5);
	ck_assert_uint_eq(config->worker_memory, 2 * MIB);
	ck_assert(config->sockets.defer_accept && config->sockets.delay_ack);
	ck_assert_uint_eq(config->sockets.fastopen, 16);
	ck_assert_uint_eq(config->sockets.send_method, SEND_KERNEL);
	ck_assert(!config->sockets.header_option && !config->sockets.close_option);
	ck_assert(!config->sockets.linger);
	ck_assert_int_eq(config->io, LOOP_EPOLL);
	ck_assert_str_eq(config->hosts[0].access_log, "-");
	ck_assert_uint_eq(config->cache_size, 1024 * MIB);
	ck_assert_int_eq(config->revalidate_ms, 1000);
	config_release(config);
	config = must_read("sweet --path-cache=off --header-cache=off --content-cache=off "
			   "--header-align=64");
	ck_assert(!config->path_cache && !config->header_cache && !config->content_cache);
	ck_assert_uint_eq(config->header_align, 64);
	config_release(config);
	/* The last option counts. */
	config = must_read("sweet --threads=3 --root a --threads=4 --root b --io uring");
	ck_assert_int_eq(config->threads, 4);
	ck_assert_str_eq(config->hosts[0].scopes[0].root, "b");
	ck_assert_int_eq(config->io, LOOP_URING);
	config_release(config);
}
END_TEST

START_TEST(test_file)
{
	struct config *config;
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
	snprintf(words, sizeof(words), "sweet --config=%s", path);
	config = must_read(words);
	ck_assert_str_eq(config->listen[0], ":80");
	ck_assert_str_eq(config->listen[1], "[::1]:81");
	ck_assert_ptr_null(config->listen[2]);
	ck_assert_str_eq(config->hosts[0].scopes[0].root, "/srv/with blank");
	ck_assert_int_eq(config->threads, 3);
	ck_assert_str_eq(config->worker[0], "/a=prog --option=1 x");
	ck_assert_str_eq(config->worker[1], "/b=other");
	ck_assert_ptr_null(config->worker[2]);
	ck_assert_int_eq(config->workers, 7);
	ck_assert_uint_eq(config->worker_memory, 3 * MIB);
	ck_assert_int_eq(config->io, LOOP_EPOLL);
	ck_assert_str_eq(config->hosts[0].access_log, "/var/log/x");
	ck_assert_uint_eq(config->cache_size, 2 * MIB);
	ck_assert_int_eq(config->revalidate_ms, 5);
	config_release(config);
	/* Each key by itself: the command line overrides, lists as a whole. */
	snprintf(words, sizeof(words),
		 "sweet --workers=9 --config=%s --listen=:82 --io=auto --root=here", path);
	config = must_read(words);
	ck_assert_str_eq(config->listen[0], ":82");
	ck_assert_ptr_null(config->listen[1]);
	ck_assert_str_eq(config->hosts[0].scopes[0].root, "here");
	ck_assert_int_eq(config->workers, 9);
	ck_assert_int_eq(config->io, LOOP_AUTO);
	ck_assert_int_eq(config->threads, 3);
	config_release(config);
	/* A section without keys: the defaults. */
	write_config("[sweet]\n");
	snprintf(words, sizeof(words), "sweet --config=%s", path);
	config = must_read(words);
	ck_assert_int_eq(config->workers, 2);
	config_release(config);
}
END_TEST

START_TEST(test_environment)
{
	struct config *config;
	char words[256];

	ck_assert_int_eq(setenv("NABC_TEST_HERE", "/srv/a;b", 1), 0);
	ck_assert_int_eq(unsetenv("NABC_TEST_NONE"), 0);
	write_config("[sweet]\nroot=${NABC_TEST_HERE}/x${NABC_TEST_HERE}\n"
		     "cgi=/a=${NABC_TEST_HERE};/b=$${c}$$d${\n");
	snprintf(words, sizeof(words), "sweet --config=%s", path);
	check_refused(words, "sweet.conf:3: cgi: ${} is not set");
	write_config("[sweet]\nroot=${NABC_TEST_HERE}/x${NABC_TEST_HERE}\n"
		     "cgi=/a=${NABC_TEST_HERE};/b=$${c}$$d$\n");
	config = must_read(words);
	ck_assert_str_eq(config->hosts[0].scopes[0].root, "/srv/a;b/x/srv/a;b");
	/* What stands for a variable is one value, whatever is in it. */
	ck_assert_str_eq(config->cgi[0], "/a=/srv/a;b");
	ck_assert_str_eq(config->cgi[1], "/b=${c}$$d$");
	ck_assert_ptr_null(config->cgi[2]);
	config_release(config);
	write_config("[sweet]\nroot=${NABC_TEST_NONE}\n");
	check_refused(words, "sweet.conf:2: root: ${NABC_TEST_NONE} is not set");
	write_config("[sweet]\ninclude=${NABC_TEST_NONE}/*.conf\n");
	check_refused(words, "include: ${NABC_TEST_NONE} is not set");
}
END_TEST

START_TEST(test_arch)
{
	struct config *config = must_read("sweet --arch=mt");

	ck_assert_int_eq(config->arch, ARCH_MT);
	ck_assert_int_eq(config->threads, 64);
	config_release(config);
	config = must_read("sweet --arch mp --threads=4096 --worker /a=prog");
	ck_assert_int_eq(config->threads, 4096);
	config_release(config);
	config = must_read("sweet --arch mp");
	ck_assert_int_eq(config->threads, 32);
	config_release(config);
	config = must_read("sweet --arch sped --threads=64 --worker /a=prog");
	config_release(config);
	check_refused("sweet --threads=65",
		      "threads \"65\": must be a number from 1 to 64, or to 4096 with");
	check_refused("sweet --arch sped --threads=65",
		      "from 1 to 64, or to 4096 with arch mt or mp");
	check_refused("sweet --arch mt --threads=65 --worker /a=prog",
		      "--worker \"/a=prog\": workers answer at most 64 threads, not 65");
	check_refused("sweet --arch mp --cache-socket /a",
		      "cache-socket is not possible with arch mp");
}
END_TEST

static const struct {
	const char *key;
	const char *good, *bad; /* values, separated by blanks */
} values[] = {
	{"arch", "amped sped mt mp", "AMPED '' x"},
	{"threads", "1 2 64", "0 4097 -1 +1 1.5 x 2x 0x2 99999999999999999999 '' ' 1' '1 '"},
	{"workers", "1 256", "0 257 -2 two '' 1M"},
	{"revalidate", "0 1 3600000 1s 24h", "-1 86400001 25h 1d 1S '' x s"},
	{"send-timeout", "1 30s 1000ms 2m", "0 999ms x ''"},
	{"keep-alive-timeout", "0 75 1h", "-1 x"},
	{"log-level", "error debug", "all ''"},
	{"page-cache", "keep drop bypass", "on '' DROP"},
	{"fastopen", "0 16 65535", "-1 65536 x ''"},
	{"send-method", "auto copy splice zerocopy kernel", "on sendfile ''"},
	{"defer-accept", "on off", "1 yes ''"},
	{"close-option", "on off", "1 ''"},
	{"path-cache", "on off", "yes ''"},
	{"header-cache", "on off", "1 ''"},
	{"content-cache", "on off", "keep ''"},
	{"header-align", "0 32 64", "1 16 128 -32 off 032 ''"},
	{"listing", "on off", "yes '' ON"},
	{"redirect", "off /new/ http://a/ '308 https://b/'", "new '304 /a' '200 /a' /ä '301 x' ''"},
	{"error-page", "404=/a 500=/b/c.html", "404 404=a 200=/a x=/a 404=/../a"},
	{"max-body", "0 1 10G", "x -1 ''"},
	{"cache", "marked response off 1 1s 24h", "on '' 0 999ms -1 25h x RESPONSE"},
	{"cache-size", "1M 1m 1024K 1048576 1G 1023G",
	 "0 1 1023K 1048575 1T 1MB 1MiB 1.5G -1M +1M M K '' x '1 M' 1024G 2000000M "
	 "18446744073709551616 99999999999999999999G 17179869184G"},
	{"spool-size", "1M 1m 1G 1023G", "0 1 1023K 1T 1.5G -1M ''"},
	{"spool-directory", "/var/tmp .", "''"},
	{"spool-memory", "on off", "yes '' ON"},
	{"worker-memory", "1M 64m 2G", "0 512K '' -5M 1X"},
	{"io", "auto uring epoll", "'' EPOLL io_uring select 'epoll '"},
	{"data-path", "nabc posix", "'' POSIX pipe 'nabc posix'"},
};

/* On the command line and in the file alike. */
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
				struct config *config;

				snprintf(words, sizeof(words), "sweet '--%s=%s'", values[i].key,
					 list[k]);
				snprintf(expected, sizeof(expected), "%s \"%s\": must ",
					 values[i].key, list[k]);
				if (bad) {
					check_refused(words, expected);
				} else {
					config = must_read(words);
					config_release(config);
				}
				/* Values in a file have no blanks around them. */
				if (strchr(list[k], ' '))
					continue;
				snprintf(text, sizeof(text), "[sweet]\n%s=%s\n", values[i].key,
					 list[k]);
				write_config(text);
				snprintf(words, sizeof(words), "sweet --config '%s'", path);
				if (bad) {
					check_refused(words, expected);
				} else {
					config = must_read(words);
					config_release(config);
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
	check_refused("sweet --data-path=posix --send-method=splice", "send-method: must be auto");
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
		{"[sweet]\nroot=\xff\xfe\n", ":2: not UTF-8"},
		{"[sweet]\nlisten=:80;\xff\n", ":2: not UTF-8"},
		{"[sweet]\nroot=a\\qb\n", "root"},
		{"[sweet\nthreads=1\n", ""},
		{"\x01\x02\x03", ""},
	};
	char words[256];

	snprintf(words, sizeof(words), "sweet --config %s", path);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_config(bad[i].text);
		check_refused(words, bad[i].names);
		/* The error is in the file. */
		check_refused(words, path);
	}
}
END_TEST

/* Requested together with other options. */
START_TEST(test_requests)
{
	GPtrArray *errors = g_ptr_array_new();
	struct config_request request;

	config_release(read_line("sweet --version", &request, errors));
	ck_assert(request.version && !request.check);
	config_release(read_line("sweet -V --config=/nonexistent/file", &request, errors));
	ck_assert(request.version);
	config_release(read_line("sweet --check-config", &request, errors));
	ck_assert(!request.version && request.check);
	ck_assert_uint_eq(errors->len, 0);
	g_ptr_array_free(errors, TRUE);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_defaults);
	tcase_add_test(tcase, test_command_line);
	tcase_add_test(tcase, test_environment);
	tcase_add_test(tcase, test_arch);
	tcase_add_test(tcase, test_file);
	tcase_add_test(tcase, test_values);
	tcase_add_test(tcase, test_bad_command_lines);
	tcase_add_test(tcase, test_bad_files);
	tcase_add_test(tcase, test_requests);
}

RUN_SUITE("config", fill)
