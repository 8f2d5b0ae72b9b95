/* SPDX-License-Identifier: MIT */
/*
 * group-guard.c - see group-guard.h.
 *
 * The end of the socket is the end of the server, however it came.  A group is removed before its
 * leader is reaped, so the number is not another group's while the guard knows it; at the end of
 * the server another process reaps the leader, and the guard is faster than all numbers are used.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>

#include "log/log.h"
#include "process/privileges.h"
#include "spawn/group-guard.h"
#include "spawn/helper-process.h"

/* A message.  The guard sends one, when it is ready. */
struct note {
	int32_t group;
	uint32_t add;
};

struct group_guard {
	int fd;
	pid_t pid;
	bool lost; /* it has ended, which was logged */
};

/* --- the process --------------------------------------------------------------------- */

static void take(GArray *groups, const struct note *note)
{
	if (note->add && note->group > 1) {
		g_array_append_val(groups, note->group);
		return;
	}
	for (unsigned i = 0; i < groups->len; i++)
		if (g_array_index(groups, int32_t, i) == note->group) {
			g_array_remove_index_fast(groups, i);
			return;
		}
}

static _Noreturn void serve(int fd)
{
	GArray *groups = g_array_new(FALSE, FALSE, sizeof(int32_t));
	struct note note;

	for (;;) {
		ssize_t got = recv(fd, &note, sizeof(note), 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		if (got == sizeof(note))
			take(groups, &note);
	}
	for (unsigned i = 0; i < groups->len; i++)
		kill(-g_array_index(groups, int32_t, i), SIGKILL);
	g_array_free(groups, TRUE);
	_exit(EXIT_SUCCESS);
}

static _Noreturn void be_guard(int socket, const struct privileges *privileges)
{
	char *why;
	int own, error = helper_process_enter("sweet: guard", &socket, 1, &own);
	struct note ready;

	if (!error && !privileges_drop(privileges, &why))
		error = -EPERM;
	if (!error)
		error = privileges_seal();
	ready = (struct note){.group = error};
	if (send(own, &ready, sizeof(ready), MSG_NOSIGNAL) < 0 || error)
		_exit(EXIT_FAILURE);
	serve(own);
}

/* --- the server's side ----------------------------------------------------------------- */

struct group_guard *group_guard_open(const struct privileges *privileges)
{
	struct group_guard *guard;
	struct note ready;
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return NULL;
	pid = fork();
	if (pid == 0) {
		close(ends[1]);
		be_guard(ends[0], privileges);
	}
	close(ends[0]);
	if (pid < 0) {
		close(ends[1]);
		return NULL;
	}
	guard = g_new(struct group_guard, 1);
	*guard = (struct group_guard){.fd = ends[1], .pid = pid};
	if (recv(guard->fd, &ready, sizeof(ready), 0) != sizeof(ready))
		ready.group = -ECHILD;
	if (!ready.group)
		return guard;
	group_guard_close(guard);
	errno = -ready.group;
	return NULL;
}

static void notify(struct group_guard *guard, pid_t group, bool add)
{
	const struct note note = {.group = group, .add = add};

	if (!guard || guard->lost ||
	    send(guard->fd, &note, sizeof(note), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return;
	guard->lost = true;
	log_warning("the process that guards the workers cannot be told of them: %s: if the server "
		    "is killed, what workers have started continues; restart the server",
		    g_strerror(errno));
}

void group_guard_add(struct group_guard *guard, pid_t group)
{
	notify(guard, group, true);
}

void group_guard_remove(struct group_guard *guard, pid_t group)
{
	notify(guard, group, false);
}

void group_guard_close(struct group_guard *guard)
{
	if (!guard)
		return;
	close(guard->fd);
	while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
		;
	g_free(guard);
}
