/* SPDX-License-Identifier: MIT */
/*
 * loop.c - the part of the event loop that all backends share: operations by
 * descriptor, timers, tasks from other threads.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/counter.h"
#include "base/list.h"
#include "base/timer.h"
#include "event/data-path.h"
#include "event/loop-backend.h"
#include "event/loop-internal.h"
#include "event/loop.h"

static _Thread_local struct loop *present; /* the loop that this thread runs */

void loop_tick(struct loop *loop)
{
	loop->now_ns = clock_monotonic_ns();
}

uint64_t loop_now_ns(const struct loop *loop)
{
	return loop->now_ns;
}

uint64_t loop_turn_ns(const struct loop *loop)
{
	return clock_monotonic_ns() - loop->now_ns;
}

uint64_t loop_now_ms(const struct loop *loop)
{
	return loop->now_ns / 1000000u;
}

static void loop_woken(struct loop_watch *op)
{
	struct loop *loop = container_of(op, struct loop, wake);
	uint64_t count;

	(void)!read(loop->wake_fd, &count, sizeof(count));
}

static const struct loop_backend *pick(struct loop *loop, enum loop_kind kind, char *why,
				       size_t why_size)
{
	char reason[96] = "";

	if (kind != LOOP_EPOLL) {
		if (loop_uring.open(loop, reason, sizeof(reason)) == 0) {
			snprintf(why, why_size, "io_uring");
			return &loop_uring;
		}
		if (kind == LOOP_URING) {
			snprintf(why, why_size, "io_uring cannot be used: %s", reason);
			return NULL;
		}
	}
	if (loop_epoll.open(loop, why, why_size) < 0)
		return NULL;
	if (*reason)
		snprintf(why, why_size, "epoll (no io_uring: %s)", reason);
	else
		snprintf(why, why_size, "epoll");
	return &loop_epoll;
}

struct loop *loop_open(enum loop_kind kind, enum loop_room room, char *why, size_t why_size)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop) {
		snprintf(why, why_size, "%s", strerror(ENOMEM));
		return NULL;
	}
	loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	loop->path = &data_path_nabc;
	loop->room = room;
	pthread_mutex_init(&loop->lock, NULL);
	if (loop->wake_fd < 0)
		snprintf(why, why_size, "eventfd: %s", strerror(errno));
	else
		loop->backend = pick(loop, kind, why, why_size);
	loop->wake.ready = loop_woken;
	if (loop->backend && loop_watch_start(loop, &loop->wake, loop->wake_fd) == 0) {
		loop_tick(loop);
		return loop;
	}
	loop_close(loop);
	return NULL;
}

void loop_close(struct loop *loop)
{
	if (!loop)
		return;
	if (loop->backend)
		loop->backend->close(loop);
	if (loop->wake_fd >= 0)
		close(loop->wake_fd);
	pthread_mutex_destroy(&loop->lock);
	free(loop->fds);
	free(loop);
}

void loop_send_by(struct loop *loop, const struct data_path *path)
{
	loop->path = path;
}

const char *loop_name(const struct loop *loop)
{
	return loop->backend->name;
}

const struct loop_counts *loop_counts(const struct loop *loop)
{
	return &loop->counts;
}

static struct loop_fd *entry_of(struct loop *loop, int fd)
{
	if ((unsigned)fd >= loop->fd_count) {
		unsigned count = loop->fd_count ? loop->fd_count : 64;
		struct loop_fd *fds;

		while ((unsigned)fd >= count)
			count *= 2;
		/*
		 * calloc(): unused pages take no memory, even if many threads use a
		 * few descriptors each.
		 */
		fds = calloc(count, sizeof(*fds));
		if (!fds)
			return NULL;
		if (loop->fd_count)
			memcpy(fds, loop->fds, loop->fd_count * sizeof(*fds));
		free(loop->fds);
		loop->fds = fds;
		loop->fd_count = count;
	}
	return &loop->fds[fd];
}

int loop_accept_start(struct loop *loop, struct loop_accept *op, int fd)
{
	struct loop_fd *entry = entry_of(loop, fd);

	if (!entry)
		return -ENOMEM;
	entry->accept = op;
	return loop->backend->begin(loop, fd);
}

void loop_accepted(struct loop *loop, int fd, int result)
{
	struct loop_accept *op = loop->fds[fd].accept;

	if (op->single && result >= 0)
		loop_accept_rest(loop, fd);
	op->accepted(op, result);
}

void loop_accept_rest(struct loop *loop, int fd)
{
	/* An accept that is being stopped is not armed again anyway. */
	if (loop->fds[fd].stopping)
		return;
	loop->fds[fd].resting = true;
	loop->backend->rest(loop, fd);
}

int loop_accept_next(struct loop *loop, int fd)
{
	int error;

	if (!loop->fds[fd].resting)
		return 0;
	error = loop->backend->begin(loop, fd);
	loop->fds[fd].resting = error < 0;
	return error;
}

void loop_accept_stop(struct loop *loop, int fd)
{
	if (loop->fds[fd].stopping)
		return;
	/* A suspended accept is stopped like an active one. */
	(void)loop_accept_next(loop, fd);
	loop->fds[fd].stopping = true;
	loop->backend->stop_accept(loop, fd);
}

void loop_accept_stopped(struct loop *loop, int fd)
{
	struct loop_accept *op = loop->fds[fd].accept;

	loop->fds[fd].accept = NULL;
	loop->fds[fd].stopping = loop->fds[fd].resting = false;
	op->stopped(op);
}

int loop_receive_start(struct loop *loop, struct loop_receive *op, int fd)
{
	struct loop_fd *entry = entry_of(loop, fd);

	if (!entry)
		return -ENOMEM;
	entry->receive = op;
	return loop->backend->begin(loop, fd);
}

void loop_receive_pause(struct loop *loop, int fd)
{
	loop->fds[fd].paused = true;
	loop->backend->pause(loop, fd);
}

void loop_receive_resume(struct loop *loop, int fd)
{
	loop->fds[fd].paused = false;
	if (loop->fds[fd].receive)
		loop->backend->resume(loop, fd);
}

static int watch(struct loop *loop, struct loop_watch *op, int fd, bool sending)
{
	struct loop_fd *entry = entry_of(loop, fd);

	if (!entry)
		return -ENOMEM;
	entry->watch = op;
	entry->sending = sending;
	return loop->backend->begin(loop, fd);
}

int loop_watch_start(struct loop *loop, struct loop_watch *op, int fd)
{
	return watch(loop, op, fd, false);
}

int loop_watch_socket(struct loop *loop, struct loop_watch *op, int fd)
{
	return watch(loop, op, fd, true);
}

void loop_watch_stop(struct loop *loop, int fd)
{
	loop->fds[fd].watch = NULL;
	loop->backend->unwatch(loop, fd);
	loop->fds[fd].generation++;
}

void loop_received(struct loop *loop, int fd, const char *data, int length)
{
	struct loop_receive *op = loop->fds[fd].receive;

	if (length <= 0)
		loop->fds[fd].receive = NULL;
	if (op)
		op->received(op, data, length);
}

void loop_close_fd(struct loop *loop, int fd)
{
	struct loop_fd *entry = entry_of(loop, fd);

	if (!entry) {
		/* The loop never used it, and there is no memory for its entry. */
		close(fd);
		return;
	}
	entry->accept = NULL;
	entry->receive = NULL;
	entry->send = NULL;
	entry->watch = NULL;
	entry->paused = false;
	entry->stopping = false;
	entry->resting = false;
	entry->sending = false;
	/* Pending results are not reported any more. */
	loop_forget_sends(loop, fd);
	loop->backend->close_fd(loop, fd);
	entry->generation++;
}

static void add_task(struct loop *loop, struct list *tasks, struct loop_task *task)
{
	uint64_t one = 1;

	pthread_mutex_lock(&loop->lock);
	list_append(tasks, &task->node);
	pthread_mutex_unlock(&loop->lock);
	/*
	 * run_tasks() clears the flag before it takes the lock: it takes this task, or the flag is
	 * clear here.  The loop's own thread is awake, and checks for tasks before it sleeps.
	 */
	if (!atomic_exchange_explicit(&loop->woken, true, memory_order_acq_rel) && present != loop)
		while (write(loop->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
			;
}

void loop_post(struct loop *loop, struct loop_task *task)
{
	add_task(loop, &loop->posted, task);
}

void loop_queue(struct loop *loop, struct loop_task *task)
{
	add_task(loop, &loop->queued, task);
}

static void run_queued(struct loop *loop)
{
	unsigned left = LOOP_QUEUED_MAX;

	do {
		struct loop_task *task;

		pthread_mutex_lock(&loop->lock);
		task = list_take(&loop->queued, struct loop_task, node);
		pthread_mutex_unlock(&loop->lock);
		if (!task)
			return;
		task->run(task);
	} while (--left && loop_turn_ns(loop) < LOOP_QUEUED_NS);
	/* There may be more: the loop does not sleep. */
	atomic_store_explicit(&loop->woken, true, memory_order_relaxed);
}

static void run_tasks(struct loop *loop)
{
	struct loop_task *task;
	struct list posted;

	if (!atomic_load_explicit(&loop->woken, memory_order_relaxed))
		return;
	atomic_store_explicit(&loop->woken, false, memory_order_seq_cst);
	pthread_mutex_lock(&loop->lock);
	list_move(&posted, &loop->posted);
	pthread_mutex_unlock(&loop->lock);
	while ((task = list_take(&posted, struct loop_task, node)))
		task->run(task);
	run_queued(loop);
}

void loop_hook_add(struct loop *loop, struct loop_hook *hook)
{
	hook->next = loop->hooks;
	loop->hooks = hook;
}

void loop_timer_start(struct loop *loop, struct timer *timer, unsigned ms,
		      void (*expired)(struct timer *timer))
{
	timer_start(&loop->timers, timer, ms, loop_now_ms(loop), expired);
}

void loop_hold_timers(struct loop *loop, unsigned waits)
{
	if (loop->hold < waits)
		loop->hold = waits;
}

static bool call_hooks(struct loop *loop)
{
	bool work = false;

	for (struct loop_hook *hook = loop->hooks; hook; hook = hook->next)
		work |= hook->before_sleep(hook);
	return work;
}

/*
 * Timers run only up to a time of which all events were reported, and processed.  A process may be
 * stopped for longer than any time limit (SIGSTOP, a freezer): what came meanwhile came in time.
 */
static void note_seen(struct loop *loop, uint64_t before_ms, bool all)
{
	if (all && !loop->hold) {
		loop->seen_ms = before_ms;
		loop->behind = 0;
	} else if (!loop->behind) {
		/* Under a load that fills each wait, all of them have had their turn after these. */
		loop->behind_ms = before_ms;
		loop->behind = loop->fd_count / LOOP_EVENTS_MIN + 2;
		if (loop->behind < loop->hold)
			loop->behind = loop->hold;
	} else if (--loop->behind == 0) {
		loop->seen_ms = loop->behind_ms;
	}
}

void loop_run(struct loop *loop)
{
	present = loop;
	if (loop->backend->enter)
		loop->backend->enter(loop);
	loop_tick(loop);
	while (!loop->stopping) {
		uint64_t before_ms;
		bool work, all;

		run_tasks(loop);
		timers_run(&loop->timers, loop->seen_ms);
		loop_complete_sends(loop);
		loop_take_turns(loop);
		work = call_hooks(loop) || !list_is_empty(&loop->sent) ||
		       !list_is_empty(&loop->turns) || loop->stopping || loop->again;
		work |= atomic_load_explicit(&loop->woken, memory_order_relaxed);
		loop->again = false;
		counter_add(&loop->counts.waits, 1);
		before_ms = loop_now_ms(loop);
		all = loop->backend->wait(loop, work ? 0 : timers_wait(&loop->timers, before_ms));
		note_seen(loop, before_ms, all);
		loop->hold = 0;
		loop_tick(loop);
	}
	if (loop->backend->leave)
		loop->backend->leave(loop);
	present = NULL;
}

void loop_stop(struct loop *loop)
{
	loop->stopping = true;
}
