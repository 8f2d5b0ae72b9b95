/* SPDX-License-Identifier: MIT */
/*
 * desk.h - the owner's end of what members ask.
 *
 * A member is a stranger: each question is copied and checked, must come from
 * the very process that was admitted, and gets what its asker has leave for.
 */
#ifndef NC_DESK_H
#define NC_DESK_H

#include <pthread.h>

#include "cache/cache.h"
#include "wire/wire.h"

/* What upper floors answer to operators; may be NULL. */
struct nc_desk_counter {
	/*
	 * Bytes written to room, behind the answer, or -errno; answer->size may
	 * be set too.  asked: what came behind the question, ask->length bytes.
	 */
	int (*answer)(void *context, const struct nc_wire_ask *ask, const void *asked,
		      struct nc_wire_answer *answer, void *room, size_t size);
	void *context;
};

/* A lock of the caller's, held but while the desk may have to wait; gone: the asker is, behind that. */
struct nc_desk_lock {
	pthread_mutex_t *mutex;
	const bool *gone;
};

/*
 * Takes one question from the socket, acts and answers.  It waits for nobody, but
 * the system may: for as long as the last user of a descriptor wants, if that is
 * this process, which descriptors that came along decide.  So they are received
 * and closed without the lock (may be NULL).
 * 1; 0: there is none; -errno: this member is to go.
 */
int nc_desk_serve(struct nc_cache *cache, int socket, struct nc_borrower *asker,
		  const struct nc_desk_counter *counter, const struct nc_desk_lock *lock);

#endif
