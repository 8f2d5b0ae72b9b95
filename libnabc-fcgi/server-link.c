/* SPDX-License-Identifier: MIT */
/*
 * server-link.c - see server-link.h.
 *
 * The worker is opened at the first request: until then, a program may still end, or say what it
 * lacks.
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

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static NC_worker *worker;

/* A signal handler would wait for its own thread. */
static _Thread_local volatile bool is_inside;

static bool enter(void)
{
	if (fcgi_is_child || is_inside) {
		errno = fcgi_is_child ? EACCES : EBUSY;
		return false;
	}
	is_inside = true;
	return true;
}

static int leave(int result)
{
	is_inside = false;
	return result;
}

static void join_locked(void)
{
	const struct NC_worker_options options =
		NC_WORKER_OPTIONS_INIT(.flags = NC_WORKER_SOCKET, .socket = fcgi_socket);
	int error;

	worker = NC_worker_open(&options);
	if (worker) {
		fcgi_mode_clear();
		return;
	}
	error = errno;
	fprintf(stderr, "libnabc-fcgi: process %d cannot join the server: %s\n", (int)getpid(),
		strerror(error));
	errno = error;
}

static bool join(void)
{
	bool joined;

	pthread_mutex_lock(&opening);
	if (!worker)
		join_locked();
	joined = worker;
	pthread_mutex_unlock(&opening);
	return joined;
}

int fcgi_link_accept(struct NC_request *request)
{
	if (!enter())
		return -1;
	return leave(join() ? NC_worker_accept(worker, request, sizeof(*request), 0) : -1);
}

int fcgi_link_respond(const struct NC_request *request, const struct NC_response *response)
{
	return enter() ? leave(NC_worker_respond(worker, request, response)) : -1;
}

int fcgi_link_send(const struct NC_request *request, const struct NC_range *ranges, unsigned count,
		   unsigned flags)
{
	return enter() ? leave(NC_worker_send(worker, request, ranges, count, flags)) : -1;
}

int fcgi_link_body(struct NC_request *request, struct NC_range *piece)
{
	return enter() ? leave(NC_worker_body(worker, request, piece, 0)) : -1;
}

int fcgi_link_abort(const struct NC_request *request)
{
	return enter() ? leave(NC_worker_abort(worker, request)) : -1;
}

int fcgi_link_gone(const struct NC_request *request)
{
	return enter() ? leave(NC_worker_gone(worker, request)) : -1;
}
