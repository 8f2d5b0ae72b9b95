/* SPDX-License-Identifier: MIT */
/*
 * desk.c - questions of members, one at a time; see desk.h.  Called by the
 * thread that dispatches.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/id.h"
#include "cache/catalogue.h"
#include "membership/desk.h"
#include "membership/share.h"
#include "os/peer.h"

#define UNREAD_MAX (64 << 10) /* bytes of answers, as the kernel counts them */

/* One question being answered. */
struct errand {
	struct nc_cache *cache;
	struct nc_borrower *asker;
	const struct nc_desk_counter *counter;
	struct nc_wire_ask ask;
	const void *asked; /* what came behind the question */
	int fds[2];	   /* what came with it; -1: none, or taken */
	int fd;		   /* to go with the answer; -1: none */
	struct nc_wire_answer *answer;
	char *room; /* behind the answer */
};

/* The descriptor is the callee's now. */
static int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

static int lend(struct errand *errand, size_t id)
{
	struct nc_lending lending;
	int error = nc_share_lend(errand->cache, id, errand->asker, &lending);

	if (error)
		return error;
	errand->fd = lending.fd;
	errand->answer->id = id;
	errand->answer->size = lending.size;
	errand->answer->fraglen = lending.fraglen;
	errand->answer->slot = lending.slot;
	return 0;
}

/* What members left behind gives way to those that are there. */
static int find_room(struct errand *errand, size_t size)
{
	struct nc_grants *grants = &errand->cache->grants;
	int error = nc_grants_room(grants, errand->asker, size);
	size_t id;

	while (error == -EMFILE && nc_grants_orphan(grants, &id)) {
		(void)nc_cache_destroy(errand->cache, id);
		/* Whatever became of the unit. */
		nc_grants_drop(grants, id);
		error = nc_grants_room(grants, errand->asker, size);
	}
	return error;
}

/* A segment that came along and is said to be frozen and to hold such a unit. */
static int adopt(struct errand *errand, int *fd, struct nc_layout *layout,
		 struct nc_segment *segment)
{
	const struct nc_wire_ask *ask = &errand->ask;
	int error;

	if (*fd < 0 || ask->fraglen == 0 || nc_layout_init(layout, ask->size, ask->fraglen))
		return -EINVAL;
	if (layout->size > errand->cache->max_unit)
		return -EFBIG;
	error = find_room(errand, layout->extent);
	if (error)
		return error;
	error = nc_segment_adopt_frozen(segment, *fd, layout->extent);
	if (!error)
		(void)take_fd(fd);
	return error;
}

static int seal(struct errand *errand)
{
	struct nc_cache *cache = errand->cache;
	struct nc_segment segment;
	struct nc_layout layout;
	struct nc_unit *unit;
	size_t id;
	int error = adopt(errand, &errand->fds[0], &layout, &segment);

	if (error)
		return error;
	error = nc_member_adopt(&cache->own, &segment, &layout, &unit);
	if (error) {
		nc_segment_close(&segment);
		return error;
	}
	id = nc_id(0, unit->slot, nc_word_generation(nc_unit_word(unit)));
	atomic_store(&unit->granted, true);
	error = nc_grants_enter(&cache->grants, id, errand->asker, NULL, layout.size,
				layout.fraglen);
	if (!error)
		error = lend(errand, id);
	if (error)
		(void)nc_cache_destroy(cache, id);
	(void)nc_cache_release(cache, id);
	if (error)
		return error;
	/* Its maker has it already. */
	close(take_fd(&errand->fd));
	return 0;
}

/* Whether the asker made the unit, as far as the id or the book tell. */
static bool made_by_asker(const struct errand *errand, bool *known)
{
	bool made;

	*known = nc_grants_known(&errand->cache->grants, errand->ask.id, errand->asker, &made);
	return made ||
	       (errand->asker->number && nc_id_member(errand->ask.id) == errand->asker->number);
}

/* To whom or from whom; a process is named by the pidfd that came along. */
static int grantee_of(struct errand *errand, struct nc_grantee *grantee)
{
	const struct nc_wire_ask *ask = &errand->ask;
	int error;

	if (ask->principal != NC_PROCESS)
		return ask->principal == NC_USER || ask->principal == NC_GROUP
			       ? nc_share_grantee((enum NC_principal)ask->principal, ask->who,
						  false, grantee)
			       : -EINVAL;
	if (errand->fds[0] < 0)
		return -EINVAL;
	error = nc_share_grantee(NC_PROCESS_FD, (unsigned)errand->fds[0], false, grantee);
	if (!error)
		grantee->pidfd = take_fd(&errand->fds[0]);
	return error;
}

/* A copy of a unit in the asker's own segment, by itself. */
static int enter_copy(struct errand *errand)
{
	struct nc_segment copy;
	struct nc_layout layout;
	int *fd = &errand->fds[errand->fds[0] < 0 ? 1 : 0];
	int error = adopt(errand, fd, &layout, &copy);

	if (error)
		return error;
	error = nc_grants_enter(&errand->cache->grants, errand->ask.id, errand->asker, &copy,
				layout.size, layout.fraglen);
	if (error)
		nc_segment_close(&copy);
	return error;
}

static int give_leave(struct errand *errand)
{
	struct nc_grantee grantee;
	bool known, made = made_by_asker(errand, &known);
	int error;

	if (!made && !errand->asker->operates)
		return -EACCES;
	error = grantee_of(errand, &grantee);
	if (error)
		return error;
	if (!made)
		return nc_share_grant(errand->cache, errand->ask.id, &grantee);
	if (!known)
		error = enter_copy(errand);
	if (!error)
		error = nc_grants_give(&errand->cache->grants, errand->ask.id, &grantee);
	if (error && grantee.pidfd >= 0)
		close(grantee.pidfd);
	return error;
}

static int take_leave(struct errand *errand)
{
	const struct nc_wire_ask *ask = &errand->ask;
	struct nc_grantee grantee = {
		.principal = (enum NC_principal)ask->principal, .who = ask->who, .pidfd = -1};
	bool known, made = made_by_asker(errand, &known);

	if (!made && !errand->asker->operates)
		return -EACCES;
	return nc_grants_take(&errand->cache->grants, ask->id, &grantee);
}

static int destroy(struct errand *errand)
{
	bool known, made = made_by_asker(errand, &known);

	if (errand->asker->operates)
		return nc_cache_destroy(errand->cache, errand->ask.id);
	if (!made)
		return -EACCES;
	if (nc_id_member(errand->ask.id) == 0)
		return nc_cache_destroy(errand->cache, errand->ask.id);
	/* It has dropped its own already, by the table that it shares. */
	nc_grants_drop(&errand->cache->grants, errand->ask.id);
	return 0;
}

static int keep(struct errand *errand)
{
	const struct nc_wire_ask *ask = &errand->ask;
	bool known, made = made_by_asker(errand, &known), operates = errand->asker->operates;

	if (!made && !operates)
		return -EACCES;
	switch (ask->slot) {
	case NC_WIRE_PRIORITY:
		if (ask->size > NC_PRIORITY_PINNED)
			return -EINVAL;
		/* No member drives out what others have by what it calls important. */
		if (ask->size > NC_PRIORITY_NORMAL && !operates)
			return -EPERM;
		return nc_cache_set_priority(errand->cache, ask->id, (enum NC_priority)ask->size);
	case NC_WIRE_LIFETIME:
		return nc_cache_set_lifetime(errand->cache, ask->id, ask->size);
	}
	return -EINVAL;
}

static int ask_counter(struct errand *errand)
{
	const struct nc_desk_counter *counter = errand->counter;
	int length;

	if (!errand->asker->operates)
		return -EPERM;
	if (!counter || !counter->answer)
		return -EOPNOTSUPP;
	length = counter->answer(counter->context, &errand->ask, errand->asked, errand->answer,
				 errand->room, NC_WIRE_BEHIND_MAX);
	if (length < 0)
		return length;
	errand->answer->length = (uint32_t)length;
	return 0;
}

static int list(struct errand *errand)
{
	struct NC_stat *units = (struct NC_stat *)(void *)errand->room;
	unsigned most = NC_WIRE_BEHIND_MAX / sizeof(*units);
	size_t cursor = errand->ask.size;
	unsigned count;

	if (errand->ask.who < most)
		most = errand->ask.who;
	count = errand->asker->operates
			? nc_catalogue_list(errand->cache, &cursor, units, most)
			: nc_share_list(errand->cache, errand->asker, &cursor, units, most);

	errand->answer->size = cursor;
	errand->answer->length = count * (uint32_t)sizeof(*units);
	return 0;
}

static int stat_unit(struct errand *errand)
{
	bool made, known = nc_grants_known(&errand->cache->grants, errand->ask.id, errand->asker,
					   &made);
	int error;

	if (!errand->asker->operates && !(known && made))
		return -EACCES;
	error = nc_catalogue_unit(errand->cache, errand->ask.id,
				  (struct NC_stat *)(void *)errand->room);
	if (!error)
		errand->answer->length = sizeof(struct NC_stat);
	return error;
}

/* What it was lent so far it cannot use: it never got the revocation map. */
static void mind_map(struct errand *errand)
{
	const struct nc_revocation_map *map = &errand->asker->revocations;

	if ((errand->ask.op == NC_WIRE_SEAL || errand->ask.op == NC_WIRE_FETCH) &&
	    errand->ask.slot == NC_WIRE_NO_MAP && map->segment.base && map->segment.fd < 0)
		nc_grants_lose_map(&errand->cache->grants, errand->asker);
}

static int act(struct errand *errand)
{
	mind_map(errand);
	switch ((enum nc_wire_op)errand->ask.op) {
	case NC_WIRE_SEAL:
		return seal(errand);
	case NC_WIRE_FETCH:
		return lend(errand, errand->ask.id);
	case NC_WIRE_DROP:
		return nc_grants_return(&errand->cache->grants, errand->asker, errand->ask.slot);
	case NC_WIRE_GRANT:
		return give_leave(errand);
	case NC_WIRE_REVOKE:
		return take_leave(errand);
	case NC_WIRE_DESTROY:
		return destroy(errand);
	case NC_WIRE_LIST:
		return list(errand);
	case NC_WIRE_STAT:
		return stat_unit(errand);
	case NC_WIRE_KEEP:
		return keep(errand);
	case NC_WIRE_COUNTERS:
	case NC_WIRE_ROUTES:
	case NC_WIRE_ROUTE:
	case NC_WIRE_PURGE:
		return ask_counter(errand);
	case NC_WIRE_OPS:
		break;
	}
	return -EPROTO;
}

static void close_if(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* What was given with an answer that does not arrive, or says that it was not. */
static void take_back(struct errand *errand)
{
	if (errand->ask.op == NC_WIRE_SEAL)
		(void)nc_cache_destroy(errand->cache, errand->answer->id);
	if (errand->ask.op == NC_WIRE_SEAL || errand->ask.op == NC_WIRE_FETCH)
		(void)nc_grants_return(&errand->cache->grants, errand->asker, errand->answer->slot);
}

/* The revocation map goes with the first answer that needs it. */
static int send_answer(struct errand *errand, int socket)
{
	struct nc_wire_answer *answer = errand->answer;
	struct nc_revocation_map *map = &errand->asker->revocations;
	unsigned count = 0;
	int fds[2], error;

	if (errand->fd >= 0) {
		answer->flags |= NC_WIRE_HAS_UNIT;
		fds[count++] = errand->fd;
	}
	if (map->segment.base && map->segment.fd >= 0) {
		answer->flags |= NC_WIRE_HAS_MAP;
		fds[count++] = map->segment.fd;
	}
	error = nc_peer_send(socket, answer, sizeof(*answer) + answer->length, fds, count);
	if (error && !answer->error)
		take_back(errand);
	/* Others read too little of what they were sent, or memory is short: not its fault. */
	if (error == -EMFILE || error == -ENOMEM || error == -ENOBUFS) {
		answer->flags = answer->length = 0;
		answer->error = error == -EMFILE ? EMFILE : ENOMEM;
		error = nc_peer_send(socket, answer, sizeof(*answer), NULL, 0);
		/* Not even that: it waits for this answer in vain, and stays a member. */
		return error == -ENOMEM || error == -ENOBUFS ? 0 : error;
	}
	/* The mapping is all that the owner needs. */
	if (answer->flags & NC_WIRE_HAS_MAP) {
		close(map->segment.fd);
		map->segment.fd = -1;
	}
	return error;
}

/* Descriptors under way are counted against the owner: who lets them lie must go. */
static bool reads_nothing(int socket)
{
	int unread;

	return ioctl(socket, SIOCOUTQ, &unread) == 0 && unread > UNREAD_MAX;
}

static void leave(const struct nc_desk_lock *lock)
{
	if (lock)
		pthread_mutex_unlock(lock->mutex);
}

/* False: the asker has gone meanwhile. */
static bool come_back(const struct nc_desk_lock *lock)
{
	if (!lock)
		return true;
	pthread_mutex_lock(lock->mutex);
	return !*lock->gone;
}

static void close_all(const struct nc_desk_lock *lock, int fds[2])
{
	if (fds[0] < 0 && fds[1] < 0)
		return;
	leave(lock);
	close_if(fds[0]);
	close_if(fds[1]);
	(void)come_back(lock);
}

int nc_desk_serve(struct nc_cache *cache, int socket, struct nc_borrower *asker,
		  const struct nc_desk_counter *counter, const struct nc_desk_lock *lock)
{
	struct {
		struct nc_wire_ask ask;
		char behind[NC_WIRE_BEHIND_MAX];
	} question;
	struct {
		struct nc_wire_answer answer;
		char room[NC_WIRE_BEHIND_MAX];
	} reply;
	struct errand errand = {.cache = cache,
				.asker = asker,
				.counter = counter,
				.asked = question.behind,
				.fds = {-1, -1},
				.fd = -1,
				.answer = &reply.answer,
				.room = reply.room};
	bool complete = false;
	unsigned count;
	pid_t sender;
	int error;
	ssize_t got;

	if (reads_nothing(socket))
		return -ENOBUFS;
	question.ask = (struct nc_wire_ask){0};
	leave(lock);
	got = nc_peer_receive_from(socket, &question, sizeof(question), errand.fds, 2, &count,
				   &sender);
	if (!come_back(lock)) {
		close_all(lock, errand.fds);
		return -EPIPE;
	}
	/* Not its fault: this process had no room for what came with it. */
	if (got == -EMFILE)
		got = (ssize_t)(sizeof(question.ask) + question.ask.length);
	else if (got <= 0)
		return nc_peer_is_later((int)got) ? 0 : got == 0 ? -EPIPE : (int)got;
	else
		complete = true;
	if (nc_wire_check_ask(&question, (size_t)got, count, &errand.ask)) {
		close_all(lock, errand.fds);
		return -EPROTO;
	}
	reply.answer = (struct nc_wire_answer){.magic = NC_WIRE_MAGIC, .tag = errand.ask.tag};
	/* A socket may be passed on or inherited; a membership may not. */
	if (sender != asker->who.pid || nc_identity_ended(asker->who.pidfd))
		error = -EACCES;
	else
		error = complete ? act(&errand) : -EMFILE;
	reply.answer.error = -error;
	if (error)
		reply.answer.length = 0;
	error = send_answer(&errand, socket);
	close_if(errand.fd);
	close_all(lock, errand.fds);
	/* Who has gone without an answer may have asked more before. */
	return error && error != -EPIPE ? error : 1;
}
