/* SPDX-License-Identifier: MIT */
/*
 * pool-process-end.c - see pool-process-end.h.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>

#include "backend/pool.h"
#include "base/container.h"
#include "config/pool-config.h"
#include "core/server.h"
#include "event/loop.h"
#include "gateway/gateway.h"
#include "gateway/pool-process-end.h"
#include "gateway/pool-process.h"
#include "log/log.h"
#include "spawn/program-log.h"
#include "spawn/spawn-child.h"

static struct loop *loop_of(const struct pool_process *process)
{
	return process->pool->gateway->main->loop;
}

static const char *name_of(const struct pool_process *process)
{
	return process->pool->settings->name;
}

/* --- how one has ended ------------------------------------------------------------------- */

/*
 * A program that has not got its library has no server: it ends as soon as it looks for one.  The
 * loader and the program leave no other sign.
 */
static const char *preload_hint(const struct pool_process *process)
{
	uint64_t lived = loop_now_ms(loop_of(process)) - process->started_ms;

	if (!process->pool->settings->preload || process->planned || lived >= POOL_PROCESS_LIVED_MS)
		return "";
	return "; if it has a libfcgi of its own, is linked statically, changes its user by "
	       "set-user-ID, or does not use libfcgi, preload has no effect: use protocol=fastcgi";
}

/* Describes the end, to follow "has ended" in the message. */
static void describe(const struct pool_process *process, int status, char *out, size_t size)
{
	size_t limit = process->pool->settings->memory_limit;
	int length = 0;

	*out = '\0';
	if (status >= 0 && WIFSIGNALED(status))
		length = snprintf(out, size, " by signal %d (%s)", WTERMSIG(status),
				  g_strsignal(WTERMSIG(status)));
	else if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status))
		length = snprintf(out, size, " with status %d", WEXITSTATUS(status));
	/* Only the program knows whether the limit was the cause. */
	if (length > 0 && (size_t)length < size && limit && !process->planned)
		snprintf(out + length, size - (size_t)length, "; its memory-limit is %zu KiB",
			 limit >> 10);
}

int pool_process_status(int pidfd)
{
	siginfo_t info = {0};

	if (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
		return -1;
	return info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0) : info.si_status;
}

/*
 * Only the first unwanted end of a place is reported, not those that follow it.  A process that has
 * lived may end by itself with status 0, as PHP does after a number of requests.
 */
static bool is_alarming(const struct pool_process *process, int status)
{
	uint64_t lived = loop_now_ms(loop_of(process)) - process->started_ms;

	return !process->planned && !process->doomed && !process->backoff &&
	       (status > 0 || lived < POOL_PROCESS_LIVED_MS);
}

void pool_process_log_end(const struct pool_process *process, int status)
{
	const struct gateway *gateway = process->pool->gateway;
	char how[160];

	describe(process, status, how, sizeof(how));
	/* Its last words come first. */
	program_log_read(gateway->program_log, name_of(process));
	if (!gateway->closing)
		log_at(is_alarming(process, status) ? LOG_LEVEL_WARNING : LOG_LEVEL_NOTICE,
		       "worker %s[%u] (pid %d) has ended%s%s", name_of(process), process->number,
		       atomic_load_explicit(&process->pid, memory_order_relaxed), how,
		       preload_hint(process));
}

/* --- killing one ------------------------------------------------------------------------ */

/* Main thread.  A part still had the process when this was posted: it is the same one. */
static void process_kill_child(struct loop_task *task)
{
	struct pool_process *process = container_of(task, struct pool_process, kill);

	if (process->child)
		spawn_child_kill(process->child);
}

/* Valgrind has no pidfd_send_signal().  The pid is not reused while poll() reports no end. */
static void kill_own(struct pool_process *process, int pid)
{
	struct pollfd ended = {.fd = process->pidfd, .events = POLLIN};
	int result = (int)syscall(SYS_pidfd_send_signal, process->pidfd, SIGKILL, NULL, 0);

	if (result < 0 && errno == ENOSYS)
		result = poll(&ended, 1, 0) == 0 ? kill(pid, SIGKILL) : 0;
	if (result < 0 && errno != ESRCH)
		log_error("worker %s[%u] (pid %d) cannot be ended: %s", name_of(process),
			  process->number, pid, strerror(errno));
}

void pool_process_kill(struct pool_process *process, const char *why)
{
	/* It is reaped after every part has released it: the pid is still valid. */
	int pid = atomic_load_explicit(&process->pid, memory_order_relaxed);

	/* Kill it only once. */
	if (!pid || atomic_exchange_explicit(&process->doomed, true, memory_order_relaxed))
		return;
	log_warning("worker %s[%u] (pid %d) %s: ending it", name_of(process), process->number, pid,
		    why);
	if (process->child) {
		process->kill.run = process_kill_child;
		loop_post(loop_of(process), &process->kill);
	} else {
		kill_own(process, pid);
	}
}
