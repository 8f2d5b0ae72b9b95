/* SPDX-License-Identifier: MIT */
/*
 * unit-holds.h - holds by id, for tests that count how often a unit is held and do
 * not care by which object: the program remembers the hold of each id.
 *
 * Holds of a unit are counted and equal (NC_hold(3)), so one copy stands for all.
 */
#ifndef UNIT_HOLDS_H
#define UNIT_HOLDS_H

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <nabc-worker.h>
#include <nabc.h>

struct unit_hold {
	NC_cache *cache;
	size_t id;
	struct NC_hold hold;
};

static struct {
	pthread_mutex_t lock;
	struct unit_hold *all; /* the newest last */
	size_t count, room;
} unit_holds = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* NULL stands for the default cache, which the tests name as well. */
static inline struct unit_hold *unit_hold_find_locked(NC_cache *in, size_t id)
{
	for (size_t i = unit_holds.count; i--;)
		if (unit_holds.all[i].id == id &&
		    (unit_holds.all[i].cache == in || !unit_holds.all[i].cache || !in))
			return &unit_holds.all[i];
	return NULL;
}

/* From now on the calls below find this hold. */
static inline void remember_hold(NC_cache *in, size_t id, struct NC_hold hold)
{
	struct unit_hold *known;

	pthread_mutex_lock(&unit_holds.lock);
	known = unit_hold_find_locked(in, id);
	if (!known && unit_holds.count == unit_holds.room) {
		unit_holds.room = unit_holds.room * 2 + 64;
		unit_holds.all = realloc(unit_holds.all, unit_holds.room * sizeof(*known));
		if (!unit_holds.all)
			abort();
	}
	if (!known)
		known = &unit_holds.all[unit_holds.count++];
	*known = (struct unit_hold){in, id, hold};
	pthread_mutex_unlock(&unit_holds.lock);
}

/* The hold of a unit; all zeros: none was ever made. */
static inline struct NC_hold hold_of_id(NC_cache *in, size_t id)
{
	struct NC_hold hold = {0};
	struct unit_hold *known;

	pthread_mutex_lock(&unit_holds.lock);
	known = unit_hold_find_locked(in, id);
	if (known)
		hold = known->hold;
	pthread_mutex_unlock(&unit_holds.lock);
	return hold;
}

static inline int hold_id(NC_cache *in, size_t id)
{
	struct NC_hold hold;
	int result = NC_hold(in, id, &hold);

	if (result == 0)
		remember_hold(in, id, hold);
	return result;
}

static inline int release_id(NC_cache *in, size_t id)
{
	struct NC_hold hold = hold_of_id(in, id);

	return NC_release(&hold);
}

static inline const void *data_of_id(NC_cache *in, size_t id, size_t offset, size_t *run)
{
	struct NC_hold hold = hold_of_id(in, id);

	return NC_data(&hold, run, offset);
}

/* The holds of a response, whose units the library holds for the caller. */
static inline void remember_response(const struct NC_response *response)
{
	for (unsigned i = 0; i < response->range_count; i++)
		remember_hold(NULL, response->ranges[i].id, response->holds[i]);
}

/* The holds of the default cache's units that a message names, in the caller's room. */
static inline void use_holds(struct NC_send *message, struct NC_hold *room)
{
	for (unsigned i = 0; i < message->range_count; i++)
		room[i] = hold_of_id(NULL, message->ranges[i].id);
	message->holds = room;
	message->hold_count = message->range_count;
}

#endif
