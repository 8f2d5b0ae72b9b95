/* SPDX-License-Identifier: MIT */
/*
 * spawner-exec.c - see spawner-exec.h.
 *
 * The child is a copy of the spawner, which is small, and the spawner does not wait for it: from the
 * change of user on, processes of that user may stop it, and the kernel may make it wait for them
 * (leases on the program's file).  So one user's programs delay no others.  The child makes only
 * calls that are safe after a fork.
 *
 * A start that is never done must not last forever, either: the child sets a timer that kills it
 * even if it is stopped; the kernel deletes the timer when the child executes its program.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/privileges.h"
#include "spawn/spawner-exec.h"
#include "spawn/spawner-program.h"
#include "spawn/spawner-wire.h"

/* More than the kernel lets a lease delay an open (fs.lease-break-time, 45 s). */
#define START_SECONDS 60
#define FILES_DEFAULT 1024u

#define DESCRIPTORS 65536
#define REPORT (STDERR_FILENO + 2) /* the child writes its errno there */

/* Instructions for the child. */
struct spawner_exec {
	pid_t spawner;
	const struct spawner_launch *launch;
	const int *fds;
	int report;
};

/* --- in the child ----------------------------------------------------------------------- */

static bool limit(int what, uint64_t most)
{
	struct rlimit limit = {.rlim_cur = most, .rlim_max = most}, now;

	/* Only root may raise the hard limit; otherwise use the existing one. */
	if (getrlimit(what, &now) == 0 && most > now.rlim_max && setrlimit(what, &limit) < 0)
		limit.rlim_cur = limit.rlim_max = now.rlim_max;
	return setrlimit(what, &limit) == 0;
}

static bool set_limits(const struct spawner_program *program)
{
	struct rlimit files;

	if (program->memory && !limit(RLIMIT_AS, program->memory))
		return false;
	if (program->seconds && !limit(RLIMIT_CPU, program->seconds))
		return false;
	if (program->files && !limit(RLIMIT_NOFILE, program->files))
		return false;
	if (!program->files && getrlimit(RLIMIT_NOFILE, &files) == 0 &&
	    files.rlim_cur > FILES_DEFAULT) {
		files.rlim_cur = FILES_DEFAULT;
		if (setrlimit(RLIMIT_NOFILE, &files) < 0)
			return false;
	}
	if (program->nice) {
		errno = 0;
		if (nice(program->nice) == -1 && errno)
			return false;
	}
	return true;
}

static bool become_user(const struct privileges *privileges)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};
	uid_t uid, euid, suid;

	if (syscall(SYS_setgroups, (size_t)privileges->group_count, privileges->groups) < 0 ||
	    syscall(SYS_setresgid, privileges->gid, privileges->gid, privileges->gid) < 0)
		return false;
	if (!privileges->user || privileges->uid == 0)
		return true;
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_setresuid, privileges->uid, privileges->uid, privileges->uid) < 0 ||
	    syscall(SYS_capset, &header, none) < 0)
		return false;
	errno = EPERM;
	return syscall(SYS_getresuid, &uid, &euid, &suid) == 0 && uid == privileges->uid &&
	       euid == uid && suid == uid;
}

static bool place_descriptors(const int fds[SPAWNER_FDS])
{
	/* That of the spawner is the server's: no program gets it. */
	if (fds[STDERR_FILENO] < 0 && dup2(STDIN_FILENO, STDERR_FILENO) < 0)
		return false;
	for (int i = 0; i < SPAWNER_FDS; i++)
		if (fds[i] >= 0 && dup2(fds[i], i) < 0)
			return false;
	/* A program with its own standard error writes its output there too. */
	return fds[1] >= 0 || dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
}

static bool set_timer(void)
{
	struct sigevent kill = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
	struct itimerspec when = {.it_value.tv_sec = START_SECONDS};
	int timer; /* the kernel's id */

	return syscall(SYS_timer_create, CLOCK_MONOTONIC, &kill, &timer) == 0 &&
	       syscall(SYS_timer_settime, timer, 0, &when, NULL) == 0;
}

/* Keeps nothing else of the spawner open: a child that is stopped would hold its channels. */
static bool place_report(int *report)
{
	if (*report != REPORT && dup3(*report, REPORT, O_CLOEXEC) < 0)
		return false;
	*report = REPORT;
	if (syscall(SYS_close_range, REPORT + 1, ~0u, 0) < 0)
		for (int fd = REPORT + 1; fd < DESCRIPTORS; fd++)
			close(fd);
	return true;
}

static bool become(const struct spawner_exec *exec, int *report)
{
	const struct spawner_launch *launch = exec->launch;
	const struct privileges *privileges = launch->program->privileges;
	sigset_t none;

	if (setsid() < 0 || !set_timer() || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
	    !place_descriptors(exec->fds) || !place_report(report) || !set_limits(launch->program))
		return false;
	if (geteuid() == 0 && privileges && privileges->group && !become_user(privileges))
		return false;
	/* After the change of user, which clears it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || chdir(launch->directory) < 0)
		return false;
	errno = ESRCH;
	if (getppid() != exec->spawner)
		return false;
	sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return false;
	/* Last, because it restricts the calls above; it persists across execve(). */
	if (launch->program->filter &&
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, launch->program->filter) < 0)
		return false;
	execve(launch->path, launch->argv, launch->variables);
	return false;
}

static _Noreturn void child(const struct spawner_exec *exec)
{
	int error, report = exec->report;

	(void)become(exec, &report);
	error = errno;
	(void)!write(report, &error, sizeof(error));
	_exit(127);
}

/* --- in the spawner ------------------------------------------------------------------------ */

int spawner_exec_begin(const struct spawner_launch *launch, const int fds[SPAWNER_FDS], pid_t *pid,
		       int *pidfd, int *report)
{
	struct spawner_exec exec = {.spawner = getpid(), .launch = launch, .fds = fds};
	int ends[2], error;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	exec.report = ends[1];
	*pidfd = -1;
	/* A fork() that also returns a pidfd. */
	*pid = (pid_t)syscall(SYS_clone, (unsigned long)(CLONE_PIDFD | SIGCHLD), NULL, pidfd, NULL,
			      NULL);
	if (*pid == 0)
		child(&exec);
	error = *pid < 0 ? -errno : 0;
	close(ends[1]);
	if (error)
		close(ends[0]);
	else
		*report = ends[0];
	return error;
}

int spawner_exec_result(int report)
{
	ssize_t got;
	int error;

	do
		got = read(report, &error, sizeof(error));
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	/* It ends when the child has executed the program, or was killed: that is reported later. */
	return got == sizeof(error) ? -error : 0;
}
