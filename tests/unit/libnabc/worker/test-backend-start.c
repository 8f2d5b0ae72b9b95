/* SPDX-License-Identifier: MIT */
/*
 * test-backend-start.c - unit tests of workers that another process starts: at once or
 * later, as its child, and the possible errors.
 */
#include <errno.h>
#include <fcntl.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/identity.h"

#include "backend-fixture.h"
#include "process-fixture.h"
#include "suite.h"

static struct {
	int error; /* the error of start(), or 0 */
	pid_t pid; /* what it returns, if that is not the truth */
	int pidfd;
	int socket; /* kept for later; -1 */
	unsigned calls;
} plan;

static char *kept_environment[8];

/* Runs the fixture as a grandchild, so that it is no child of this process. */
static pid_t run(int socket, char *const *environment)
{
	char *const argv[] = {(char *)helper_path("WORKER_FIXTURE", "worker-fixture"), NULL};
	int told[2];
	pid_t pid, child;

	ck_assert_int_eq(pipe2(told, O_CLOEXEC), 0);
	child = fork_alone();
	if (child == 0) {
		pid = fork_alone();
		if (pid != 0) {
			(void)!write(told[1], &pid, sizeof(pid));
			_exit(0);
		}
		prctl(PR_SET_PDEATHSIG, 0);
		if (socket == 3)
			fcntl(socket, F_SETFD, 0);
		else if (dup2(socket, 3) < 0)
			_exit(127);
		execve(argv[0], argv, environment);
		_exit(127);
	}
	ck_assert_int_gt(child, 0);
	read_exactly(told[0], &pid, sizeof(pid));
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	close_pair(told);
	return pid;
}

static int start(void *context, int socket, char *const *environment, pid_t *pid, int *pidfd)
{
	ck_assert_ptr_eq(context, &plan);
	plan.calls++;
	errno = plan.error > 0 ? plan.error : 0;
	if (plan.error)
		return -1;
	if (plan.pid || plan.pidfd) {
		*pid = plan.pid;
		*pidfd = plan.pidfd;
		return 0;
	}
	if (plan.socket >= 0) {
		plan.socket = dup(socket);
		for (unsigned i = 0; environment[i]; i++)
			kept_environment[i] = strdup(environment[i]);
		return 0;
	}
	*pid = run(socket, environment);
	*pidfd = nc_identity_open(*pid);
	ck_assert_int_ge(*pidfd, 0);
	return 0;
}

static NC_backend *start_other(char *const *environment)
{
	struct NC_backend_options options =
		NC_BACKEND_OPTIONS_INIT(.environment = environment, .channels = 1, .start = start,
					.context = &plan);

	return NC_backend_start(cache, &options);
}

static void open_poller(void)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};

	pollers[0] = epoll_create1(EPOLL_CLOEXEC);
	ck_assert_int_eq(epoll_ctl(pollers[0], EPOLL_CTL_ADD, NC_backend_fd(backend, 0), &event),
			 0);
}

static void expect_variable(const char *name, const char *value)
{
	struct NC_response response;
	char got[256] = "", *end;
	uint64_t tag;

	ck_assert_int_eq(submit(0, 1, "DO=environment", name, NULL), 0);
	ck_assert_int_eq(reap(0, &tag, &response), 1);
	(void)take_body(&response, got);
	end = strchr(got, ';');
	ck_assert_ptr_nonnull(end);
	*end = '\0';
	ck_assert_str_eq(got, value);
}

static void close_other(void)
{
	int pidfd = fcntl(NC_backend_pidfd(backend), F_DUPFD_CLOEXEC, 0);

	ck_assert_int_ge(pidfd, 0);
	ck_assert(!nc_identity_ended(pidfd));
	ck_assert_int_eq(NC_backend_close(backend), 0);
	ck_assert(nc_identity_ended(pidfd));
	close(pidfd);
	close(pollers[0]);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}

START_TEST(test_start)
{
	char *const more[] = {"FIRST=added", "SECOND=too", NULL};
	char pid[32];

	if (skip_without_pidfds("backend-start"))
		return;
	snprintf(pid, sizeof(pid), "%d", getpid());
	for (unsigned i = 0; i < 2; i++) {
		plan.socket = -1;
		plan.calls = 0;
		open_cache();
		backend = start_other(i ? more : NULL);
		ck_assert_ptr_nonnull(backend);
		ck_assert_uint_eq(plan.calls, 1);
		open_poller();
		check_echo(0, 7);
		expect_variable("NAME=NABC_WORKER_FD", "3");
		expect_variable("NAME=NABC_SERVER_PID", pid);
		expect_variable("NAME=FIRST", i ? "added" : "(none)");
		expect_variable("NAME=SECOND", i ? "too" : "(none)");
		ck_assert_int_eq(nc_identity_pid(NC_backend_pidfd(backend)),
				 NC_backend_pid(backend));
		close_other();
	}
}
END_TEST

/* Its process is set when it exists; until then requests wait. */
START_TEST(test_later)
{
	pid_t pid;

	if (skip_without_pidfds("backend-start"))
		return;
	plan.socket = 0;
	open_cache();
	backend = start_other(NULL);
	ck_assert_ptr_nonnull(backend);
	open_poller();
	ck_assert_int_eq(NC_backend_pid(backend), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(NC_backend_pidfd(backend), -1);
	ck_assert_int_eq(submit(0, 5, "DO=nothing", NULL, NULL), 0);
	pid = run(plan.socket, kept_environment);
	ck_assert_int_eq(NC_backend_started(backend, 0, 5), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(NC_backend_started(backend, pid, -1), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(NC_backend_started(NULL, pid, 5), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(NC_backend_started(backend, pid, nc_identity_open(pid)), 0);
	ck_assert_int_eq(NC_backend_started(backend, pid, 5), -1);
	ck_assert_int_eq(errno, EALREADY);
	close(plan.socket);
	ck_assert_int_eq(NC_backend_pid(backend), pid);
	check_echo(0, 7);
	close_other();
	for (unsigned i = 0; kept_environment[i]; i++)
		free(kept_environment[i]);
}
END_TEST

/* No process ever starts. */
START_TEST(test_never)
{
	unsigned descriptors;

	open_cache();
	descriptors = open_descriptors();
	plan.socket = 0;
	backend = start_other(NULL);
	ck_assert_ptr_nonnull(backend);
	close(plan.socket);
	ck_assert_int_eq(NC_backend_close(backend), 0);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}
END_TEST

START_TEST(test_failures)
{
	unsigned descriptors;

	open_cache();
	descriptors = open_descriptors();
#define REFUSED(what, code)                                                                        \
	do {                                                                                       \
		memset(&plan, 0, sizeof(plan));                                                    \
		what;                                                                              \
		ck_assert_ptr_null(start_other(NULL));                                             \
		ck_assert_int_eq(errno, code);                                                     \
		ck_assert_uint_eq(open_descriptors(), descriptors);                                \
	} while (0)
	REFUSED(plan.error = EAGAIN, EAGAIN);
	REFUSED(plan.error = -1, EIO);
	REFUSED(plan.pid = -5; plan.pidfd = -1, EINVAL);
	REFUSED(plan.pid = getpid(); plan.pidfd = -1, EINVAL);
	/* The callee owns the pidfd that it gets. */
	REFUSED(plan.pid = -5; plan.pidfd = dup(0), EINVAL);
#undef REFUSED
	ck_assert_int_eq(NC_cache_close(cache), 0);
}
END_TEST

/* A worker that does not listen is stopped all the same. */
START_TEST(test_stopped)
{
	if (skip_without_pidfds("backend-start"))
		return;
	plan.socket = -1;
	open_cache();
	backend = start_other(NULL);
	ck_assert_ptr_nonnull(backend);
	open_poller();
	check_echo(0, 7);
	ck_assert_int_eq(kill(NC_backend_pid(backend), SIGSTOP), 0);
	close_other();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_start);
	tcase_add_test(tcase, test_later);
	tcase_add_test(tcase, test_never);
	tcase_add_test(tcase, test_failures);
	tcase_add_test(tcase, test_stopped);
}

RUN_SUITE("backend-start", fill)
