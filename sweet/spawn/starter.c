/* SPDX-License-Identifier: MIT */
/*
 * starter.c - the server's end of starter.h: forks the keeper of the starter, and
 * ends it.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>

#include "spawn/starter-internal.h"
#include "spawn/starter-keeper.h"

static bool fail(char **why, const char *what)
{
	*why = g_strdup_printf("cannot start the process that starts programs: %s: %s", what,
			       g_strerror(errno));
	return false;
}

static bool check_programs(const struct starter_program *programs, unsigned count, char **why)
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
 * Whether one has come to where it takes requests; else errno is why.  A keeper
 * that ended without a word was killed.
 */
static bool is_ready(int channel)
{
	struct starter_answer answer;
	ssize_t length;

	do
		length = recv(channel, &answer, sizeof(answer), 0);
	while (length < 0 && errno == EINTR);
	if (length < 0)
		return false;
	if (length != sizeof(answer) ||
	    (answer.kind != STARTER_READY && answer.kind != STARTER_RENEWED)) {
		errno = ECHILD;
		return false;
	}
	errno = answer.error;
	return answer.error == 0;
}

static bool fork_starter(struct starter *starter, const struct starter_program *programs,
			 unsigned count, char **why)
{
	int *theirs = g_new(int, starter->count);
	unsigned made = 0;

	for (; made < starter->count; made++) {
		int pair[2];

		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
			break;
		starter->channels[made].fd = pair[0];
		theirs[made] = pair[1];
	}
	if (made == starter->count) {
		starter->pid = fork();
		if (starter->pid == 0)
			starter_keeper(programs, count, theirs, made);
	}
	for (unsigned i = 0; i < made; i++)
		close(theirs[i]);
	g_free(theirs);
	if (starter->pid < 0)
		return fail(why, made == starter->count ? "fork" : "sockets");
	return is_ready(starter->channels[0].fd) ? true : fail(why, "its own start");
}

struct starter *starter_open(const struct starter_program *programs, unsigned count,
			     unsigned threads, char **why)
{
	struct starter *starter;

	if (!check_programs(programs, count, why))
		return NULL;
	errno = E2BIG;
	if (threads > STARTER_CHANNELS_MAX && !fail(why, "threads"))
		return NULL;
	starter = g_malloc0(sizeof(*starter) + threads * sizeof(starter->channels[0]));
	starter->count = threads;
	starter->pid = -1;
	for (unsigned i = 0; i < threads; i++) {
		struct starter_channel *channel = &starter->channels[i];

		channel->fd = -1;
		channel->first = i == 0;
		channel->last_waiting = &channel->waiting;
		channel->last_news = &channel->news;
		channel->watch.ready = starter_channel_ready;
	}
	if (!fork_starter(starter, programs, count, why)) {
		starter_close(starter);
		return NULL;
	}
	return starter;
}

void starter_close(struct starter *starter)
{
	if (!starter)
		return;
	for (unsigned i = 0; i < starter->count; i++) {
		if (starter->channels[i].fd < 0)
			continue;
		/* A ring may still have a hold on the descriptor. */
		shutdown(starter->channels[i].fd, SHUT_RDWR);
		close(starter->channels[i].fd);
	}
	if (starter->pid > 0)
		while (waitpid(starter->pid, NULL, 0) < 0 && errno == EINTR)
			;
	g_free(starter);
}

struct starter_channel *starter_channel(struct starter *starter, unsigned thread)
{
	return &starter->channels[thread];
}

int starter_attach(struct starter_channel *channel, struct loop *loop)
{
	channel->loop = loop;
	return loop_watch_start(loop, &channel->watch, channel->fd);
}
