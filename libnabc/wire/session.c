/* SPDX-License-Identifier: MIT */
/*
 * session.c - asks the owner; see session.h.
 *
 * An answer that came too late is known by its tag and passed over, so one
 * slow dispatch of the owner spoils one call only.  A unit that was entered too
 * late is destroyed again, and so is one whose answer this process had no room
 * for; a loan is dropped then.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/session.h"

#define TIMEOUT_MS 5000
#define ANSWERS_WAITING_MAX 128u

struct message {
	union {
		struct nc_wire_ask ask;
		struct nc_wire_answer answer;
	};
	char behind[NC_WIRE_BEHIND_MAX];
};

void nc_session_init(struct nc_session *session)
{
	*session = (struct nc_session){.socket = -1};
	pthread_mutex_init(&session->lock, NULL);
}

void nc_session_open(struct nc_session *session, int socket)
{
	struct ucred owner;
	socklen_t length = sizeof(owner);

	session->socket = socket;
	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &owner, &length) == 0)
		session->owner = owner.pid;
}

/*
 * Whose answer gives something: a place for a unit, or a loan; and the revocation map with
 * the first.
 */
static bool gives(const struct nc_wire_ask *ask)
{
	return ask->op == NC_WIRE_SEAL || ask->op == NC_WIRE_FETCH;
}

/*
 * The revocation map comes with the first loan, and again as long as this end says that
 * it has none: an answer can get lost.  Nothing was lent by an earlier one then.
 */
static int take_map(struct nc_session *session, const struct nc_wire_ask *ask, int fd)
{
	struct nc_segment map;
	int error = ask->slot == NC_WIRE_NO_MAP && gives(ask)
			    ? nc_segment_adopt_readable(&map, fd, NC_WIRE_MAP_SIZE)
			    : -EPROTO;

	if (error) {
		close(fd);
		return error;
	}
	if (session->revocations.base)
		nc_segment_close(&session->revocations);
	session->revocations = map;
	return 0;
}

static uint64_t bit_of(uint64_t tag)
{
	return UINT64_C(1) << tag % 64;
}

/* What an answer gave was for nobody: who asked for it was told that it failed. */
static void give_back(struct nc_session *session, const struct nc_wire_answer *answer)
{
	struct nc_wire_ask ask = {.magic = NC_WIRE_MAGIC};

	if (answer->flags & NC_WIRE_HAS_UNIT) {
		ask.op = NC_WIRE_DROP;
		ask.slot = answer->slot;
	} else {
		ask.op = NC_WIRE_DESTROY;
		ask.id = answer->id;
	}
	/* Its answer will be passed over. */
	(void)nc_peer_send(session->socket, &ask, sizeof(ask), NULL, 0);
}

static void undo(struct nc_session *session, const struct nc_wire_answer *late)
{
	if (late->error || late->tag + 64 <= session->tag || !(session->lost & bit_of(late->tag)))
		return;
	session->lost &= ~bit_of(late->tag);
	give_back(session, late);
}

/* Answers that have come since somebody waited for them: nobody will ask again. */
static void undo_waiting(struct nc_session *session)
{
	struct nc_wire_answer late;
	struct message message;
	int fds[NC_PEER_FDS_MAX];
	unsigned count;

	for (unsigned i = 0; session->lost && i < ANSWERS_WAITING_MAX; i++) {
		ssize_t got =
			nc_peer_receive(session->socket, &message, sizeof(message), fds, &count, 0);

		if (nc_peer_is_later((int)got))
			continue;
		if (got <= 0)
			return;
		nc_peer_close_fds(fds, count);
		if (!nc_wire_check_answer(&message, (size_t)got, count, &late))
			undo(session, &late);
	}
}

void nc_session_fini(struct nc_session *session)
{
	/* From here on none comes: one that was not read would cut off what is said now. */
	if (session->socket >= 0 && session->lost && shutdown(session->socket, SHUT_RD) == 0)
		undo_waiting(session);
	if (session->revocations.base)
		nc_segment_close(&session->revocations);
	pthread_mutex_destroy(&session->lock);
}

/*
 * An answer whose descriptors this process had no room for: it was read, and
 * they are lost.  True: it was another's, and the right one is still to come.
 */
static bool pass_over_cut(struct nc_session *session, const struct nc_wire_ask *ask,
			  const struct nc_wire_answer *answer)
{
	if (answer->magic != NC_WIRE_MAGIC)
		return false;
	if (answer->tag == ask->tag) {
		if (!answer->error && gives(ask))
			give_back(session, answer);
		return false;
	}
	undo(session, answer);
	return true;
}

static int take_answer(struct nc_session *session, const struct nc_wire_ask *ask,
		       struct nc_session_load *load, struct nc_wire_answer *answer)
{
	struct message message;
	int fds[NC_PEER_FDS_MAX], error;
	unsigned count;

	for (;;) {
		ssize_t got;

		message.answer.magic = 0;
		got = nc_peer_receive(session->socket, &message, sizeof(message), fds, &count,
				      TIMEOUT_MS);
		if (got == -EMFILE && pass_over_cut(session, ask, &message.answer))
			continue;
		if (got <= 0)
			return got == 0 || got == -ECONNRESET ? -EPIPE : (int)got;
		error = nc_wire_check_answer(&message, (size_t)got, count, answer);
		if (!error && answer->flags & NC_WIRE_HAS_MAP)
			error = take_map(session, ask, fds[--count]);
		if (error && error != -EPROTO && answer->tag == ask->tag && !answer->error)
			give_back(session, answer);
		if (!error && answer->tag == ask->tag)
			break;
		nc_peer_close_fds(fds, count);
		if (error)
			return error;
		undo(session, answer);
	}
	error = -answer->error;
	if (!error && answer->length > (load->room ? load->room_size : 0))
		error = -EPROTO;
	if (error) {
		nc_peer_close_fds(fds, count);
		return error;
	}
	if (answer->length)
		memcpy(load->room, message.behind, answer->length);
	load->fd = count ? fds[0] : -1;
	return 0;
}

int nc_session_ask(struct nc_session *session, struct nc_wire_ask *ask,
		   struct nc_session_load *load, struct nc_wire_answer *answer)
{
	struct message message;
	int error;

	load->fd = -1;
	if (session->socket < 0)
		return -EPIPE;
	if (ask->length > NC_WIRE_BEHIND_MAX)
		return -EMSGSIZE;
	pthread_mutex_lock(&session->lock);
	ask->magic = NC_WIRE_MAGIC;
	ask->tag = ++session->tag;
	session->lost &= ~bit_of(ask->tag);
	if (gives(ask))
		ask->slot = session->revocations.base ? 0 : NC_WIRE_NO_MAP;
	message.ask = *ask;
	if (ask->length)
		memcpy(message.behind, load->bytes, ask->length);
	error = nc_peer_send(session->socket, &message, sizeof(*ask) + ask->length, load->fds,
			     load->fd_count);
	if (!error)
		error = take_answer(session, ask, load, answer);
	else if (error == -ECONNRESET)
		error = -EPIPE;
	if ((error == -ETIMEDOUT || nc_peer_is_later(error)) && ask->op == NC_WIRE_SEAL)
		session->lost |= bit_of(ask->tag);
	pthread_mutex_unlock(&session->lock);
	return error;
}
