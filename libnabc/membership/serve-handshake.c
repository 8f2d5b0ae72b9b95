/* SPDX-License-Identifier: MIT */
/*
 * serve-handshake.c - makes a process a member: receives its hello and sends the
 * welcome; see serve.h.
 */
#include <errno.h>
#include <nabc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fragment.h"
#include "cache/grant.h"
#include "cache/index.h"
#include "cache/remote-member.h"
#include "membership/attach.h"
#include "membership/disposal.h"
#include "membership/serve-internal.h"
#include "membership/serve.h"
#include "os/device.h"
#include "os/identity.h"
#include "os/peer.h"
#include "os/segment.h"
#include "store/store.h"
#include "store/unit.h"
#include "wire/wire.h"

/* Tells the remote member which process owns the guest's units in the kernel module. */
static void identify(struct nc_serve *serve, struct nc_guest *guest)
{
	const struct nc_identity *who = &guest->subject.who;

	if (guest->remote)
		nc_remote_member_identify(guest->remote, &serve->index->device, who->pid,
					  who->pidfd);
}

static int welcome(struct nc_serve *serve, struct nc_guest *guest,
		   const struct nc_serve_offer *offer)
{
	struct nc_index *index = serve->index;
	size_t memory = (offer->memory + NC_PAGE - 1) / NC_PAGE * NC_PAGE, first = 0;
	struct nc_wire_welcome welcome = {
		.magic = NC_WIRE_MAGIC,
		.version = NC_WIRE_VERSION,
		.oldest = NC_WIRE_OLDEST,
		.channels = offer->channels,
		.queue_size = offer->queue_size,
		.max_unit = index->max_unit,
		.flags = offer->flags | (guest->subject.operates ? NC_WIRE_OPERATOR : 0) |
			 (index->flags & NC_CACHE_EAGER_SUMS ? NC_WIRE_EAGER_SUMS : 0),
	};
	int fds[NC_PEER_FDS_MAX], error = 0;
	unsigned count;

	if (memory < offer->memory)
		return -EINVAL;
	/* If responses carry their bodies as bytes, there is no unit to pass through the module. */
	if (memory && nc_device_usable(&index->device) && !(offer->flags & NC_WIRE_POSIX))
		welcome.flags |= NC_WIRE_KERNEL;
	if (memory) {
		error = nc_index_admit(index, memory, &guest->remote, &first);
		if (error) {
			guest->remote = NULL;
			return error;
		}
		welcome.member = guest->remote->number;
		welcome.slots = guest->remote->slots;
		welcome.generation = guest->remote->units.generation;
		welcome.segment_size = memory;
		welcome.data_offset = first;
		nc_grants_number(&index->grants, &guest->subject, guest->remote->number);
		fds[0] = guest->remote->store->segment.fd;
	}
	count = nc_wire_welcome_fds(&welcome);
	for (unsigned i = 1; i < count; i++)
		fds[i] = offer->extra[i - 1];
	error = nc_peer_send(guest->socket, &welcome, sizeof(welcome), fds, count);
	if (error && guest->remote) {
		nc_index_detach(index, guest->remote);
		guest->remote = NULL;
	}
	return error;
}

struct nc_guest *nc_guest_new(struct nc_serve *serve, int socket)
{
	struct nc_guest *guest = calloc(1, sizeof(*guest));

	if (!guest)
		return NULL;
	guest->socket = socket;
	guest->subject.who.pidfd = -1;
	guest->subject.quota = serve->index->member_quota;
	return guest;
}

void nc_serve_enter(struct nc_serve *serve, struct nc_guest *guest)
{
	guest->next = serve->guests;
	serve->guests = guest;
	nc_grants_join(&serve->index->grants, &guest->subject);
}

int nc_serve_offer(struct nc_serve *serve, int socket, const struct nc_serve_offer *offer,
		   struct nc_guest **result)
{
	struct nc_guest *guest = nc_guest_new(serve, socket);
	int error = guest ? nc_peer_ask_sender(socket) : -ENOMEM;

	/* Count the guest before it gets the welcome: from then on it may act, and end. */
	nc_index_enrol(serve->index, 1);
	if (!error)
		error = welcome(serve, guest, offer);
	if (error) {
		nc_index_enrol(serve->index, -1);
		free(guest);
		return error;
	}
	guest->worker = guest->welcome = true;
	pthread_mutex_lock(&serve->lock);
	nc_serve_enter(serve, guest);
	pthread_mutex_unlock(&serve->lock);
	*result = guest;
	return 0;
}

int nc_serve_watch_guest(struct nc_serve *serve, struct nc_guest *guest)
{
	int error = nc_serve_watch_members(serve, guest->socket, guest);

	if (!error && guest->subject.who.pidfd >= 0)
		error = nc_serve_watch_members(serve, guest->subject.who.pidfd, guest);
	return error;
}

int nc_serve_expect(struct nc_serve *serve, struct nc_guest *guest, pid_t pid, int pidfd,
		    bool child)
{
	struct nc_identity who;
	int error;

	pthread_mutex_lock(&serve->lock);
	error = child ? nc_identity_of_child(pid, pidfd, &who)
		      : nc_identity_of_process(pid, pidfd, &who);
	nc_grants_identify(&serve->index->grants, &guest->subject, &who);
	if (!error)
		identify(serve, guest);
	if (!error)
		error = nc_serve_watch_guest(serve, guest);
	pthread_mutex_unlock(&serve->lock);
	return error;
}

void nc_serve_refuse(int socket, int error)
{
	struct nc_wire_welcome welcome = {
		.magic = NC_WIRE_MAGIC,
		.version = NC_WIRE_VERSION,
		.oldest = NC_WIRE_OLDEST,
		.error = -error,
	};

	/*
	 * Best effort: the socket is closed next, which also tells the process that
	 * it is refused.
	 */
	(void)nc_peer_send(socket, &welcome, sizeof(welcome), NULL, 0);
}

int nc_serve_greet(struct nc_serve *serve, struct nc_guest *guest)
{
	struct nc_subject *subject = &guest->subject;
	struct nc_serve_offer offer = {0};
	struct nc_wire_hello hello;
	int fds[NC_PEER_FDS_ALL];
	unsigned count;
	pid_t sender;
	bool trusted;
	ssize_t got;
	int error;

	/* Without a free descriptor, the kernel closes those that come here, which may block. */
	pthread_mutex_unlock(&serve->lock);
	got = nc_peer_receive_from(guest->socket, &hello, sizeof(hello), fds, &count, &sender);
	pthread_mutex_lock(&serve->lock);
	error = nc_disposal_take(serve->disposal, nc_serve_origin(guest), fds, count);
	if (got <= 0)
		return nc_peer_is_later((int)got) ? 0 : -EPIPE;
	/* A hello carries no descriptors. */
	if (count || error)
		return -EPROTO;
	error = nc_wire_check_hello(&hello, (size_t)got);
	if (error == -EPROTONOSUPPORT)
		nc_attach_report(&serve->index->diagnostics, "process", subject->who.pid,
				 hello.version, hello.oldest);
	if (!error && sender != subject->who.pid)
		error = -EACCES;
	trusted = subject->who.uid == geteuid() || subject->who.uid == 0;
	if (!error && hello.flags & NC_WIRE_OPERATOR) {
		if (!trusted)
			error = -EPERM;
		subject->operates = true;
	}
	/* As an operator, it could do more. */
	subject->names = trusted;
	if (!error && hello.flags & NC_WIRE_SEGMENT)
		offer.memory = serve->index->member_size;
	/* Count the guest before it gets the welcome: from then on it may act, and end. */
	nc_index_enrol(serve->index, 1);
	if (!error)
		error = welcome(serve, guest, &offer);
	if (error) {
		nc_index_enrol(serve->index, -1);
		nc_serve_refuse(guest->socket, error);
		return error;
	}
	identify(serve, guest);
	guest->welcome = true;
	serve->waiting--;
	return 0;
}
