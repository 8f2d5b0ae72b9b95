/* SPDX-License-Identifier: MIT */
/*
 * test-identity.c - unit tests of identity.c: credentials of peers and children from
 * the kernel, real pidfds and look-alikes, processes that exit, and a pid that is
 * reused.  Forks; tests that need root or pidfds say so when they are skipped.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/identity.h"
#include "os/peer.h"

#include "process-fixture.h"
#include "suite.h"

/* The kernel returns 0 for a session without a number in this pid namespace. */
static pid_t session_of_mine(void)
{
	return getsid(0) ? getsid(0) : getpid();
}

START_TEST(test_peer)
{
	gid_t groups[NC_IDENTITY_GROUPS_MAX];
	int pair[2], count = getgroups(NC_IDENTITY_GROUPS_MAX, groups);
	struct nc_identity who;

	ck_assert_int_eq(nc_peer_pair(pair), 0);
	ck_assert_int_eq(nc_identity_of_peer(pair[0], &who), 0);
	ck_assert_int_eq(who.session, session_of_mine());
	ck_assert_int_eq(who.pid, getpid());
	ck_assert_uint_eq(who.uid, geteuid());
	ck_assert_uint_eq(who.gid, getegid());
	if (has_pidfds()) {
		ck_assert_int_ge(who.pidfd, 0);
		ck_assert_int_eq(fcntl(who.pidfd, F_GETFD), FD_CLOEXEC);
		ck_assert_int_eq(nc_identity_pid(who.pidfd), getpid());
	}
	ck_assert(!nc_identity_ended(who.pidfd));
	for (int i = 0; i < count; i++)
		ck_assert(nc_identity_in_group(&who, groups[i]));
	ck_assert(nc_identity_in_group(&who, getegid()));
	ck_assert(!nc_identity_in_group(&who, 54321));
	nc_identity_close(&who);
	ck_assert_int_eq(who.pidfd, -1);
	nc_identity_close(&who);
	close_pair(pair);
	ck_assert_int_eq(nc_identity_of_peer(pair[0], &who), -EBADF);
}
END_TEST

/* The process that listens, not the one that replies; only its user once it has exited. */
START_TEST(test_listener)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t length = sizeof(address);
	unsigned descriptors = open_descriptors();
	struct nc_identity who;
	int listener, client, tcp;
	pid_t pid;

	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* The kernel chooses an abstract name. */
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t)), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	pid = fork_alone();
	if (pid == 0) {
		(void)!listen(listener, 1);
		for (;;)
			pause();
	}
	client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	while (connect(client, (struct sockaddr *)&address, length) < 0)
		ck_assert_int_eq(errno, ECONNREFUSED);
	ck_assert_int_eq(nc_identity_of_listener(client, &who), 0);
	ck_assert_uint_eq(who.uid, geteuid());
	ck_assert_uint_eq(who.gid, getegid());
	if (has_pidfds()) {
		ck_assert_int_eq(who.pid, pid);
		ck_assert_int_eq(nc_identity_pid(who.pidfd), pid);
		ck_assert_uint_le(nc_identity_started(&who), who.since);
		ck_assert_uint_ne(nc_identity_started(&who), 0);
	}
	end_child(pid);
	ck_assert_uint_eq(nc_identity_started(&who), UINT64_MAX);
	nc_identity_close(&who);
	ck_assert_int_eq(nc_identity_of_listener(client, &who), 0);
	ck_assert_int_eq(who.pid, 0);
	ck_assert_int_eq(who.pidfd, -1);
	ck_assert_uint_eq(who.uid, geteuid());
	ck_assert_uint_eq(nc_identity_started(&who), UINT64_MAX);
	close(client);
	close(listener);
	tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(nc_identity_of_listener(tcp, &who), -EOPNOTSUPP);
	close(tcp);
	ck_assert_int_eq(nc_identity_of_listener(tcp, &who), -EBADF);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

START_TEST(test_child)
{
	struct nc_identity who;
	unsigned descriptors = open_descriptors();
	pid_t pid = fork_paused();
	int pidfd;

	ck_assert_int_eq(nc_identity_of_child(pid, -1, &who), 0);
	ck_assert_int_eq(who.pid, pid);
	ck_assert_int_eq(who.pidfd, -1);
	ck_assert_uint_eq(who.uid, geteuid());
	ck_assert_uint_eq(who.gid, getegid());
	ck_assert_int_eq(nc_identity_of_child(pid, 9999, &who), -EBADF);
	if (has_pidfds()) {
		pidfd = nc_identity_open(pid);
		ck_assert_int_ge(pidfd, 0);
		ck_assert_int_eq(nc_identity_of_child(pid, pidfd, &who), 0);
		ck_assert_int_ne(who.pidfd, pidfd);
		close(pidfd);
		ck_assert_int_eq(nc_identity_pid(who.pidfd), pid);
		nc_identity_close(&who);
	}
	end_child(pid);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

/* The current state of a process is read from the kernel; nothing of one that has exited. */
START_TEST(test_process)
{
	unsigned descriptors = open_descriptors();
	gid_t groups[NC_IDENTITY_GROUPS_MAX];
	int told[2], pidfd, count = getgroups(NC_IDENTITY_GROUPS_MAX, groups);
	struct nc_identity who;
	pid_t pid;
	char byte;

	if (skip_without_pidfds("identity"))
		return;
	pidfd = nc_identity_open(getpid());
	ck_assert_int_eq(nc_identity_of_process(getpid(), pidfd, &who), 0);
	ck_assert_int_eq(who.pid, getpid());
	ck_assert_uint_eq(who.uid, geteuid());
	ck_assert_uint_eq(who.gid, getegid());
	for (int i = 0; i < count; i++)
		ck_assert(nc_identity_in_group(&who, groups[i]));
	ck_assert_uint_eq(who.group_count, (unsigned)count);
	ck_assert_int_eq(who.session, session_of_mine());
	nc_identity_close(&who);
	close(pidfd);

	ck_assert_int_eq(pipe2(told, O_CLOEXEC), 0);
	pid = fork_alone();
	if (pid == 0) {
		/* Real and effective ids differ, where that is permitted. */
		if (geteuid() == 0 && (setresgid(1001, 1002, 1003) || setresuid(1004, 1005, 1006)))
			_exit(1);
		(void)!write(told[1], "x", 1);
		for (;;)
			pause();
	}
	ck_assert_int_eq(read(told[0], &byte, 1), 1);
	pidfd = nc_identity_open(pid);
	ck_assert_int_eq(nc_identity_of_process(pid, pidfd, &who), 0);
	ck_assert_uint_eq(who.uid, geteuid() ? geteuid() : 1005);
	ck_assert_uint_eq(who.gid, geteuid() ? getegid() : 1002);
	ck_assert_int_eq(who.session, getsid(0) ? getsid(0) : pid);
	nc_identity_close(&who);
	end_child(pid);
	ck_assert_int_eq(nc_identity_of_process(getpid(), pidfd, &who), 0);
	ck_assert_uint_eq(who.uid, (uid_t)-1);
	ck_assert_uint_eq(who.gid, (gid_t)-1);
	ck_assert_uint_eq(who.group_count, 0);
	ck_assert_int_eq(who.session, 0);
	nc_identity_close(&who);
	close(pidfd);
	close_pair(told);
	ck_assert_int_eq(nc_identity_of_process(getpid(), -1, &who), -EBADF);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

/* In a pid namespace whose first process did not start a session, none has a number. */
START_TEST(test_session_elsewhere)
{
	int status;
	pid_t pid = fork_alone();

	if (pid == 0) {
		struct nc_identity who;
		int pair[2];

		if (unshare(CLONE_NEWPID) < 0)
			_exit(77);
		pid = fork_alone();
		if (pid != 0)
			_exit(waitpid(pid, &status, 0) == pid && WIFEXITED(status)
				      ? WEXITSTATUS(status)
				      : 1);
		_exit(getsid(0) != 0 || nc_peer_pair(pair) != 0 ||
		      nc_identity_of_peer(pair[0], &who) != 0 || who.session != getpid());
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		printf("identity: no pid namespaces here: not tested\n");
		return;
	}
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

START_TEST(test_ended)
{
	struct nc_identity who = {.uid = 1};
	pid_t pid;

	ck_assert(!nc_identity_ended(-1));
	if (skip_without_pidfds("identity: ended"))
		return;
	pid = fork_paused();
	who.pid = pid;
	who.pidfd = nc_identity_open(pid);
	ck_assert(!nc_identity_ended(who.pidfd));
	ck_assert(nc_identity_is(&who, pid, who.pidfd));
	ck_assert(!nc_identity_is(&who, pid + 1, who.pidfd));
	ck_assert_int_eq(nc_identity_pid(who.pidfd), pid);
	/* It has exited: before it is reaped, and after. */
	kill(pid, SIGKILL);
	await(who.pidfd, POLLIN);
	ck_assert(nc_identity_ended(who.pidfd));
	ck_assert(!nc_identity_is(&who, pid, who.pidfd));
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert(nc_identity_ended(who.pidfd));
	ck_assert_int_eq(nc_identity_pid(who.pidfd), -ESRCH);
	ck_assert_int_eq(nc_identity_open(pid), -ESRCH);
	nc_identity_close(&who);
}
END_TEST

static void *sleep_on(void *context)
{
	int *ends = context;
	long tid = syscall(SYS_gettid);

	(void)!write(ends[1], &tid, sizeof(tid));
	pause();
	return NULL;
}

/* Numbers that are no process. */
START_TEST(test_open_refused)
{
	unsigned descriptors = open_descriptors();
	pthread_t thread;
	int ends[2];
	long tid;

	ck_assert_int_eq(nc_identity_open(0), -ESRCH);
	ck_assert_int_eq(nc_identity_open(-1), -ESRCH);
	ck_assert_int_eq(nc_identity_open(INT32_MIN), -ESRCH);
	if (skip_without_pidfds("identity: open"))
		return;
	ck_assert_int_eq(nc_identity_open(INT32_MAX), -ESRCH);
	/* A thread is not a process. */
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, sleep_on, ends), 0);
	read_exactly(ends[0], &tid, sizeof(tid));
	ck_assert_int_eq(nc_identity_open((pid_t)tid), -ESRCH);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	close_pair(ends);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

START_TEST(test_no_pidfd)
{
	int ends[2], file = memfd_create("Pid: 1", MFD_CLOEXEC);

	ck_assert_int_eq(nc_identity_pid(-1), -EBADF);
	ck_assert_int_eq(nc_identity_pid(9999), -EBADF);
	ck_assert_int_eq(nc_identity_pid(INT32_MIN), -EBADF);
	ck_assert_int_eq(nc_identity_pid(file), -EBADF);
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(nc_identity_pid(ends[0]), -EBADF);
	close_pair(ends);
	close(file);
	/* Closed, it is invalid. */
	ck_assert_int_eq(nc_identity_pid(file), -EBADF);
}
END_TEST

/*
 * What the kernel prints about some descriptors contains names that any process may
 * choose: the name of a file registered with a ring, where a line is divided, must not
 * be taken for a pid.
 */
START_TEST(test_pidfd_look_alike)
{
	char name[200];
	int ring, file;
	struct io_uring_params params = {0};

	if (getenv("NABC_TEST_NO_URING"))
		return;
	ring = (int)syscall(SYS_io_uring_setup, 2, &params);
	if (ring < 0) {
		printf("identity: look-alike: skipped: no io_uring here\n");
		fflush(stdout);
		return;
	}
	for (unsigned pad = 30; pad < 70; pad++) {
		memset(name, 'x', sizeof(name));
		snprintf(name + pad, sizeof(name) - pad, "Pid:1");
		file = memfd_create(name, MFD_CLOEXEC);
		ck_assert_int_ge(file, 0);
		ck_assert_int_eq(
			syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, &file, 1), 0);
		ck_assert_int_eq(nc_identity_pid(ring), -EBADF);
		ck_assert_int_eq(
			syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_FILES, NULL, 0), 0);
		close(file);
	}
	close(ring);
}
END_TEST

/* Another process with the same pid is a different process. */
START_TEST(test_pid_comes_back)
{
	struct nc_identity first = {.uid = 1}, second = {.uid = 1};
	pid_t pid, again;

	if (skip_without_pidfds("identity: pid comes back"))
		return;
	pid = fork_paused();
	first.pid = pid;
	first.pidfd = nc_identity_open(pid);
	end_child(pid);
	again = fork_as(pid);
	if (again < 0) {
		printf("identity: pid comes back: skipped: may not choose a pid\n");
		fflush(stdout);
		nc_identity_close(&first);
		return;
	}
	ck_assert_int_eq(again, pid);
	second.pid = again;
	second.pidfd = nc_identity_open(again);
	ck_assert_int_ge(second.pidfd, 0);
	/* A grant to one of them does not apply to the other. */
	ck_assert(!nc_identity_is(&second, pid, first.pidfd));
	ck_assert(!nc_identity_is(&first, pid, second.pidfd));
	ck_assert(nc_identity_is(&second, pid, second.pidfd));
	ck_assert_int_eq(nc_identity_pid(first.pidfd), -ESRCH);
	end_child(again);
	nc_identity_close(&first);
	nc_identity_close(&second);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_peer);
	tcase_add_test(tcase, test_listener);
	tcase_add_test(tcase, test_child);
	tcase_add_test(tcase, test_process);
	tcase_add_test(tcase, test_session_elsewhere);
	tcase_add_test(tcase, test_ended);
	tcase_add_test(tcase, test_open_refused);
	tcase_add_test(tcase, test_no_pidfd);
	tcase_add_test(tcase, test_pidfd_look_alike);
	tcase_add_test(tcase, test_pid_comes_back);
}

RUN_SUITE("identity", fill)
