/* SPDX-License-Identifier: MIT */
/*
 * test-access-log.c - unit tests of access-log.c: when lines are written, the full
 * buffer and the full disk, and the change to another file meanwhile.  Parts that need
 * no time run on a loop that does not run.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/slice.h"
#include "core/access-log.h"
#include "event/loop.h"
#include "log/access-line.h"
#include "log/log-format.h"
#include "log/log-output.h"

#include "loop-fixture.h"
#include "suite.h"

#define DATE "Sun, 06 Nov 1994 08:49:37 GMT"
#define END " HTTP/1.1\" 200 5 7us\n"

static struct access_log record;
static struct log_format *formats[ACCESS_JSON + 1];
static struct loop *loop;
static char text[1 << 20];

static int memory(void)
{
	int fd = memfd_create("log", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static size_t written(int fd)
{
	ssize_t got = pread(fd, text, sizeof(text) - 1, 0);

	ck_assert_int_ge(got, 0);
	text[got] = '\0';
	return (size_t)got;
}

static unsigned lines_of(int fd)
{
	unsigned lines = 0;

	for (size_t i = written(fd); i-- > 0;)
		lines += text[i] == '\n';
	return lines;
}

static void put(unsigned number)
{
	char request[64];
	struct access_line line = {.remote = "192.0.2.1",
				   .date = DATE,
				   .request = {.at = request},
				   .status = 200,
				   .bytes = 5,
				   .microseconds = 7};

	line.request.length =
		(size_t)snprintf(request, sizeof(request), "GET /%u HTTP/1.1", number);
	access_log_put(&record, &line);
}

/* The log on a loop that does not run. */
static void open_still(int fd)
{
	char why[128];

	loop = loop_open(LOOP_EPOLL, LOOP_MANY, why, sizeof(why));
	ck_assert_ptr_nonnull(loop);
	access_log_start(&record, loop, fd, formats[ACCESS_SHORT]);
}

static void close_still(void)
{
	access_log_flush(&record);
	loop_close(loop);
}

START_TEST(test_gathered)
{
	int fd = memory();

	open_still(fd);
	put(1);
	put(2);
	ck_assert_uint_eq(written(fd), 0);
	access_log_flush(&record);
	(void)written(fd);
	ck_assert_str_eq(text,
			 "192.0.2.1 [" DATE "] \"GET /1" END "192.0.2.1 [" DATE "] \"GET /2" END);
	access_log_flush(&record);
	ck_assert_uint_eq(written(fd), strlen(text));
	/* The end writes the rest. */
	put(3);
	close_still();
	ck_assert_uint_eq(lines_of(fd), 3);
	close(fd);
}
END_TEST

/* Lines are written whole, with few writes, and none is lost when the buffer is full. */
START_TEST(test_full_buffer)
{
	int fd = memory();
	unsigned writes = 0, number = 0;
	size_t before = 0;

	open_still(fd);
	for (unsigned i = 0; i < 5000; i++) {
		struct stat stat;

		put(i);
		expect(record.used <= sizeof(record.buffer));
		ck_assert_int_eq(fstat(fd, &stat), 0);
		writes += (size_t)stat.st_size != before;
		before = (size_t)stat.st_size;
		expect(before == 0 || (written(fd) == before && text[before - 1] == '\n'));
	}
	ck_assert_uint_gt(writes, 3);
	ck_assert_uint_lt(writes, 20);
	access_log_flush(&record);
	(void)written(fd);
	for (const char *at = text; *at; number++) {
		char expected[200];

		snprintf(expected, sizeof(expected), "192.0.2.1 [" DATE "] \"GET /%u" END, number);
		ck_assert_int_eq(strncmp(at, expected, strlen(expected)), 0);
		at += strlen(expected);
	}
	ck_assert_uint_eq(number, 5000);
	close_still();
	close(fd);
}
END_TEST

/* The longest lines into a buffer with any fill level. */
START_TEST(test_long_lines)
{
	static char much[5000];
	struct access_line line = {.remote = "::1", .date = DATE, .status = 200};
	int fd = memory();
	unsigned lines = 0;

	memset(much, 1, sizeof(much));
	open_still(fd);
	record.format = formats[ACCESS_JSON];
	for (unsigned i = 0; i < 500; i++) {
		line.request = line.referer = line.agent = line.host = line.user =
			(struct slice){much, (i * 97) % sizeof(much)};
		access_log_put(&record, &line);
		expect(record.used <= sizeof(record.buffer));
		if (record.used > sizeof(text) / 2)
			access_log_flush(&record);
	}
	close_still();
	lseek(fd, 0, SEEK_SET);
	for (ssize_t got; (got = read(fd, text, sizeof(text))) > 0;)
		for (ssize_t i = 0; i < got; i++)
			lines += text[i] == '\n';
	ck_assert_uint_eq(lines, 500);
	close(fd);
}
END_TEST

START_TEST(test_off)
{
	open_still(-1);
	put(1);
	ck_assert_uint_eq(record.used, 0);
	access_log_flush(&record);
	close_still();
}
END_TEST

static int errors; /* replaces standard error */

static void catch_errors(void)
{
	errors = memory();
	ck_assert_int_eq(dup2(errors, STDERR_FILENO), STDERR_FILENO);
}

/* A log that cannot be written only loses lines, and reports that once. */
START_TEST(test_full_disk)
{
	int fd = memory(), full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	catch_errors();
	ck_assert_int_ge(full, 0);
	open_still(full);
	for (unsigned i = 0; i < 5000; i++)
		put(i);
	access_log_flush(&record);
	ck_assert_uint_eq(record.used, 0);
	ck_assert_uint_eq(lines_of(errors), 1);
	ck_assert_ptr_nonnull(strstr(text, "sweet: cannot write the access log: No space left"));
	record.output = log_output_of(fd);
	put(1);
	put(2);
	access_log_flush(&record);
	ck_assert_uint_eq(lines_of(fd), 2);
	ck_assert_uint_eq(lines_of(errors), 2);
	ck_assert_ptr_nonnull(strstr(text, "the access log can be written again"));
	close_still();
	close(full);
	close(fd);
}
END_TEST

/* Reads what is in a pipe now. */
static unsigned drain(int fd)
{
	unsigned lines = 0;
	ssize_t got;

	while ((got = read(fd, text, sizeof(text) - 1)) > 0)
		for (ssize_t i = 0; i < got; i++)
			lines += text[i] == '\n';
	return lines;
}

/* The reader of a FIFO stops: lines wait in the FIFO, then in memory, then they are counted. */
START_TEST(test_stopped_reader)
{
	char directory[64], path[100];
	unsigned lines = 0, all = 5000;
	uint64_t lost = log_output_lost();
	int fd, file = memory(), reader;

	catch_errors();
	make_directory(directory);
	snprintf(path, sizeof(path), "%s/access.log", directory);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	/* Nobody has opened its other end yet. */
	ck_assert_int_eq(access_log_open(path, &fd), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ck_assert_int_ge(reader, 0);
	open_still(fd);
	for (unsigned i = 0; i < all; i++)
		put(i);
	access_log_flush(&record);
	lost = log_output_lost() - lost;
	ck_assert_uint_gt(lost, 0);
	ck_assert_uint_eq(lines_of(errors), 1);
	ck_assert_ptr_nonnull(strstr(text, "cannot write the access log: nobody reads it"));
	/* The reader continues, and gets whole lines. */
	for (unsigned i = 0; i < 10; i++) {
		lines += drain(reader);
		access_log_flush(&record);
	}
	ck_assert_uint_eq(lines + lost, all);
	ck_assert_uint_eq(lines_of(errors), 2);
	snprintf(path, sizeof(path), "again; %u lines are lost", (unsigned)lost);
	ck_assert_ptr_nonnull(strstr(text, path));
	snprintf(path, sizeof(path), "%s/access.log", directory);
	/* It stops again, and the log is another file: what waits in memory goes there. */
	for (unsigned i = 0; i < all; i++)
		put(i);
	ck_assert_uint_gt(record.used, 0);
	access_log_use(&record, file, formats[ACCESS_SHORT]);
	access_log_flush(&record);
	ck_assert_uint_eq(record.used, 0);
	ck_assert_uint_gt(lines_of(file), 100);
	/* With nothing else to do but end, it does not wait either. */
	access_log_use(&record, fd, formats[ACCESS_SHORT]);
	for (unsigned i = 0; i < 200; i++)
		put(i);
	lost = log_output_lost();
	access_log_end(&record);
	ck_assert_uint_eq(record.used, 0);
	ck_assert_uint_gt(log_output_lost(), lost);
	close_still();
	close(fd);
	close(reader);
	close(file);
	unlink(path);
	rmdir(directory);
}
END_TEST

/* A disk that was full in the middle of a line: the next line is separate. */
START_TEST(test_torn_line)
{
	char directory[64], path[100];
	struct rlimit limit;
	int fd;

	catch_errors();
	signal(SIGXFSZ, SIG_IGN);
	make_directory(directory);
	snprintf(path, sizeof(path), "%s/access.log", directory);
	ck_assert_int_eq(access_log_open(path, &fd), 0);
	open_still(fd);
	put(1);
	access_log_flush(&record);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = record.used + 100;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	put(2);
	put(3);
	access_log_flush(&record);
	put(4);
	access_log_flush(&record);
	limit.rlim_cur = limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	put(5);
	access_log_flush(&record);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_uint_eq(lines_of(fd), 3);
	ck_assert_ptr_nonnull(strstr(text, "\n192.0.2.1 [" DATE "] \"GET /5" END));
	ck_assert_uint_eq(lines_of(errors), 2);
	close(fd);
	unlink(path);
	rmdir(directory);
	close_still();
}
END_TEST

START_TEST(test_open)
{
	char directory[64], path[100], got[16] = "";
	struct stat stat;
	int fd = 77;

	ck_assert_int_eq(access_log_open("off", &fd), 0);
	ck_assert_int_eq(fd, -1);
	fd = 77;
	ck_assert_int_eq(access_log_open(NULL, &fd), 0);
	ck_assert_int_eq(fd, -1);
	make_directory(directory);
	snprintf(path, sizeof(path), "%s/access.log", directory);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(access_log_open(path, &fd), 0);
		ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
		/* Appends, so that threads, and log rotation by copying, do no harm. */
		ck_assert(fcntl(fd, F_GETFL) & O_APPEND);
		ck_assert_int_eq(write(fd, "line\n", 5), 5);
		ck_assert_int_eq(fstat(fd, &stat), 0);
		ck_assert_int_eq(stat.st_mode & 0037, 0);
		close(fd);
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(read(fd, got, sizeof(got)), 10);
	ck_assert_str_eq(got, "line\nline\n");
	close(fd);
	unlink(path);
	fd = 77;
	ck_assert_int_eq(access_log_open(directory, &fd), -EISDIR);
	rmdir(directory);
	ck_assert_int_eq(access_log_open(path, &fd), -ENOENT);
	ck_assert_int_lt(fd, 0);
	/* Standard output, and a descriptor of its own. */
	ck_assert_int_eq(access_log_open("-", &fd), 0);
	ck_assert_int_gt(fd, 2);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
}
END_TEST

/* --- on a loop that runs --------------------------------------------------------- */

static struct runner runner;
static int pipes[2];
static unsigned next_number;

static void begin(void *unused)
{
	(void)unused;
	access_log_start(&record, runner.loop, pipes[1], formats[ACCESS_SHORT]);
}

static void put_some(void *count)
{
	for (unsigned i = 0; i < *(unsigned *)count; i++)
		put(next_number++);
}

static void start_running(int number)
{
	runner_start(&runner, kind_of(number));
	/* One read gives what one write wrote, or a page of it. */
	ck_assert_int_eq(pipe2(pipes, O_CLOEXEC | O_DIRECT), 0);
	next_number = 0;
	call(&runner, begin, NULL);
}

static void end_running(void)
{
	call(&runner, runner_end, &runner);
	pthread_join(runner.thread, NULL);
	access_log_flush(&record);
	close(pipes[1]);
	loop_close(runner.loop);
	close(runner.ends[1]);
}

static unsigned read_lines(unsigned count)
{
	unsigned reads = 0;

	while (count > 0) {
		ssize_t got;

		await(pipes[0], POLLIN);
		got = read(pipes[0], text, sizeof(text));
		ck_assert_int_gt(got, 0);
		for (ssize_t i = 0; i < got; i++)
			count -= text[i] == '\n';
		reads++;
	}
	return reads;
}

/* The first lines are written at once; later ones wait for each other, but not for more traffic. */
START_TEST(test_time)
{
	unsigned few = 2, one = 1;

	if (_i < first_kind())
		return;
	start_running(_i);
	call(&runner, put_some, &few);
	ck_assert_uint_eq(read_lines(2), 1);
	for (unsigned i = 0; i < 100; i++)
		call(&runner, put_some, &one);
	/* All of them in one or, when the machine is slow, a few writes. */
	ck_assert_uint_lt(read_lines(100), 20);
	end_running();
	close(pipes[0]);
}
END_TEST

/* Lines from before the change are in the file of then; a template needs no more than the others. */
START_TEST(test_use)
{
	struct log_format *template;
	int first = memory(), second = memory();
	const char *wrong;

	ck_assert_ptr_null(log_format_read("template:{status} {path}", &template, &wrong));
	open_still(first);
	put(1);
	access_log_use(&record, second, template);
	put(2);
	put(3);
	access_log_use(&record, -1, NULL);
	put(4);
	ck_assert_uint_eq(record.used, 0);
	access_log_use(&record, first, formats[ACCESS_JSON]);
	put(5);
	close_still();
	(void)written(second);
	ck_assert_str_eq(text, "200 /2\n200 /3\n");
	ck_assert_uint_eq(lines_of(first), 2);
	ck_assert_int_eq(strncmp(text, "192.0.2.1 [" DATE "] \"GET /1", 20), 0);
	ck_assert_ptr_nonnull(strstr(text, "\n{\"time\":"));
	log_format_free(template);
	close(first);
	close(second);
}
END_TEST

static void make_formats(void)
{
	for (unsigned i = 0; i <= ACCESS_JSON; i++)
		formats[i] = log_format_fixed((enum access_format)i);
}

static void free_formats(void)
{
	for (unsigned i = 0; i <= ACCESS_JSON; i++)
		log_format_free(formats[i]);
}

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, make_formats, free_formats);
	tcase_add_test(tcase, test_gathered);
	tcase_add_test(tcase, test_full_buffer);
	tcase_add_test(tcase, test_long_lines);
	tcase_add_test(tcase, test_off);
	tcase_add_test(tcase, test_full_disk);
	tcase_add_test(tcase, test_stopped_reader);
	tcase_add_test(tcase, test_torn_line);
	tcase_add_test(tcase, test_open);
	tcase_add_loop_test(tcase, test_time, 0, KINDS);
	tcase_add_test(tcase, test_use);
}

RUN_SUITE("access-log", fill)
