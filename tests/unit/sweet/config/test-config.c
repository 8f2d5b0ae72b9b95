/* SPDX-License-Identifier: MIT */
/*
 * test-config.c - unit tests of config-read.c and what it uses: command line
 * over file over defaults, hosts and paths with what they inherit, and every
 * mistake in one line that names its place.  Writes one configuration file and
 * removes it; single-threaded.
 */
#include <glib.h>

#include "config/arch.h"
#include "config/config-read.h"
#include "core/socket-options.h"
#include "event/client-limit.h"

#include "suite.h"

#define MIB ((size_t)1 << 20)

static char directory[64], path[100];

static void set_up(void)
{
	make_directory(directory);
	snprintf(path, sizeof(path), "%s/sweet.conf", directory);
}

static void tear_down(void)
{
	(void)unlink(path);
	ck_assert_int_eq(rmdir(directory), 0);
}

static void write_config(const char *text)
{
	FILE *file = fopen(path, "we");

	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	ck_assert_int_eq(fclose(file), 0);
}

/* Reads a command line of words; argv must be as it was afterwards. */
static struct config *read_line(const char *words, struct config_request *request,
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

static struct config *must_read(const char *words)
{
	GPtrArray *errors = g_ptr_array_new_with_free_func(g_free);
	struct config_request request;
	struct config *config = read_line(words, &request, errors);

	ck_assert_msg(config, "%s: %s", words, errors->len ? (char *)errors->pdata[0] : "");
	ck_assert_uint_eq(errors->len, 0);
	g_ptr_array_free(errors, TRUE);
	return config;
}

/* Refused with `count` lines, in the last of which `names` stands. */
static void check_errors(const char *words, const char *names, unsigned count)
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

static void check_refused(const char *words, const char *names)
{
	check_errors(words, names, 1);
}

/* The file's configuration. */
static struct config *must_read_file(const char *text)
{
	char words[256];

	write_config(text);
	snprintf(words, sizeof(words), "sweet --config=%s", path);
	return must_read(words);
}

static const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};

static const struct scope *scope_of(const struct config *config, const char *host, const char *at)
{
	return host_scope(config_host(config, (struct slice){host, strlen(host)}, &nowhere), at);
}

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
	ck_assert_str_eq(config->access_log, "off");
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
	ck_assert_str_eq(config->access_log, "-");
	ck_assert_uint_eq(config->cache_size, 1024 * MIB);
	ck_assert_int_eq(config->revalidate_ms, 1000);
	config_release(config);
	config = must_read("sweet --path-cache=off --header-cache=off --content-cache=off "
			   "--header-align=64");
	ck_assert(!config->path_cache && !config->header_cache && !config->content_cache);
	ck_assert_uint_eq(config->header_align, 64);
	config_release(config);
	/* The last word counts. */
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
	ck_assert_str_eq(config->access_log, "/var/log/x");
	ck_assert_uint_eq(config->cache_size, 2 * MIB);
	ck_assert_int_eq(config->revalidate_ms, 5);
	config_release(config);
	/* Each key by itself: the command line wins, lists as a whole. */
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
	/* Nothing in it: the defaults. */
	write_config("");
	snprintf(words, sizeof(words), "sweet --config=%s", path);
	config = must_read(words);
	ck_assert_int_eq(config->workers, 2);
	config_release(config);
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
		      "threads \"65\": must be a number from 1 to 64 with arch amped");
	check_refused("sweet --arch sped --threads=65", "from 1 to 64 with arch sped");
	check_refused("sweet --arch mt --threads=65 --worker /a=prog",
		      "--worker \"/a=prog\": workers answer at most 64 threads, not 65");
	check_refused("sweet --arch mp --cache-socket /a",
		      "cache-socket is not possible with arch mp");
}
END_TEST

static const struct {
	const char *key;
	const char *good, *bad; /* values, parted by blanks */
} values[] = {
	{"arch", "amped sped mt mp", "AMPED '' x"},
	{"threads", "1 2 64", "0 4097 -1 +1 1.5 x 2x 0x2 99999999999999999999 '' ' 1' '1 '"},
	{"workers", "1 256", "0 257 -2 two '' 1M"},
	{"revalidate", "0 1 3600000 1s 24h", "-1 86400001 25h 1d 1S '' x s"},
	{"send-timeout", "1 30s 1000ms 2m", "0 999ms x ''"},
	{"keep-alive-timeout", "0 75 1h", "-1 x"},
	{"log-level", "error debug", "all ''"},
	{"page-cache", "drop keep", "on ''"},
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
				/* A file's values have no blanks round them. */
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
		/* The file is what is at fault. */
		check_refused(words, path);
	}
}
END_TEST

/* Asked for with whatever else. */
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

/* The name of the host for a Host field at an address of this machine. */
static const char *host_at(const struct config *config, const char *field, const char *local)
{
	struct listen_address address;

	ck_assert(address_parse(local, &address));
	return config_host(config, (struct slice){field, strlen(field)},
			   (const struct sockaddr *)&address.address)
		->name;
}

START_TEST(test_names)
{
	static const struct {
		const char *field, *name;
	} cases[] = {
		{"example.org", "example.org"},
		{"EXAMPLE.org", "example.org"},
		{"example.org.", "example.org"},
		{"example.org:8080", "example.org"},
		{"example.org.:8080", "example.org"},
		{"example.org:", "example.org"},
		{"www.example.org", "example.org"},
		{"a.www.example.org", "example.org"},
		{"static.example.org", "static"},
		{"b.static.example.org", "below"},
		{"c.b.static.example.org", "below"},
		{"[2001:DB8::1]", "six"},
		{"[2001:db8::1]:80", "six"},
		{"192.0.2.1", "four"},
		{"192.0.2.1:80", "four"},
		{"", ""},
		{":80", ""},
		{".", ""},
		{"..", ""},
		{".example.org", ""},
		{"example.org..", ""},
		{"xexample.org", ""},
		{"example.com", ""},
		{"org", ""},
		{"*.example.org", "example.org"},
		{"[2001:db8::2]", ""},
		{"[2001:db8::1", ""},
	};
	struct config *config = must_read_file("[sweet]\n[host example.org]\n"
					       "names=example.org;*.Example.org\n"
					       "[host static]\nnames=static.example.org\n"
					       "[host below]\nnames=*.static.example.org\n"
					       "[host six]\nnames=[2001:db8::1]\n"
					       "[host four]\nnames=192.0.2.1\n");
	char longest[CONFIG_NAME_MAX + 100];

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++)
		ck_assert_msg(strcmp(host_at(config, cases[i].field, "80"), cases[i].name) == 0,
			      "%s: %s", cases[i].field, host_at(config, cases[i].field, "80"));
	/* As long as they come, and longer. */
	for (size_t length = CONFIG_NAME_MAX - 20; length < sizeof(longest); length++) {
		memset(longest, 'x', length);
		strcpy(longest + length - strlen(".example.org"), ".example.org");
		ck_assert_str_eq(host_at(config, longest, "80"),
				 length <= CONFIG_NAME_MAX ? "example.org" : "");
	}
	config_release(config);
}
END_TEST

START_TEST(test_addresses)
{
	static const struct {
		const char *field, *local, *name;
	} cases[] = {
		/* The same name is another host elsewhere. */
		{"a.example", "127.0.0.1:80", "plain"},
		{"a.example", "127.0.0.1:8443", "secure"},
		{"a.example", "127.0.0.1:81", ""},
		/* A host for all addresses. */
		{"b.example", "127.0.0.1:80", "everywhere"},
		{"b.example", "[::1]:80", "everywhere"},
		{"b.example", "192.0.2.1:90", "everywhere"},
		/* Nobody's name: the first of the address, else the default. */
		{"x.example", "127.0.0.1:80", "plain"},
		{"", "127.0.0.1:8443", "secure"},
		{"x.example", "127.0.0.1:81", ""},
		{"x.example", "192.0.2.1:90", "any"},
		{"x.example", "[::1]:80", ""},
		{"x.example", "unix:/whatever", "local"},
		{"c.example", "127.0.0.1:80", "plain"},
		{"c.example", "127.0.0.1:90", "any"},
	};
	struct config *config =
		must_read_file("[sweet]\n"
			       "listen=127.0.0.1:80;127.0.0.1:81;127.0.0.1:8443;:90;unix:/a\n"
			       "[host plain]\nnames=a.example\nlisten=127.0.0.1:80\n"
			       "[host secure]\nnames=a.example\nlisten=127.0.0.1:8443\n"
			       "[host second]\nnames=d.example\nlisten=127.0.0.1:8443\n"
			       "[host everywhere]\nnames=b.example\n"
			       "[host any]\nnames=c.example\nlisten=:90\n"
			       "[host local]\nnames=e.example\nlisten=unix:/a\n");

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++)
		ck_assert_msg(
			strcmp(host_at(config, cases[i].field, cases[i].local), cases[i].name) == 0,
			"%s at %s: %s", cases[i].field, cases[i].local,
			host_at(config, cases[i].field, cases[i].local));
	config_release(config);
}
END_TEST

static const struct rate_limit *rate_of(const struct config *config, const char *host,
					const char *at)
{
	return scope_of(config, host, at)->rate;
}

START_TEST(test_rules)
{
	struct config *config = must_read_file("[sweet]\nrequest-rate=10\nrequest-burst=4\n"
					       "[path /a]\nroot=/x\n"
					       "[path /b]\nrequest-rate=20\n"
					       "[path /c]\nrequest-rate=0\n"
					       "[host h]\nredirect=/moved/\nallow=192.0.2.1\n"
					       "[path h/d]\nroot=/x\n"
					       "[path h/e]\nredirect=/other/\ndeny=all\nallow=\n"
					       "[path h/f]\nredirect=off\nrequest-rate=10\n");
	const struct rate_limit *rate = rate_of(config, "", "/");

	/* Counted together where it is inherited, alone where it is set anew. */
	ck_assert_uint_eq(rate->interval_ns, 100000000);
	ck_assert_uint_eq(rate->burst_ns, 400000000);
	ck_assert_uint_eq(rate_of(config, "", "/a")->scope, rate->scope);
	ck_assert_uint_eq(rate_of(config, "h", "/d")->scope, rate->scope);
	ck_assert_uint_eq(rate_of(config, "", "/b")->interval_ns, 50000000);
	ck_assert_uint_ne(rate_of(config, "", "/b")->scope, rate->scope);
	ck_assert_uint_ne(rate_of(config, "h", "/f")->scope, rate->scope);
	ck_assert_ptr_null(rate_of(config, "", "/c"));
	ck_assert_ptr_null(scope_of(config, "", "/")->access);
	ck_assert_ptr_nonnull(scope_of(config, "h", "/")->access);
	ck_assert_ptr_nonnull(scope_of(config, "h", "/d")->access);
	ck_assert_ptr_nonnull(scope_of(config, "h", "/e")->access);
	/* What of the path stands for the rest depends on where the redirect is from. */
	ck_assert_ptr_null(scope_of(config, "", "/")->redirect_to);
	ck_assert_uint_eq(scope_of(config, "h", "/")->redirect_skip, 0);
	ck_assert_uint_eq(scope_of(config, "h", "/d/x")->redirect_skip, 0);
	ck_assert_str_eq(scope_of(config, "h", "/d/x")->redirect_to, "/moved/");
	ck_assert_uint_eq(scope_of(config, "h", "/e/x")->redirect_skip, 2);
	ck_assert_ptr_null(scope_of(config, "h", "/f")->redirect_to);
	config_release(config);
}
END_TEST

/* A path has what it lacks from the paths around it, the nearest first. */
START_TEST(test_nesting)
{
	struct config *config = must_read_file(
		"[sweet]\nroot=/top\n"
		"[path /a/b/c]\nlisting=on\n"
		"[path /a]\ndeny=all\nauth-realm=A\nauth-file=/f\nroot=/a\nrequest-rate=5\n"
		"redirect=/moved/\n"
		"[path /a/b]\nauth-realm=B\nredirect=/away/\n"
		"[path /ab]\nlisting=on\n"
		"[path /a/free]\nredirect=off\ndeny=\n"
		"[path /p]\nalias=/pictures\n"
		"[path /p/in]\nlisting=on\n"
		"[path /p/own]\nroot=/own\n"
		"[path /p/to]\nrewrite=/a\n"
		"[path /p/to/x]\nlisting=on\n"
		"[path /p/to/y]\nalias=/y\n"
		"[path /p/to/z]\nroot=/z\n"
		"[host h]\nredirect=/h/\n"
		"[path h/a/b]\nlisting=on\n");
	const struct scope *scope = scope_of(config, "", "/a/b/c/d");

	ck_assert_ptr_nonnull(scope->access);
	ck_assert_str_eq(scope->auth_realm, "B");
	ck_assert_str_eq(scope->auth_file, "/f");
	ck_assert_str_eq(scope->root, "/a");
	ck_assert_str_eq(scope->redirect_to, "/away/");
	ck_assert_uint_eq(scope->redirect_skip, 4);
	ck_assert(scope->listing && !scope_of(config, "", "/a/b")->listing);
	ck_assert_uint_eq(scope->rate->scope, scope_of(config, "", "/a")->rate->scope);
	scope = scope_of(config, "", "/ab");
	ck_assert(!scope->access && !scope->auth_realm && !scope->redirect_to);
	scope = scope_of(config, "", "/a/free");
	ck_assert(!scope->access && !scope->redirect_to && scope->auth_realm);
	/* Another host's paths are others. */
	scope = scope_of(config, "h", "/a/b");
	ck_assert(!scope->access && scope->listing);
	ck_assert_str_eq(scope->redirect_to, "/h/");
	/* What gives the files: the nearest. */
	scope = scope_of(config, "", "/p/in");
	ck_assert_str_eq(scope->alias, "/pictures");
	ck_assert_uint_eq(scope->alias_skip, 2);
	ck_assert_ptr_null(scope_of(config, "", "/p/own")->alias);
	ck_assert_str_eq(scope_of(config, "", "/p/own")->root, "/own");
	ck_assert_ptr_null(scope_of(config, "", "/p/to")->alias);
	scope = scope_of(config, "", "/p/to/x");
	ck_assert_ptr_null(scope->alias);
	ck_assert_str_eq(scope->rewrite, "/a");
	ck_assert_uint_eq(scope->rewrite_skip, 5);
	scope = scope_of(config, "", "/p/to/y");
	ck_assert_ptr_null(scope->rewrite);
	ck_assert_str_eq(scope->alias, "/y");
	ck_assert_uint_eq(scope->alias_skip, 7);
	scope = scope_of(config, "", "/p/to/z");
	ck_assert(!scope->rewrite && !scope->alias);
	config_release(config);
}
END_TEST

START_TEST(test_bad_rules)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"[sweet]\nallow=10.0.0.1/8\n", "sweet.conf:2: allow \"10.0.0.1/8\": must be an"},
		{"[sweet]\ndeny=127.0.0.1;nobody\n", "sweet.conf:2: deny \"nobody\": must be an"},
		{"[path /a]\nallow=::1/129\n", "sweet.conf:2: allow \"::1/129\": must be an"},
		{"[sweet]\nstatus-allow=all;x\n", "sweet.conf:2: status-allow \"x\": must be an"},
		{"[path /a]\nalias=/x\nrewrite=/y\n", "sweet.conf:1: alias and rewrite exclude"},
		{"[host a]\n[host b]\nnames=a\n", "sweet.conf:2: host \"a\" is named twice"},
		{"[sweet]\nlisten=1;2\n[host a]\nlisten=1;2\n[host b]\nnames=a\nlisten=2\n",
		 "sweet.conf:5: host \"a\" is named twice"},
		{"[sweet]\nlisten=1;2\n[host a]\nlisten=1\n[host b]\nnames=a\n",
		 "sweet.conf:5: host \"a\" is named twice"},
		{"[sweet]\nlisten=unix:/a;unix:/b\n[host a]\nlisten=unix:/b\n",
		 "sweet.conf:3: listen \"unix:/b\": hosts are distinguished"},
	};
	char words[256];

	snprintf(words, sizeof(words), "sweet --config=%s", path);
	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		write_config(cases[i].text);
		check_refused(words, cases[i].says);
	}
}
END_TEST

START_TEST(test_inheritance)
{
	struct config *config = must_read_file("[sweet]\n"
					       "root=/all\n"
					       "index=a.html;b.html\n"
					       "listing=on\n"
					       "redirect=/top/\n"
					       "[host example.org]\n"
					       "names=Example.org;*.example.org\n"
					       "root=/example\n"
					       "redirect=301 https://other/\n"
					       "[path /images]\n"
					       "listing=off\n"
					       "[path example.org/a]\n"
					       "index=c.html\n"
					       "redirect=off\n"
					       "[path example.org/a/b]\n"
					       "alias=/elsewhere\n");
	const struct scope *scope = scope_of(config, "unknown", "/");

	ck_assert_uint_eq(config->host_count, 2);
	ck_assert_str_eq(scope->root, "/all");
	ck_assert_str_eq(scope->index[1], "b.html");
	ck_assert(scope->listing);
	ck_assert_int_eq(scope->redirect_status, 302);
	ck_assert_ptr_eq(scope_of(config, "unknown", "/imagesx"), scope);
	scope = scope_of(config, "unknown", "/images");
	ck_assert_ptr_eq(scope_of(config, "", "/images/x"), scope);
	ck_assert(!scope->listing);
	ck_assert_str_eq(scope->root, "/all");
	ck_assert_str_eq(scope->redirect_to, "/top/");
	scope = scope_of(config, "EXAMPLE.org:80", "/images");
	ck_assert_str_eq(scope->root, "/example");
	ck_assert_int_eq(scope->redirect_status, 301);
	ck_assert(scope->listing);
	ck_assert_ptr_eq(scope_of(config, "x.y.example.org.", "/"), scope);
	ck_assert_ptr_ne(scope_of(config, "xexample.org", "/"), scope);
	scope = scope_of(config, "example.org", "/a/x");
	ck_assert_str_eq(scope->index[0], "c.html");
	ck_assert_int_eq(scope->redirect_status, 0);
	scope = scope_of(config, "example.org", "/a/b/c");
	ck_assert_str_eq(scope->alias, "/elsewhere");
	ck_assert_str_eq(scope->index[0], "c.html");
	config_release(config);
}
END_TEST

START_TEST(test_places)
{
	static const struct {
		const char *text, *says;
		unsigned count;
	} bad[] = {
		{"[sweet]\nroot=a\n\nthreads=x\n", ":4: threads \"x\": must be a number", 1},
		{"[sweet]\nroot=a\nroot=b\n", ":3: root is given twice, first at ", 1},
		{"[sweet]\n[sweet]\n", ":2: [sweet] is given twice", 1},
		{"[sweet]\n# x\nnonsense\n", ":3: \"nonsense\": must be KEY=VALUE", 1},
		{"threads=1\n[sweet]\n", ":1: \"threads=1\" comes before", 1},
		{"[sweet\n", ":1: a group is written", 1},
		{"[host]\n", ":1: unknown group [host]", 1},
		{"[host a]\nthreads=1\n",
		 ":2: key \"threads\" does not belong into [host a], but into [sweet]", 1},
		{"[sweet]\nalias=/x\n",
		 ":2: key \"alias\" does not belong into [sweet], but into [path PREFIX]", 1},
		{"[path /a]\nnames=x\n",
		 ":2: key \"names\" does not belong into [path /a], but into [host NAME]", 1},
		{"[sweet]\nacces_log=x\n",
		 ":2: unknown key \"acces_log\": is \"access-log\" meant?", 1},
		{"[sweet]\nThreads=1\n", ":2: unknown key \"Threads\": is \"threads\" meant?", 1},
		{"[sweet]\nxyz=1\n", ":2: unknown key \"xyz\" (sweet.conf(5) lists the keys)", 1},
		{"[sweet]\nroot=\\q\n", ":2: root: has an unknown escape", 1},
		{"[sweet]\nserver-header=a\\tb\n",
		 ":2: server-header \"a\tb\": must be printable ASCII", 1},
		{"[host a b]\n", ":1: host \"a b\": must be a name", 1},
		{"[host a]\n[host b]\nnames=A\n", ":2: host \"a\" is named twice", 1},
		{"[host a]\nlisten=:1\n", ":1: listen \":1\": must be one of", 1},
		{"[path a/b]\n", ":1: there is no [host a]", 1},
		{"[path b]\n", ":1: path \"b\": must begin", 1},
		{"[path /]\n", ":1: path \"/\": is the host", 1},
		{"[path /a/../b]\n", ":1: path \"/a/../b\": must be", 1},
		{"[path /a]\nalias=/x\nrewrite=/y\n", ":1: alias and rewrite", 1},
		{"[path /a]\nauth-realm=x\n", ":2: auth-realm needs", 1},
		{"[sweet]\nauth-realm=x\n[path /a]\n[path /b]\n", ":2: auth-realm needs", 1},
		{"[sweet]\nio=x\nthreads=y\n[path /a]\nlisting=2\n", ":5: listing \"2\"", 3},
		{"[sweet]\nlisten=\n", ":2: listen \"\": must have a value", 1},
		{"[host a]\nlisten=x\n", ":2: listen \"x\": must be ADDRESS:PORT", 1},
		{"[sweet]\nlisten=x\n[host a]\nlisten=unix:/a\n", ":2: listen \"x\": must be", 1},
		{"[sweet]\nindex=a/b\n", ":2: index \"a/b\": must be a file's name", 1},
	};
	char words[256], says[256];

	snprintf(words, sizeof(words), "sweet --config %s", path);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_config(bad[i].text);
		snprintf(says, sizeof(says), "%s%s", path, bad[i].says);
		check_errors(words, says, bad[i].count);
	}
}
END_TEST

/* Of paths in paths the nearest counts; the rest has the default. */
START_TEST(test_cache)
{
	static const struct {
		const char *path;
		enum cacheable_mode mode;
		uint32_t seconds;
	} want[] = {{"/x", CACHEABLE_MARKED, 0},
		    {"/a", CACHEABLE_TIME, 10},
		    {"/a/b", CACHEABLE_OFF, 0},
		    {"/a/b/c", CACHEABLE_RESPONSE, 0},
		    {"/a/c", CACHEABLE_TIME, 10}};
	struct config *config =
		must_read_file("[sweet]\n[path /a]\ncache=10s\n[path /a/b]\ncache=off\n"
			       "[path /a/b/c]\ncache=response\n[path /a/c]\n");

	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		const struct scope *scope = host_scope(&config->hosts[0], want[i].path);

		ck_assert_int_eq(scope->response_cache.mode, want[i].mode);
		ck_assert_uint_eq(scope->response_cache.seconds, want[i].seconds);
	}
	config_release(config);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_defaults);
	tcase_add_test(tcase, test_command_line);
	tcase_add_test(tcase, test_arch);
	tcase_add_test(tcase, test_file);
	tcase_add_test(tcase, test_values);
	tcase_add_test(tcase, test_bad_command_lines);
	tcase_add_test(tcase, test_bad_files);
	tcase_add_test(tcase, test_requests);
	tcase_add_test(tcase, test_names);
	tcase_add_test(tcase, test_addresses);
	tcase_add_test(tcase, test_rules);
	tcase_add_test(tcase, test_nesting);
	tcase_add_test(tcase, test_bad_rules);
	tcase_add_test(tcase, test_inheritance);
	tcase_add_test(tcase, test_places);
	tcase_add_test(tcase, test_cache);
}

RUN_SUITE("config", fill)
