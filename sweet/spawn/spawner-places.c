/* SPDX-License-Identifier: MIT */
/*
 * spawner-places.c - see spawner-places.h.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spawn/spawner-places.h"
#include "spawn/spawner-wire.h"

/* Returns true if it was sent. */
bool spawner_send(int channel, const struct spawner_answer *answer, int fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS}};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)answer, .iov_len = sizeof(*answer)};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	return sendmsg(channel, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

/*
 * Whether the group of a program that was reaped has processes.  Those whose parent has ended are
 * children of the spawner, so none can be missed.
 */
bool spawner_group_exists(pid_t pid)
{
	siginfo_t info;

	return waitid(P_PGID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* If not, another group may have its number by now. */
static bool has_processes(const struct spawner_place *place)
{
	if (place->left)
		return spawner_group_exists(place->pid);
	return place->pid && !place->reaped;
}

/* A program that is starting may have no group yet. */
void spawner_place_signal(const struct spawner_place *place, int number)
{
	if (!has_processes(place))
		return;
	kill(-place->pid, number);
	if (place->report >= 0)
		kill(place->pid, number);
}

void spawner_place_report(struct spawner_places *channel, struct spawner_place *place,
			  unsigned what)
{
	channel->news += !place->news;
	place->news |= (uint8_t)what;
}

void spawner_place_free(struct spawner_place *place)
{
	if (place->pidfd >= 0)
		close(place->pidfd);
	if (place->report >= 0)
		close(place->report);
	*place = (struct spawner_place){.report = -1, .pidfd = -1};
}

/* The server has closed its end, or sent an invalid message. */
void spawner_places_close(struct spawner_places *channel)
{
	/* The monitor holds it as well. */
	(void)shutdown(channel->fd, SHUT_RDWR);
	close(channel->fd);
	channel->fd = -1;
	channel->answer.kind = 0;
	channel->news = channel->starting = 0;
	for (unsigned i = 0; i < SPAWNER_PLACES; i++) {
		struct spawner_place *place = &channel->places[i];

		place->news = 0;
		spawner_place_signal(place, SIGKILL);
		/* Its start needs no result any more. */
		if (place->report >= 0)
			close(place->report);
		place->report = -1;
		if (place->reaped && !place->left)
			spawner_place_free(place);
	}
}

bool spawner_is_later(int error)
{
	/* Too many descriptors in flight: sending succeeds after some are received. */
	return error == EAGAIN || error == EINTR || error == ENOMEM || error == ENOBUFS ||
	       error == ETOOMANYREFS;
}

/* Sends the first of its news; returns false if that must wait, or the channel was closed. */
static bool send_news(struct spawner_places *channel, struct spawner_place *place)
{
	struct spawner_answer answer = {.place = (uint32_t)(place - channel->places),
					.pid = place->pid};
	unsigned what = place->news & -(unsigned)place->news;

	if (what == PLACE_BEGUN) {
		answer.kind = SPAWNER_BEGUN;
	} else if (what == PLACE_RESULT) {
		answer.kind = place->error ? SPAWNER_REFUSED : SPAWNER_STARTED;
		answer.error = place->error;
		answer.script_length = place->script_length;
	} else {
		answer.kind = what == PLACE_ENDED ? SPAWNER_ENDED : SPAWNER_GONE;
		answer.error = what == PLACE_ENDED && place->left;
		answer.status = place->status;
	}
	if (!spawner_send(channel->fd, &answer, what == PLACE_RESULT ? place->pidfd : -1)) {
		if (!spawner_is_later(errno))
			spawner_places_close(channel);
		return false;
	}
	place->news &= (uint8_t)~what;
	channel->news -= !place->news;
	if (what == PLACE_RESULT && place->pidfd >= 0) {
		close(place->pidfd);
		place->pidfd = -1;
	}
	if ((what == PLACE_RESULT && place->error) || (what >= PLACE_ENDED && !place->left))
		spawner_place_free(place);
	return true;
}

static bool send_own(struct spawner_places *channel)
{
	if (!spawner_send(channel->fd, &channel->answer, -1)) {
		if (!spawner_is_later(errno))
			spawner_places_close(channel);
		return false;
	}
	channel->answer.kind = 0;
	return true;
}

/* Sends as many pending answers as possible; returns true if none is left. */
bool spawner_places_send(struct spawner_places *channel)
{
	/* All that was before it has ended; but MARKED comes after what it refers to. */
	if (channel->answer.kind == SPAWNER_RENEWED && !send_own(channel))
		return false;
	for (unsigned i = 0; i < SPAWNER_PLACES && channel->news; i++)
		while (channel->places[i].news)
			if (!send_news(channel, &channel->places[i]))
				return false;
	return !channel->answer.kind || send_own(channel);
}
