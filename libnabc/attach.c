/* SPDX-License-Identifier: MIT */
/*
 * attach.c - welcomes members and joins caches; see attach.h.
 *
 * A guest is a member that came through the attach socket.  Its socket
 * carries nothing after the welcome: it is there to hang up when the process
 * ends, however it ends (invariant 5).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attach.h"
#include "peer.h"

#define EVENTS 16
#define MODE 0600

struct nc_guest {
	struct nc_guest *next;
	int socket;
	struct nc_foreign *foreign;
};

int nc_attach_init(struct nc_attach *attach, struct nc_cache *cache)
{
	*attach = (struct nc_attach){.cache = cache, .epoll = -1, .listener = -1};
	pthread_mutex_init(&attach->lock, NULL);
	if (!cache->owner)
		return 0;
	attach->epoll = epoll_create1(EPOLL_CLOEXEC);
	return attach->epoll < 0 ? -errno : 0;
}

static void close_guest(struct nc_attach *attach, struct nc_guest *guest)
{
	nc_cache_bury(attach->cache, guest->foreign);
	close(guest->socket);
	free(guest);
}

void nc_attach_fini(struct nc_attach *attach)
{
	while (attach->guests) {
		struct nc_guest *guest = attach->guests;

		attach->guests = guest->next;
		close_guest(attach, guest);
	}
	if (attach->listener >= 0) {
		unlink(attach->path);
		close(attach->listener);
	}
	free(attach->path);
	if (attach->epoll >= 0)
		close(attach->epoll);
	pthread_mutex_destroy(&attach->lock);
}

static int watch(struct nc_attach *attach, int fd, void *what)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};

	return epoll_ctl(attach->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int nc_attach_watch(struct nc_attach *attach, int fd)
{
	return watch(attach, fd, NULL);
}

int nc_attach_serve(struct nc_attach *attach, const char *path)
{
	int error;

	if (attach->listener >= 0)
		return -EALREADY;
	attach->path = strdup(path);
	if (!attach->path)
		return -ENOMEM;
	attach->listener = nc_peer_listen(path, MODE);
	error = attach->listener < 0 ? attach->listener : watch(attach, attach->listener, attach);
	if (!error)
		return 0;
	if (attach->listener >= 0) {
		unlink(path);
		close(attach->listener);
	}
	attach->listener = -1;
	free(attach->path);
	attach->path = NULL;
	return error;
}

int nc_attach_offer(struct nc_cache *cache, int socket, size_t memory, unsigned lanes,
		    uint32_t queue_size, const int *extra, struct nc_foreign **foreign)
{
	int fds[NC_PEER_FDS_MAX];
	struct nc_wire_welcome welcome;
	size_t first;
	int error;

	memory = (memory + NC_PAGE - 1) / NC_PAGE * NC_PAGE;
	error = nc_cache_admit(cache, memory, foreign, &first);
	if (error)
		return error;
	welcome = (struct nc_wire_welcome){
		.magic = NC_WIRE_MAGIC,
		.version = NC_WIRE_VERSION,
		.member = (*foreign)->number,
		.slots = (*foreign)->slots,
		.generation = (*foreign)->units.generation,
		.lanes = lanes,
		.queue_size = queue_size,
		.segment_size = memory,
		.data_offset = first,
		.max_unit = cache->max_unit,
	};
	fds[0] = (*foreign)->store->segment.fd;
	for (unsigned i = 1; i < nc_wire_welcome_fds(lanes); i++)
		fds[i] = extra[i - 1];
	error = nc_peer_send(socket, &welcome, sizeof(welcome), fds, nc_wire_welcome_fds(lanes));
	if (error)
		nc_cache_bury(cache, *foreign);
	return error;
}

/* Who may join: the owner's user and root, by the kernel's word. */
static int vet(int socket)
{
	struct ucred who;
	socklen_t length = sizeof(who);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) < 0)
		return -errno;
	return who.uid == geteuid() || who.uid == 0 ? 0 : -EACCES;
}

static void refuse(int socket, int error)
{
	struct nc_wire_welcome welcome = {
		.magic = NC_WIRE_MAGIC, .version = NC_WIRE_VERSION, .error = -error};

	/* Best effort: the socket is closed next, which says no as well. */
	(void)nc_peer_send(socket, &welcome, sizeof(welcome), NULL, 0);
}

static int admit(struct nc_attach *attach)
{
	struct nc_guest *guest;
	int error, socket = nc_peer_accept(attach->listener);

	if (socket < 0)
		return socket;
	guest = calloc(1, sizeof(*guest));
	error = guest ? vet(socket) : -ENOMEM;
	if (!error)
		error = nc_attach_offer(attach->cache, socket, attach->cache->member_size, 0, 0,
					NULL, &guest->foreign);
	if (!error) {
		guest->socket = socket;
		error = watch(attach, socket, guest);
		if (!error) {
			guest->next = attach->guests;
			attach->guests = guest;
			return 0;
		}
		nc_cache_bury(attach->cache, guest->foreign);
	}
	refuse(socket, error);
	close(socket);
	free(guest);
	return 0;
}

/* A guest that says anything has nothing to say; one that hangs up is gone. */
static void depart(struct nc_attach *attach, struct nc_guest *guest)
{
	struct nc_guest **link = &attach->guests;

	while (*link != guest)
		link = &(*link)->next;
	*link = guest->next;
	close_guest(attach, guest);
}

int nc_attach_dispatch(struct nc_attach *attach)
{
	struct epoll_event events[EVENTS];
	int count, error;

	/* Two threads would be told of the same guest: one of them does the work. */
	if (pthread_mutex_trylock(&attach->lock))
		return 0;
	count = epoll_wait(attach->epoll, events, EVENTS, 0);
	error = count < 0 && errno != EINTR ? -errno : 0;
	for (int i = 0; i < count; i++) {
		if (events[i].data.ptr == attach)
			(void)admit(attach);
		else if (events[i].data.ptr)
			depart(attach, events[i].data.ptr);
	}
	pthread_mutex_unlock(&attach->lock);
	return count < 0 ? error : count;
}

static void close_fds(const int *fds, unsigned count)
{
	while (count)
		close(fds[--count]);
}

int nc_attach_join(struct nc_cache *cache, int socket, int timeout_ms,
		   struct nc_wire_welcome *welcome, int *fds)
{
	int received[NC_PEER_FDS_MAX];
	struct nc_segment segment;
	unsigned count;
	ssize_t got =
		nc_peer_receive(socket, welcome, sizeof(*welcome), received, &count, timeout_ms);
	int error;

	if (got < 0)
		return (int)got;
	error = nc_wire_check_welcome(welcome, (size_t)got, count);
	if (!error)
		error = nc_segment_adopt(&segment, received[0], welcome->segment_size);
	if (error) {
		close_fds(received, count);
		return error;
	}
	error = nc_cache_init_joined(cache, welcome->member, &segment, welcome->data_offset,
				     welcome->slots, welcome->generation, welcome->max_unit);
	if (error) {
		nc_segment_close(&segment);
		close_fds(received + 1, count - 1);
		return error;
	}
	if (count > 1)
		memcpy(fds, received + 1, (count - 1) * sizeof(*fds));
	return 0;
}
