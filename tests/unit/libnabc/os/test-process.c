/* SPDX-License-Identifier: MIT */
/*
 * test-process.c - the processes of workers: their initial state, how their exit is
 * detected, and that no other process is ever killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/process.h"

#include "suite.h"

/* Starts a process that runs a shell command with one end of a socket pair. */
static int start_shell(struct nc_process *process, const char *command, char *const *environment)
{
	char *const argv[] = {"sh", "-c", (char *)command, NULL};
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(nc_process_start(process, pair[1], -1, argv, environment), 0);
	ck_assert_int_gt(process->pid, 0);
	ck_assert_int_ge(process->pidfd, 0);
	close(pair[1]);
	return pair[0];
}

static int status_of(struct nc_process *process)
{
	siginfo_t ended;

	await(process->pidfd, POLLIN);
	ck_assert_int_eq(waitid(P_PIDFD, (id_t)process->pidfd, &ended, WEXITED | WNOWAIT), 0);
	return ended.si_code == CLD_EXITED ? ended.si_status : -ended.si_status;
}

START_TEST(test_environment)
{
	char *const more[] = {"HOME=/nowhere", "COLOUR=blue", NULL};
	struct nc_process process;
	char expected[128];
	int fd;

	setenv("HOME", "/root", 1);
	setenv("KEPT", "yes", 1);
	fd = start_shell(&process, "echo $NABC_WORKER_FD $NABC_SERVER_PID $HOME $COLOUR $KEPT >&3",
			 more);
	snprintf(expected, sizeof(expected), "%d %d /nowhere blue yes\n", NC_PROCESS_SOCKET,
		 (int)getpid());
	ck_assert_str_eq(read_to_end(fd), expected);
	ck_assert_int_eq(status_of(&process), 0);
	nc_process_end(&process);
	ck_assert_int_eq(process.pid, -1);
	close(fd);
}
END_TEST

/* Descriptors of the server that are not close-on-exec are not inherited. */
START_TEST(test_descriptors)
{
	struct nc_process process;
	int opened[40], fd;

	for (unsigned i = 0; i < 40; i++)
		opened[i] = open("/dev/null", O_RDONLY);
	fd = start_shell(
		&process,
		"exec >&3; for i in $(seq 0 199); do [ -e /proc/$$/fd/$i ] && echo $i; done", NULL);
	ck_assert_str_eq(read_to_end(fd), "0\n1\n2\n3\n");
	(void)status_of(&process);
	nc_process_end(&process);
	for (unsigned i = 0; i < 40; i++)
		close(opened[i]);
	close(fd);
}
END_TEST

static int away(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 10);

	ck_assert_int_ge(copy, 10);
	close(fd);
	return copy;
}

/* The caller's descriptor becomes both outputs, whatever its number was. */
START_TEST(test_output)
{
	char *const argv[] = {"sh", "-c",
			      "cat; echo out; echo err >&2; exec >&- 2>&-; read word <&3", NULL};
	int pair[2], pipes[2], saved, number = _i;
	struct nc_process process;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
	for (unsigned i = 0; i < 2; i++) {
		pair[i] = away(pair[i]);
		pipes[i] = away(pipes[i]);
	}
	saved = fcntl(number, F_DUPFD_CLOEXEC, 10);
	ck_assert_int_ge(dup3(pipes[1], number, O_CLOEXEC), 0);
	close(pipes[1]);
	ck_assert_int_eq(nc_process_start(&process, pair[1], number, argv, NULL), 0);
	close(number);
	if (saved >= 0)
		ck_assert_int_eq(dup2(saved, number), number);
	close(pair[1]);
	ck_assert_str_eq(read_to_end(pipes[0]), "out\nerr\n");
	close(pair[0]);
	(void)status_of(&process);
	nc_process_end(&process);
	close(pipes[0]);
}
END_TEST

/* Empty standard input, a process group of its own, and default signals. */
START_TEST(test_clean_slate)
{
	struct nc_process process;
	sigset_t all, before;
	int fd;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	fd = start_shell(&process, "cat; cut -d' ' -f5 /proc/$$/stat >&3; kill -TERM $$", NULL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	ck_assert_int_eq(atoi(read_to_end(fd)), process.pid);
	ck_assert_int_eq(status_of(&process), -SIGTERM);
	nc_process_end(&process);
	close(fd);
}
END_TEST

START_TEST(test_end_kills)
{
	struct nc_process process;
	char byte;
	int fd = start_shell(&process, "trap '' TERM INT; echo >&3; read word <&3", NULL);

	ck_assert_int_eq(read(fd, &byte, 1), 1);
	nc_process_end(&process);
	/* Gone: the other end of the socket is closed. */
	ck_assert_str_eq(read_to_end(fd), "");
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
	nc_process_end(&process);
	close(fd);
}
END_TEST

START_TEST(test_no_program)
{
	char *const argv[] = {"/nonexistent/program", NULL};
	struct nc_process process;

	ck_assert_int_eq(nc_process_start(&process, 0, -1, argv, NULL), 0);
	ck_assert_int_eq(status_of(&process), 127);
	nc_process_end(&process);
}
END_TEST

/* Its pid may belong to another process by now: it must not be killed. */
START_TEST(test_reaped_by_another)
{
	struct nc_process process, stranger;
	int fd = start_shell(&process, "exit 7", NULL), other;
	pid_t reaped = process.pid;

	ck_assert_int_eq(waitpid(reaped, NULL, 0), reaped);
	other = start_shell(&stranger, "read word <&3; exit 5", NULL);
	process.pid = stranger.pid;
	nc_process_end(&process);
	ck_assert_int_eq(write(other, "on\n", 3), 3);
	ck_assert_int_eq(status_of(&stranger), 5);
	nc_process_end(&stranger);
	close(other);
	close(fd);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_environment);
	tcase_add_test(tcase, test_descriptors);
	tcase_add_loop_test(tcase, test_output, STDIN_FILENO, STDERR_FILENO + 1);
	tcase_add_test(tcase, test_clean_slate);
	tcase_add_test(tcase, test_end_kills);
	tcase_add_test(tcase, test_no_program);
	tcase_add_test(tcase, test_reaped_by_another);
}

RUN_SUITE("process", fill)
