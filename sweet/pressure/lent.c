/* SPDX-License-Identifier: MIT */
/*
 * lent.c - when a response is moved off its unit, the socket may still refer to pages of that unit
 * until the client has acknowledged them: the unit is held until then.
 */
#include <glib.h>
#include <nabc.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "core/server.h"
#include "event/loop.h"
#include "pressure/pressure-internal.h"
#include "pressure/pressure-thread.h"
#include "pressure/unsent.h"

/* A unit that a response was moved off; the socket may refer to it. */
struct lent {
	size_t id;
	struct NC_hold hold;
	uint64_t until; /* held until that many bytes are acknowledged */
};

void lent_begin(struct unsent *unsent, const struct NC_send *message)
{
	struct thread *thread = unsent->thread;
	size_t id = message->ranges[0].id;
	struct NC_stat stat;
	struct lent *lent;

	/* Pages of recycled units are never lent, and a program waits for their memory. */
	if (message->flags & NC_SEND_COPY || unsent->lent || !unsent->bytes ||
	    NC_stat(NULL, id, &stat, sizeof(stat)) < 0 || stat.kind == NC_KIND_RECYCLED)
		return;
	lent = g_new0(struct lent, 1);
	if (NC_hold(NULL, id, &lent->hold) < 0) {
		g_free(lent);
		return;
	}
	held_add(thread, id, stat.size, NULL);
	lent->id = id;
	lent->until = unsent->sent_earlier;
	list_append(&thread->pressure->lent, &unsent->lent_node);
	unsent->lent = lent;
	if (held_cache_is_over(thread->server))
		loop_notify(thread->loop, &thread->pressure->shed);
}

void lent_end(struct unsent *unsent)
{
	struct thread *thread = unsent->thread;
	struct lent *lent = unsent->lent;

	list_remove(&unsent->lent_node);
	held_remove(thread, lent->id);
	(void)NC_release(&lent->hold);
	g_free(lent);
	unsent->lent = NULL;
}

void lent_acknowledged(struct unsent *unsent)
{
	if (unsent->lent && unsent->acknowledged >= unsent->lent->until)
		lent_end(unsent);
}
