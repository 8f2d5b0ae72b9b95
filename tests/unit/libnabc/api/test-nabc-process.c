/* SPDX-License-Identifier: MIT */
/*
 * test-nabc-process.c - unit tests of nabc.c, worker.c and registry.c: the rules of
 * the default cache from process to process, and the calls of a worker without a
 * server.  Children that attach are forked here.
 */
#include <errno.h>
#include <nabc-async.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/id.h"

#include "nabc-fixture.h"
#include "suite.h"
#include "unit-holds.h"

/* Runs a function in a child; all of them return 0 on success. */
static pid_t child(int (*run)(void))
{
	pid_t pid = fork_alone();

	if (pid == 0)
		_exit(run());
	ck_assert_int_gt(pid, 0);
	return pid;
}

static void check_child(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child says why above");
}

/* For children, which must not use check's assertions. */
#define CHILD(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not true: %s (%s)\n", __FILE__, __LINE__,          \
				#condition, strerror(errno));                                      \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static size_t parents_id;
static NC_handle parents_handle;

static int without_cache(void)
{
	NC_cache *own;
	NC_handle handle;

	/* Two processes must not allocate the same memory. */
	setenv("NABC_CACHE", "/nonexistent/socket", 1);
	CHILD(hold_id(NULL, parents_id) == -1 && errno == ENOENT);
	CHILD(NC_alloc(&handle, 10, 0) == -1 && errno == ENOENT);
	CHILD(NC_cache_close(cache) == -1 && errno == EINVAL);
	own = NC_cache_open(NULL);
	CHILD(own);
	CHILD(NC_alloc(&handle, 10, 0) == 0);
	CHILD(NC_insert(&handle) == 0);
	/* Only the parent has the unit of this handle. */
	CHILD(NC_alloc(&parents_handle, 10, 0) == 0);
	CHILD(NC_free(&parents_handle) == 0);
	CHILD(NC_cache_close(own) == 0);
	return 0;
}

START_TEST(test_fork)
{
	unsetenv("NABC_CACHE");
	open_cache(MIB);
	parents_id = insert(1, 100);
	ck_assert_int_eq(NC_alloc(&parents_handle, 100, 0), 0);
	check_child(child(without_cache));
	ck_assert(alive(parents_id));
	FAILS(NC_alloc(&parents_handle, 100, 0), EBUSY);
	ck_assert_int_eq(NC_free(&parents_handle), 0);
	close_cache();
}
END_TEST

static int tell_fd;

static int attach_by_environment(void)
{
	struct NC_backend_options options = NC_BACKEND_OPTIONS_INIT(.channels = 1);
	struct NC_cache_stat stat;
	NC_handle handle;
	size_t id;
	int fd;

	CHILD(NC_alloc(&handle, 100, 0) == 0);
	CHILD(NC_printf(&handle, 0, "made by a child") == 15);
	CHILD(NC_insert(&handle) == 0);
	id = NC_cache_id(&handle);
	CHILD(NC_free(&handle) == 0);
	/* Sealed, since this process may exit at any time. */
	CHILD(nc_id_member(id) == 0);
	CHILD(NC_unit_alloc(NULL, &handle, 10, 0, NC_KIND_RECYCLED, 0) == -1 && errno == ENOTSUP);
	/* This process must not use the owner's units. */
	CHILD(hold_id(NULL, parents_id) == -1 && errno == EACCES);
	CHILD(release_id(NULL, parents_id) == -1 && errno == EINVAL);
	CHILD(NC_destroy(NULL, parents_id) == -1 && errno == EACCES);
	CHILD(NC_stat(NULL, parents_id, &(struct NC_stat){0}, sizeof((struct NC_stat){0})) == -1 &&
	      errno == EACCES);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	CHILD(NC_socksend(fd, parents_id, 0, 1) == -1 && errno == EACCES);
	close(fd);
	CHILD(NC_unit_alloc(NULL, &handle, 10, 0, NC_KIND_APPENDED, 0) == -1 && errno == ENOTSUP);
	CHILD(NC_cache_stat(NULL, &stat, sizeof(stat)) == 0);
	CHILD(stat.denied == 4);
	CHILD(stat.inserts == 1);
	CHILD(NC_cache_serve(NULL, "/nonexistent/socket", NULL) == -1 && errno == EPERM);
	CHILD(NC_backend_start(NULL, &options) == NULL && errno == EPERM);
	CHILD(write(tell_fd, &id, sizeof(id)) == sizeof(id));
	/* Stays until the owner has inspected it; the owner then closes the pipe. */
	CHILD(read(tell_fd, &id, 1) == 0);
	return 0;
}

static int attach_by_path(void)
{
	NC_cache *membership = NC_cache_attach(getenv("NABC_CACHE"), NULL);
	NC_handle handle;
	size_t id;

	CHILD(membership);
	CHILD(NC_cache_fd(membership) >= 0);
	CHILD(NC_cache_dispatch(membership) == 0);
	CHILD(NC_alloc(&handle, 100, 0) == 0);
	CHILD(NC_cache_close(membership) == -1 && errno == EBUSY);
	CHILD(NC_insert(&handle) == 0);
	id = NC_cache_id(&handle);
	CHILD(NC_cache_close(membership) == 0);
	/* The membership has ended; the environment can restore it. */
	CHILD(hold_id(NULL, id) == -1 && errno == EACCES);
	CHILD(NC_alloc(&handle, 100, 0) == 0);
	CHILD(NC_free(&handle) == 0);
	return 0;
}

static void *alloc_one(void *context)
{
	NC_handle handle;

	(void)context;
	return NC_alloc(&handle, 100, 0) == 0 && NC_free(&handle) == 0 ? NULL : "NC_alloc";
}

/* Many threads concurrently make the first call of the process. */
static int attach_in_threads(void)
{
	pthread_t threads[8];
	struct NC_cache_stat stat;
	void *complaint;

	for (unsigned i = 0; i < 8; i++)
		CHILD(pthread_create(&threads[i], NULL, alloc_one, NULL) == 0);
	for (unsigned i = 0; i < 8; i++) {
		pthread_join(threads[i], &complaint);
		CHILD(!complaint);
	}
	CHILD(NC_cache_stat(NULL, &stat, sizeof(stat)) == 0);
	return 0;
}

/* Runs the owner's loop until the child has exited and everything is reclaimed. */
static unsigned serve_child(pid_t pid)
{
	struct NC_cache_stat stat;
	unsigned most = 0;

	for (;;) {
		siginfo_t info = {0};

		ck_assert_int_ge(NC_cache_dispatch(cache), 0);
		ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
		if (stat.members > most)
			most = (unsigned)stat.members;
		ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
		if (info.si_pid && stat.members == 0)
			return most;
		/* The test handles either event; the exit of the child causes the first one. */
		(void)poll(&(struct pollfd){.fd = NC_cache_fd(cache), .events = POLLIN}, 1, 10);
	}
}

static void serve(char directory[64], char path[100])
{
	parents_id = insert(1, 100);
	make_directory(directory);
	snprintf(path, 100, "%s/cache", directory);
	ck_assert_int_eq(NC_cache_serve(cache, path, NULL), 0);
	setenv("NABC_CACHE", path, 1);
}

static void open_served(char directory[64], char path[100])
{
	open_cache(MIB);
	serve(directory, path);
}

START_TEST(test_attach_by_environment)
{
	char directory[64], path[100], got[15];
	int ends[2], pair[2];
	struct NC_stat stat;
	size_t id;
	pid_t pid;

	open_served(directory, path);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	tell_fd = ends[1];
	pid = fork_alone();
	if (pid == 0) {
		close(ends[0]);
		_exit(attach_by_environment());
	}
	close(ends[1]);
	dispatch_until(ends[0]);
	read_exactly(ends[0], &id, sizeof(id));
	ck_assert_int_eq(NC_stat(NULL, id, &stat, sizeof(stat)), 0);
	ck_assert_uint_eq(stat.member, nc_id_member(id));
	ck_assert_uint_eq(stat.size, 100);
	ck_assert_int_eq(stat.kind, NC_KIND_SEALED);
	tcp_pair(pair);
	ck_assert_int_eq(NC_socksend(pair[0], id, 0, 15), 15);
	read_exactly(pair[1], got, 15);
	ck_assert_mem_eq(got, "made by a child", 15);
	close_pair(pair);
	close(ends[0]);
	(void)serve_child(pid);
	check_child(pid);
	/* Its creator has exited; the unit can still be sent for a while. */
	tcp_pair(pair);
	ck_assert_int_eq(NC_socksend(pair[0], id, 0, 15), 15);
	read_exactly(pair[1], got, 15);
	ck_assert_mem_eq(got, "made by a child", 15);
	close_pair(pair);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	FAILS(NC_stat(NULL, id, &stat, sizeof(stat)), ENOENT);
	FAILS(NC_socksend(-1, id, 0, 15), ENOENT);
	unsetenv("NABC_CACHE");
	close_cache();
	rmdir(directory);
}
END_TEST

/* A unit that no process requests is reclaimed when its grace time is over. */
START_TEST(test_orphan)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = MIB, .orphan_lifetime = 1);
	char directory[64], path[100];
	struct NC_cache_stat stat;
	int ends[2];
	size_t id;
	pid_t pid;

	options.flags = NC_CACHE_NO_THREAD;
	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	serve(directory, path);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	tell_fd = ends[1];
	pid = fork_alone();
	if (pid == 0) {
		close(ends[0]);
		_exit(attach_by_environment());
	}
	close(ends[1]);
	dispatch_until(ends[0]);
	read_exactly(ends[0], &id, sizeof(id));
	ck_assert(alive(id));
	close(ends[0]);
	do {
		await(NC_cache_fd(cache), POLLIN);
		ck_assert_int_ge(NC_cache_dispatch(cache), 0);
		ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	} while (stat.expired == 0);
	ck_assert(!alive(id));
	ck_assert(alive(parents_id));
	check_child(pid);
	unsetenv("NABC_CACHE");
	close_cache();
	rmdir(directory);
}
END_TEST

START_TEST(test_attach)
{
	char directory[64], path[100];
	pid_t pid;

	open_served(directory, path);
	pid = child(attach_by_path);
	(void)serve_child(pid);
	check_child(pid);
	pid = child(attach_in_threads);
	ck_assert_uint_eq(serve_child(pid), 1);
	check_child(pid);
	unsetenv("NABC_CACHE");
	close_cache();
	rmdir(directory);
}
END_TEST

START_TEST(test_attach_refused)
{
	char directory[64], path[100];
	struct sockaddr_un where = {.sun_family = AF_UNIX};
	int fd;

	NULL_FAILS(NC_cache_attach(NULL, NULL), EINVAL);
	NULL_FAILS(NC_cache_attach("/nonexistent/socket", NULL), ENOENT);
	NULL_FAILS(NC_cache_attach("/dev/null", NULL), ECONNREFUSED);
	make_directory(directory);
	snprintf(path, sizeof(path), "%s/socket", directory);
	/* A different server: it accepts and hangs up. */
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	strcpy(where.sun_path, path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&where, sizeof(where)), 0);
	NULL_FAILS(NC_cache_attach(path, NULL), ECONNREFUSED);
	ck_assert_int_eq(listen(fd, 1), 0);
	for (unsigned i = 0; i < 3; i++) {
		if (fork_alone() == 0) {
			int guest = accept(fd, NULL, NULL);
			char hello[100];

			if (i == 0)
				(void)!write(guest, "220 mail.example ESMTP\r\n", 24);
			/* Unread bytes cause a reset instead of an end. */
			if (i == 1)
				(void)!read(guest, hello, sizeof(hello));
			_exit(0);
		}
		NULL_FAILS(NC_cache_attach(path, NULL), i ? ECONNRESET : EPROTO);
		ck_assert_int_gt(wait(NULL), 0);
	}
	close(fd);
	unlink(path);
	rmdir(directory);
	check_none();
}
END_TEST

/* What NULL ends is an error, or nothing; never the default cache. */
START_TEST(test_end_nothing)
{
	NC_cache *cache = NC_cache_open(NULL);
	struct NC_cache_stat stat;

	ck_assert_ptr_nonnull(cache);
	FAILS(NC_cache_close(NULL), EINVAL);
	FAILS(NC_free(NULL), EINVAL);
	FAILS(NC_release(NULL), EINVAL);
	FAILS(NC_backend_stop(NULL), EINVAL);
	FAILS(NC_backend_close(NULL), EINVAL);
	FAILS(NC_sender_close(NULL), EINVAL);
	FAILS(NC_send_op_close(NULL), EINVAL);
	FAILS(NC_send_op_abandon(NULL), EINVAL);
	FAILS(NC_ring_buffers_close(NULL), EINVAL);
	NC_worker_close(NULL);
	NC_backend_data_free(NULL);
	ck_assert_int_eq(NC_cache_stat(NULL, &stat, sizeof(stat)), 0);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}
END_TEST

/* --- the worker's calls without a server ------------------------------------------ */

static void worker_options_refused(void)
{
	struct NC_worker_options options = NC_WORKER_OPTIONS_INIT(.socket = 5);
	struct {
		struct NC_worker_options known;
		size_t later;
	} newer = {.known = NC_WORKER_OPTIONS_INIT(.flags = NC_WORKER_SOCKET), .later = 1};

	/* Without the flag, a socket is none: what is left is the environment. */
	NULL_FAILS(NC_worker_open(&options), ENXIO);
	options.flags = NC_WORKER_SOCKET << 1;
	NULL_FAILS(NC_worker_open(&options), EINVAL);
	options.flags = NC_WORKER_SOCKET;
	options.socket = -1;
	NULL_FAILS(NC_worker_open(&options), EINVAL);
	options.socket = memfd_create("test", MFD_CLOEXEC);
	NULL_FAILS(NC_worker_open(&options), EPROTO);
	/* It is still the caller's. */
	ck_assert_int_eq(close(options.socket), 0);
	NULL_FAILS(NC_worker_open(&options), EPROTO);
	options.size--;
	NULL_FAILS(NC_worker_open(&options), EINVAL);
	newer.known.size = sizeof(newer);
	NULL_FAILS(NC_worker_open(&newer.known), E2BIG);
}

START_TEST(test_worker_open_refused)
{
	static const char *const bad[] = {"",	       "x", "3x", "-1", "99999999999999999999",
					  "4294967296"};
	struct NC_request request = {0};
	char number[16];
	int pair[2], file;

	unsetenv("NABC_WORKER_FD");
	NULL_FAILS(NC_worker_open(NULL), ENXIO);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		setenv("NABC_WORKER_FD", bad[i], 1);
		NULL_FAILS(NC_worker_open(NULL), ENXIO);
	}
	/* No socket of a server: closed, a file, a socket that ends or sends invalid data. */
	file = memfd_create("test", MFD_CLOEXEC);
	snprintf(number, sizeof(number), "%d", file);
	setenv("NABC_WORKER_FD", number, 1);
	NULL_FAILS(NC_worker_open(NULL), EPROTO);
	close(file);
	NULL_FAILS(NC_worker_open(NULL), EPROTO);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
		if (i)
			ck_assert_int_eq(write(pair[0], "hello", 5), 5);
		close(pair[0]);
		snprintf(number, sizeof(number), "%d", pair[1]);
		setenv("NABC_WORKER_FD", number, 1);
		NULL_FAILS(NC_worker_open(NULL), i ? EPROTO : ECONNRESET);
		close(pair[1]);
	}
	unsetenv("NABC_WORKER_FD");
	worker_options_refused();
	FAILS(NC_worker_accept(NULL, &request, sizeof(request), 0), EINVAL);
	FAILS(NC_worker_fd(NULL), EINVAL);
	FAILS(NC_worker_respond(NULL, &request, NULL), EINVAL);
	NC_worker_close(NULL);
	check_none();
}
END_TEST

START_TEST(test_request_variable)
{
	static const char variables[] = "A=1\0AB=2\0EMPTY=\0=odd\0NOTHING\0A=second\0LAST=z";
	char *copy = must_alloc(sizeof(variables));
	struct NC_request request = {.variables = copy, .variables_length = sizeof(variables)};

	memcpy(copy, variables, sizeof(variables));
	errno = 77;
	ck_assert_str_eq(NC_request_variable(&request, "A"), "1");
	ck_assert_str_eq(NC_request_variable(&request, "AB"), "2");
	ck_assert_str_eq(NC_request_variable(&request, "EMPTY"), "");
	ck_assert_str_eq(NC_request_variable(&request, "LAST"), "z");
	ck_assert_str_eq(NC_request_variable(&request, ""), "odd");
	ck_assert_ptr_null(NC_request_variable(&request, "B"));
	ck_assert_ptr_null(NC_request_variable(&request, "NOTHING"));
	ck_assert_ptr_null(NC_request_variable(&request, "a"));
	ck_assert_ptr_null(NC_request_variable(&request, NULL));
	ck_assert_ptr_null(NC_request_variable(NULL, "A"));
	ck_assert_ptr_null(NC_request_variable(&(struct NC_request){0}, "A"));
	ck_assert_ptr_null(NC_request_variable(&request, "LASTLONGERTHANALL"));
	request.variables_length = 0;
	ck_assert_ptr_null(NC_request_variable(&request, "A"));
	ck_assert_int_eq(errno, 77);
	free(copy);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_fork);
	tcase_add_test(tcase, test_attach_by_environment);
	tcase_add_test(tcase, test_orphan);
	tcase_add_test(tcase, test_attach);
	tcase_add_test(tcase, test_attach_refused);
	tcase_add_test(tcase, test_end_nothing);
	tcase_add_test(tcase, test_worker_open_refused);
	tcase_add_test(tcase, test_request_variable);
}

RUN_SUITE("nabc-process", fill)
