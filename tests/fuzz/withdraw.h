/* SPDX-License-Identifier: MIT */
/*
 * withdraw.h - what must hold when a server withdraws requests, for any number of
 * begun requests in the memory that the worker writes.
 */
#ifndef FUZZ_WITHDRAW_H
#define FUZZ_WITHDRAW_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash-table.h"
#include "os/identity.h"
#include "os/process.h"
#include "os/queue.h"
#include "wire/channel.h"
#include "wire/send-window.h"
#include "worker/backend.h"

#include "fuzz.h"
#include "server.h"

/* Returns the number of waiting requests; or -EPROTO. */
static inline int64_t withdraw_waiting(uint64_t told)
{
	uint64_t submitted = server->channel[0].submitted, begun = told - NC_CHANNEL_CLAIMS;

	return begun > submitted || submitted - begun > INT_MAX ? -EPROTO
								: (int64_t)(submitted - begun);
}

/* Returns the body windows of the requests from the first to the last; of all: 1, UINT64_MAX. */
static inline unsigned withdraw_flows(uint64_t first, uint64_t last)
{
	const struct nc_send_windows *windows = &server->channel[0].windows;
	unsigned count = 0;

	for (const struct nc_send_window *window = nc_send_windows_next(windows, NULL); window;
	     window = nc_send_windows_next(windows, window))
		count += window->body && window->number >= first && window->number <= last;
	return count;
}

/* While nothing else writes.  Returns false if the server would kill the worker. */
static inline bool withdraw_checked(unsigned most)
{
	const struct nc_send_windows *windows = &server->channel[0].windows;
	uint64_t told = nc_queue_claims(&server_channel.requests),
		 first = told - NC_CHANNEL_CLAIMS + 1;
	int64_t waiting = withdraw_waiting(told), count = waiting < most ? waiting : most;
	unsigned left = UINT_MAX, before = windows->table.count, begun = 0;
	unsigned dropped = count > 0 ? withdraw_flows(first, first + (uint64_t)count - 1) : 0;
	int result = nc_backend_withdraw(server, 0, most, &left);

	if (waiting < 0) {
		MUST(result == -EPROTO && nc_queue_claims(&server_channel.requests) == told);
		MUST(windows->table.count == before);
		return false;
	}
	MUST(result == count && left == waiting - count);
	MUST(nc_queue_claims(&server_channel.requests) == told + (uint64_t)count);
	MUST(windows->table.count == before - dropped);
	MUST(count == 0 || withdraw_flows(first, first + (uint64_t)count - 1) == 0);
	for (const struct nc_send_window *window = nc_send_windows_next(windows, NULL); window;
	     window = nc_send_windows_next(windows, window))
		begun += window->begun && !window->switched;
	MUST(windows->begun == begun);
	return true;
}

/* Returns the pidfd of a process that has exited. */
static inline int withdraw_ended_process(void)
{
	static int ended = -1;
	pid_t pid;

	if (ended >= 0)
		return ended;
	pid = fork();
	MUST(pid >= 0);
	if (pid == 0)
		_exit(0);
	ended = nc_identity_open(pid);
	MUST(ended >= 0 && waitpid(pid, NULL, 0) == pid);
	/* It does not count as a descriptor that the target has left open. */
	server_descriptors++;
	return ended;
}

/* A worker that has exited shows the same number of requests that it never began. */
static inline void withdraw_check_pending(void)
{
	server->process.pidfd = withdraw_ended_process();
	MUST(nc_backend_pending(server, 0) ==
	     withdraw_waiting(nc_queue_claims(&server_channel.requests)));
	server->process.pidfd = -1;
	MUST(nc_backend_pending(server, 0) == -EBUSY);
}

#endif
