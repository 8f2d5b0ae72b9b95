/* SPDX-License-Identifier: MIT */
/*
 * test-recorded.c - peers of other versions: their messages are stored here as bytes,
 * and replayed to this library in both roles.  Recorded messages are never changed: a
 * new version of the protocol adds its own bytes.
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nabc-worker.h>
#include <nabc.h>

#include "nabc-fixture.h"
#include "process-fixture.h"
#include "suite.h"

#define BYTES(text) text, sizeof(text) - 1

struct bytes {
	const char *at;
	size_t length;
};

/* Hello of a member without a segment, and of a tool of an operator. */
static const struct bytes hello_7 = {BYTES("NABC\x07\0\0\0\0\0\0\0\0\0\0\0")};
static const struct bytes hello_8 = {BYTES("NABC\x08\0\0\0\0\0\0\0\x08\0\0\0")};
static const struct bytes operator_8 = {BYTES("NABC\x08\0\0\0\x02\0\0\0\x08\0\0\0")};
static const struct bytes hello_9 = {BYTES("NABC\x09\0\0\0\0\0\0\0\x08\0\0\0")};
/* Of future versions: one that still supports 8, one that supports neither 8 nor 9. */
static const struct bytes hello_10 = {BYTES("NABC\x0a\0\0\0\0\0\0\0\x08\0\0\0")};
static const struct bytes hello_only_10 = {BYTES("NABC\x0a\0\0\0\0\0\0\0\x0a\0\0\0")};

/* An owner's welcome to a member without a segment; units of at most 1 MiB. */
#define WELCOME(version, error, oldest)                                                            \
	"NABC" version "\0\0\0" error "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"             \
	"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"                                                         \
	"\0\0\x10\0\0\0\0\0\0\0\0\0" oldest "\0\0\0"

static const struct bytes welcome_7 = {BYTES(WELCOME("\x07", "\0", "\0"))};
static const struct bytes refusal_7 = {BYTES(WELCOME("\x07", "\x47", "\0"))};
static const struct bytes welcome_8 = {BYTES(WELCOME("\x08", "\0", "\x08"))};
static const struct bytes welcome_9 = {BYTES(WELCOME("\x09", "\0", "\x08"))};
static const struct bytes welcome_only_9 = {BYTES(WELCOME("\x09", "\0", "\x09"))};
static const struct bytes welcome_10 = {BYTES(WELCOME("\x0a", "\0", "\x08"))};
static const struct bytes welcome_only_10 = {BYTES(WELCOME("\x0a", "\0", "\x0a"))};

/* Calls of version 8: an operator lists 4 units of 64 bytes; requests 40 bytes of counters. */
static const struct bytes list_8 = {BYTES("NABC\x07\0\0\0"
					  "\x01\0\0\0\0\0\0\0"
					  "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
					  "\x40\0\0\0\0\0\0\0"
					  "\0\0\0\0\0\0\0\0"
					  "\x04\0\0\0\0\0\0\0")};
static const struct bytes counters_8 = {BYTES("NABC\x09\0\0\0"
					      "\x02\0\0\0\0\0\0\0"
					      "\0\0\0\0\0\0\0\0"
					      "\x28\0\0\0\0\0\0\0"
					      "\0\0\0\0\0\0\0\0"
					      "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")};

static char directory[64], path[100], said[512];

static void hear(void *context, int priority, const char *message)
{
	(void)context;
	(void)priority;
	if (strstr(message, "protocol"))
		snprintf(said, sizeof(said), "%s", message);
}

static uint32_t number(const char *bytes, size_t at)
{
	uint32_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return value;
}

static struct sockaddr_un address(void)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};

	strcpy(to.sun_path, path);
	return to;
}

/* --- members of other versions, and this library as owner ------------------------------ */

static void open_served(void)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = MIB,
				      .flags = NC_CACHE_NO_THREAD | NC_CACHE_NO_URING, .log = hear);

	make_directory(directory);
	snprintf(path, sizeof(path), "%s/cache", directory);
	said[0] = '\0';
	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	ck_assert_int_eq(NC_cache_serve(cache, path, NULL), 0);
}

static void close_served(void)
{
	close_cache();
	rmdir(directory);
}

/* Sends the bytes, and receives the reply of the owner. */
static size_t play(int fd, const struct bytes *bytes, char reply[4096])
{
	ssize_t got;

	ck_assert_int_eq(send(fd, bytes->at, bytes->length, 0), (ssize_t)bytes->length);
	dispatch_until(fd);
	got = recv(fd, reply, 4096, MSG_DONTWAIT);
	ck_assert_int_ge(got, 0);
	return (size_t)got;
}

static int connect_to_owner(void)
{
	struct sockaddr_un to = address();
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

START_TEST(test_members)
{
	static const struct {
		const struct bytes *hello;
		int error;
		const char *versions;
	} members[] = {
		{&hello_8, 0, NULL},
		{&hello_9, 0, NULL},
		{&hello_10, 0, NULL},
		{&hello_7, EPROTONOSUPPORT, "versions 7 to 7"},
		{&hello_only_10, EPROTONOSUPPORT, "versions 10 to 10"},
	};
	char reply[4096];
	int fd;

	open_served();
	fd = connect_to_owner();
	ck_assert_uint_eq(play(fd, members[_i].hello, reply), 64);
	ck_assert_mem_eq(reply, "NABC\x09\0\0\0", 8);
	ck_assert_uint_eq(number(reply, 8), (uint32_t)members[_i].error);
	ck_assert_uint_eq(number(reply, 60), 8);
	if (members[_i].error) {
		ck_assert_ptr_nonnull(strstr(said, members[_i].versions));
		ck_assert_ptr_nonnull(strstr(said, "this process 8 to 9"));
	} else {
		ck_assert_str_eq(said, "");
	}
	close(fd);
	close_served();
}
END_TEST

/* Replies have the length that the caller requested. */
START_TEST(test_calls)
{
	char reply[4096];
	size_t id;
	int fd;

	open_served();
	id = insert(1, 1000);
	fd = connect_to_owner();
	ck_assert_uint_eq(play(fd, &operator_8, reply), 64);
	ck_assert_uint_eq(number(reply, 8), 0);
	ck_assert_uint_eq(play(fd, &list_8, reply), 56 + 64);
	ck_assert_mem_eq(reply, "NABC\0\0\0\0\x01\0\0\0\0\0\0\0", 16);
	ck_assert_mem_eq(reply + 56, &id, 8);
	ck_assert_uint_eq(number(reply, 56 + 8), 1000);
	ck_assert_uint_eq(play(fd, &counters_8, reply), 56 + 40);
	ck_assert_uint_eq(number(reply, 56), MIB);
	close(fd);
	close_served();
}
END_TEST

/* --- owners of other versions, and this library as member -------------------------------- */

/* In a child: welcomes one member, and stays until that member closes its socket. */
static pid_t start_owner(const struct bytes *welcome)
{
	struct sockaddr_un at;
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	pid_t pid;

	make_directory(directory);
	snprintf(path, sizeof(path), "%s/cache", directory);
	at = address();
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	pid = fork_alone();
	if (pid == 0) {
		char hello[100];
		int fd = accept(listener, NULL, NULL);

		if (recv(fd, hello, sizeof(hello), 0) != 16 || memcmp(hello, hello_9.at, 8))
			_exit(1);
		(void)!send(fd, welcome->at, welcome->length, MSG_NOSIGNAL);
		(void)!recv(fd, hello, sizeof(hello), 0);
		_exit(0);
	}
	close(listener);
	return pid;
}

START_TEST(test_owners)
{
	static const struct {
		const struct bytes *welcome;
		int error;
		const char *versions;
	} owners[] = {
		{&welcome_8, 0, NULL},
		{&welcome_9, 0, NULL},
		{&welcome_only_9, 0, NULL},
		{&welcome_10, 0, NULL},
		{&welcome_7, EPROTONOSUPPORT, "versions 7 to 7"},
		/* It refuses unknown versions with EPROTO. */
		{&refusal_7, EPROTONOSUPPORT, "versions 7 to 7"},
		{&welcome_only_10, EPROTONOSUPPORT, "versions 10 to 10"},
	};
	struct NC_attach_options options =
		NC_ATTACH_OPTIONS_INIT(.flags = NC_ATTACH_LIGHT, .log = hear);
	pid_t pid = start_owner(owners[_i].welcome);
	NC_cache *attached;
	int status;

	said[0] = '\0';
	errno = 0;
	attached = NC_cache_attach(path, &options);
	ck_assert_int_eq(errno * !attached, owners[_i].error);
	if (owners[_i].error) {
		ck_assert_ptr_nonnull(strstr(said, owners[_i].versions));
		ck_assert_ptr_nonnull(strstr(said, "this process 8 to 9"));
	} else {
		ck_assert_ptr_nonnull(attached);
		ck_assert_int_eq(NC_cache_close(attached), 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	unlink(path);
	rmdir(directory);
}
END_TEST

/* The log of the server has the versions; therefore the worker sends its own. */
START_TEST(test_worker)
{
	const struct bytes *welcome = _i ? &welcome_only_10 : &welcome_7;
	char text[16], last[100];
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	snprintf(text, sizeof(text), "%d", pair[1]);
	setenv("NABC_WORKER_FD", text, 1);
	ck_assert_int_eq(send(pair[0], welcome->at, welcome->length, 0), (ssize_t)welcome->length);
	NULL_FAILS(NC_worker_open(NULL), EPROTONOSUPPORT);
	ck_assert_int_eq(recv(pair[0], last, sizeof(last), 0), (ssize_t)hello_9.length);
	ck_assert_mem_eq(last, hello_9.at, hello_9.length);
	close_pair(pair);
}
END_TEST

static int start_old(void *context, int socket, char *const *environment, pid_t *pid, int *pidfd)
{
	pid_t child = fork_alone();

	(void)context;
	(void)environment;
	if (child == 0) {
		char welcome[100];

		if (recv(socket, welcome, sizeof(welcome), 0) == 64)
			(void)!send(socket, hello_7.at, hello_7.length, MSG_NOSIGNAL);
		(void)!recv(socket, welcome, sizeof(welcome), 0);
		_exit(0);
	}
	*pid = child;
	*pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	return child > 0 && *pidfd >= 0 ? 0 : -1;
}

START_TEST(test_server)
{
	struct NC_backend_options options =
		NC_BACKEND_OPTIONS_INIT(.channels = 1, .start = start_old);
	NC_backend *backend;

	if (skip_without_pidfds("test_server"))
		return;
	open_served();
	backend = NC_backend_start(cache, &options);
	ck_assert_ptr_nonnull(backend);
	while (!said[0]) {
		struct pollfd wait = {.fd = NC_cache_fd(cache), .events = POLLIN};

		ck_assert_int_eq(poll(&wait, 1, 60000), 1);
		ck_assert_int_ge(NC_cache_dispatch(cache), 0);
	}
	ck_assert_ptr_nonnull(strstr(said, "worker "));
	ck_assert_ptr_nonnull(strstr(said, "versions 7 to 7"));
	ck_assert_int_eq(NC_backend_close(backend), 0);
	close_served();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_server);
	tcase_add_loop_test(tcase, test_members, 0, 5);
	tcase_add_test(tcase, test_calls);
	tcase_add_loop_test(tcase, test_owners, 0, 7);
	tcase_add_loop_test(tcase, test_worker, 0, 2);
}

RUN_SUITE("recorded", fill)
