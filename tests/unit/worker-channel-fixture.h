/* SPDX-License-Identifier: MIT */
/*
 * worker-channel-fixture.h - channel-fixture.h with a worker: it receives calls,
 * and is stopped, continued and killed.
 */
#ifndef WORKER_CHANNEL_FIXTURE_H
#define WORKER_CHANNEL_FIXTURE_H

#include <nabc-worker.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/types.h>
#include <sys/wait.h>

#include "backend/backend-call-internal.h"
#include "gateway/pool-process.h"
#include "gateway/worker-channel.h"

#include "backend-fixture.h"
#include "call-fixture.h"
#include "channel-fixture.h"
#include "suite.h"

static inline void begin_worker(void)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};

	begin_channel();
	backend = start_worker(1, 0);
	ck_assert_ptr_nonnull(backend);
	pollers[0] = epoll_create1(EPOLL_CLOEXEC);
	ck_assert_int_ge(pollers[0], 0);
	ck_assert_int_eq(epoll_ctl(pollers[0], EPOLL_CTL_ADD, NC_backend_fd(backend, 0), &event),
			 0);
	process.pidfd = NC_backend_pidfd(backend);
	process.pid = NC_backend_pid(backend);
	worker_channel_reset(&channel, backend);
}

static inline void end_worker(void)
{
	end_channel();
	close_all();
}

/* Submits a call that the worker answers as the call says. */
static inline struct backend_call *send_call(unsigned number, const char *act, const char *more)
{
	struct backend_call *call = make_call(number);
	char block[64];
	size_t length;

	length = (size_t)snprintf(block, sizeof(block), "DO=%s", act) + 1;
	if (more)
		length += (size_t)snprintf(block + length, sizeof(block) - length, "%s", more) + 1;
	backend_call_keep_block(call, block, length);
	ck_assert(worker_channel_submit(&channel, call, block, length));
	return call;
}

/* Does what the thread does, until the condition holds. */
#define SERVE_UNTIL(condition)                                                                     \
	do {                                                                                       \
		while (!(condition))                                                               \
			if (!worker_channel_settle(&channel) && !(condition) && !rung(0))          \
				ck_abort_msg("not in a minute: %s", #condition);                   \
	} while (0)

/* It does nothing between these. */
static inline void stop_worker(void)
{
	siginfo_t info;

	ck_assert_int_eq(kill(process.pid, SIGSTOP), 0);
	ck_assert_int_eq(waitid(P_PID, (id_t)process.pid, &info, WSTOPPED | WNOWAIT), 0);
}

static inline void continue_worker(void)
{
	ck_assert_int_eq(kill(process.pid, SIGCONT), 0);
}

static inline void await_death(void)
{
	await(process.pidfd, POLLIN);
	worker_channel_reap_last(&channel);
}

#endif
