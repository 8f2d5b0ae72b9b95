/* SPDX-License-Identifier: MIT */
/*
 * test-log.c - unit tests of log.c: the form of an access line, bytes of a
 * hostile client in it, the buffer, where it goes; messages on standard error.
 * A test's log is a file without a name; single-threaded.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include <log.h>

#include "suite.h"

#define DATE "Sun, 06 Nov 1994 08:49:37 GMT"

static struct access_log record;
static char text[1 << 20];

static void set_up(void)
{
	record.fd = memfd_create("log", MFD_CLOEXEC);
	record.used = 0;
	ck_assert_int_ge(record.fd, 0);
}

static void tear_down(void)
{
	close(record.fd);
}

/* What has been written so far. */
static size_t written(void)
{
	ssize_t got = pread(record.fd, text, sizeof(text) - 1, 0);

	ck_assert_int_ge(got, 0);
	text[got] = '\0';
	return (size_t)got;
}

static void line(const char *request, size_t length)
{
	log_access(&record, "192.0.2.1", DATE, (struct slice){request, length}, 200, 1234, 56);
}

START_TEST(test_form)
{
	line("GET /a?b HTTP/1.1", 17);
	ck_assert_uint_eq(written(), 0);
	log_flush(&record);
	(void)written();
	ck_assert_str_eq(text, "192.0.2.1 [" DATE "] \"GET /a?b HTTP/1.1\" 200 1234 56us\n");
	log_flush(&record);
	ck_assert_uint_eq(written(), strlen(text));
}
END_TEST

START_TEST(test_empty_and_extreme)
{
	char client[200];
	size_t length;

	line("", 0);
	line(NULL, 0);
	memset(client, 'c', sizeof(client) - 1);
	client[sizeof(client) - 1] = '\0';
	log_access(&record, client, DATE "and so on", (struct slice){"x", 1}, -2147483647 - 1,
		   UINT64_MAX, UINT64_MAX);
	log_flush(&record);
	length = written();
	ck_assert_uint_eq(length, strlen(text));
	client[64] = '\0';
	ck_assert_ptr_nonnull(strstr(text, "] \"\" 200 1234 56us\n192.0.2.1 ["));
	ck_assert_ptr_nonnull(strstr(text, client));
	ck_assert_ptr_nonnull(strstr(text, " [" DATE "] \"x\" -2147483648 18446744073709551615 "
					   "18446744073709551615us\n"));
}
END_TEST

/* Every byte comes back from what was written, and none does harm there. */
START_TEST(test_every_byte)
{
	for (unsigned byte = 0; byte < 256; byte++) {
		char request[3] = {'<', (char)byte, '>'}, expected[16];
		bool plain = byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
		char *at;

		tear_down();
		set_up();
		line(request, 3);
		log_flush(&record);
		ck_assert_uint_eq(written(), strlen(text));
		if (plain)
			snprintf(expected, sizeof(expected), "\"<%c>\"", (char)byte);
		else
			snprintf(expected, sizeof(expected), "\"<\\x%02x>\"", byte);
		at = strchr(text, '"');
		ck_assert_ptr_nonnull(at);
		ck_assert_msg(strncmp(at, expected, strlen(expected)) == 0, "%#x: %s", byte, at);
		for (at = text; *at && at[1]; at++)
			ck_assert(*at >= 0x20 && *at < 0x7f);
		ck_assert_int_eq(*at, '\n');
	}
}
END_TEST

/* Lines are gathered, written whole, and none is lost when the buffer is full. */
START_TEST(test_buffer)
{
	unsigned lines = 0, writes = 0;
	size_t before = 0;
	char *at = text;

	for (unsigned i = 0; i < 2000; i++) {
		char request[64];
		size_t now;

		line(request, (size_t)snprintf(request, sizeof(request), "GET /%u HTTP/1.1", i));
		expect(record.used <= LOG_BUFFER);
		now = written();
		writes += now != before;
		before = now;
		/* What is written ends with a line's end. */
		expect(now == 0 || text[now - 1] == '\n');
	}
	ck_assert_uint_gt(writes, 5);
	ck_assert_uint_lt(writes, 100);
	log_flush(&record);
	(void)written();
	for (; *at; lines++) {
		char expected[64];

		snprintf(expected, sizeof(expected), "\"GET /%u HTTP/1.1\" ", lines);
		at = strchr(at, '"');
		ck_assert_ptr_nonnull(at);
		ck_assert_int_eq(strncmp(at, expected, strlen(expected)), 0);
		at = strchr(at, '\n') + 1;
	}
	ck_assert_uint_eq(lines, 2000);
}
END_TEST

/* Request lines of any length, all of them hostile, into a buffer filled to any degree. */
START_TEST(test_long_lines)
{
	size_t most = LOG_BUFFER * 2;
	char *request = must_alloc(most);
	unsigned lines = 0;

	memset(request, '\n', most);
	for (size_t length = 0; length < most; length += 97) {
		line("short", 5);
		/* A copy of the exact size, so that a read too far is seen. */
		{
			char *copy = must_alloc(length);

			memcpy(copy, request, length);
			line(copy, length);
			free(copy);
		}
		expect(record.used <= LOG_BUFFER);
		lines += 2;
	}
	log_flush(&record);
	free(request);
	lseek(record.fd, 0, SEEK_SET);
	for (ssize_t got; (got = read(record.fd, text, sizeof(text))) > 0;)
		for (ssize_t i = 0; i < got; i++)
			lines -= text[i] == '\n';
	ck_assert_uint_eq(lines, 0);
}
END_TEST

/* As much of a line that is too long as there is room for, with its end as ever. */
START_TEST(test_longest_line)
{
	char *request = must_alloc(100000);

	memset(request, 'x', 100000);
	line(request, 100000);
	log_flush(&record);
	ck_assert_uint_gt(written(), 4000);
	ck_assert_ptr_nonnull(strstr(text, "xxx\" 200 1234 56us\n"));
	free(request);
}
END_TEST

START_TEST(test_off)
{
	struct access_log off = {.fd = -1};
	int fd = 77;

	log_access(&off, "c", DATE, (struct slice){"GET", 3}, 200, 0, 0);
	ck_assert_uint_eq(off.used, 0);
	log_flush(&off);
	ck_assert_int_eq(log_open_access("off", &fd), 0);
	ck_assert_int_eq(fd, -1);
	fd = 77;
	ck_assert_int_eq(log_open_access(NULL, &fd), 0);
	ck_assert_int_eq(fd, -1);
}
END_TEST

/* A log that cannot be written costs lines only. */
START_TEST(test_full_disk)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC), empty = record.fd;

	ck_assert_int_ge(full, 0);
	record.fd = full;
	for (unsigned i = 0; i < 1000; i++)
		line("GET / HTTP/1.1", 14);
	log_flush(&record);
	ck_assert_uint_eq(record.used, 0);
	record.fd = empty;
	line("GET / HTTP/1.1", 14);
	log_flush(&record);
	ck_assert_uint_gt(written(), 0);
	close(full);
}
END_TEST

START_TEST(test_open)
{
	char directory[64], path[100], got[16] = "";
	struct stat stat;
	int fd;

	make_directory(directory);
	snprintf(path, sizeof(path), "%s/access.log", directory);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(log_open_access(path, &fd), 0);
		ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
		/* Appends, so that threads, and a rotation by copying, do no harm. */
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
	ck_assert_int_eq(log_open_access(directory, &fd), -EISDIR);
	rmdir(directory);
	ck_assert_int_eq(log_open_access(path, &fd), -ENOENT);
	ck_assert_int_lt(fd, 0);
	/* Standard output, and a descriptor of its own. */
	ck_assert_int_eq(log_open_access("-", &fd), 0);
	ck_assert_int_gt(fd, 2);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
}
END_TEST

START_TEST(test_messages)
{
	int before = dup(STDERR_FILENO);
	char *longest = must_alloc(5000), *at;

	memset(longest, 'l', 4999);
	longest[4999] = '\0';
	ck_assert_int_eq(dup2(record.fd, STDERR_FILENO), STDERR_FILENO);
	log_message("plain");
	log_message("%s and %d", "text", 7);
	log_message("%s", "");
	log_message("%s", longest);
	longest[1010] = '\0';
	for (unsigned i = 0; i < 20; i++)
		log_message("%s", longest + i);
	ck_assert_int_eq(dup2(before, STDERR_FILENO), STDERR_FILENO);
	close(before);
	ck_assert_uint_gt(written(), 0);
	ck_assert_int_eq(strncmp(text, "sweet: plain\nsweet: text and 7\nsweet: \nsweet: ll", 48),
			 0);
	/* Cut, but a line. */
	at = strstr(text, "sweet: ll");
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
	free(longest);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_form);
	tcase_add_test(tcase, test_empty_and_extreme);
	tcase_add_test(tcase, test_every_byte);
	tcase_add_test(tcase, test_buffer);
	tcase_add_test(tcase, test_long_lines);
	tcase_add_test(tcase, test_longest_line);
	tcase_add_test(tcase, test_off);
	tcase_add_test(tcase, test_full_disk);
	tcase_add_test(tcase, test_open);
	tcase_add_test(tcase, test_messages);
}

RUN_SUITE("log", fill)
