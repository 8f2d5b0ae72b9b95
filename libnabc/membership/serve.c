/* SPDX-License-Identifier: MIT */
/*
 * serve.c - welcomes members and sees them off; see serve.h.
 *
 * A guest is a member at the other end of a socket.  It is gone when it hangs
 * up or when its process ends, whichever comes first: a socket can be passed
 * on, and a process can be stopped from closing it (invariant 5).
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "membership/serve.h"
#include "os/peer.h"

#define EVENTS 16
#define STACK ((size_t)256 << 10)
#define STOP_SECONDS 2 /* that the thread may take for what it is at */
#define MODE 0600
#define QUESTIONS 16	/* of one guest in a turn: others wait */
#define WAITING_MAX 64u /* guests that have not said hello */
#define GUESTS_SHARE 8u /* of the descriptors that the owner may have: a guest for so many */

struct nc_guest {
	struct nc_guest *next;
	int socket;
	struct nc_remote_member *remote; /* NULL: no segment */
	struct nc_subject subject;
	bool welcome; /* it has said hello */
	bool worker;  /* somebody else dismisses it */
	bool dismissed;
	bool gone;
};

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
	serve->epoll = serve->members = epoll_create1(EPOLL_CLOEXEC);
	return serve->epoll < 0 ? -errno : 0;
}

/* What a member left behind is for whoever was told its id, who may never come. */
static void orphaned(void *context, size_t id)
{
	nc_index_orphan(context, id);
}

/* What an operator puts into the cache is the cache's. */
static void kept(void *context, size_t id)
{
	(void)context;
	(void)id;
}

/* Whose units in the kernel module are the guest's. */
static void identify(struct nc_serve *serve, struct nc_guest *guest)
{
	const struct nc_identity *who = &guest->subject.who;

	if (guest->remote)
		nc_remote_member_identify(guest->remote, &serve->index->device, who->pid,
					  who->pidfd);
}

static void detach(struct nc_serve *serve, struct nc_guest *guest)
{
	if (guest->remote)
		nc_remote_member_identify(guest->remote, NULL, 0, -1);
	nc_grants_part(&serve->index->grants, &guest->subject,
		       guest->subject.operates ? kept : orphaned, serve->index);
	if (guest->remote)
		nc_index_detach(serve->index, guest->remote);
}

/* Nothing that it has or had can be named any more; the structure stays. */
static void part(struct nc_serve *serve, struct nc_guest *guest)
{
	if (guest->gone)
		return;
	guest->gone = true;
	(void)epoll_ctl(serve->members, EPOLL_CTL_DEL, guest->socket, NULL);
	if (guest->subject.who.pidfd >= 0)
		(void)epoll_ctl(serve->members, EPOLL_CTL_DEL, guest->subject.who.pidfd, NULL);
	/* A worker's units must stay its own while its responses are still taken. */
	if (!guest->worker)
		detach(serve, guest);
	if (guest->welcome)
		nc_index_enrol(serve->index, -1);
	else
		serve->waiting--;
}

/* Nobody has it any more; it is in the list until its socket is closed. */
static void dismiss(struct nc_serve *serve, struct nc_guest *guest)
{
	part(serve, guest);
	if (guest->worker)
		detach(serve, guest);
	guest->dismissed = true;
}

/* Those are taken out of the list that nobody has, to be freed without the lock. */
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

static void free_guests(struct nc_guest *guest)
{
	while (guest) {
		struct nc_guest *next = guest->next;

		close(guest->socket);
		free(guest);
		guest = next;
	}
}

static void close_unlocked(struct nc_serve *serve, int socket)
{
	pthread_mutex_unlock(&serve->lock);
	close(socket);
	pthread_mutex_lock(&serve->lock);
}

static void stop_serving(struct nc_serve *serve)
{
	if (serve->listener >= 0) {
		unlink(serve->path);
		close(serve->listener);
	}
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
	serve->deaf = false;
}

void nc_serve_fini(struct nc_serve *serve)
{
	for (struct nc_guest *guest = serve->guests; guest; guest = guest->next)
		if (!guest->dismissed)
			dismiss(serve, guest);
	free_guests(take_gone_locked(serve));
	stop_serving(serve);
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

static int watch(struct nc_serve *serve, int fd, void *what)
{
	return add(serve->members, fd, what);
}

int nc_serve_watch(struct nc_serve *serve, int fd)
{
	return add(serve->epoll, fd, NULL);
}

/* The socket's group, and who is let in, before anybody can connect. */
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
					    : watch(serve, serve->listener, serve);
	}
	/* What is said before it is accepted counts too. */
	if (!error)
		error = nc_peer_ask_sender(serve->listener);
	if (!error) {
		serve->spare = eventfd(0, EFD_CLOEXEC);
		error = serve->spare < 0 ? -errno : 0;
	}
	if (error)
		stop_serving(serve);
	return error;
}

static int welcome(struct nc_serve *serve, struct nc_guest *guest,
		   const struct nc_serve_offer *offer)
{
	struct nc_index *index = serve->index;
	size_t memory = (offer->memory + NC_PAGE - 1) / NC_PAGE * NC_PAGE, first = 0;
	struct nc_wire_welcome welcome = {
		.magic = NC_WIRE_MAGIC,
		.version = NC_WIRE_VERSION,
		.lanes = offer->lanes,
		.queue_size = offer->queue_size,
		.max_unit = index->max_unit,
		.flags = offer->flags | (guest->subject.operates ? NC_WIRE_OPERATOR : 0),
	};
	int fds[NC_PEER_FDS_MAX], error = 0;
	unsigned count;

	if (memory < offer->memory)
		return -EINVAL;
	/* Where bodies go as bytes there is nothing to hand over. */
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

static struct nc_guest *new_guest(struct nc_serve *serve, int socket)
{
	struct nc_guest *guest = calloc(1, sizeof(*guest));

	if (!guest)
		return NULL;
	guest->socket = socket;
	guest->subject.who.pidfd = -1;
	guest->subject.quota = serve->index->member_quota;
	return guest;
}

static void enter(struct nc_serve *serve, struct nc_guest *guest)
{
	guest->next = serve->guests;
	serve->guests = guest;
	nc_grants_join(&serve->index->grants, &guest->subject);
}

int nc_serve_offer(struct nc_serve *serve, int socket, const struct nc_serve_offer *offer,
		   struct nc_guest **result)
{
	struct nc_guest *guest = new_guest(serve, socket);
	int error = guest ? nc_peer_ask_sender(socket) : -ENOMEM;

	/* Counted before it knows: from then on it may act, and end. */
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
	enter(serve, guest);
	pthread_mutex_unlock(&serve->lock);
	*result = guest;
	return 0;
}

/* By socket and pidfd: either says that it is gone. */
static int watch_guest(struct nc_serve *serve, struct nc_guest *guest)
{
	int error = watch(serve, guest->socket, guest);

	if (!error && guest->subject.who.pidfd >= 0)
		error = watch(serve, guest->subject.who.pidfd, guest);
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
		error = watch_guest(serve, guest);
	pthread_mutex_unlock(&serve->lock);
	return error;
}

static void rouse(struct nc_serve *serve)
{
	uint64_t one = 1;
	ssize_t written = write(serve->wake, &one, sizeof(one));

	/* It can only be full, and then it is readable. */
	(void)written;
}

void nc_serve_dismiss(struct nc_serve *serve, struct nc_guest *guest)
{
	struct nc_guest *gone = NULL;

	pthread_mutex_lock(&serve->lock);
	dismiss(serve, guest);
	/* Who dispatches may be at it, and closes it in any case. */
	if (serve->wake >= 0) {
		rouse(serve);
	} else if (pthread_mutex_trylock(&serve->turn) == 0) {
		gone = take_gone_locked(serve);
		pthread_mutex_unlock(&serve->turn);
	}
	pthread_mutex_unlock(&serve->lock);
	free_guests(gone);
}

/* Who may attach, by the kernel's word. */
static int vet(const struct nc_serve *serve, const struct nc_identity *who)
{
	/* In a pid namespace that is not seen from here all processes are number 0. */
	if (who->pid <= 0)
		return -EACCES;
	if (serve->everyone || who->uid == geteuid() || who->uid == 0)
		return 0;
	for (unsigned i = 0; i < serve->user_count; i++)
		if (serve->users[i] == who->uid)
			return 0;
	return -EACCES;
}

static void refuse(int socket, int error)
{
	struct nc_wire_welcome welcome = {
		.magic = NC_WIRE_MAGIC, .version = NC_WIRE_VERSION, .error = -error};

	/* Best effort: the socket is closed next, which says no as well. */
	(void)nc_peer_send(socket, &welcome, sizeof(welcome), NULL, 0);
}

/* Who says nothing shall not keep those out who would: the longest waiting goes. */
static void make_room(struct nc_serve *serve)
{
	struct nc_guest *oldest = NULL;

	if (serve->waiting < WAITING_MAX)
		return;
	for (struct nc_guest *guest = serve->guests; guest; guest = guest->next)
		if (!guest->welcome && !guest->gone)
			oldest = guest;
	part(serve, oldest);
}

/*
 * Out of descriptors: who waits at the door is told so.  It must not be left
 * there, or the listener stays readable and the owner's loop never sleeps.
 */
static void turn_away(struct nc_serve *serve)
{
	int socket = -EMFILE;

	if (serve->spare >= 0) {
		close(serve->spare);
		socket = nc_peer_accept(serve->listener);
		if (socket >= 0) {
			refuse(socket, -EMFILE);
			close_unlocked(serve, socket);
		}
		serve->spare = eventfd(0, EFD_CLOEXEC);
	}
	/*
	 * Another thread may have been quicker; as long as there is one to spare, it is
	 * tried again.
	 */
	if ((socket == -EMFILE || socket == -ENFILE) && serve->spare < 0) {
		(void)epoll_ctl(serve->members, EPOLL_CTL_DEL, serve->listener, NULL);
		serve->deaf = true;
	}
}

static void listen_again(struct nc_serve *serve)
{
	if (serve->spare < 0)
		serve->spare = eventfd(0, EFD_CLOEXEC);
	serve->deaf = serve->spare < 0 || watch(serve, serve->listener, serve);
}

/*
 * Each guest costs up to three of the owner's descriptors.  Guests together
 * leave it most of them, and one user that is not its own leaves others room.
 */
static int find_room(const struct nc_serve *serve, const struct nc_identity *who)
{
	unsigned guests = 0, users = 0;
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

static int admit(struct nc_serve *serve)
{
	struct nc_guest *guest = NULL;
	int error, socket = nc_peer_accept(serve->listener);

	if (socket == -EMFILE || socket == -ENFILE)
		turn_away(serve);
	if (socket < 0)
		return socket;
	error = nc_peer_ask_sender(socket);
	if (!error) {
		guest = new_guest(serve, socket);
		error = guest ? nc_identity_of_peer(socket, &guest->subject.who) : -ENOMEM;
	}
	if (!error)
		error = vet(serve, &guest->subject.who);
	if (!error)
		error = find_room(serve, &guest->subject.who);
	if (!error)
		error = watch_guest(serve, guest);
	if (error) {
		refuse(socket, error);
		if (guest)
			nc_identity_close(&guest->subject.who);
		close_unlocked(serve, socket);
		free(guest);
		return 0;
	}
	make_room(serve);
	serve->waiting++;
	enter(serve, guest);
	return 0;
}

/* The first message: what it wants.  0 or -errno: it is to go. */
static int greet(struct nc_serve *serve, struct nc_guest *guest)
{
	struct nc_subject *subject = &guest->subject;
	struct nc_serve_offer offer = {0};
	struct nc_wire_hello hello;
	unsigned count;
	pid_t sender;
	ssize_t got;
	int error;

	/* None is expected, so all that come are closed by that. */
	pthread_mutex_unlock(&serve->lock);
	got = nc_peer_receive_from(guest->socket, &hello, sizeof(hello), NULL, 0, &count, &sender);
	pthread_mutex_lock(&serve->lock);
	if (got <= 0)
		return nc_peer_is_later((int)got) ? 0 : -EPIPE;
	error = nc_wire_check_hello(&hello, (size_t)got);
	if (!error && sender != subject->who.pid)
		error = -EACCES;
	if (!error && hello.flags & NC_WIRE_OPERATOR) {
		if (subject->who.uid != geteuid() && subject->who.uid != 0)
			error = -EPERM;
		subject->operates = true;
	}
	if (!error && hello.flags & NC_WIRE_SEGMENT)
		offer.memory = serve->index->member_size;
	/* Counted before it knows: from then on it may act, and end. */
	nc_index_enrol(serve->index, 1);
	if (!error)
		error = welcome(serve, guest, &offer);
	if (error) {
		nc_index_enrol(serve->index, -1);
		refuse(guest->socket, error);
		return error;
	}
	identify(serve, guest);
	guest->welcome = true;
	serve->waiting--;
	return 0;
}

static void attend(struct nc_serve *serve, struct nc_guest *guest)
{
	const struct nc_rpc_server_lock lock = {&serve->lock, &guest->gone};
	int result = 1;

	if (guest->gone)
		return;
	if (nc_identity_ended(guest->subject.who.pidfd))
		result = -ESRCH;
	for (unsigned i = 0; i < QUESTIONS && result > 0 && !guest->gone; i++)
		result = guest->welcome ? nc_rpc_server_serve(serve->index, guest->socket,
							      &guest->subject, &serve->admin, &lock)
					: greet(serve, guest);
	if (result < 0)
		part(serve, guest);
}

int nc_serve_dispatch(struct nc_serve *serve)
{
	struct epoll_event events[EVENTS];
	struct nc_guest *gone;
	int count, error;

	/* Two threads would be told of the same guest: one of them does the work. */
	if (pthread_mutex_trylock(&serve->turn))
		return 0;
	pthread_mutex_lock(&serve->lock);
	if (serve->deaf)
		listen_again(serve);
	do {
		count = epoll_wait(serve->members, events, EVENTS, 0);
	} while (count < 0 && errno == EINTR);
	error = count < 0 ? -errno : 0;
	for (int i = 0; i < count; i++) {
		if (events[i].data.ptr == serve)
			(void)admit(serve);
		else if (events[i].data.ptr)
			attend(serve, events[i].data.ptr);
	}
	/* One event may have come twice for a guest, so none is freed before. */
	gone = take_gone_locked(serve);
	pthread_mutex_unlock(&serve->lock);
	free_guests(gone);
	pthread_mutex_unlock(&serve->turn);
	return count < 0 ? error : count;
}

/* --- the thread -------------------------------------------------------------------------- */

static void *run(void *context)
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
	pthread_attr_t attributes;
	sigset_t all, before;
	int members, error = 0;

	members = epoll_create1(EPOLL_CLOEXEC);
	serve->wake = members < 0 ? -1 : eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (serve->wake < 0)
		error = errno;
	if (!error) {
		serve->members = members;
		error = pthread_attr_init(&attributes);
	}
	if (!error) {
		(void)pthread_attr_setstacksize(&attributes, STACK);
		/* Signals are for the program's own threads. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		error = pthread_create(&serve->thread, &attributes, run, serve);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		pthread_attr_destroy(&attributes);
	}
	if (!error) {
		(void)pthread_setname_np(serve->thread, "nabc-members");
		return 0;
	}
	if (serve->wake >= 0)
		close(serve->wake);
	if (members >= 0)
		close(members);
	serve->wake = -1;
	serve->members = serve->epoll;
	return -error;
}

bool nc_serve_stop(struct nc_serve *serve)
{
	struct timespec until;

	if (serve->wake < 0 || atomic_load(&serve->stop))
		return true;
	atomic_store(&serve->stop, true);
	rouse(serve);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += STOP_SECONDS;
	if (pthread_timedjoin_np(serve->thread, NULL, &until) == 0)
		return true;
	atomic_store(&serve->stop, false);
	return false;
}
