/* SPDX-License-Identifier: MIT */
/*
 * session.h - a member's end of the socket to the owner: one question, one
 * answer.
 */
#ifndef NC_SESSION_H
#define NC_SESSION_H

#include <pthread.h>

#include "os/peer.h"
#include "os/segment.h"
#include "wire/wire.h"

struct nc_session {
	int socket; /* the caller's; -1: none */
	pthread_mutex_t lock;
	uint64_t tag;
	uint64_t lost;		       /* of the last 64 tags: seals whose answer did not come */
	pid_t owner;		       /* the process at the other end */
	struct nc_segment revocations; /* base NULL: nothing was lent yet */
};

/* What goes with a question, and what came with its answer. */
struct nc_session_load {
	const int *fds; /* sent; stay the caller's */
	unsigned fd_count;
	const void *bytes; /* sent behind; ask->length of them */
	void *room;	   /* for the bytes behind the answer; may be NULL */
	size_t room_size;
	int fd; /* received, the caller's; -1: none */
};

void nc_session_init(struct nc_session *session);
void nc_session_open(struct nc_session *session, int socket);
void nc_session_fini(struct nc_session *session);

/*
 * Asks and waits for the answer, which takes as long as the owner needs to
 * dispatch, at most five seconds.  Fills magic, tag and, where it tells of the
 * revocation map, slot.  0; the errno of the answer, negated; -EPIPE: the owner is gone;
 * -ETIMEDOUT; -EMFILE: no descriptor was free for what came; -EPROTO.  Any
 * thread; one question at a time.
 */
int nc_session_ask(struct nc_session *session, struct nc_wire_ask *ask,
		   struct nc_session_load *load, struct nc_wire_answer *answer);

#endif
