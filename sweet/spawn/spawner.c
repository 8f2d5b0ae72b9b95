/* SPDX-License-Identifier: MIT */
/*
 * spawner.c - the server's side of spawner.h: forks the monitor of the spawner, and
 * ends it.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>

#include "event/loop.h"
#include "process/privileges.h"
#include "spawn/spawner-internal.h"
#include "spawn/spawner-process.h"
#include "spawn/spawner-program.h"
#include "spawn/spawner-wire.h"
#include "spawn/spawner.h"

static bool fail(char **why, const char *what)
{
	*why = g_strdup_printf("cannot start the process that starts programs: %s: %s", what,
			       g_strerror(errno));
	return false;
}

static bool check_programs(const struct spawner_program *programs, unsigned count, char **why)
{
	for (unsigned i = 0; i < count; i++) {
		const struct privileges *privileges = programs[i].privileges;
		const char *name = programs[i].path ? programs[i].path : programs[i].folder;

		if (!g_path_is_absolute(name) || (programs[i].path && !programs[i].argv)) {
			*why = g_strdup_printf(
				"\"%s\": must be a path from the root, with arguments", name);
			return false;
		}
		if (!privileges || !privileges->group || geteuid() == 0 ||
		    (privileges->uid == geteuid() && privileges->gid == getegid()))
			continue;
		*why = g_strdup_printf("\"%s\": only root can start it as user %lu, group %lu",
				       name, (unsigned long)privileges->uid,
				       (unsigned long)privileges->gid);
		return false;
	}
	return true;
}

/*
 * Returns true if a spawner is ready for requests; else errno is the reason.  A
 * monitor that ended without a message was killed.
 */
static bool is_ready(int channel)
{
	struct spawner_answer answer;
	ssize_t length;

	do
		length = recv(channel, &answer, sizeof(answer), 0);
	while (length < 0 && errno == EINTR);
	if (length < 0)
		return false;
	if (length != sizeof(answer) ||
	    (answer.kind != SPAWNER_READY && answer.kind != SPAWNER_RENEWED)) {
		errno = ECHILD;
		return false;
	}
	errno = answer.error;
	return answer.error == 0;
}

static bool fork_spawner(struct spawner *spawner, const struct spawner_program *programs,
			 unsigned count, char **why)
{
	int *theirs = g_new(int, spawner->count);
	unsigned made = 0;

	for (; made < spawner->count; made++) {
		int pair[2];

		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
			break;
		spawner->channels[made].fd = pair[0];
		theirs[made] = pair[1];
	}
	if (made == spawner->count) {
		spawner->pid = fork();
		if (spawner->pid == 0)
			spawner_monitor(programs, count, theirs, made);
	}
	for (unsigned i = 0; i < made; i++)
		close(theirs[i]);
	g_free(theirs);
	if (spawner->pid < 0)
		return fail(why, made == spawner->count ? "fork" : "sockets");
	return is_ready(spawner->channels[0].fd) ? true : fail(why, "its initialisation");
}

struct spawner *spawner_open(const struct spawner_program *programs, unsigned count,
			     unsigned threads, char **why)
{
	struct spawner *spawner;

	if (!check_programs(programs, count, why))
		return NULL;
	errno = E2BIG;
	if (threads > SPAWNER_CHANNELS_MAX && !fail(why, "threads"))
		return NULL;
	spawner = g_malloc0(sizeof(*spawner) + threads * sizeof(spawner->channels[0]));
	spawner->count = threads;
	spawner->pid = -1;
	for (unsigned i = 0; i < threads; i++) {
		struct spawner_channel *channel = &spawner->channels[i];

		channel->fd = -1;
		channel->first = i == 0;
		channel->watch.ready = spawner_channel_ready;
	}
	if (!fork_spawner(spawner, programs, count, why)) {
		spawner_close(spawner);
		return NULL;
	}
	return spawner;
}

void spawner_close(struct spawner *spawner)
{
	if (!spawner)
		return;
	for (unsigned i = 0; i < spawner->count; i++) {
		if (spawner->channels[i].fd < 0)
			continue;
		/* The io_uring ring may still hold a reference to the descriptor. */
		shutdown(spawner->channels[i].fd, SHUT_RDWR);
		close(spawner->channels[i].fd);
	}
	if (spawner->pid > 0)
		while (waitpid(spawner->pid, NULL, 0) < 0 && errno == EINTR)
			;
	g_free(spawner);
}

struct spawner_channel *spawner_channel(struct spawner *spawner, unsigned thread)
{
	return &spawner->channels[thread];
}

int spawner_attach(struct spawner_channel *channel, struct loop *loop)
{
	channel->loop = loop;
	return loop_watch_start(loop, &channel->watch, channel->fd);
}
