/* SPDX-License-Identifier: MIT */
/*
 * process-fixture.h - processes for the tests of access rights: children that wait,
 * a child with a chosen pid, and checks of what this system supports.
 */
#ifndef PROCESS_FIXTURE_H
#define PROCESS_FIXTURE_H

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "suite.h"

static inline bool has_pidfds(void)
{
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (pidfd < 0)
		return false;
	close(pidfd);
	return true;
}

/* Reports it if pidfds are missing: under Valgrind 3.19. */
static inline bool skip_without_pidfds(const char *what)
{
	if (has_pidfds())
		return false;
	printf("%s: skipped: no pidfd_open() here\n", what);
	fflush(stdout);
	return true;
}

/* Starts a child that does nothing until it is killed. */
static inline pid_t fork_paused(void)
{
	pid_t pid = fork_alone();

	if (pid == 0) {
		for (;;)
			pause();
	}
	ck_assert_int_gt(pid, 0);
	return pid;
}

static inline void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

/* As fork(), with that pid, which must be free; returns -1 if this process may not choose. */
static inline pid_t fork_running_as(pid_t pid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&pid, .set_tid_size = 1};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* The same, for a child that does nothing. */
static inline pid_t fork_as(pid_t pid)
{
	pid_t child = fork_running_as(pid);

	if (child == 0) {
		for (;;)
			pause();
	}
	return child;
}

/*
 * Opens all descriptors that a soft limit of most permits, except leave of them.  The limit stays,
 * and is also that of descriptors in flight, those of the user's other tests included.
 */
static int hogs[1024];
static unsigned hog_count;

static inline void free_descriptors(void)
{
	while (hog_count)
		close(hogs[--hog_count]);
}

static inline void hog_descriptors(unsigned most, unsigned leave)
{
	struct rlimit limit;

	ck_assert_uint_le(most, 1024);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = most;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	while ((hogs[hog_count] = dup(STDIN_FILENO)) >= 0)
		hog_count++;
	while (leave--)
		close(hogs[--hog_count]);
}

/* Reports it if received descriptors are not limited: under Valgrind. */
static inline bool skip_without_limits(const char *what)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS}};
	struct iovec iov = {.iov_base = "m", .iov_len = 1};
	char byte;
	struct iovec into = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	int pair[2], got = -1;
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	memcpy(CMSG_DATA(&control.header), pair, sizeof(int));
	ck_assert_int_eq(sendmsg(pair[0], &message, 0), 1);
	hog_descriptors(200, 0);
	message.msg_iov = &into;
	ck_assert_int_eq(recvmsg(pair[1], &message, 0), 1);
	if (message.msg_controllen >= sizeof(control))
		memcpy(&got, CMSG_DATA(&control.header), sizeof(int));
	free_descriptors();
	close_pair(pair);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	if (got < 0)
		return false;
	close(got);
	printf("%s: skipped: descriptors are not limited here\n", what);
	fflush(stdout);
	return true;
}

/*
 * The kernel counts descriptors in flight for each user but root: becomes a user
 * that no other test has at this time.  Reports it if this is not possible.
 */
static inline bool become_a_user(const char *what)
{
	unsigned id = 20000 + (unsigned)getpid() % 40000;

	/* The kernel counts by the real user, and privileges belong to the effective one. */
	if (geteuid() == 0 && !setegid(id) && !setresuid(id, id, 0))
		return true;
	printf("%s: skipped: only root can be a user that no other test is\n", what);
	fflush(stdout);
	return false;
}

/* Returns to root: leak checkers read this process at its end. */
static inline void become_root_again(void)
{
	(void)!setresuid(0, 0, 0);
	prctl(PR_SET_DUMPABLE, 1);
}

/* As ck_assert(), for a child, where Check is not available. */
#define GOOD(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "not true: %s (%s)\n", #condition, strerror(errno));       \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* Runs a function in a child, which must succeed. */
static inline void in_child(void (*function)(void))
{
	pid_t child = fork_alone();
	int status;

	ck_assert_int_ge(child, 0);
	if (child == 0) {
		function();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}

#endif
