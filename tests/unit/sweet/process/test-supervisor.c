/* SPDX-License-Identifier: MIT */
/*
 * test-supervisor.c - unit tests of supervisor.c: variables of the environment, and
 * messages to the supervisor.  Single-threaded; plays the supervisor with a datagram
 * socket.  Check runs each test in a process of its own, so the environment is its own
 * as well.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "process/supervisor.h"

#include "process-fixture.h"
#include "suite.h"

static const char *const all[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
				  "LISTEN_FDS",	   "LISTEN_PID",    "LISTEN_FDNAMES"};

static void set(const char *name, const char *value)
{
	ck_assert_int_eq(setenv(name, value, 1), 0);
}

static void set_number(const char *name, long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", value);
	set(name, text);
}

/* Opens, and asserts that a child inherits no variable. */
static struct supervisor opened(void)
{
	struct supervisor supervisor;

	memset(&supervisor, 0x5a, sizeof(supervisor));
	supervisor_open(&supervisor);
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		ck_assert_ptr_null(getenv(all[i]));
	return supervisor;
}

START_TEST(test_nobody)
{
	unsigned descriptors = open_descriptors();
	struct supervisor supervisor = opened();
	char name[16];

	ck_assert_int_eq(supervisor.socket, -1);
	ck_assert_uint_eq(supervisor.watchdog_us, 0);
	ck_assert_uint_eq(supervisor.fd_count, 0);
	ck_assert_str_eq(supervisor_name(&supervisor, 0, name, sizeof(name)), "unknown");
	supervisor_ready(&supervisor, "x");
	supervisor_reloading(&supervisor);
	supervisor_stopping(&supervisor, "x");
	supervisor_alive(&supervisor);
	supervisor_close(&supervisor);
	supervisor_close(&supervisor);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

/* The supervisor's socket, with or without a file. */
static int listen_at(char text[108], bool file)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), length;
	char folder[64];

	make_directory(folder);
	length = snprintf(un.sun_path, sizeof(un.sun_path), "%s%s/notify", file ? "" : "@", folder);
	strcpy(text, un.sun_path);
	if (!file) {
		un.sun_path[0] = '\0';
		rmdir(folder);
	}
	ck_assert_int_eq(
		bind(fd, (struct sockaddr *)&un,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)length + file)),
		0);
	return fd;
}

static const char *heard(int fd)
{
	static char text[1024];
	ssize_t length = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	ck_assert_msg(length > 0, "nothing was said");
	text[length] = '\0';
	return text;
}

static void check_news(bool file)
{
	char text[108], most[2000], expected[64], *end;
	struct supervisor supervisor;
	struct timespec now;
	int fd = listen_at(text, file);
	const char *said;
	uint64_t at;

	set("NOTIFY_SOCKET", text);
	supervisor = opened();
	ck_assert_int_ge(supervisor.socket, 0);
	ck_assert_int_eq(fcntl(supervisor.socket, F_GETFD), FD_CLOEXEC);
	ck_assert_uint_eq(supervisor.watchdog_us, 0);
	supervisor_ready(&supervisor, "at work");
	snprintf(expected, sizeof(expected), "READY=1\nSTATUS=at work\nMAINPID=%d\n",
		 (int)getpid());
	ck_assert_str_eq(heard(fd), expected);
	clock_gettime(CLOCK_MONOTONIC, &now);
	supervisor_reloading(&supervisor);
	said = heard(fd);
	ck_assert_int_eq(strncmp(said, "RELOADING=1\nMONOTONIC_USEC=", 27), 0);
	at = strtoull(said + 27, &end, 10);
	ck_assert_int_eq(*end, '\n');
	ck_assert_uint_ge(at, (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
	ck_assert_uint_lt(at, ((uint64_t)now.tv_sec + 3600) * 1000000);
	supervisor_stopping(&supervisor, "bye");
	ck_assert_str_eq(heard(fd), "STOPPING=1\nSTATUS=bye\n");
	supervisor_alive(&supervisor);
	ck_assert_str_eq(heard(fd), "WATCHDOG=1\n");
	/* Cut off, and still a message. */
	memset(most, 'x', sizeof(most));
	most[sizeof(most) - 1] = '\0';
	supervisor_stopping(&supervisor, most);
	ck_assert_uint_eq(strlen(heard(fd)), 511);
	/* A supervisor that has exited, or is slow, does not block the server. */
	for (unsigned i = 0; i < 1000; i++)
		supervisor_alive(&supervisor);
	close(fd);
	if (file) {
		unlink(text);
		*strrchr(text, '/') = '\0';
		ck_assert_int_eq(rmdir(text), 0);
	}
	supervisor_alive(&supervisor);
	supervisor_close(&supervisor);
}

START_TEST(test_news)
{
	check_news(true);
	check_news(false);
}
END_TEST

START_TEST(test_bad_sockets)
{
	static const char *const bad[] = {"", "/", "@", "relative", "vsock:2:3", NULL};
	char longest[200];

	memset(longest, 'a', sizeof(longest) - 1);
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct supervisor supervisor;

		set("NOTIFY_SOCKET", bad[i] ? bad[i] : longest);
		set("WATCHDOG_USEC", "1000000");
		supervisor = opened();
		ck_assert_int_eq(supervisor.socket, -1);
		ck_assert_uint_eq(supervisor.watchdog_us, 0);
		supervisor_alive(&supervisor);
		supervisor_close(&supervisor);
	}
}
END_TEST

START_TEST(test_watchdog)
{
	static const struct {
		const char *usec;
		long pid; /* 0: unset; 1: this process */
		uint64_t is;
	} cases[] = {{"30000000", 0, 30000000},
		     {"30000000", 1, 30000000},
		     {"30000000", 2, 0},
		     {"", 0, 0},
		     {"-1", 0, 0},
		     {"3x", 0, 0},
		     {" 3", 0, 0},
		     {"99999999999999999999999", 0, 0}};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct supervisor supervisor;

		set("NOTIFY_SOCKET", "@nobody-there");
		set("WATCHDOG_USEC", cases[i].usec);
		if (cases[i].pid)
			set_number("WATCHDOG_PID", getpid() + cases[i].pid - 1);
		supervisor = opened();
		ck_assert_uint_eq(supervisor.watchdog_us, cases[i].is);
		supervisor_close(&supervisor);
	}
}
END_TEST

/* --- descriptors: in a child, since Check itself may have number 3 ------------------ */

/* Descriptors 3 to 2 + count are sockets, those after them are closed. */
static void place_descriptors(unsigned count)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), high = fcntl(fd, F_DUPFD, 100);

	for (unsigned i = 0; i < count; i++)
		GOOD(dup2(high, 3 + (int)i) >= 0);
	for (int i = 3 + (int)count; i < 100; i++)
		close(i);
	close(high);
}

static struct supervisor taken(const char *count, long pid, const char *names)
{
	struct supervisor supervisor;

	set("LISTEN_FDS", count);
	set_number("LISTEN_PID", pid);
	if (names)
		set("LISTEN_FDNAMES", names);
	supervisor_open(&supervisor);
	GOOD(!getenv("LISTEN_FDS") && !getenv("LISTEN_PID") && !getenv("LISTEN_FDNAMES"));
	return supervisor;
}

static bool is_named(const struct supervisor *supervisor, unsigned n, size_t size,
		     const char *expected)
{
	char name[32];

	return strcmp(supervisor_name(supervisor, n, name, size), expected) == 0;
}

static void four_descriptors(void)
{
	struct supervisor supervisor;

	place_descriptors(4);
	supervisor = taken("4", getpid(), "http:a-very-long-name-of-a-socket::last");
	GOOD(supervisor.fd_count == 4 && supervisor.first_fd == 3);
	for (int fd = 3; fd < 7; fd++)
		GOOD(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	GOOD(is_named(&supervisor, 0, 16, "http"));
	GOOD(is_named(&supervisor, 1, 16, "a-very-long-nam"));
	GOOD(is_named(&supervisor, 2, 16, "unknown"));
	GOOD(is_named(&supervisor, 3, 4, "las"));
	GOOD(is_named(&supervisor, 4, 16, "unknown"));
	GOOD(is_named(&supervisor, 400, 16, "unknown"));
	supervisor_close(&supervisor);
	supervisor = taken("4", getpid(), NULL);
	GOOD(supervisor.fd_count == 4 && is_named(&supervisor, 0, 16, "unknown"));
	supervisor_close(&supervisor);
}

/* A count for another process, of closed descriptors, or an invalid one. */
static void no_descriptors(void)
{
	static const char *const counts[] = {
		"0", "-1", "x", "1x", "", "2", "257", "18446744073709551617", "+1", " 1"};
	struct supervisor supervisor;

	place_descriptors(1);
	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		supervisor = taken(counts[i], getpid(), "a:b");
		GOOD(supervisor.fd_count == 0);
		GOOD(!supervisor.names);
	}
	GOOD(taken("1", getpid() + 1, NULL).fd_count == 0);
	setenv("LISTEN_FDS", "1", 1);
	supervisor_open(&supervisor);
	GOOD(supervisor.fd_count == 0);
	GOOD(taken("1", getpid(), NULL).fd_count == 1);
}

START_TEST(test_descriptors)
{
	in_child(four_descriptors);
	in_child(no_descriptors);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_nobody);
	tcase_add_test(tcase, test_news);
	tcase_add_test(tcase, test_bad_sockets);
	tcase_add_test(tcase, test_watchdog);
	tcase_add_test(tcase, test_descriptors);
}

RUN_SUITE("supervisor", fill)
