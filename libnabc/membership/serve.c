/* SPDX-License-Identifier: MIT */
/*
 * serve.c - the life cycle of members, and the thread that serves them; see
 * serve.h.
 *
 * A guest is a member at the other end of a socket.  It is gone when its socket
 * hangs up or when its process ends, whichever comes first: a socket can be passed
 * on, and a process can be stopped from closing it (invariant 5).
 */
#include <errno.h>
#include <nabc-worker.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/diagnostics.h"
#include "cache/grant.h"
#include "cache/index.h"
#include "cache/remote-member.h"
#include "membership/disposal.h"
#include "membership/serve-internal.h"
#include "membership/serve.h"
#include "os/descriptor.h"
#include "os/identity.h"
#include "os/queue.h"
#include "os/thread.h"

#define EVENTS 16
#define STOP_SECONDS 2	  /* time that the thread gets to finish its current work */
#define CALLS_PER_TURN 16 /* calls of one guest per turn; then the next guest is served */

struct nc_remote_member *nc_guest_remote(const struct nc_guest *guest)
{
	return guest->remote;
}

const struct nc_subject *nc_guest_subject(const struct nc_guest *guest)
{
	return &guest->subject;
}

int nc_serve_init(struct nc_serve *serve, struct nc_index *index)
{
	*serve = (struct nc_serve){.index = index,
				   .epoll = -1,
				   .members = -1,
				   .wake = -1,
				   .listener = -1,
				   .spare = -1};
	pthread_mutex_init(&serve->lock, NULL);
	pthread_mutex_init(&serve->turn, NULL);
	if (!index->owner)
		return 0;
	serve->disposal = nc_disposal_open();
	if (!serve->disposal)
		return -ENOMEM;
	serve->epoll = serve->members = nc_descriptor(epoll_create1(EPOLL_CLOEXEC));
	if (serve->epoll >= 0)
		return 0;
	nc_disposal_close(serve->disposal);
	return serve->epoll;
}

/*
 * A unit that a member left behind is for a process that knows its id, but that may
 * never fetch it.
 */
static void serve_orphaned(void *context, size_t id)
{
	nc_index_orphan(context, id);
}

/* A unit that an operator inserted belongs to the cache. */
static void serve_kept(void *context, size_t id)
{
	(void)context;
	(void)id;
}

static void detach(struct nc_serve *serve, struct nc_guest *guest)
{
	if (guest->remote)
		nc_remote_member_identify(guest->remote, NULL, 0, -1);
	nc_grants_part(&serve->index->grants, &guest->subject,
		       guest->subject.operates ? serve_kept : serve_orphaned, serve->index);
	if (guest->remote)
		nc_index_detach(serve->index, guest->remote);
}

void nc_serve_part(struct nc_serve *serve, struct nc_guest *guest)
{
	if (guest->gone)
		return;
	guest->gone = true;
	(void)epoll_ctl(serve->members, EPOLL_CTL_DEL, guest->socket, NULL);
	if (guest->subject.who.pidfd >= 0)
		(void)epoll_ctl(serve->members, EPOLL_CTL_DEL, guest->subject.who.pidfd, NULL);
	/* A worker keeps its units while its responses are still being read. */
	if (!guest->worker)
		detach(serve, guest);
	if (guest->welcome)
		nc_index_enrol(serve->index, -1);
	else
		serve->waiting--;
}

/* The guest is no longer used; it stays in the list until its socket is closed. */
static void dismiss(struct nc_serve *serve, struct nc_guest *guest)
{
	nc_serve_part(serve, guest);
	if (guest->worker)
		detach(serve, guest);
	guest->dismissed = true;
}

/* Removes unused guests from the list; the caller frees them without the lock. */
static struct nc_guest *take_gone_locked(struct nc_serve *serve)
{
	struct nc_guest **link = &serve->guests, *gone = NULL, *guest;

	while ((guest = *link)) {
		if (!guest->gone || (guest->worker && !guest->dismissed)) {
			link = &guest->next;
			continue;
		}
		*link = guest->next;
		guest->next = gone;
		gone = guest;
	}
	return gone;
}

struct nc_disposal_origin nc_serve_origin(const struct nc_guest *guest)
{
	const struct nc_identity *who = &guest->subject.who;

	return (struct nc_disposal_origin){who->pid, who->uid};
}

static void free_guests(struct nc_serve *serve, struct nc_guest *guest)
{
	while (guest) {
		struct nc_guest *next = guest->next;

		nc_disposal_take_socket(serve->disposal, nc_serve_origin(guest), guest->socket);
		free(guest);
		guest = next;
	}
}

void nc_serve_fini(struct nc_serve *serve)
{
	for (struct nc_guest *guest = serve->guests; guest; guest = guest->next)
		if (!guest->dismissed)
			dismiss(serve, guest);
	free_guests(serve, take_gone_locked(serve));
	nc_serve_stop_listening(serve);
	nc_disposal_close(serve->disposal);
	if (serve->members >= 0 && serve->members != serve->epoll)
		close(serve->members);
	if (serve->epoll >= 0)
		close(serve->epoll);
	if (serve->wake >= 0)
		close(serve->wake);
	pthread_mutex_destroy(&serve->lock);
	pthread_mutex_destroy(&serve->turn);
}

static int add(int epoll, int fd, void *what)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int nc_serve_watch_members(struct nc_serve *serve, int fd, void *what)
{
	return add(serve->members, fd, what);
}

int nc_serve_watch(struct nc_serve *serve, int fd)
{
	return add(serve->epoll, fd, NULL);
}

static void wake_thread(struct nc_serve *serve)
{
	nc_doorbell_ring(serve->wake);
}

void nc_serve_dismiss(struct nc_serve *serve, struct nc_guest *guest)
{
	struct nc_guest *gone = NULL;

	pthread_mutex_lock(&serve->lock);
	dismiss(serve, guest);
	/* Another thread may be dispatching; that thread then closes the socket. */
	if (serve->wake >= 0) {
		wake_thread(serve);
	} else if (pthread_mutex_trylock(&serve->turn) == 0) {
		gone = take_gone_locked(serve);
		pthread_mutex_unlock(&serve->turn);
	}
	pthread_mutex_unlock(&serve->lock);
	free_guests(serve, gone);
}

/*
 * A worker whose calls are refused still gets requests, so nothing else shows what is wrong.  Each
 * worker is reported: the operator may have mended another one.
 */
static void report_stranger(struct nc_serve *serve, struct nc_guest *guest)
{
	guest->reported = true;
	nc_diagnostics_warn(
		&serve->index->diagnostics,
		"worker process %d is not the process that was started as a worker, which is %d: "
		"its calls are refused, so it can read no request body and use no sealed unit; "
		"run it with exec in the script that starts it",
		(int)guest->subject.stranger, (int)guest->subject.who.pid);
}

static void attend(struct nc_serve *serve, struct nc_guest *guest)
{
	const struct nc_rpc_server_lock lock = {&serve->lock, &guest->gone, serve->disposal};
	int result = 1;

	if (guest->gone)
		return;
	if (nc_identity_ended(guest->subject.who.pidfd))
		result = -ESRCH;
	for (unsigned i = 0; i < CALLS_PER_TURN && result > 0 && !guest->gone; i++)
		result = guest->welcome ? nc_rpc_server_serve(serve->index, guest->socket,
							      &guest->subject, &serve->admin, &lock)
					: nc_serve_greet(serve, guest);
	if (guest->worker && guest->subject.stranger && !guest->reported)
		report_stranger(serve, guest);
	if (result < 0)
		nc_serve_part(serve, guest);
}

int nc_serve_dispatch(struct nc_serve *serve)
{
	struct epoll_event events[EVENTS];
	struct nc_guest *gone;
	int count, error;

	/* Both threads would get the events of one guest: only one of them handles them. */
	if (pthread_mutex_trylock(&serve->turn))
		return 0;
	pthread_mutex_lock(&serve->lock);
	if (serve->paused)
		nc_serve_listen_again(serve);
	do {
		count = epoll_wait(serve->members, events, EVENTS, 0);
	} while (count < 0 && errno == EINTR);
	error = count < 0 ? -errno : 0;
	for (int i = 0; i < count; i++) {
		if (events[i].data.ptr == serve)
			(void)nc_serve_admit(serve);
		else if (events[i].data.ptr)
			attend(serve, events[i].data.ptr);
	}
	/* Freed after the loop only: two events of this batch may be for the same guest. */
	gone = take_gone_locked(serve);
	pthread_mutex_unlock(&serve->lock);
	free_guests(serve, gone);
	pthread_mutex_unlock(&serve->turn);
	return count < 0 ? error : count;
}

/* --- the thread -------------------------------------------------------------------------- */

static void *serve_run(void *context)
{
	struct nc_serve *serve = context;
	struct pollfd wait[2] = {{.fd = serve->members, .events = POLLIN},
				 {.fd = serve->wake, .events = POLLIN}};

	while (!atomic_load(&serve->stop)) {
		uint64_t count;

		if (poll(wait, 2, -1) < 0)
			continue;
		if (wait[1].revents && read(serve->wake, &count, sizeof(count)) < 0)
			continue;
		if (!atomic_load(&serve->stop))
			(void)nc_serve_dispatch(serve);
	}
	return NULL;
}

int nc_serve_start(struct nc_serve *serve)
{
	int members, error = 0;

	members = nc_descriptor(epoll_create1(EPOLL_CLOEXEC));
	serve->wake = members < 0 ? members : nc_doorbell_open();
	if (serve->wake < 0)
		error = serve->wake;
	if (!error) {
		serve->members = members;
		error = nc_thread_start(&serve->thread, "nabc-members", serve_run, serve);
	}
	if (!error)
		return 0;
	if (serve->wake >= 0)
		close(serve->wake);
	if (members >= 0)
		close(members);
	serve->wake = -1;
	serve->members = serve->epoll;
	return error;
}

bool nc_serve_stop(struct nc_serve *serve)
{
	struct timespec until;

	if (serve->wake < 0 || atomic_load(&serve->stop))
		return true;
	atomic_store(&serve->stop, true);
	wake_thread(serve);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += STOP_SECONDS;
	if (pthread_timedjoin_np(serve->thread, NULL, &until) == 0)
		return true;
	atomic_store(&serve->stop, false);
	return false;
}
