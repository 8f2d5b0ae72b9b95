/* SPDX-License-Identifier: MIT */
/*
 * serve-listener.c - the socket that processes connect to: who is admitted, and how
 * many; see serve.h.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "cache/grant.h"
#include "membership/disposal.h"
#include "membership/serve-internal.h"
#include "membership/serve.h"
#include "os/descriptor.h"
#include "os/identity.h"
#include "os/peer.h"

#define MODE 0600
#define WAITING_MAX 64u /* guests that have not sent their hello */
#define GUESTS_SHARE 8u /* one guest per this many descriptors of the owner's limit */

/* A process that was not asked who it is. */
static struct nc_disposal_origin unknown(void)
{
	return (struct nc_disposal_origin){.uid = geteuid()};
}

/* The connections that wait have messages, too. */
static void close_listener(struct nc_serve *serve)
{
	int socket;

	unlink(serve->path);
	(void)shutdown(serve->listener, SHUT_RDWR);
	while ((socket = nc_peer_accept(serve->listener)) >= 0)
		nc_disposal_take_socket(serve->disposal, unknown(), socket);
	close(serve->listener);
}

void nc_serve_stop_listening(struct nc_serve *serve)
{
	if (serve->listener >= 0)
		close_listener(serve);
	serve->listener = -1;
	free(serve->path);
	serve->path = NULL;
	free(serve->users);
	serve->users = NULL;
	serve->user_count = 0;
	serve->everyone = false;
	if (serve->spare >= 0)
		close(serve->spare);
	serve->spare = -1;
	serve->paused = false;
}

/* Sets who may attach, before any process can connect. */
static int open_to(struct nc_serve *serve, const struct NC_serve_options *options)
{
	if (!options)
		return 0;
	if (options->user_count && !options->users)
		return -EINVAL;
	serve->everyone = options->user_count == 0 && (options->mode & 077);
	if (options->user_count) {
		serve->users = malloc(options->user_count * sizeof(*serve->users));
		if (!serve->users)
			return -ENOMEM;
		memcpy(serve->users, options->users, options->user_count * sizeof(*serve->users));
		serve->user_count = options->user_count;
	}
	return 0;
}

int nc_serve_listen(struct nc_serve *serve, const char *path,
		    const struct NC_serve_options *options)
{
	mode_t mode = options && options->mode ? options->mode : MODE;
	gid_t group = options && (options->flags & NC_SERVE_GROUP) ? options->group : (gid_t)-1;
	int error;

	if (serve->listener >= 0)
		return -EALREADY;
	if (mode & ~(mode_t)0777 || (options && (options->flags & ~NC_SERVE_GROUP)))
		return -EINVAL;
	serve->path = strdup(path);
	error = serve->path ? open_to(serve, options) : -ENOMEM;
	if (!error) {
		serve->listener = nc_peer_listen(path, mode, group);
		error = serve->listener < 0 ? serve->listener
					    : nc_serve_watch_members(serve, serve->listener, serve);
	}
	/* Credentials must also come with messages that are sent before accept(). */
	if (!error)
		error = nc_peer_ask_sender(serve->listener);
	if (!error) {
		serve->spare = nc_descriptor(eventfd(0, EFD_CLOEXEC));
		error = serve->spare < 0 ? serve->spare : 0;
	}
	if (error)
		nc_serve_stop_listening(serve);
	return error;
}

/* Checks the kernel's credentials: may this process attach? */
static int check_credentials(const struct nc_serve *serve, const struct nc_identity *who)
{
	/* A process in a pid namespace that is not visible from here has pid 0. */
	if (who->pid <= 0)
		return -EACCES;
	if (serve->everyone || who->uid == geteuid() || who->uid == 0)
		return 0;
	for (unsigned i = 0; i < serve->user_count; i++)
		if (serve->users[i] == who->uid)
			return 0;
	return -EACCES;
}

/* Silent connections must not keep others out: at the limit, remove the one that waited longest. */
static void limit_waiting(struct nc_serve *serve)
{
	struct nc_guest *oldest = NULL;

	if (serve->waiting < WAITING_MAX)
		return;
	for (struct nc_guest *guest = serve->guests; guest; guest = guest->next)
		if (!guest->welcome && !guest->gone)
			oldest = guest;
	nc_serve_part(serve, oldest);
}

/*
 * Out of descriptors: accepts one connection with the spare descriptor and refuses
 * it.  If it stayed in the backlog, the listener would remain readable and the
 * owner's loop would never sleep.
 */
static void refuse_next(struct nc_serve *serve)
{
	int socket = -EMFILE;

	if (serve->spare >= 0) {
		close(serve->spare);
		socket = nc_peer_accept(serve->listener);
		if (socket >= 0) {
			nc_serve_refuse(socket, -EMFILE);
			nc_disposal_take_socket(serve->disposal, unknown(), socket);
		}
		serve->spare = nc_descriptor(eventfd(0, EFD_CLOEXEC));
	}
	/*
	 * Another thread may have taken the freed descriptor; while a spare exists,
	 * the next event tries again.
	 */
	if ((socket == -EMFILE || socket == -ENFILE) && serve->spare < 0) {
		(void)epoll_ctl(serve->members, EPOLL_CTL_DEL, serve->listener, NULL);
		serve->paused = true;
	}
}

void nc_serve_listen_again(struct nc_serve *serve)
{
	if (serve->spare < 0)
		serve->spare = nc_descriptor(eventfd(0, EFD_CLOEXEC));
	serve->paused = serve->spare < 0 || nc_serve_watch_members(serve, serve->listener, serve);
}

/*
 * Each guest uses up to three of the owner's descriptors.  All guests together must
 * leave most descriptors to the owner, and one foreign user must leave some to the
 * others.
 */
static int check_limits(const struct nc_serve *serve, const struct nc_identity *who)
{
	unsigned users, guests = nc_disposal_pending(serve->disposal, who->uid, &users);
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -errno;
	for (struct nc_guest *guest = serve->guests; guest; guest = guest->next) {
		guests++;
		users += guest->subject.who.uid == who->uid;
	}
	limit.rlim_cur /= GUESTS_SHARE;
	if (guests >= limit.rlim_cur)
		return -EUSERS;
	return users >= limit.rlim_cur / 2 && who->uid != geteuid() && who->uid != 0 ? -EUSERS : 0;
}

int nc_serve_admit(struct nc_serve *serve)
{
	struct nc_guest *guest = NULL;
	int error, socket = nc_peer_accept(serve->listener);

	if (socket == -EMFILE || socket == -ENFILE)
		refuse_next(serve);
	if (socket < 0)
		return socket;
	error = nc_peer_ask_sender(socket);
	if (!error) {
		guest = nc_guest_new(serve, socket);
		error = guest ? nc_identity_of_peer(socket, &guest->subject.who) : -ENOMEM;
	}
	if (!error)
		error = check_credentials(serve, &guest->subject.who);
	if (!error)
		error = check_limits(serve, &guest->subject.who);
	if (!error)
		error = nc_serve_watch_guest(serve, guest);
	if (error) {
		nc_serve_refuse(socket, error);
		nc_disposal_take_socket(serve->disposal, guest ? nc_serve_origin(guest) : unknown(),
					socket);
		if (guest)
			nc_identity_close(&guest->subject.who);
		free(guest);
		return 0;
	}
	limit_waiting(serve);
	serve->waiting++;
	nc_serve_enter(serve, guest);
	return 0;
}
