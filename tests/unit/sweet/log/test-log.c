/* SPDX-License-Identifier: MIT */
/*
 * test-log.c - unit tests of log.c: levels, messages of any text and length, and each
 * possible destination.  Tests read the messages from a file without a name; the
 * journal is a socket of the test, and that of syslog is in a /dev that only the test
 * sees.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "log/log-output.h"
#include "log/log.h"

#include "suite.h"

static int record, before; /* the replacement of standard error, and the original */
static char text[1 << 16];
static char directory[64], path[100], moved[100];

static void set_up(void)
{
	record = memfd_create("log", MFD_CLOEXEC);
	before = dup(STDERR_FILENO);
	ck_assert_int_ge(record, 0);
	ck_assert_int_ge(before, 0);
	make_directory(directory);
	snprintf(path, sizeof(path), "%s/error.log", directory);
	snprintf(moved, sizeof(moved), "%s/error.log.1", directory);
	/* No output of check is lost: it uses standard output. */
	ck_assert_int_eq(dup2(record, STDERR_FILENO), STDERR_FILENO);
}

static void tear_down(void)
{
	log_close();
	dup2(before, STDERR_FILENO);
	close(before);
	close(record);
	unlink(path);
	unlink(moved);
	rmdir(directory);
}

static const char *content(int fd)
{
	ssize_t got = pread(fd, text, sizeof(text) - 1, 0);

	ck_assert_int_ge(got, 0);
	text[got] = '\0';
	return text;
}

static const char *content_of(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	(void)content(fd);
	close(fd);
	return text;
}

static int evaluated(int *count)
{
	return ++*count;
}

START_TEST(test_levels)
{
	static const char *const all[] = {"sweet: 0\n", "sweet: 1\n", "sweet: 2\n", "sweet: 3\n",
					  "sweet: 4\n"};
	char expected[200] = "";
	int count = 0;

	for (int level = LOG_LEVEL_ERROR; level <= LOG_LEVEL_DEBUG; level++) {
		log_set_level((enum log_level)level);
		log_error("%d", 0);
		log_warning("%d", 1);
		log_notice("%d", 2);
		log_info("%d", 3);
		log_debug("%d", evaluated(&count) + 3);
		for (int i = 0; i <= level; i++)
			strcat(expected, all[i]);
	}
	ck_assert_str_eq(content(record), expected);
	ck_assert_int_eq(count, 1);
}
END_TEST

START_TEST(test_texts)
{
	log_error("plain");
	log_error("%s and %d", "text", 7);
	log_error("%s", "");
	log_error("%s", "two\nlines\r\x1b[31m \"quoted\" \\ gr\xc3\xbc\xc3\x9f \xff");
	ck_assert_str_eq(content(record),
			 "sweet: plain\nsweet: text and 7\nsweet: \n"
			 "sweet: two\\x0alines\\x0d\\x1b[31m \"quoted\" \\ gr\xc3\xbc\xc3\x9f "
			 "\\xff\n");
}
END_TEST

/* Cut off, but a line; an escape is never divided. */
START_TEST(test_long)
{
	char *longest = must_alloc(5000), *at;

	memset(longest, 'l', 4999);
	longest[4999] = '\0';
	log_error("%s", longest);
	longest[1010] = '\0';
	for (unsigned i = 0; i < 20; i++)
		log_error("%s", longest + i);
	at = (char *)content(record);
	for (unsigned i = 0; i < 21; i++) {
		size_t length = strcspn(at, "\n");

		ck_assert_int_eq(strncmp(at, "sweet: l", 8), 0);
		ck_assert_uint_eq(length, strspn(at + 7, "l") + 7);
		ck_assert_uint_gt(length, 990);
		ck_assert_uint_lt(length, 1024);
		ck_assert_int_eq(at[length], '\n');
		at += length + 1;
	}
	ck_assert_int_eq(*at, '\0');
	ck_assert_int_eq(ftruncate(record, 0), 0);
	ck_assert_int_eq(lseek(record, 0, SEEK_SET), 0);
	memset(longest, 1, 4999);
	for (unsigned i = 0; i < 4; i++) {
		memcpy(longest, "xxxx", i);
		log_error("%s", longest);
	}
	at = (char *)content(record);
	for (unsigned i = 0; i < 4; i++) {
		size_t length = strcspn(at, "\n");

		ck_assert_uint_gt(length, 1000);
		ck_assert_uint_lt(length, 1024);
		for (size_t j = 7 + i; j < length; j += 4)
			expect(strncmp(at + j, "\\x01", 4) == 0);
		at += length + 1;
	}
	free(longest);
}
END_TEST

/* Time, level, message. */
static void check_file_line(const char *line, const char *rest)
{
	struct tm tm = {0};
	const char *end = strptime(line, "%Y-%m-%dT%H:%M:%S%z", &tm);

	ck_assert_msg(end != NULL, "%s", line);
	ck_assert_str_eq(end, rest);
}

START_TEST(test_file)
{
	struct stat stat;

	/* Until startup is complete, standard error gets it too. */
	ck_assert_int_eq(log_open(path), 0);
	log_warning("first");
	check_file_line(content_of(path), " [warning] first\n");
	ck_assert_str_eq(content(record), "sweet: first\n");
	log_settled();
	log_error("second\n");
	check_file_line(strchr(content_of(path), '\n') + 1, " [error] second\\x0a\n");
	ck_assert_str_eq(content(record), "sweet: first\n");
	ck_assert_int_eq(lstat(path, &stat), 0);
	ck_assert_int_eq(stat.st_mode & 0037, 0);
	/* Renamed, and opened again. */
	ck_assert_int_eq(rename(path, moved), 0);
	log_error("third");
	ck_assert_int_ne(access(path, F_OK), 0);
	ck_assert_ptr_nonnull(strstr(content_of(moved), " [error] third\n"));
	ck_assert_int_eq(log_open(path), 0);
	log_notice("fourth");
	check_file_line(content_of(path), " [notice] fourth\n");
	ck_assert_ptr_null(strstr(content_of(moved), "fourth"));
	/* A path that cannot be opened changes nothing. */
	ck_assert_int_eq(log_open(directory), -EISDIR);
	ck_assert_int_eq(log_open("/none/where"), -ENOENT);
	log_notice("fifth");
	ck_assert_ptr_nonnull(strstr(content_of(path), " [notice] fifth\n"));
	/* Back. */
	ck_assert_int_eq(log_open("-"), 0);
	log_notice("sixth");
	ck_assert_str_eq(content(record), "sweet: first\nsweet: sixth\n");
}
END_TEST

START_TEST(test_full_disk)
{
	unsigned open_before = open_descriptors();

	ck_assert_int_eq(log_open("/dev/full"), 0);
	log_settled();
	errno = EXDEV;
	log_error("lost");
	ck_assert_int_eq(errno, EXDEV);
	log_close();
	ck_assert_uint_eq(open_descriptors(), open_before);
	log_error("not lost");
	ck_assert_str_eq(
		content(record),
		"sweet: messages that were lost before the next one: 1\nsweet: not lost\n");
}
END_TEST

/* Reads what is in a pipe now; returns its number of lines, the last one in text. */
static unsigned drain(int fd)
{
	unsigned lines = 0;
	ssize_t got;

	while ((got = read(fd, text, sizeof(text) - 1)) > 0)
		for (ssize_t i = 0; i < got; i++)
			lines += text[i] == '\n';
	return lines;
}

static void flood(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		log_error("message %u of a flood that is longer than what a pipe has room for", i);
}

#define FLOOD 5000u

/* A flood for a reader that has stopped, which returns: what is lost is counted. */
static void check_stopped(int reader)
{
	uint64_t lost = log_output_lost();
	unsigned lines;

	flood(FLOOD);
	lost = log_output_lost() - lost;
	ck_assert_uint_gt(lost, 0);
	lines = drain(reader);
	ck_assert_uint_gt(lines, 100);
	ck_assert_uint_eq(lines + lost, FLOOD);
	log_error("after it");
	ck_assert_uint_eq(drain(reader), 2);
	snprintf(moved, sizeof(moved), "lost before the next one: %u\n", (unsigned)lost);
	ck_assert_ptr_nonnull(strstr(text, moved));
	log_error("the last one");
	ck_assert_uint_eq(drain(reader), 1);
}

/* Nobody waits for the reader of standard error, whose flags others share. */
START_TEST(test_standard_error)
{
	struct rlimit limit;
	rlim_t before_limit;
	int ends[2];

	if (_i)
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	else
		ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	ck_assert_int_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	check_stopped(ends[0]);
	ck_assert_int_eq(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0);
	/* A message that says so needs no descriptor. */
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	before_limit = limit.rlim_cur;
	limit.rlim_cur = 3;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_lt(dup(0), 0);
	log_error("no descriptor is left");
	limit.rlim_cur = before_limit;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_uint_eq(drain(ends[0]), 1);
	close(ends[0]);
	close(ends[1]);
}
END_TEST

/* Nor for that of a FIFO, not even when it is opened again, nor if there is none. */
START_TEST(test_fifo)
{
	int reader;

	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(log_open(path), 0);
	log_settled();
	log_error("before there is a reader");
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ck_assert_int_ge(reader, 0);
	ck_assert_uint_eq(drain(reader), 1);
	check_stopped(reader);
	flood(FLOOD);
	ck_assert_int_eq(log_open(path), 0);
	ck_assert_uint_gt(drain(reader), 100);
	close(reader);
}
END_TEST

static int listen_at(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	strcpy(address.sun_path, name);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static const char *datagram(int fd)
{
	ssize_t got = recv(fd, text, sizeof(text) - 1, 0);

	ck_assert_int_ge(got, 0);
	text[got] = '\0';
	return text;
}

START_TEST(test_journal)
{
	int fd = listen_at(path), again;
	unsigned count = 0, open_before;

	open_before = open_descriptors();
	ck_assert_int_eq(log_open_journal(path), 0);
	log_error("the %s", "first");
	ck_assert_str_eq(datagram(fd), "PRIORITY=3\nSYSLOG_IDENTIFIER=sweet\nMESSAGE=the first\n");
	log_set_level(LOG_LEVEL_DEBUG);
	/* A message cannot forge a field. */
	log_debug("x\nPRIORITY=0");
	ck_assert_str_eq(datagram(fd),
			 "PRIORITY=7\nSYSLOG_IDENTIFIER=sweet\nMESSAGE=x\\x0aPRIORITY=0\n");
	ck_assert_str_eq(content(record), "");
	/* The server does not wait for a reader that is slow. */
	for (unsigned i = 0; i < 2000; i++)
		log_warning("flood");
	while (recv(fd, text, sizeof(text), 0) > 0)
		count++;
	ck_assert_uint_gt(count, 0);
	for (const char *at = content(record); *at; at = strchr(at, '\n') + 1, count++)
		ck_assert_int_eq(strncmp(at, "<4>sweet: flood\n", 16), 0);
	ck_assert_uint_eq(count, 2000);
	/* A reader that exits, and returns. */
	ck_assert_int_eq(ftruncate(record, 0), 0);
	ck_assert_int_eq(lseek(record, 0, SEEK_SET), 0);
	unlink(path);
	log_notice("nobody there");
	ck_assert_str_eq(content(record), "<5>sweet: nobody there\n");
	again = listen_at(path);
	log_info("there again");
	ck_assert_ptr_nonnull(strstr(datagram(again), "\nMESSAGE=there again\n"));
	close(again);
	log_close();
	ck_assert_uint_eq(open_descriptors(), open_before);
	close(fd);
}
END_TEST

START_TEST(test_journal_name)
{
	char name[200];

	memset(name, 'n', sizeof(name));
	name[199] = '\0';
	ck_assert_int_eq(log_open_journal(name), -ENAMETOOLONG);
}
END_TEST

/* syslog(3) uses "/dev/log", so this process gets a /dev of its own. */
START_TEST(test_syslog)
{
	int fd;

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "/dev", "tmpfs", 0, NULL) < 0)
		return; /* not permitted here */
	ck_assert_int_eq(log_open("syslog"), 0);
	log_error("nobody there");
	ck_assert_str_eq(content(record), "sweet: nobody there\n");
	log_settled();
	fd = listen_at("/dev/log");
	log_warning("100%% %s", "%s\n");
	ck_assert_int_eq(strncmp(datagram(fd), "<28>", 4), 0); /* daemon, warning */
	ck_assert_ptr_nonnull(strstr(text, " sweet["));
	ck_assert_ptr_nonnull(strstr(text, "]: 100% %s\\x0a"));
	log_info("too little");
	ck_assert_int_lt(recv(fd, text, sizeof(text), 0), 0);
	ck_assert_str_eq(content(record), "sweet: nobody there\n");
	ck_assert_int_eq(log_open(path), 0);
	log_error("in the file");
	ck_assert_int_lt(recv(fd, text, sizeof(text), 0), 0);
	ck_assert_ptr_nonnull(strstr(content_of(path), "in the file"));
	close(fd);
}
END_TEST

/* A daemon of syslog or of the journal that has stopped. */
START_TEST(test_stopped_daemon)
{
	uint64_t lost = log_output_lost();
	int fd;

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "/dev", "tmpfs", 0, NULL) < 0)
		return; /* not permitted here */
	fd = listen_at("/dev/log");
	ck_assert_int_eq(log_open("syslog"), 0);
	log_settled();
	flood(FLOOD);
	ck_assert_uint_gt(log_output_lost() - lost, 0);
	while (recv(fd, text, sizeof(text), 0) > 0)
		continue;
	log_error("after it");
	ck_assert_ptr_nonnull(strstr(datagram(fd), "lost before the next one: "));
	ck_assert_ptr_nonnull(strstr(datagram(fd), "after it"));
	close(fd);
}
END_TEST

#define WRITERS 3

static void *write_many(void *argument)
{
	for (unsigned i = 0; i < scaled(2000); i++)
		log_error("thread %s, message %u", (const char *)argument, i);
	return NULL;
}

/* Opened again repeatedly while threads write: each line is complete and in one of the files. */
START_TEST(test_threads)
{
	static char names[WRITERS][2] = {"0", "1", "2"};
	unsigned next[WRITERS] = {0}, files = 0;
	pthread_t threads[WRITERS];
	FILE *all = NULL;
	char line[200];

	ck_assert_int_eq(log_open(path), 0);
	log_settled();
	for (unsigned i = 0; i < WRITERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, write_many, names[i]), 0);
	for (; files < 50; files++) {
		char old[120];

		snprintf(old, sizeof(old), "%s.%u", path, files);
		ck_assert_int_eq(rename(path, old), 0);
		ck_assert_int_eq(log_open(path), 0);
	}
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i <= files; i++) {
		char name[120];

		snprintf(name, sizeof(name), i == files ? "%s" : "%s.%u", path, i);
		all = fopen(name, "re");
		ck_assert_ptr_nonnull(all);
		while (fgets(line, sizeof(line), all)) {
			unsigned thread, message;
			int end = 0;

			ck_assert_int_eq(sscanf(line, "%*s [error] thread %u, message %u%n",
						&thread, &message, &end),
					 2);
			ck_assert_str_eq(line + end, "\n");
			ck_assert_uint_lt(thread, WRITERS);
			ck_assert_uint_eq(message, next[thread]);
			next[thread]++;
		}
		fclose(all);
		unlink(name);
	}
	for (unsigned i = 0; i < WRITERS; i++)
		ck_assert_uint_eq(next[i], scaled(2000));
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_levels);
	tcase_add_test(tcase, test_texts);
	tcase_add_test(tcase, test_long);
	tcase_add_test(tcase, test_file);
	tcase_add_test(tcase, test_full_disk);
	tcase_add_loop_test(tcase, test_standard_error, 0, 2);
	tcase_add_test(tcase, test_fifo);
	tcase_add_test(tcase, test_journal);
	tcase_add_test(tcase, test_journal_name);
	tcase_add_test(tcase, test_syslog);
	tcase_add_test(tcase, test_stopped_daemon);
	tcase_add_test(tcase, test_threads);
}

RUN_SUITE("log", fill)
