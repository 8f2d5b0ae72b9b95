/* SPDX-License-Identifier: MIT */
/*
 * session.c - asks the owner; see session.h.
 *
 * An answer that came too late is known by its tag and passed over, so one
 * slow dispatch of the owner spoils one call only.  A unit that was entered too
 * late is destroyed again.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "session.h"

#define TIMEOUT_MS 5000

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

void nc_session_fini(struct nc_session *session)
{
	if (session->board.base)
		nc_segment_close(&session->board);
	pthread_mutex_destroy(&session->lock);
}

static bool wants_board(const struct nc_wire_ask *ask)
{
	return ask->op == NC_WIRE_SEAL || ask->op == NC_WIRE_FETCH;
}

/*
 * The board comes with the first loan, and again as long as this end says that
 * it has none: an answer can get lost.  Nothing was lent by an earlier one then.
 */
static int take_board(struct nc_session *session, const struct nc_wire_ask *ask, int fd)
{
	struct nc_segment board;
	int error = ask->slot == NC_WIRE_BOARDLESS && wants_board(ask)
			    ? nc_segment_adopt_readable(&board, fd, NC_WIRE_BOARD_SIZE)
			    : -EPROTO;

	if (error) {
		close(fd);
		return error;
	}
	if (session->board.base)
		nc_segment_close(&session->board);
	session->board = board;
	return 0;
}

static uint64_t bit_of(uint64_t tag)
{
	return UINT64_C(1) << tag % 64;
}

/* What a late answer names was entered for nobody: its maker was told that it failed. */
static void undo(struct nc_session *session, const struct nc_wire_answer *late)
{
	struct nc_wire_ask ask = {.magic = NC_WIRE_MAGIC, .op = NC_WIRE_DESTROY, .id = late->id};

	if (late->error || late->tag + 64 <= session->tag || !(session->lost & bit_of(late->tag)))
		return;
	session->lost &= ~bit_of(late->tag);
	/* Its answer will be passed over. */
	(void)nc_peer_send(session->socket, &ask, sizeof(ask), NULL, 0);
}

static int take_answer(struct nc_session *session, const struct nc_wire_ask *ask,
		       struct nc_session_load *load, struct nc_wire_answer *answer)
{
	struct message message;
	int fds[NC_PEER_FDS_MAX], error;
	unsigned count;

	for (;;) {
		ssize_t got = nc_peer_receive(session->socket, &message, sizeof(message), fds,
					      &count, TIMEOUT_MS);

		if (got <= 0)
			return got == 0 || got == -ECONNRESET ? -EPIPE : (int)got;
		error = nc_wire_check_answer(&message, (size_t)got, count, answer);
		if (!error && answer->flags & NC_WIRE_HAS_BOARD)
			error = take_board(session, ask, fds[--count]);
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
	if (wants_board(ask))
		ask->slot = session->board.base ? 0 : NC_WIRE_BOARDLESS;
	message.ask = *ask;
	if (ask->length)
		memcpy(message.behind, load->bytes, ask->length);
	error = nc_peer_send(session->socket, &message, sizeof(*ask) + ask->length, load->fds,
			     load->fd_count);
	if (!error)
		error = take_answer(session, ask, load, answer);
	else if (error == -ECONNRESET)
		error = -EPIPE;
	if (error == -ETIMEDOUT && ask->op == NC_WIRE_SEAL)
		session->lost |= bit_of(ask->tag);
	pthread_mutex_unlock(&session->lock);
	return error;
}
