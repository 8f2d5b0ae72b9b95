/* SPDX-License-Identifier: MIT */
/*
 * test-spawner-program.c - unit tests of spawner-program.c: invalid requests, and
 * which variables and which files a request can name.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spawn/spawner-program.h"
#include "spawn/spawner-wire.h"

#include "suite.h"

static char folder[64];
static char *const base[] = {"PATH=/bin", "HTTP_OWN=operator", NULL};
static char *const argv[] = {"true", "--", NULL};
static char *const permitted[] = {"LD_DEBUG=all", "HTTP_PROXY=", "ITEM", NULL};
static struct spawner_program programs[] = {
	{.path = "/bin/true", .argv = argv, .variables = base},
	{.folder = folder, .variables = base, .permitted = permitted},
	{.folder = folder, .directory = "/elsewhere"},
};
static struct spawner_launch launch;
static alignas(struct spawner_request) char message[SPAWNER_MESSAGE_MAX + 64];
static size_t length;

#define REQUEST ((struct spawner_request *)message)

static void make(unsigned program, const char *mount, const char *script, const char *block,
		 size_t block_length)
{
	*REQUEST = (struct spawner_request){.kind = SPAWNER_START,
					    .program = program,
					    .mount_length = (uint32_t)strlen(mount),
					    .script_length = (uint32_t)strlen(script),
					    .block_length = (uint32_t)block_length};
	length = sizeof(*REQUEST);
	memcpy(message + length, mount, strlen(mount));
	length += strlen(mount);
	memcpy(message + length, script, strlen(script));
	length += strlen(script);
	if (block_length)
		memcpy(message + length, block, block_length);
	length += block_length;
}

static int read_it(void)
{
	/* A copy of exactly that size: Valgrind and ASan detect a read beyond. */
	static char *copy;

	free(copy);
	copy = must_alloc(length);
	memcpy(copy, message, length);
	return spawner_launch_read(&launch, programs, 3, copy, length,
				   (unsigned)__builtin_popcount(REQUEST->fds));
}

static void make_file(const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void make_folder(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	ck_assert_int_eq(mkdir(path, 0755), 0);
}

static void set_up(void)
{
	char path[256];

	make_directory(folder);
	make_folder("sub");
	make_folder("sub/deep");
	make_folder(".hidden");
	make_file("page.sh");
	make_file("sub/page.sh");
	make_file("sub/deep/x");
	make_file(".hidden/page.sh");
	make_file(".page.sh");
	snprintf(path, sizeof(path), "%s/pipe", folder);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	snprintf(path, sizeof(path), "%s/out", folder);
	ck_assert_int_eq(symlink("/bin", path), 0);
	snprintf(path, sizeof(path), "%s/up", folder);
	ck_assert_int_eq(symlink("../..", path), 0);
}

static void tear_down(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}

/* --- variables ----------------------------------------------------------------------- */

static const char *variable(const char *name)
{
	const char *found = NULL;

	for (unsigned i = 0; launch.variables[i]; i++) {
		if (strncmp(launch.variables[i], name, strlen(name)) != 0 ||
		    launch.variables[i][strlen(name)] != '=')
			continue;
		ck_assert_msg(!found, "%s is there twice", name);
		found = launch.variables[i] + strlen(name) + 1;
	}
	return found;
}

START_TEST(test_variables)
{
	static const char block[] = "HTTP_HOST=x\0REQUEST_METHOD=GET\0HTTP_OWN=client\0"
				    "NABC_CACHE=/run/cache\0QUERY_STRING=a=b&c\0CONTENT_TYPE=";

	make(0, "", "", block, sizeof(block));
	ck_assert_int_eq(read_it(), 0);
	ck_assert_str_eq(variable("PATH"), "/bin");
	ck_assert_str_eq(variable("HTTP_HOST"), "x");
	ck_assert_str_eq(variable("REQUEST_METHOD"), "GET");
	ck_assert_str_eq(variable("NABC_CACHE"), "/run/cache");
	ck_assert_str_eq(variable("QUERY_STRING"), "a=b&c");
	ck_assert_str_eq(variable("CONTENT_TYPE"), "");
	/* Variables that the operator has set stay. */
	ck_assert_str_eq(variable("HTTP_OWN"), "operator");
	ck_assert_str_eq(launch.path, "/bin/true");
	ck_assert_ptr_eq(launch.argv, argv);
	ck_assert_str_eq(launch.directory, "/");
	make(0, "", "", NULL, 0);
	ck_assert_int_eq(read_it(), 0);
	ck_assert_ptr_null(variable("HTTP_HOST"));
}
END_TEST

START_TEST(test_other_variables)
{
	static const char *const names[] = {"LD_PRELOAD=/tmp/x.so",
					    "LD_LIBRARY_PATH=/tmp",
					    "PATH=/tmp",
					    "PATH_=/tmp",
					    "BASH_ENV=/tmp/x",
					    "PYTHONPATH=/tmp",
					    "IFS=/",
					    "PERL5OPT=-x",
					    "HTTP_PROXY=evil",
					    "HTTP_=x",
					    "SERVER_=x",
					    "HTTPSX=on",
					    "PHP_VALUE=x",
					    "=x",
					    "HTTP_HOST",
					    "",
					    "HTTP_a=x",
					    "HTTP_A-B=x",
					    "HTTP_A B=x",
					    "http_host=x",
					    "HTTP_A\n=x",
					    "CONTENT_LENGTHS=1",
					    "()=x",
					    "XHTTP_A=x"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char block[128] = "HTTP_HOST=x";
		size_t at = strlen(block) + 1;

		strcpy(block + at, names[i]);
		make(0, "", "", block, at + strlen(names[i]) + 1);
		ck_assert_msg(read_it() == -EPERM, "%s", names[i]);
	}
}
END_TEST

/* Those of the operator, with these values only. */
START_TEST(test_permitted_variables)
{
	static const char good[] = "LD_DEBUG=all\0HTTP_PROXY=\0ITEM=a=b",
			  *const others[] = {
				  "LD_DEBUG=al",  "LD_DEBUG=all ", "LD_DEBUG=", "LD_DEBUG",
				  "HTTP_PROXY=x", "ITEMS=x",	   "ITE=x"};

	make(1, "/cgi", "page.sh", good, sizeof(good));
	ck_assert_int_eq(read_it(), 0);
	ck_assert_str_eq(variable("LD_DEBUG"), "all");
	ck_assert_str_eq(variable("HTTP_PROXY"), "");
	ck_assert_str_eq(variable("ITEM"), "a=b");
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		make(1, "/cgi", "page.sh", others[i], strlen(others[i]) + 1);
		ck_assert_int_eq(read_it(), -EPERM);
	}
	/* Another program. */
	make(0, "", "", good, sizeof(good));
	ck_assert_int_eq(read_it(), -EPERM);
	ck_assert(spawner_variable_is_free("HTTP_A", 6));
	ck_assert(!spawner_variable_is_free("LD_DEBUG", 8));
}
END_TEST

START_TEST(test_many_variables)
{
	static char block[SPAWNER_BLOCK_MAX];
	size_t at = 0;
	unsigned count = SPAWNER_VARIABLES_MAX - 2;

	for (unsigned i = 0; i < count; i++)
		at += (size_t)sprintf(block + at, "HTTP_%u=", i) + 1;
	make(0, "", "", block, at);
	ck_assert_int_eq(read_it(), 0);
	ck_assert_ptr_nonnull(variable("HTTP_1000"));
	at += (size_t)sprintf(block + at, "HTTP_MORE=") + 1;
	make(0, "", "", block, at);
	ck_assert_int_eq(read_it(), -E2BIG);
}
END_TEST

/* --- messages --------------------------------------------------------------------------- */

START_TEST(test_bad_messages)
{
	make(0, "", "", "HTTP_A=", 8);
	ck_assert_int_eq(read_it(), 0);
	/* Every length except the right one. */
	for (size_t whole = length, i = 0; i < whole + 4; i++) {
		length = i;
		ck_assert_int_eq(read_it(), i == whole ? 0 : -EBADMSG);
	}
	make(3, "", "", NULL, 0);
	ck_assert_int_eq(read_it(), -EBADMSG);
	make(UINT32_MAX, "", "", NULL, 0);
	ck_assert_int_eq(read_it(), -EBADMSG);
	make(0, "", "", "HTTP_A=", 7); /* not terminated */
	ck_assert_int_eq(read_it(), -EBADMSG);
	make(0, "", "page.sh", NULL, 0); /* has no scripts */
	ck_assert_int_eq(read_it(), -EBADMSG);
	make(0, "/cgi", "", NULL, 0);
	ck_assert_int_eq(read_it(), -EBADMSG);
	for (unsigned kind = 0; kind < 8; kind++) {
		make(0, "", "", NULL, 0);
		REQUEST->kind = kind;
		ck_assert_int_eq(read_it(), kind == SPAWNER_START ? 0 : -EBADMSG);
	}
}
END_TEST

START_TEST(test_bad_lengths)
{
	static const uint32_t lengths[][3] = {{UINT32_MAX, 0, 0},
					      {0, UINT32_MAX, 0},
					      {0, 0, UINT32_MAX},
					      {UINT32_MAX, 1, 0},
					      {0x80000000u, 0x80000000u, 8},
					      {SPAWNER_PATH_MAX + 1, 0, 0},
					      {0, SPAWNER_PATH_MAX + 1, 0},
					      {SPAWNER_PATH_MAX, SPAWNER_PATH_MAX, 0},
					      {0, 0, SPAWNER_BLOCK_MAX + 1},
					      {1, 0, 8},
					      {0, 1, 8},
					      {1, UINT32_MAX, 8}};

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		make(1, "", "", "HTTP_A=", 8);
		REQUEST->mount_length = lengths[i][0];
		REQUEST->script_length = lengths[i][1];
		REQUEST->block_length = lengths[i][2];
		ck_assert_int_eq(read_it(), -EBADMSG);
	}
	/* One byte too many, with complete content. */
	make(0, "", "", NULL, 0);
	REQUEST->block_length = SPAWNER_BLOCK_MAX + 1;
	memset(message + length, 0, SPAWNER_BLOCK_MAX + 1);
	length += SPAWNER_BLOCK_MAX + 1;
	ck_assert_int_eq(read_it(), -EBADMSG);
}
END_TEST

START_TEST(test_descriptors_of_message)
{
	char copy[sizeof(struct spawner_request)];

	for (unsigned mask = 0; mask < 64; mask++) {
		for (unsigned count = 0; count < 6; count++) {
			bool good = mask < 16 && (unsigned)__builtin_popcount(mask) == count;

			make(0, "", "", NULL, 0);
			REQUEST->fds = mask;
			memcpy(copy, message, length);
			ck_assert_int_eq(
				spawner_launch_read(&launch, programs, 3, copy, length, count),
				good ? 0 : -EBADMSG);
		}
	}
}
END_TEST

/* --- scripts -------------------------------------------------------------------------------- */

START_TEST(test_scripts)
{
	static const struct {
		const char *path;
		int error;
		const char *name, *info;
	} cases[] = {
		{"page.sh", 0, "page.sh", ""},
		{"page.sh/", 0, "page.sh", "/"},
		{"page.sh/a/b", 0, "page.sh", "/a/b"},
		{"page.sh/../x", 0, "page.sh", "/../x"},
		{"page.sh//", 0, "page.sh", "//"},
		{"sub/page.sh", 0, "sub/page.sh", ""},
		{"sub/page.sh/page.sh", 0, "sub/page.sh", "/page.sh"},
		{"sub/deep/x/y", 0, "sub/deep/x", "/y"},
		{"", -ENOENT, NULL, NULL},
		{"/", -ENOENT, NULL, NULL},
		{"/page.sh", -ENOENT, NULL, NULL},
		{"page", -ENOENT, NULL, NULL},
		{"page.sh2", -ENOENT, NULL, NULL},
		{"none/page.sh", -ENOENT, NULL, NULL},
		{"sub", -EISDIR, NULL, NULL},
		{"sub/", -ENOENT, NULL, NULL},
		{"sub//page.sh", -ENOENT, NULL, NULL},
		{".", -ENOENT, NULL, NULL},
		{"./page.sh", -ENOENT, NULL, NULL},
		{"..", -ENOENT, NULL, NULL},
		{"../page.sh", -ENOENT, NULL, NULL},
		{"sub/../page.sh", -ENOENT, NULL, NULL},
		{"sub/../../x", -ENOENT, NULL, NULL},
		{".page.sh", -ENOENT, NULL, NULL},
		{".hidden/page.sh", -ENOENT, NULL, NULL},
		{"pipe", -EACCES, NULL, NULL},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char expected[256];

		make(1, "/cgi", cases[i].path, "HTTP_A=", 8);
		ck_assert_msg(read_it() == cases[i].error, "%s: %d", cases[i].path, read_it());
		if (cases[i].error)
			continue;
		snprintf(expected, sizeof(expected), "%s/%s", folder, cases[i].name);
		ck_assert_str_eq(launch.path, expected);
		ck_assert_str_eq(launch.argv[0], expected);
		ck_assert_ptr_null(launch.argv[1]);
		ck_assert_str_eq(variable("SCRIPT_FILENAME"), expected);
		*strrchr(expected, '/') = '\0';
		ck_assert_str_eq(launch.directory, expected);
		snprintf(expected, sizeof(expected), "/cgi/%s", cases[i].name);
		ck_assert_str_eq(variable("SCRIPT_NAME"), expected);
		ck_assert_str_eq(variable("PATH_INFO"), cases[i].info);
		ck_assert_uint_eq(launch.script_length, strlen(cases[i].name));
	}
}
END_TEST

START_TEST(test_ways_out)
{
	make(1, "/cgi", "out/true", NULL, 0);
	ck_assert_int_lt(read_it(), 0);
	make(1, "/cgi", "up/bin/true", NULL, 0);
	ck_assert_int_lt(read_it(), 0);
	/* A name with a NUL in the middle. */
	make(1, "/cgi", "page.shX", NULL, 0);
	message[length - 1] = '\0';
	ck_assert_int_eq(read_it(), -EBADMSG);
	make(1, "/cgX", "page.sh", NULL, 0);
	message[sizeof(*REQUEST) + 3] = '\0';
	ck_assert_int_eq(read_it(), -EBADMSG);
}
END_TEST

START_TEST(test_script_in_directory)
{
	make(2, "", "sub/page.sh/more", "SCRIPT_NAME=/lie\0PATH_INFO=/lie", 32);
	ck_assert_int_eq(read_it(), 0);
	ck_assert_str_eq(launch.directory, "/elsewhere");
	/* The request cannot choose which part is the script. */
	ck_assert_str_eq(variable("SCRIPT_NAME"), "/sub/page.sh");
	ck_assert_str_eq(variable("PATH_INFO"), "/more");
}
END_TEST

/* The path after the script, and only if there is one. */
START_TEST(test_translated)
{
	static const char block[] = "PATH_TRANSLATED=/lie\0DOCUMENT_ROOT=/srv\0HTTP_A=1";

	make(1, "/cgi", "page.sh/a/b", block, sizeof(block));
	ck_assert_int_eq(read_it(), 0);
	ck_assert_str_eq(variable("PATH_TRANSLATED"), "/srv/a/b");
	make(1, "/cgi", "page.sh", block, sizeof(block));
	ck_assert_int_eq(read_it(), 0);
	ck_assert_ptr_null(variable("PATH_TRANSLATED"));
	ck_assert_str_eq(variable("HTTP_A"), "1");
	ck_assert_str_eq(variable("DOCUMENT_ROOT"), "/srv");
	make(1, "/cgi", "page.sh/a", block, 21);
	ck_assert_int_eq(read_it(), 0);
	ck_assert_ptr_null(variable("PATH_TRANSLATED"));
}
END_TEST

START_TEST(test_long_paths)
{
	static char path[SPAWNER_PATH_MAX + 1];

	memset(path, 'a', SPAWNER_PATH_MAX);
	make(1, "", path, NULL, 0);
	ck_assert_int_eq(read_it(), -ENAMETOOLONG);
	/* The path after the script may have the same length. */
	memcpy(path, "page.sh/", 8);
	make(1, "", path, NULL, 0);
	ck_assert_int_eq(read_it(), 0);
	ck_assert_uint_eq(strlen(variable("PATH_INFO")), SPAWNER_PATH_MAX - 7);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_variables);
	tcase_add_test(tcase, test_other_variables);
	tcase_add_test(tcase, test_permitted_variables);
	tcase_add_test(tcase, test_many_variables);
	tcase_add_test(tcase, test_bad_messages);
	tcase_add_test(tcase, test_bad_lengths);
	tcase_add_test(tcase, test_descriptors_of_message);
	tcase_add_test(tcase, test_scripts);
	tcase_add_test(tcase, test_ways_out);
	tcase_add_test(tcase, test_script_in_directory);
	tcase_add_test(tcase, test_translated);
	tcase_add_test(tcase, test_long_paths);
}

RUN_SUITE("spawner-program", fill)
