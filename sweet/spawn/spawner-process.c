/* SPDX-License-Identifier: MIT */
/*
 * spawner-process.c - see spawner-process.h.
 *
 * It never waits, neither for a start nor for the server: answers that cannot be sent yet are kept,
 * and no further request is read from that channel until they are sent.  What is kept is bounded by
 * the places of the channel.  A request affects only programs of its own channel.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spawn/spawner-exec.h"
#include "spawn/spawner-places.h"
#include "spawn/spawner-process.h"
#include "spawn/spawner-program.h"
#include "spawn/spawner-wire.h"

#define LOOK_MS 200 /* interval of looks at groups: processes leave them without an event */

struct process {
	const struct spawner_program *programs;
	unsigned count;
	int signals;
	unsigned left; /* number of places with processes of a program that has ended */
	unsigned channel_count;
	struct spawner_places *channels;
	struct pollfd *polls; /* of the channels, the signals, then of starts */
	struct spawner_launch launch;
	alignas(struct spawner_request) char message[SPAWNER_MESSAGE_MAX];
};

/* --- requests ---------------------------------------------------------------------------- */

static void close_fds(const int *fds, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		close(fds[i]);
}

/*
 * Returns bytes or -1; accepts at most SPAWNER_FDS descriptors. *cut: the process
 * has too many open files to receive them.
 */
static ssize_t receive(struct process *process, int socket, int fds[SPAWNER_FDS], unsigned *count,
		       bool *cut)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(SPAWNER_FDS * sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = process->message, .iov_len = sizeof(process->message)};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	ssize_t length = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*count = 0;
	*cut = false;
	if (length < 0)
		return -1;
	for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header;
	     header = CMSG_NXTHDR(&message, header)) {
		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		*count = (unsigned)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(header), *count * sizeof(int));
	}
	*cut = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == MSG_CTRUNC && *count < SPAWNER_FDS;
	if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		close_fds(fds, *count);
		*count = 0;
	}
	if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) && !*cut) {
		errno = EBADMSG;
		return -1;
	}
	return length;
}

static int start(struct process *process, struct spawner_places *channel,
		 struct spawner_place *place, size_t length, const int *got, unsigned count)
{
	struct spawner_launch *launch = &process->launch;
	const struct spawner_request *request = (const void *)process->message;
	int error = spawner_launch_read(launch, process->programs, process->count, process->message,
					length, count);
	int fds[SPAWNER_FDS];

	if (error)
		return error;
	for (unsigned i = 0; i < SPAWNER_FDS; i++)
		fds[i] = request->fds & 1u << i ? *got++ : -1;
	error = spawner_exec_begin(launch, fds, &place->pid, &place->pidfd, &place->report);
	if (error) {
		place->pid = 0;
		return error;
	}
	place->script_length = (uint32_t)launch->script_length;
	channel->starting++;
	return 0;
}

/* The result of the start is known, or will be later. */
static void check_start(struct spawner_places *channel, struct spawner_place *place)
{
	int error = spawner_exec_result(place->report);

	if (error == -EAGAIN)
		return;
	close(place->report);
	place->report = -1;
	channel->starting--;
	place->error = -error;
	/* The child ends by itself, and is reaped as a process that is not known. */
	if (error) {
		place->pid = 0;
		if (place->pidfd >= 0)
			close(place->pidfd);
		place->pidfd = -1;
	}
	spawner_place_report(channel, place, PLACE_RESULT);
}

static void mark(struct spawner_places *channel, uint32_t number)
{
	for (unsigned i = 0; i < SPAWNER_PLACES && channel->starting; i++)
		if (channel->places[i].report >= 0)
			spawner_place_report(channel, &channel->places[i], PLACE_BEGUN);
	channel->answer = (struct spawner_answer){.kind = SPAWNER_MARKED, .place = number};
}

/* Returns false if the channel must be closed. */
static bool act(struct process *process, struct spawner_places *channel, size_t length,
		const int *fds, unsigned count, bool cut)
{
	const struct spawner_request *request = (const void *)process->message;
	struct spawner_place *place;
	int error;

	if (length >= sizeof(*request) && request->kind == SPAWNER_MARK) {
		mark(channel, request->place);
		return true;
	}
	if (length < sizeof(*request) || request->place >= SPAWNER_PLACES)
		return false;
	place = &channel->places[request->place];
	if (request->kind == SPAWNER_SIGNAL) {
		/* The program may have ended meanwhile. */
		if (request->signal == SIGTERM || request->signal == SIGKILL)
			spawner_place_signal(place, request->signal);
		return true;
	}
	if (place->pid || place->news)
		return false;
	error = cut ? -EMFILE : start(process, channel, place, length, fds, count);
	if (error) {
		place->error = -error;
		spawner_place_report(channel, place, PLACE_RESULT);
	}
	return true;
}

static void serve(struct process *process, struct spawner_places *channel)
{
	int fds[SPAWNER_FDS];
	unsigned count;
	ssize_t length;
	bool good, cut;

	if (!spawner_places_send(channel))
		return;
	length = receive(process, channel->fd, fds, &count, &cut);
	if (length < 0 && spawner_is_later(errno))
		return;
	/* 0: the server has closed its end.  An invalid message is not from a working server. */
	good = length > 0 && act(process, channel, (size_t)length, fds, count, cut);
	close_fds(fds, count);
	if (good)
		(void)spawner_places_send(channel);
	else
		spawner_places_close(channel);
}

/* --- the main loop ------------------------------------------------------------------------- */

static void note_end(struct process *process, pid_t pid, int status)
{
	for (unsigned i = 0; i < process->channel_count; i++) {
		struct spawner_places *channel = &process->channels[i];

		for (unsigned k = 0; k < SPAWNER_PLACES; k++) {
			struct spawner_place *place = &channel->places[k];

			if (place->pid != pid || place->reaped)
				continue;
			/* The report of its start is there: nothing else has its other end. */
			if (place->report >= 0)
				check_start(channel, place);
			if (place->error)
				return;
			place->reaped = true;
			place->left = spawner_group_exists(pid);
			process->left += place->left;
			place->status = status;
			if (channel->fd >= 0)
				spawner_place_report(channel, place, PLACE_ENDED);
			else if (place->left) /* started while the others were killed */
				kill(-pid, SIGKILL);
			else
				spawner_place_free(place);
			return;
		}
	}
}

/* Finds the groups that have ended since. */
static void check_left(struct process *process)
{
	for (unsigned i = 0; i < process->channel_count * SPAWNER_PLACES && process->left; i++) {
		struct spawner_places *channel = &process->channels[i / SPAWNER_PLACES];
		struct spawner_place *place = &channel->places[i % SPAWNER_PLACES];

		if (!place->left || spawner_group_exists(place->pid))
			continue;
		place->left = false;
		process->left--;
		if (channel->fd < 0)
			spawner_place_free(place);
		else if (!(place->news & PLACE_ENDED))
			spawner_place_report(channel, place, PLACE_GONE);
	}
}

static void reap(struct process *process)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	while (read(process->signals, &info, sizeof(info)) > 0)
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		note_end(process, pid, status);
	check_left(process);
}

/* Adds the starts whose results are to come; returns the new number. */
static unsigned poll_starts(struct process *process, unsigned count)
{
	for (unsigned i = 0; i < process->channel_count; i++) {
		struct spawner_places *channel = &process->channels[i];

		for (unsigned k = 0, left = channel->starting; left; k++) {
			if (channel->places[k].report < 0)
				continue;
			left--;
			process->polls[count++] =
				(struct pollfd){.fd = channel->places[k].report, .events = POLLIN};
		}
	}
	return count;
}

static void check_starts(struct process *process)
{
	for (unsigned i = 0; i < process->channel_count; i++) {
		struct spawner_places *channel = &process->channels[i];

		for (unsigned k = 0, left = channel->starting; left; k++) {
			if (channel->places[k].report < 0)
				continue;
			left--;
			check_start(channel, &channel->places[k]);
		}
	}
}

/* Returns false if no channel is left. */
static bool turn(struct process *process)
{
	struct pollfd *polls = process->polls;
	unsigned signals = process->channel_count, count = signals + 1;
	bool open = false;

	for (unsigned i = 0; i < process->channel_count; i++) {
		struct spawner_places *channel = &process->channels[i];
		bool late = channel->answer.kind || channel->news;

		polls[i] = (struct pollfd){.fd = channel->fd, .events = late ? POLLOUT : POLLIN};
		open |= channel->fd >= 0;
	}
	polls[signals] = (struct pollfd){.fd = process->signals, .events = POLLIN};
	if (!open)
		return false;
	count = poll_starts(process, count);
	if (poll(polls, count, process->left ? LOOK_MS : -1) < 0)
		return true;
	if (count > signals + 1)
		check_starts(process);
	if (polls[signals].revents || process->left)
		reap(process);
	for (unsigned i = 0; i < process->channel_count; i++)
		if (process->channels[i].fd >= 0 &&
		    (process->channels[i].news || process->channels[i].answer.kind))
			(void)spawner_places_send(&process->channels[i]);
	for (unsigned i = 0; i < process->channel_count; i++)
		if (polls[i].revents && process->channels[i].fd >= 0)
			serve(process, &process->channels[i]);
	return true;
}

static bool set_up(struct process *process, const int *channels, bool renewed)
{
	sigset_t all;

	(void)prctl(PR_SET_NAME, "sweet: starter", 0, 0, 0);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	for (unsigned i = 0; i < process->channel_count; i++) {
		process->channels[i].fd = channels[i];
		process->channels[i].answer.kind = renewed ? SPAWNER_RENEWED : 0;
		for (unsigned k = 0; k < SPAWNER_PLACES; k++)
			process->channels[i].places[k] =
				(struct spawner_place){.report = -1, .pidfd = -1};
	}
	sigemptyset(&all);
	sigaddset(&all, SIGCHLD);
	process->signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	return process->signals >= 0;
}

bool spawner_report_ready(int channel, int error)
{
	const struct spawner_answer answer = {.kind = SPAWNER_READY, .error = error};

	return spawner_send(channel, &answer, -1);
}

void spawner_process(const struct spawner_program *programs, unsigned count, const int *channels,
		     unsigned channel_count, bool renewed)
{
	/* Never freed; static, so that leak checkers find it. */
	static struct process *process;
	bool is_set_up = false;

	errno = 0;
	process = calloc(1, sizeof(*process));
	if (process) {
		process->programs = programs;
		process->count = count;
		process->channel_count = channel_count;
		process->channels = calloc(channel_count, sizeof(*process->channels));
		process->polls =
			calloc(channel_count * (SPAWNER_PLACES + 1) + 1, sizeof(*process->polls));
		is_set_up =
			process->channels && process->polls && set_up(process, channels, renewed);
	}
	/* Nobody waits for a later spawner to be ready; it sends RENEWED. */
	if (!renewed && !spawner_report_ready(channels[0], is_set_up ? 0 : errno ? errno : EIO))
		is_set_up = false;
	if (!is_set_up)
		_exit(1);
	while (turn(process))
		;
	/* Closing a channel has killed its programs. */
	_exit(0);
}
