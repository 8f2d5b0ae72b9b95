/* SPDX-License-Identifier: MIT */
/*
 * test-nabc-bare.c - programs that were started in unusual ways: without standard input,
 * output and error, with a limit of the size of files, or with more privileges than
 * their caller.
 */
#include <errno.h>
#include <fcntl.h>
#include <nabc-async.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nabc-fixture.h"
#include "suite.h"

static char said[2000];

static void hear(void *context, int priority, const char *message)
{
	(void)context;
	(void)priority;
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s\n", message);
}

static void open_logged(void)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 64 * MIB, .flags = NC_CACHE_NO_THREAD, .log = hear);

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
}

/* --- ulimit -f ---------------------------------------------------------- */

static void limit_files(rlim_t size)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = size;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* SIGXFSZ ends a program that knows nothing of it: it must get an error instead. */
START_TEST(test_file_size)
{
	static const enum NC_kind kinds[] = {NC_KIND_AUTO, NC_KIND_RECYCLED, NC_KIND_APPENDED,
					     NC_KIND_SEALED};
	char *const argv[] = {(char *)helper_path("WORKER_FIXTURE", "worker-fixture"), NULL};
	struct NC_backend_options options =
		NC_BACKEND_OPTIONS_INIT(.argv = argv, .channels = 1, .memory = 1 << 20);
	NC_handle handle;
	size_t id;

	open_logged();
	limit_files(64 << 10);
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		FAILS(NC_unit_alloc(NULL, &handle, 1 << 20, 0, kinds[i], 0), EFBIG);
	ck_assert_ptr_nonnull(strstr(said, "ulimit -f"));
	NULL_FAILS(NC_backend_start(NULL, &options), EFBIG);
	/* A segment that fits in the limit is made. */
	ck_assert_int_eq(NC_unit_alloc(NULL, &handle, 64 << 10, 0, NC_KIND_SEALED, 0), 0);
	ck_assert_int_eq(NC_insert(&handle), 0);
	ck_assert_int_eq(NC_free(&handle), 0);
	limit_files(RLIM_INFINITY);
	id = insert_as(NULL, 1, 1 << 20, 0, NC_KIND_RECYCLED);
	/* Granted units have a copy. */
	limit_files(64 << 10);
	FAILS(NC_grant(NULL, id, NC_USER, 1), EFBIG);
	limit_files(RLIM_INFINITY);
	ck_assert_int_eq(NC_grant(NULL, id, NC_USER, 1), 0);
	close_cache();
}
END_TEST

/* A unit over the limit of units is no fault of the system. */
START_TEST(test_too_large)
{
	NC_handle handle;

	open_logged();
	limit_files(64 << 10);
	said[0] = '\0';
	FAILS(NC_alloc(&handle, 63 * MIB, 0), EFBIG);
	ck_assert_str_eq(said, "");
	close_cache();
}
END_TEST

/* --- no standard descriptors -------------------------------------------------- */

static char directory[64], path[100];

static void close_standard(void)
{
	for (int fd = 0; fd < 3; fd++)
		close(fd);
}

static bool standard_is_free(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return false;
	return true;
}

/* Does all that makes descriptors; returns the number of the step that failed. */
static int own_all(void)
{
	const char *program = helper_path("WORKER_FIXTURE", "worker-fixture");
	char *const argv[] = {(char *)program, NULL};
	struct NC_backend_options options =
		NC_BACKEND_OPTIONS_INIT(.argv = argv, .channels = 1, .memory = 64 << 10);
	struct NC_cache_options owner =
		NC_CACHE_OPTIONS_INIT(.memory = 64 * MIB, .flags = NC_CACHE_MEMBERS_THREAD);
	NC_sender *sender;
	NC_backend *backend;
	struct NC_hold hold;
	uint64_t position;
	size_t id, run;

	close_standard();
	cache = NC_cache_open(&owner);
	if (!cache || !standard_is_free())
		return 1;
	if (NC_cache_serve(cache, path, NULL) || !standard_is_free())
		return 2;
	id = insert_as(NULL, 1, 3 * MIB, 0, NC_KIND_APPENDED);
	if (NC_grant(NULL, id, NC_PROCESS, (uint32_t)getpid()) ||
	    NC_grant(NULL, insert(1, 100), NC_USER, getuid()) || !standard_is_free())
		return 3;
	if (NC_hold(NULL, id, &hold) || NC_file(&hold, &position, &run, 0) < 3 ||
	    NC_release(&hold) || !standard_is_free())
		return 4;
	for (unsigned flags = 0; flags < 2; flags++) {
		sender = NC_sender_open(NULL, 8, flags ? NC_SENDER_NO_URING : 0);
		if (!sender || !standard_is_free())
			return 5;
		NC_sender_close(sender);
	}
	for (unsigned flags = 0; flags < 2; flags++) {
		options.flags = flags ? NC_BACKEND_POSIX : 0;
		backend = NC_backend_start(NULL, &options);
		if (!backend || NC_backend_fd(backend, 0) < 3 || !standard_is_free())
			return 6;
		NC_backend_close(backend);
	}
	return standard_is_free() ? 0 : 7;
}

static int member_all(void)
{
	struct NC_attach_options options = NC_ATTACH_OPTIONS_INIT(.flags = 0);
	struct NC_hold hold;
	size_t id;

	close_standard();
	cache = NC_cache_attach(path, &options);
	if (!cache || NC_cache_fd(cache) < 3 || !standard_is_free())
		return 11;
	id = insert_as(NULL, 1, 5000, 0, NC_KIND_SEALED);
	/* Imports what the owner has of it. */
	if (NC_hold(NULL, id, &hold) || !standard_is_free())
		return 12;
	return NC_release(&hold) || NC_cache_close(cache) || !standard_is_free() ? 13 : 0;
}

static int in_child(int (*run)(void))
{
	int status;
	pid_t pid = fork_alone();

	if (pid == 0)
		_exit(run());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* What the program prints must not go into a descriptor of the library. */
START_TEST(test_no_standard_descriptors)
{
	make_directory(directory);
	snprintf(path, sizeof(path), "%s/cache", directory);
	ck_assert_int_eq(in_child(own_all), 0);
	(void)unlink(path);
	rmdir(directory);
}
END_TEST

START_TEST(test_member_without_standard_descriptors)
{
	int status;
	pid_t pid;

	make_directory(directory);
	snprintf(path, sizeof(path), "%s/cache", directory);
	open_logged();
	ck_assert_int_eq(NC_cache_serve(cache, path, NULL), 0);
	pid = fork_alone();
	if (pid == 0)
		_exit(member_all());
	while (waitpid(pid, &status, WNOHANG) == 0) {
		(void)poll(&(struct pollfd){.fd = NC_cache_fd(cache), .events = POLLIN}, 1, 10);
		ck_assert_int_ge(NC_cache_dispatch(cache), 0);
	}
	ck_assert_int_eq(status, 0);
	close_cache();
	rmdir(directory);
}
END_TEST

/* --- more privileges than the caller ------------------------------------------ */

static void copy_program(const char *to, uid_t owner, mode_t mode)
{
	char bytes[65536];
	int from = open(helper_path("WORKER_FIXTURE", "worker-fixture"), O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	ssize_t got;

	ck_assert_int_ge(from, 0);
	ck_assert_int_ge(out, 0);
	while ((got = read(from, bytes, sizeof(bytes))) > 0)
		ck_assert_int_eq(write(out, bytes, (size_t)got), got);
	ck_assert_int_eq(fchown(out, owner, (gid_t)-1), 0);
	ck_assert_int_eq(fchmod(out, mode), 0);
	close(from);
	close(out);
}

/* Returns whether a worker reads from the socket that its environment names. */
static bool reads(const char *program)
{
	char number[12], got[8];
	int pair[2], status;
	bool left;
	pid_t pid;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	ck_assert_int_eq(write(pair[1], "no", 2), 2);
	ck_assert_int_eq(shutdown(pair[1], SHUT_WR), 0);
	snprintf(number, sizeof(number), "%d", pair[0]);
	pid = fork_alone();
	if (pid == 0) {
		setenv("NABC_WORKER_FD", number, 1);
		execl(program, program, (char *)NULL);
		_exit(127);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) != 127);
	left = recv(pair[0], got, sizeof(got), MSG_DONTWAIT) == 2;
	close_pair(pair);
	return !left;
}

/* The caller of a set-user-ID program chooses its environment, and must not choose a server. */
START_TEST(test_more_privileges)
{
	struct statvfs system;
	char program[100];

	make_directory(directory);
	snprintf(program, sizeof(program), "%s/worker", directory);
	ck_assert_int_eq(chmod(directory, 0755), 0);
	ck_assert_int_eq(statvfs(directory, &system), 0);
	copy_program(program, geteuid(), 0755);
	ck_assert(reads(program));
	/* Only root can give a program to another user. */
	if (geteuid() == 0 && !(system.f_flag & ST_NOSUID) &&
	    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0) {
		ck_assert_int_eq(unlink(program), 0);
		copy_program(program, 65534, 04755);
		ck_assert(!reads(program));
	}
	unlink(program);
	rmdir(directory);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_file_size);
	tcase_add_test(tcase, test_too_large);
	tcase_add_test(tcase, test_no_standard_descriptors);
	tcase_add_test(tcase, test_member_without_standard_descriptors);
	tcase_add_test(tcase, test_more_privileges);
}

RUN_SUITE("nabc-bare", fill)
