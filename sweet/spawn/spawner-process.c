/* SPDX-License-Identifier: MIT */
/*
 * spawner-process.c - see spawner-process.h.
 *
 * It never waits for the server: answers that cannot be sent yet are kept, and no
 * further request is read from that channel until they are sent.  What is kept is
 * bounded by the places of the channel.  A request affects only programs of its own
 * channel.
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
#include "spawn/spawner-process.h"
#include "spawn/spawner-program.h"
#include "spawn/spawner-wire.h"

#define LOOK_MS 200 /* interval of looks at groups: processes leave them without an event */

struct place {
	pid_t pid; /* 0: free */
	/*
	 * The program was reaped, which is not yet reported; then processes of its group are left;
	 * then none is, which is not yet reported.
	 */
	bool ended, left, gone;
	int status;
};

struct channel {
	int fd;			      /* -1: closed */
	struct spawner_answer answer; /* to the last request, or RENEWED; kind 0: sent */
	int answer_pidfd;
	unsigned ended; /* number of places of which an end must be reported */
	struct place places[SPAWNER_PLACES];
};

struct process {
	const struct spawner_program *programs;
	unsigned count;
	struct spawner_exec *exec;
	int signals;
	unsigned left; /* number of places with processes of a program that has ended */
	unsigned channel_count;
	struct channel *channels;
	struct pollfd *polls; /* of the channels, then of the signals */
	struct spawner_launch launch;
	alignas(struct spawner_request) char message[SPAWNER_MESSAGE_MAX];
};

/* --- answers --------------------------------------------------------------------------- */

/* Returns true if it was sent. */
static bool send_answer(int channel, const struct spawner_answer *answer, int fd)
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
static bool has_left(pid_t pid)
{
	siginfo_t info;

	return waitid(P_PGID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* If not, another group may have its number by now. */
static bool has_processes(const struct place *place)
{
	if (place->left)
		return has_left(place->pid);
	return place->pid && !place->ended && !place->gone;
}

static void end_programs(struct channel *channel)
{
	for (unsigned i = 0; i < SPAWNER_PLACES; i++)
		if (has_processes(&channel->places[i]))
			kill(-channel->places[i].pid, SIGKILL);
}

/* The server has closed its end, or sent an invalid message. */
static void close_channel(struct channel *channel)
{
	/* The monitor holds it as well. */
	(void)shutdown(channel->fd, SHUT_RDWR);
	close(channel->fd);
	channel->fd = -1;
	if (channel->answer_pidfd >= 0)
		close(channel->answer_pidfd);
	channel->answer_pidfd = -1;
	channel->answer.kind = 0;
	end_programs(channel);
}

static bool is_later(int error)
{
	/* Too many descriptors in flight: sending succeeds after some are received. */
	return error == EAGAIN || error == EINTR || error == ENOMEM || error == ENOBUFS ||
	       error == ETOOMANYREFS;
}

/* Sends what must be reported of its end; returns true if that was sent. */
static bool send_end(struct channel *channel, struct place *place)
{
	struct spawner_answer answer = {.kind = place->ended ? SPAWNER_ENDED : SPAWNER_GONE,
					.place = (uint32_t)(place - channel->places),
					.pid = place->pid,
					.error = place->ended && place->left,
					.status = place->status};

	if (!send_answer(channel->fd, &answer, -1)) {
		if (!is_later(errno))
			close_channel(channel);
		return false;
	}
	place->ended = false;
	if (!place->left)
		*place = (struct place){0};
	channel->ended--;
	return true;
}

/* Sends as many pending answers as possible; returns true if none is left. */
static bool send_answers(struct channel *channel)
{
	if (channel->answer.kind) {
		if (!send_answer(channel->fd, &channel->answer, channel->answer_pidfd)) {
			if (!is_later(errno))
				close_channel(channel);
			return false;
		}
		channel->answer.kind = 0;
		if (channel->answer_pidfd >= 0)
			close(channel->answer_pidfd);
		channel->answer_pidfd = -1;
	}
	for (unsigned i = 0; i < SPAWNER_PLACES && channel->ended; i++) {
		struct place *place = &channel->places[i];

		if ((place->ended || place->gone) && !send_end(channel, place))
			return false;
	}
	return true;
}

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

static int start(struct process *process, struct channel *channel, unsigned place, size_t length,
		 const int *got, unsigned count)
{
	struct spawner_launch *launch = &process->launch;
	const struct spawner_request *request = (const void *)process->message;
	int error = spawner_launch_read(launch, process->programs, process->count, process->message,
					length, count);
	int fds[SPAWNER_FDS];
	pid_t pid;

	if (error)
		return error;
	for (unsigned i = 0; i < SPAWNER_FDS; i++)
		fds[i] = request->fds & 1u << i ? *got++ : -1;
	error = spawner_exec_run(process->exec, launch, fds, &pid, &channel->answer_pidfd);
	if (error)
		return error;
	channel->places[place].pid = pid;
	channel->answer.pid = pid;
	channel->answer.script_length = (uint32_t)launch->script_length;
	return 0;
}

/* Returns false if the channel must be closed. */
static bool act(struct process *process, struct channel *channel, size_t length, const int *fds,
		unsigned count, bool cut)
{
	const struct spawner_request *request = (const void *)process->message;
	pid_t pid;
	int error;

	if (length >= sizeof(*request) && request->kind == SPAWNER_MARK) {
		channel->answer =
			(struct spawner_answer){.kind = SPAWNER_MARKED, .place = request->place};
		return true;
	}
	if (length < sizeof(*request) || request->place >= SPAWNER_PLACES)
		return false;
	pid = channel->places[request->place].pid;
	if (request->kind == SPAWNER_SIGNAL) {
		/* The program may have ended meanwhile. */
		if (has_processes(&channel->places[request->place]) &&
		    (request->signal == SIGTERM || request->signal == SIGKILL))
			kill(-pid, request->signal);
		return true;
	}
	if (pid)
		return false;
	channel->answer = (struct spawner_answer){.place = request->place};
	error = cut ? -EMFILE : start(process, channel, request->place, length, fds, count);
	channel->answer.kind = error ? SPAWNER_REFUSED : SPAWNER_STARTED;
	channel->answer.error = -error;
	return true;
}

static void serve(struct process *process, struct channel *channel)
{
	int fds[SPAWNER_FDS];
	unsigned count;
	ssize_t length;
	bool good, cut;

	if (!send_answers(channel))
		return;
	length = receive(process, channel->fd, fds, &count, &cut);
	if (length < 0 && is_later(errno))
		return;
	/* 0: the server has closed its end.  An invalid message is not from a working server. */
	good = length > 0 && act(process, channel, (size_t)length, fds, count, cut);
	close_fds(fds, count);
	if (good)
		(void)send_answers(channel);
	else
		close_channel(channel);
}

/* --- the main loop ------------------------------------------------------------------------- */

static void note_end(struct process *process, pid_t pid, int status)
{
	for (unsigned i = 0; i < process->channel_count; i++) {
		struct channel *channel = &process->channels[i];

		for (unsigned k = 0; k < SPAWNER_PLACES; k++) {
			struct place *place = &channel->places[k];

			if (place->pid != pid || place->ended || place->left || place->gone)
				continue;
			place->left = has_left(pid);
			process->left += place->left;
			if (channel->fd < 0) {
				/* Started while the channel's programs were killed. */
				if (place->left)
					kill(-pid, SIGKILL);
				else
					*place = (struct place){0};
				return;
			}
			place->ended = true;
			place->status = status;
			channel->ended++;
			return;
		}
	}
}

/* Finds the groups that have ended since. */
static void check_left(struct process *process)
{
	for (unsigned i = 0; i < process->channel_count * SPAWNER_PLACES && process->left; i++) {
		struct channel *channel = &process->channels[i / SPAWNER_PLACES];
		struct place *place = &channel->places[i % SPAWNER_PLACES];

		if (!place->left || has_left(place->pid))
			continue;
		place->left = false;
		process->left--;
		if (channel->fd < 0) {
			*place = (struct place){0};
		} else if (!place->ended) {
			place->gone = true;
			channel->ended++;
		}
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

/* Returns false if no channel is left. */
static bool turn(struct process *process)
{
	struct pollfd *polls = process->polls;
	bool open = false;

	for (unsigned i = 0; i < process->channel_count; i++) {
		struct channel *channel = &process->channels[i];
		bool late = channel->answer.kind || channel->ended;

		polls[i] = (struct pollfd){.fd = channel->fd, .events = late ? POLLOUT : POLLIN};
		open |= channel->fd >= 0;
	}
	polls[process->channel_count] = (struct pollfd){.fd = process->signals, .events = POLLIN};
	if (!open)
		return false;
	if (poll(polls, process->channel_count + 1, process->left ? LOOK_MS : -1) < 0)
		return true;
	if (polls[process->channel_count].revents || process->left) {
		reap(process);
		for (unsigned i = 0; i < process->channel_count; i++)
			if (process->channels[i].fd >= 0 && process->channels[i].ended)
				(void)send_answers(&process->channels[i]);
	}
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
	for (unsigned i = 0; i < process->channel_count; i++)
		process->channels[i] =
			(struct channel){.fd = channels[i],
					 .answer.kind = renewed ? SPAWNER_RENEWED : 0,
					 .answer_pidfd = -1};
	sigemptyset(&all);
	sigaddset(&all, SIGCHLD);
	process->signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (process->signals < 0)
		return false;
	process->exec = spawner_exec_open();
	return process->exec != NULL;
}

bool spawner_report_ready(int channel, int error)
{
	const struct spawner_answer answer = {.kind = SPAWNER_READY, .error = error};

	return send_answer(channel, &answer, -1);
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
		process->polls = calloc(channel_count + 1, sizeof(*process->polls));
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
