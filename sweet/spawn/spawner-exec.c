/* SPDX-License-Identifier: MIT */
/*
 * spawner-exec.c - see spawner-exec.h.
 *
 * Until it executes the program, the child shares the spawner's memory (as with
 * vfork()), so nothing is copied, however large either is, and the spawner waits
 * meanwhile.  The child makes direct system calls only, because side effects of the
 * C library would change the spawner.
 *
 * As soon as the child has another user, processes of that user may stop it, and
 * the spawner would wait without end.  Therefore the child sets a timer that kills
 * it even if it is stopped; the kernel deletes the timer when the child executes
 * its program.
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

/* gcc 14's thread sanitizer takes each clone() for a fork(), after which memory is not shared. */
#ifdef __SANITIZE_THREAD__
extern int __clone(int (*run)(void *), void *stack, int flags, void *context, ...);
#define clone __clone
#endif

#define STACK_SIZE ((size_t)64 << 10)
#define START_SECONDS 1
#define FILES_DEFAULT 1024u

/* The child's functions never return and their stack is reused: keep ASan from recording it. */
#define IN_CHILD static __attribute__((no_sanitize_address))

struct spawner_exec {
	char *stack;
	pid_t self;
	bool root;
	/* Instructions for the child: */
	const struct spawner_launch *launch;
	const int *fds;
	int report; /* it writes its errno here */
};

/* --- in the child ----------------------------------------------------------------------- */

IN_CHILD bool limit(int what, uint64_t most)
{
	struct rlimit limit = {.rlim_cur = most, .rlim_max = most}, now;

	/* Only root may raise the hard limit; otherwise use the existing one. */
	if (getrlimit(what, &now) == 0 && most > now.rlim_max && setrlimit(what, &limit) < 0)
		limit.rlim_cur = limit.rlim_max = now.rlim_max;
	return setrlimit(what, &limit) == 0;
}

IN_CHILD bool set_limits(const struct spawner_program *program)
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

IN_CHILD bool become_user(const struct privileges *privileges)
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

IN_CHILD bool place_descriptors(const int fds[SPAWNER_FDS])
{
	for (int i = 0; i < SPAWNER_FDS; i++)
		if (fds[i] >= 0 && dup2(fds[i], i) < 0)
			return false;
	/* A program with its own standard error writes its output there too. */
	return fds[1] >= 0 || dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
}

IN_CHILD bool set_timer(void)
{
	struct sigevent kill = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
	struct itimerspec when = {.it_value.tv_sec = START_SECONDS};
	int timer; /* the kernel's id */

	return syscall(SYS_timer_create, CLOCK_MONOTONIC, &kill, &timer) == 0 &&
	       syscall(SYS_timer_settime, timer, 0, &when, NULL) == 0;
}

IN_CHILD bool become(const struct spawner_exec *exec)
{
	const struct spawner_launch *launch = exec->launch;
	const struct privileges *privileges = launch->program->privileges;
	sigset_t none;

	if (setsid() < 0 || !set_timer() || !place_descriptors(exec->fds) ||
	    !set_limits(launch->program))
		return false;
	if (exec->root && privileges && privileges->group && !become_user(privileges))
		return false;
	/* After the change of user, which clears it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || chdir(launch->directory) < 0)
		return false;
	errno = ESRCH;
	if (getppid() != exec->self)
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

IN_CHILD int child(void *context)
{
	const struct spawner_exec *exec = context;
	int error;

	(void)become(exec);
	error = errno;
	(void)!write(exec->report, &error, sizeof(error));
	return 127;
}

/* --- in the spawner ------------------------------------------------------------------------ */

struct spawner_exec *spawner_exec_open(void)
{
	struct spawner_exec *exec = calloc(1, sizeof(*exec));

	if (!exec)
		return NULL;
	exec->self = getpid();
	exec->root = geteuid() == 0;
	exec->stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (exec->stack != MAP_FAILED)
		return exec;
	free(exec);
	return NULL;
}

int spawner_exec_run(struct spawner_exec *exec, const struct spawner_launch *launch,
		     const int fds[SPAWNER_FDS], pid_t *pid, int *pidfd)
{
	int ends[2], error = 0;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	exec->launch = launch;
	exec->fds = fds;
	exec->report = ends[1];
	*pidfd = -1;
	*pid = clone(child, exec->stack + STACK_SIZE,
		     CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, exec, pidfd);
	error = *pid < 0 ? errno : 0;
	close(ends[1]);
	/*
	 * Returns 0 bytes when the child executed the program or was killed; its
	 * end is reported later.
	 */
	while (!error && read(ends[0], &error, sizeof(error)) < 0 && errno == EINTR)
		;
	close(ends[0]);
	if (!error)
		return 0;
	if (*pid > 0)
		while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
			;
	if (*pidfd >= 0)
		close(*pidfd);
	*pidfd = -1;
	return -error;
}
