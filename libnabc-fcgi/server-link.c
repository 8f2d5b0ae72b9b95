/* SPDX-License-Identifier: MIT */
/*
 * server-link.c - see server-link.h.
 *
 * Only one thread at a time may use a worker, and NC_worker_accept() waits without letting another
 * one respond.  So one lock is around all calls, and the next request is accepted when the
 * current one is complete: threads have requests in turn.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <nabc-worker.h>

#include "server-link.h"
#include "mode.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t is_idle;
	NC_worker *worker;
	bool is_busy; /* a request is not complete */
} link_state = {.lock = PTHREAD_MUTEX_INITIALIZER, .is_idle = PTHREAD_COND_INITIALIZER};

/* A signal handler would wait for its own thread. */
static _Thread_local volatile bool is_inside;

static bool enter(void)
{
	if (fcgi_is_child || is_inside) {
		errno = fcgi_is_child ? EACCES : EBUSY;
		return false;
	}
	is_inside = true;
	pthread_mutex_lock(&link_state.lock);
	return true;
}

static int leave(int result)
{
	int error = errno;

	pthread_mutex_unlock(&link_state.lock);
	is_inside = false;
	errno = error;
	return result;
}

static void set_idle(void)
{
	link_state.is_busy = false;
	pthread_cond_signal(&link_state.is_idle);
}

/* At the first request: until then, a program may still end, or say what it lacks. */
static bool join(void)
{
	if (link_state.worker)
		return true;
	fcgi_mode_restore();
	link_state.worker = NC_worker_open(NULL);
	if (!link_state.worker) {
		int error = errno;

		fprintf(stderr, "libnabc-fcgi: process %d cannot join the server: %s\n",
			(int)getpid(), strerror(error));
		errno = error;
		return false;
	}
	fcgi_mode_clear();
	return true;
}

int fcgi_link_accept(struct NC_request *request)
{
	int got;

	if (!enter())
		return -1;
	while (link_state.is_busy)
		pthread_cond_wait(&link_state.is_idle, &link_state.lock);
	got = join() ? NC_worker_accept(link_state.worker, request, sizeof(*request), 0) : -1;
	link_state.is_busy = got > 0;
	/* The end of the server is for all threads. */
	if (got <= 0)
		set_idle();
	return leave(got);
}

int fcgi_link_respond(const struct NC_request *request, const struct NC_response *response)
{
	int result;

	if (!enter())
		return -1;
	result = NC_worker_respond(link_state.worker, request, response);
	if (!result && !(response->flags & NC_RESPONSE_MORE))
		set_idle();
	return leave(result);
}

int fcgi_link_send(const struct NC_request *request, const struct NC_range *ranges, unsigned count,
		   unsigned flags)
{
	int result;

	if (!enter())
		return -1;
	result = NC_worker_send(link_state.worker, request, ranges, count, flags);
	if (result ? errno == ECANCELED : !(flags & NC_RESPONSE_MORE))
		set_idle();
	return leave(result);
}

int fcgi_link_body(struct NC_request *request, struct NC_range *piece)
{
	return enter() ? leave(NC_worker_body(link_state.worker, request, piece, 0)) : -1;
}

int fcgi_link_abort(const struct NC_request *request)
{
	int result;

	if (!enter())
		return -1;
	result = NC_worker_abort(link_state.worker, request);
	set_idle();
	return leave(result);
}

int fcgi_link_gone(const struct NC_request *request)
{
	return enter() ? leave(NC_worker_gone(link_state.worker, request)) : -1;
}
