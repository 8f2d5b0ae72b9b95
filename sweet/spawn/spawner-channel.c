/* SPDX-License-Identifier: MIT */
/*
 * spawner-channel.c - one thread's end of the spawner: sends requests and receives
 * answers.
 *
 * Each result is first noted in its struct start, which is put into the channel's
 * list of news; then the news are reported.  So no callback runs while a request is
 * made.
 *
 * If a spawner dies and the next one has not answered a request by the time of its
 * MARKED, the request was lost (spawner-wire.h); until then it is doubtful.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <glib.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/list.h"
#include "event/loop.h"
#include "log/log.h"
#include "spawn/spawner-internal.h"
#include "spawn/spawner-wire.h"
#include "spawn/spawner.h"

/* START_LEFT: the program has ended, others of its group have not. */
enum start_state { START_IDLE, START_WAITING, START_ASKED, START_RUNNING, START_LEFT };

enum start_news { NEWS_DONE = 1, NEWS_ENDED = 2, NEWS_GONE = 4 };

/* --- news --------------------------------------------------------------------------- */

static void note(struct spawner_channel *channel, struct start *start, unsigned what)
{
	if (!start->news) {
		list_remove(&start->node); /* it may still wait */
		list_append(&channel->news, &start->node);
	}
	start->news |= what;
	if (!(what & NEWS_GONE) && (what != NEWS_DONE || start->error == 0))
		return;
	/* Over: no further news about it. */
	start->state = START_IDLE;
	if (start->place < SPAWNER_PLACES)
		channel->places[start->place] = NULL;
}

static void note_failure(struct spawner_channel *channel, struct start *start, int error)
{
	start->error = error;
	start->pidfd = -1;
	note(channel, start, NEWS_DONE);
}

/* The program has ended, unless that was noted already; and everything of its group. */
static void note_gone(struct spawner_channel *channel, struct start *start, int status)
{
	if (start->state == START_LEFT) {
		note(channel, start, NEWS_GONE);
		return;
	}
	start->status = status;
	note(channel, start, NEWS_ENDED | NEWS_GONE);
}

static void run_callbacks(struct spawner_channel *channel)
{
	struct start *start;

	while ((start = list_take(&channel->news, struct start, node))) {
		unsigned what = start->news;

		start->news = 0;
		if (what & NEWS_DONE)
			start->done(start, start->error, start->pidfd);
		/*
		 * After an error the memory may be the caller's again: the others
		 * are not called then.
		 */
		if (what & NEWS_ENDED && start->ended)
			start->ended(start, start->status);
		if (what & NEWS_GONE && start->gone)
			start->gone(start);
	}
}

static void listen_to(struct spawner_channel *channel);

static void channel_run_callbacks(struct loop_task *task)
{
	struct spawner_channel *channel = container_of(task, struct spawner_channel, task);

	channel->posted = false;
	if (channel->again)
		listen_to(channel);
	run_callbacks(channel);
}

static void post(struct spawner_channel *channel)
{
	if (channel->posted || !channel->loop)
		return;
	channel->posted = true;
	channel->task.run = channel_run_callbacks;
	loop_post(channel->loop, &channel->task);
}

static void post_news(struct spawner_channel *channel)
{
	if (!list_is_empty(&channel->news))
		post(channel);
}

/* A failure for lack of memory does not mean that the spawner is broken. */
static bool is_out_of_memory(int error)
{
	return error == ENOMEM || error == ENOBUFS;
}

/* Retries later, because no event reports that memory is available again. */
static void try_again(struct spawner_channel *channel)
{
	channel->again = true;
	post(channel);
}

/* --- messages ------------------------------------------------------------------------- */

static bool is_running(const struct start *start)
{
	return start->state == START_RUNNING || start->state == START_LEFT;
}

/* The spawner and its monitor are gone: fails everything. */
static void fail_all(struct spawner_channel *channel)
{
	if (channel->fd < 0)
		return;
	log_error("the process that starts programs has ended: restart the server to "
		  "start programs again");
	if (channel->loop)
		loop_watch_stop(channel->loop, channel->fd);
	close(channel->fd);
	channel->fd = -1;
	for (unsigned i = 0; i < SPAWNER_PLACES; i++) {
		struct start *start = channel->places[i];

		if (start && is_running(start)) {
			note_gone(channel, start, -1);
		} else if (start) {
			note_failure(channel, start, EPIPE);
		}
	}
	channel->asked = 0;
}

/* Returns 0 or -errno. */
static int send_request(struct spawner_channel *channel, const struct start *start,
			int signal_number)
{
	struct spawner_request request = {.kind = signal_number ? SPAWNER_SIGNAL : SPAWNER_START,
					  .place = start->place,
					  .program = start->program,
					  .signal = signal_number};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(SPAWNER_FDS * sizeof(int))];
	} control = {.header = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	struct iovec iov[4] = {{&request, sizeof(request)}};
	struct msghdr message = {.msg_iov = iov, .msg_iovlen = 1};
	unsigned count = 0;

	if (!signal_number) {
		iov[1].iov_base = (void *)(uintptr_t)start->mount;
		iov[1].iov_len = start->mount ? strlen(start->mount) : 0;
		iov[2].iov_base = (void *)(uintptr_t)start->script;
		iov[2].iov_len = start->script ? strlen(start->script) : 0;
		iov[3].iov_base = (void *)(uintptr_t)start->block;
		iov[3].iov_len = start->block_length;
		if (iov[1].iov_len + iov[2].iov_len > SPAWNER_PATH_MAX)
			return -ENAMETOOLONG;
		if (iov[3].iov_len > SPAWNER_BLOCK_MAX)
			return -E2BIG;
		request.mount_length = (uint32_t)iov[1].iov_len;
		request.script_length = (uint32_t)iov[2].iov_len;
		request.block_length = (uint32_t)iov[3].iov_len;
		message.msg_iovlen = 4;
		for (unsigned i = 0; i < SPAWNER_FDS; i++) {
			if (start->fds[i] < 0)
				continue;
			memcpy(CMSG_DATA(&control.header) + count++ * sizeof(int), &start->fds[i],
			       sizeof(int));
			request.fds |= 1u << i;
		}
	}
	if (count) {
		control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
	}
	if (sendmsg(channel->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	/*
	 * The limit of open files also limits descriptors in flight, of all
	 * processes of the user.
	 */
	return errno == ETOOMANYREFS ? -EMFILE : -errno;
}

/* Returns true if it was sent or has failed, and does not wait; false: the spawner's queue is full. */
static bool ask(struct spawner_channel *channel, struct start *start)
{
	int error = send_request(channel, start, 0);

	/* A pending answer will show that there is space again. */
	if (error == -EAGAIN && channel->asked)
		return false;
	if (error) {
		note_failure(channel, start, -error);
		return true;
	}
	list_remove(&start->node);
	start->state = START_ASKED;
	start->doubtful = false;
	channel->asked++;
	return true;
}

static void ask_more(struct spawner_channel *channel)
{
	struct start *start;

	while (channel->fd >= 0 && (start = list_first(&channel->waiting, struct start, node)))
		if (!ask(channel, start))
			return;
}

static void signal_more(struct spawner_channel *channel)
{
	channel->signals = false;
	for (unsigned i = 0; i < SPAWNER_PLACES; i++)
		if (channel->places[i] && channel->places[i]->signal)
			spawner_signal(channel->places[i], channel->places[i]->signal);
}

static void send_mark(struct spawner_channel *channel)
{
	const struct spawner_request request = {.kind = SPAWNER_MARK, .place = channel->renewals};

	channel->mark =
		send(channel->fd, &request, sizeof(request), MSG_DONTWAIT | MSG_NOSIGNAL) < 0;
	/* The queue is full, so an answer will come first. */
	if (channel->mark && errno != EAGAIN)
		try_again(channel);
}

/* A new spawner: everything that ran has ended. */
static void renew(struct spawner_channel *channel)
{
	if (channel->first)
		log_warning("the process that starts programs was ended, and its programs "
			    "with it: a new one has taken over");
	channel->renewals++;
	channel->mark = false;
	for (unsigned i = 0; i < SPAWNER_PLACES; i++) {
		struct start *start = channel->places[i];

		if (start && is_running(start)) {
			note_gone(channel, start, -1);
		} else if (start && start->state == START_ASKED) {
			start->doubtful = channel->mark = true;
		}
	}
	if (channel->mark)
		send_mark(channel);
}

/* Fails the requests that are still doubtful. */
static void settle(struct spawner_channel *channel)
{
	for (unsigned i = 0; i < SPAWNER_PLACES; i++) {
		struct start *start = channel->places[i];

		if (!start || start->state != START_ASKED || !start->doubtful)
			continue;
		channel->asked--;
		note_failure(channel, start, EOWNERDEAD);
	}
}

/* Receives one answer and its pidfd, or -1.  Returns bytes, 0 at the end, -1 with errno. */
static ssize_t receive(int socket, struct spawner_answer *answer, int *pidfd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = answer, .iov_len = sizeof(*answer)};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	ssize_t length = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *header = length < 0 ? NULL : CMSG_FIRSTHDR(&message);

	*pidfd = -1;
	if (header && header->cmsg_type == SCM_RIGHTS && header->cmsg_len >= CMSG_LEN(sizeof(int)))
		memcpy(pidfd, CMSG_DATA(header), sizeof(int));
	return length;
}

/* Returns false on a protocol error. */
static bool take_end(struct spawner_channel *channel, struct start *start,
		     const struct spawner_answer *answer)
{
	if (start->state != (answer->kind == SPAWNER_ENDED ? START_RUNNING : START_LEFT))
		return false;
	if (answer->kind == SPAWNER_GONE || !answer->error) {
		note_gone(channel, start, answer->status);
		return true;
	}
	start->state = START_LEFT;
	start->status = answer->status;
	note(channel, start, NEWS_ENDED);
	return true;
}

/* Returns false on a protocol error. */
static bool take(struct spawner_channel *channel, const struct spawner_answer *answer, int pidfd)
{
	struct start *start =
		answer->place < SPAWNER_PLACES ? channel->places[answer->place] : NULL;

	if (answer->kind == SPAWNER_RENEWED) {
		renew(channel);
		return true;
	}
	if (answer->kind == SPAWNER_MARKED) {
		/* Otherwise the MARK was sent before the last spawner ended, too. */
		if (answer->place == channel->renewals)
			settle(channel);
		return true;
	}
	if (!start)
		return false;
	if (answer->kind == SPAWNER_ENDED || answer->kind == SPAWNER_GONE)
		return take_end(channel, start, answer);
	if (start->state != START_ASKED)
		return false;
	if (answer->kind == SPAWNER_BEGUN) {
		start->doubtful = false;
		return true;
	}
	channel->asked--;
	if (answer->kind == SPAWNER_REFUSED && answer->error > 0) {
		note_failure(channel, start, answer->error);
		return true;
	}
	if (answer->kind != SPAWNER_STARTED)
		return false;
	start->state = START_RUNNING;
	start->error = 0;
	start->pid = answer->pid;
	start->script_length = answer->script_length;
	start->pidfd = pidfd;
	note(channel, start, NEWS_DONE);
	return true;
}

/* Notes all answers that have arrived. */
static void listen_to(struct spawner_channel *channel)
{
	channel->again = false;
	while (channel->fd >= 0) {
		struct spawner_answer answer;
		int pidfd;
		ssize_t length = receive(channel->fd, &answer, &pidfd);

		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0 && is_out_of_memory(errno))
			try_again(channel);
		if (length < 0 && (errno == EAGAIN || is_out_of_memory(errno)))
			break;
		if (length == sizeof(answer) && take(channel, &answer, pidfd))
			continue;
		if (pidfd >= 0)
			close(pidfd);
		fail_all(channel);
	}
	if (channel->mark && channel->fd >= 0)
		send_mark(channel);
	if (channel->signals)
		signal_more(channel);
	ask_more(channel);
}

void spawner_channel_ready(struct loop_watch *watch)
{
	struct spawner_channel *channel = container_of(watch, struct spawner_channel, watch);

	listen_to(channel);
	run_callbacks(channel);
}

/* --- requests ---------------------------------------------------------------------------- */

static void begin(struct spawner_channel *channel, struct start *start)
{
	start->channel = channel;
	start->asked = clock_boottime_ns();
	start->node = (struct list_node){0};
	start->news = start->signal = 0;
	for (start->place = 0; start->place < SPAWNER_PLACES; start->place++)
		if (!channel->places[start->place])
			break;
	if (channel->fd < 0 || start->place == SPAWNER_PLACES) {
		note_failure(channel, start, channel->fd < 0 ? EPIPE : EAGAIN);
		return;
	}
	channel->places[start->place] = start;
	start->state = START_WAITING;
	if (!list_is_empty(&channel->waiting) || !ask(channel, start))
		list_append(&channel->waiting, &start->node);
}

void spawner_ask(struct spawner_channel *channel, struct start *start)
{
	begin(channel, start);
	post_news(channel);
}

void spawner_settle(struct spawner_channel *channel, unsigned ms)
{
	uint64_t until_ns = clock_monotonic_ns() + (uint64_t)ms * 1000000, now_ns;

	run_callbacks(channel);
	while ((channel->asked || !list_is_empty(&channel->waiting)) && channel->fd >= 0) {
		struct pollfd wait = {.fd = channel->fd, .events = POLLIN};

		now_ns = clock_monotonic_ns();
		if (now_ns >= until_ns)
			break;
		(void)poll(&wait, 1, (int)((until_ns - now_ns) / 1000000 + 1));
		listen_to(channel);
		run_callbacks(channel);
	}
}

void spawner_signal(struct start *start, int signal_number)
{
	struct spawner_channel *channel = start->channel;
	int error;

	if (start->state == START_IDLE)
		return;
	/* Sent when the request was; one that cannot be started yet must not outlast its user. */
	error = start->state == START_WAITING ? -EAGAIN
					      : send_request(channel, start, signal_number);
	start->signal = 0;
	if (error != -EAGAIN && error != -EINTR && !is_out_of_memory(-error))
		return;
	start->signal = (uint8_t)signal_number;
	channel->signals = true;
	if (error != -EAGAIN)
		try_again(channel);
}
