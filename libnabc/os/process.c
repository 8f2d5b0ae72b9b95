/* SPDX-License-Identifier: MIT */
/* process.c - see process.h.  Any thread; one at a time for each process. */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/descriptor.h"
#include "os/process.h"

#define NUMBER 12u	 /* characters of a number */
#define END_WAIT_MS 2000 /* for a process that is not our child */
#define FEW_DESCRIPTORS 65536

extern char **environ;

/* Whether two NAME=VALUE strings have the same name. */
static bool same_name(const char *one, const char *other)
{
	while (*one && *one == *other && *one != '=') {
		one++;
		other++;
	}
	return *one == *other && *one == '=';
}

static bool is_set(char *const *list, size_t count, const char *entry)
{
	for (size_t i = 0; i < count; i++)
		if (same_name(list[i], entry))
			return true;
	return false;
}

/* Combines our variables, the caller's additions, and those of this process that neither sets. */
static char **build_environment(char *const *more, char *worker_fd, char *server_pid)
{
	size_t have = 0, add = 0, count = 0, set;
	char **all;

	while (environ[have])
		have++;
	while (more && more[add])
		add++;
	all = calloc(have + add + 3, sizeof(*all));
	if (!all)
		return NULL;
	all[count++] = worker_fd;
	all[count++] = server_pid;
	for (size_t i = 0; i < add; i++)
		all[count++] = more[i];
	set = count;
	for (size_t i = 0; i < have; i++)
		if (!is_set(all, set, environ[i]))
			all[count++] = environ[i];
	return all;
}

char **nc_process_environment(char *const *more)
{
	static const char worker_fd[] = "NABC_WORKER_FD=", server_pid[] = "NABC_SERVER_PID=";
	size_t count = 0, text = sizeof(worker_fd) + sizeof(server_pid) + 2 * NUMBER;
	char **all, *at;

	while (more && more[count])
		count++;
	all = malloc((count + 3) * sizeof(*all) + text);
	if (!all)
		return NULL;
	at = (char *)(all + count + 3);
	all[0] = at;
	at += sprintf(at, "%s%d", worker_fd, NC_PROCESS_SOCKET) + 1;
	all[1] = at;
	sprintf(at, "%s%d", server_pid, (int)getpid());
	for (size_t i = 0; i < count; i++)
		all[2 + i] = more[i];
	all[2 + count] = NULL;
	return all;
}

/*
 * The host program may have sockets and files that are not close-on-exec.  They are
 * closed at execve(), not before: under Valgrind, its own descriptors are among
 * them.
 */
static void close_others(void)
{
	const int first = NC_PROCESS_SOCKET + 1;

	if (syscall(SYS_close_range, first, ~0u, CLOSE_RANGE_CLOEXEC) == 0)
		return;
	/* Before Linux 5.11, or if a filter refuses it. */
	for (int fd = first; fd < FEW_DESCRIPTORS; fd++)
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* In the child: makes only calls that are safe between fork and exec. */
static void become_worker(int socket, int output, pid_t parent, char *const *argv,
			  char **environment)
{
	static const int reset[] = {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGUSR1, SIGUSR2};
	int null = open("/dev/null", O_RDWR);
	sigset_t none;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	for (size_t i = 0; i < sizeof(reset) / sizeof(reset[0]); i++)
		signal(reset[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* First: its number may be one of those that are replaced below. */
	if (output >= 0 && dup2(output, STDERR_FILENO) < 0)
		_exit(127);
	if (output == STDERR_FILENO)
		(void)fcntl(output, F_SETFD, 0);
	/* The server may have no standard error. */
	if (null >= 0 && fcntl(STDERR_FILENO, F_GETFD) < 0)
		(void)dup2(null, STDERR_FILENO);
	/* Standard output would have no reader: the body is passed by cache id. */
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		_exit(127);
	if (socket == NC_PROCESS_SOCKET)
		fcntl(socket, F_SETFD, 0);
	else if (dup2(socket, NC_PROCESS_SOCKET) < 0)
		_exit(127);
	close_others();
	execvpe(argv[0], argv, environment);
	_exit(127);
}

/* If no other number is free, the process must be waited for all the same. */
static int kept_pidfd(int pidfd)
{
	int copy = pidfd > STDERR_FILENO ? pidfd : nc_descriptor_copy(pidfd);

	if (copy < 0 || copy == pidfd)
		return pidfd;
	close(pidfd);
	return copy;
}

int nc_process_start(struct nc_process *process, int socket, int output, char *const *argv,
		     char *const *environment)
{
	char worker_fd[32], server_pid[48];
	pid_t parent = getpid();
	int pidfd = -1, error = 0;
	/* volatile: so that leak checkers find it in a child whose exec failed. */
	char **volatile all;
	long pid;

	*process = (struct nc_process){.pid = -1, .pidfd = -1};
	snprintf(worker_fd, sizeof(worker_fd), "NABC_WORKER_FD=%d", NC_PROCESS_SOCKET);
	snprintf(server_pid, sizeof(server_pid), "NABC_SERVER_PID=%d", (int)parent);
	all = build_environment(environment, worker_fd, server_pid);
	if (!all)
		return -ENOMEM;
	/* A fork() that also returns a pidfd; close-on-exec, Linux 5.2. */
	pid = syscall(SYS_clone, (unsigned long)(CLONE_PIDFD | SIGCHLD), NULL, &pidfd, NULL, NULL);
	if (pid == 0)
		become_worker(socket, output, parent, argv, all);
	/* Both ends set it: neither knows which of them is first. */
	if (pid > 0)
		(void)setpgid((pid_t)pid, (pid_t)pid);
	if (pid < 0)
		error = -errno;
	else
		*process = (struct nc_process){.pid = (pid_t)pid, .pidfd = kept_pidfd(pidfd)};
	free(all);
	return error;
}

void nc_process_adopt(struct nc_process *process, pid_t pid, int pidfd)
{
	*process = (struct nc_process){.pid = pid, .pidfd = pidfd, .adopted = true};
}

/* Its parent reaps it.  Its pid may belong to another process by now; the pidfd does not. */
static void end_adopted(const struct nc_process *process)
{
	struct pollfd ended = {.fd = process->pidfd, .events = POLLIN};

	/* Valgrind lacks this call; while the process has not ended, the pid is its own. */
	if (syscall(SYS_pidfd_send_signal, process->pidfd, SIGKILL, NULL, 0) < 0 &&
	    errno == ENOSYS && poll(&ended, 1, 0) == 0)
		(void)kill(process->pid, SIGKILL);
	while (poll(&ended, 1, END_WAIT_MS) < 0 && errno == EINTR)
		;
}

static void end_child(const struct nc_process *process)
{
	siginfo_t ended;

	/* Before it is reaped, the pid is its own. */
	if (waitid(P_PIDFD, (id_t)process->pidfd, &ended, WEXITED | WNOHANG | WNOWAIT))
		return;
	/* With all that it has started in its group, also if itself has ended. */
	kill(-process->pid, SIGKILL);
	kill(process->pid, SIGKILL);
	while (waitid(P_PIDFD, (id_t)process->pidfd, &ended, WEXITED) < 0 && errno == EINTR)
		;
}

void nc_process_end(struct nc_process *process)
{
	if (process->pidfd < 0)
		return;
	if (process->adopted)
		end_adopted(process);
	else
		end_child(process);
	close(process->pidfd);
	*process = (struct nc_process){.pid = -1, .pidfd = -1};
}
