/* SPDX-License-Identifier: MIT */
/*
 * test-key-opener.c - unit tests of key-opener.c and helper-process.c: which files the process
 * opens, and what it keeps of its parent.  Owns a folder; forks.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <glib.h>
#include <unistd.h>

#include "spawn/helper-process.h"
#include "spawn/key-opener.h"
#include "spawn/reader-filter.h"

#include "suite.h"

static char directory[64], config[100], key[100], other[100];
static char *arguments[] = {(char *)(uintptr_t)("sweet"), (char *)(uintptr_t)("--config"), config,
			    NULL};

static void configure(const char *text)
{
	char **parts = g_strsplit(text, "@", 0), *whole = g_strjoinv(directory, parts);

	ck_assert(g_file_set_contents(config, whole, -1, NULL));
	g_strfreev(parts);
	g_free(whole);
}

static void set_up(void)
{
	make_directory(directory);
	snprintf(config, sizeof(config), "%s/sweet.conf", directory);
	snprintf(key, sizeof(key), "%s/key", directory);
	snprintf(other, sizeof(other), "%s/other", directory);
	ck_assert(g_file_set_contents(key, "a key", -1, NULL));
	ck_assert(g_file_set_contents(other, "another", -1, NULL));
	configure("[sweet]\nlisten=127.0.0.1:0,tls\ncertificate=@/certificate\nkey=@/key\n");
}

static void tear_down(void)
{
	(void)unlink(config);
	(void)unlink(key);
	(void)unlink(other);
	ck_assert_int_eq(rmdir(directory), 0);
}

static struct key_opener *must_open(void)
{
	struct key_opener *opener = key_opener_open(3, arguments);

	ck_assert_ptr_nonnull(opener);
	return opener;
}

START_TEST(opens_what_is_named)
{
	struct key_opener *opener = must_open();
	char text[16] = "";
	int fd;

	ck_assert_int_eq(key_opener_begin(opener), 0);
	fd = key_opener_file(opener, key);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(read(fd, text, sizeof(text)), 5);
	ck_assert_str_eq(text, "a key");
	ck_assert_int_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	key_opener_close(opener);
}
END_TEST

START_TEST(opens_nothing_else)
{
	struct key_opener *opener = must_open();
	char long_name[5000];

	/* Not before it has read the configuration. */
	ck_assert_int_eq(key_opener_file(opener, key), -EPERM);
	ck_assert_int_eq(key_opener_begin(opener), 0);
	ck_assert_int_eq(key_opener_file(opener, other), -EPERM);
	ck_assert_int_eq(key_opener_file(opener, config), -EPERM);
	ck_assert_int_eq(key_opener_file(opener, "/etc/shadow"), -EPERM);
	ck_assert_int_eq(key_opener_file(opener, "key"), -EPERM);
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	ck_assert_int_eq(key_opener_file(opener, long_name), -ENAMETOOLONG);
	/* Named, but not there. */
	snprintf(long_name, sizeof(long_name), "%s/certificate", directory);
	ck_assert_int_eq(key_opener_file(opener, long_name), -ENOENT);
	key_opener_close(opener);
}
END_TEST

START_TEST(reads_the_configuration_again)
{
	struct key_opener *opener = must_open();
	int fd;

	ck_assert_int_eq(key_opener_begin(opener), 0);
	configure("[sweet]\nlisten=127.0.0.1:0,tls\ncertificate=@/other\n"
		  "[host a]\nclient-ca=@/key\nclient-certificate=required\n");
	ck_assert_int_eq(key_opener_file(opener, other), -EPERM);
	ck_assert_int_eq(key_opener_begin(opener), 0);
	fd = key_opener_file(opener, other);
	ck_assert_int_ge(fd, 0);
	close(fd);
	fd = key_opener_file(opener, key);
	ck_assert_int_ge(fd, 0);
	close(fd);
	configure("[sweet]\nlisten=127.0.0.1:0,tls\ncertificate=@/other\ntls-alpn-01=@\n");
	ck_assert_int_eq(key_opener_begin(opener), 0);
	fd = key_opener_file(opener, directory);
	ck_assert_int_ge(fd, 0);
	close(fd);
	configure("[sweet]\nno-such-key=1\n");
	ck_assert_int_eq(key_opener_begin(opener), -EINVAL);
	ck_assert_int_eq(key_opener_file(opener, key), -EPERM);
	key_opener_close(opener);
}
END_TEST

static pid_t only_child(void)
{
	char name[64], *children = NULL;
	pid_t child;

	snprintf(name, sizeof(name), "/proc/self/task/%d/children", (int)getpid());
	ck_assert(g_file_get_contents(name, &children, NULL, NULL));
	child = (pid_t)atoi(children);
	g_free(children);
	ck_assert_int_gt(child, 0);
	return child;
}

START_TEST(process_that_has_ended)
{
	struct key_opener *opener = must_open();

	ck_assert_int_eq(key_opener_begin(opener), 0);
	ck_assert_int_eq(kill(only_child(), SIGKILL), 0);
	/* Waits, as the answer would. */
	while (key_opener_begin(opener) == 0)
		;
	ck_assert_int_eq(key_opener_begin(opener), -EPIPE);
	ck_assert_int_eq(key_opener_file(opener, key), -EPIPE);
	key_opener_close(opener);
	key_opener_close(NULL);
}
END_TEST

/* Signals to its group are for the server. */
START_TEST(signals_do_not_end_it)
{
	struct key_opener *opener = must_open();
	pid_t child;

	ck_assert_int_eq(key_opener_begin(opener), 0);
	child = only_child();
	ck_assert_int_eq(kill(child, SIGTERM), 0);
	ck_assert_int_eq(kill(child, SIGINT), 0);
	ck_assert_int_eq(kill(child, SIGHUP), 0);
	ck_assert_int_eq(key_opener_begin(opener), 0);
	key_opener_close(opener);
}
END_TEST

/* Returns how many descriptors the process has, without those of Valgrind, which are large. */
static unsigned count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;
	unsigned count = 0;

	while (folder && (entry = readdir(folder)))
		count += entry->d_name[0] != '.' && atoi(entry->d_name) < 100;
	closedir(folder);
	return count - 1; /* that of the folder */
}

START_TEST(helper_keeps_its_channels_only)
{
	int open_ones[50], channels[2], own[2], status;
	pid_t pid;

	ck_assert_int_eq(pipe(channels), 0);
	for (unsigned i = 0; i < 50; i++)
		open_ones[i] = open("/dev/null", O_RDONLY);
	pid = fork();
	if (pid == 0) {
		bool good = helper_process_enter("a helper", channels, 2, own) == 0;

		/* 0 to 3, and the channels. */
		good = good && count_descriptors() == 6 && own[0] == 4 && own[1] == 5;
		_exit(good ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	for (unsigned i = 0; i < 50; i++)
		close(open_ones[i]);
	close(channels[0]);
	close(channels[1]);
}
END_TEST

/* Returns the number in a line of the process's status. */
static uint64_t status_of(pid_t pid, const char *name, unsigned base)
{
	char file[64], *text = NULL, *line;
	uint64_t value;

	snprintf(file, sizeof(file), "/proc/%d/status", (int)pid);
	ck_assert(g_file_get_contents(file, &text, NULL, NULL));
	line = strstr(text, name);
	ck_assert_ptr_nonnull(line);
	value = g_ascii_strtoull(line + strlen(name), NULL, base);
	g_free(text);
	return value;
}

/* Of root's capabilities it has those to read, and to become a user for that. */
START_TEST(has_few_capabilities)
{
	static const uint64_t reading = 1 << 2 | 1 << 6 | 1 << 7;
	struct key_opener *opener = must_open();
	pid_t child;

	ck_assert_int_eq(key_opener_begin(opener), 0);
	child = only_child();
	ck_assert_uint_eq(status_of(child, "CapPrm:", 16) & ~reading, 0);
	ck_assert_uint_eq(status_of(child, "CapEff:", 16) & ~reading, 0);
	ck_assert_uint_eq(status_of(child, "CapInh:", 16), 0);
	if (geteuid() == 0) {
		ck_assert_uint_eq(status_of(child, "CapEff:", 16), reading);
		ck_assert_uint_eq(status_of(child, "CapBnd:", 16), 0);
	}
	ck_assert_uint_eq(status_of(child, "NoNewPrivs:", 10), 1);
	ck_assert_uint_eq(status_of(child, "Seccomp:", 10), 2);
	key_opener_close(opener);
}
END_TEST

static bool refused(long result)
{
	return result < 0 && errno == EPERM;
}

/* Reads, and nothing else. */
START_TEST(reader_changes_nothing)
{
	char *const none[] = {NULL};
	int channels[2], own[2], status;
	pid_t pid, parent = getpid();

	ck_assert_int_eq(pipe(channels), 0);
	pid = fork();
	if (pid == 0) {
		bool good = helper_process_enter("a reader", channels, 2, own) == 0 &&
			    reader_filter_enter() == 0;
		int fd = open(key, O_RDONLY | O_CLOEXEC);

		good = good && fd >= 0 && read(fd, own, 1) == 1;
		good = good && refused(open(key, O_WRONLY)) && refused(open(key, O_RDWR)) &&
		       refused(open(key, O_RDONLY | O_TRUNC)) &&
		       refused(open("/tmp/none", O_RDONLY | O_CREAT, 0600)) &&
		       refused(unlink(key)) && refused(rename(key, other)) &&
		       refused(chmod(key, 0777)) && refused(fchmod(fd, 0777)) &&
		       refused(chown(key, 1, 1)) && refused(mkdir("/tmp/none", 0700)) &&
		       refused(symlink(key, "/tmp/none")) && refused(link(key, "/tmp/none"));
		good = good && refused(fork()) && refused(execve("/bin/true", none, none)) &&
		       refused(kill(parent, 0)) && refused(setuid(1)) && refused(setgid(1)) &&
		       refused(socket(AF_UNIX, SOCK_STREAM, 0)) && refused(chroot("/"));
		_exit(good ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	close(channels[0]);
	close(channels[1]);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, opens_what_is_named);
	tcase_add_test(tcase, opens_nothing_else);
	tcase_add_test(tcase, reads_the_configuration_again);
	tcase_add_test(tcase, process_that_has_ended);
	tcase_add_test(tcase, signals_do_not_end_it);
	tcase_add_test(tcase, helper_keeps_its_channels_only);
	tcase_add_test(tcase, has_few_capabilities);
	tcase_add_test(tcase, reader_changes_nothing);
}

RUN_SUITE("key-opener", fill)
