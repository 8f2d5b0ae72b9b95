/* SPDX-License-Identifier: MIT */
/*
 * operator.c - asks and answers about a whole cache; see operator.h.
 *
 * Structures travel as they are: who asks says how large it takes them to be,
 * and either end refuses what is of another size.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "api/operator.h"
#include "cache/catalogue.h"

/* Routes in one answer, and the longest text of an address. */
#define ROUTES_ONCE (NC_WIRE_BEHIND_MAX / sizeof(struct NC_route))
#define ADDRESS_MAX 63u

static_assert(NC_PURGE_MAX < NC_WIRE_BEHIND_MAX, "must fit a question");

static void count_up(struct nc_transmit *transmit, struct NC_cache_stat *stat)
{
	nc_catalogue_counters(transmit->cache, stat);
	nc_transmit_stat(transmit, stat);
}

/* --- the owner's end -------------------------------------------------------- */

static int answer_counters(struct nc_transmit *transmit, const struct nc_wire_ask *ask, void *room)
{
	struct NC_cache_stat stat;

	if (ask->size != sizeof(stat) || ask->length)
		return -EPROTO;
	count_up(transmit, &stat);
	memcpy(room, &stat, sizeof(stat));
	return sizeof(stat);
}

/* Those from the asker's place on, as many as it wants and an answer takes. */
static int answer_routes(struct nc_transmit *transmit, const struct nc_wire_ask *ask,
			 struct nc_wire_answer *answer, void *room)
{
	struct NC_route routes[NC_ROUTES];
	size_t found, count = ask->who < ROUTES_ONCE ? ask->who : ROUTES_ONCE;

	if (ask->size != sizeof(*routes) || ask->length)
		return -EPROTO;
	/* What lies between its fields goes out too. */
	memset(routes, 0, sizeof(routes));
	found = (size_t)nc_transmit_routes(transmit, routes, NC_ROUTES);
	answer->size = found;
	if (ask->id >= found)
		return 0;
	if (count > found - ask->id)
		count = found - ask->id;
	memcpy(room, routes + ask->id, count * sizeof(*routes));
	return (int)(count * sizeof(*routes));
}

static int set_route(struct nc_transmit *transmit, const struct nc_wire_ask *ask, const void *asked)
{
	char address[ADDRESS_MAX + 1];

	if (ask->length > ADDRESS_MAX)
		return -EINVAL;
	memcpy(address, asked, ask->length);
	address[ask->length] = '\0';
	if (strlen(address) != ask->length)
		return -EINVAL;
	return nc_transmit_route_set(transmit, address, (int)ask->who);
}

static int forget(struct nc_purge *purge, const char *name)
{
	int forgotten = -EOPNOTSUPP;

	pthread_mutex_lock(&purge->lock);
	if (purge->purger)
		forgotten = purge->purger(purge->context, name);
	pthread_mutex_unlock(&purge->lock);
	return forgotten;
}

static int answer_purge(struct nc_transmit *transmit, const struct nc_wire_ask *ask,
			const void *asked, struct nc_wire_answer *answer)
{
	char name[NC_PURGE_MAX + 1];
	int forgotten;

	if (ask->length > NC_PURGE_MAX)
		return -EINVAL;
	memcpy(name, asked, ask->length);
	name[ask->length] = '\0';
	if (strlen(name) != ask->length)
		return -EINVAL;
	forgotten = forget(&transmit->cache->purge, name);
	if (forgotten < 0)
		return forgotten;
	answer->size = (uint64_t)forgotten;
	return 0;
}

int nc_operator_answer(void *context, const struct nc_wire_ask *ask, const void *asked,
		       struct nc_wire_answer *answer, void *room, size_t size)
{
	static_assert(sizeof(struct NC_cache_stat) <= NC_WIRE_BEHIND_MAX, "must fit an answer");

	if (size < NC_WIRE_BEHIND_MAX)
		return -EMSGSIZE;
	switch ((enum nc_wire_op)ask->op) {
	case NC_WIRE_COUNTERS:
		return answer_counters(context, ask, room);
	case NC_WIRE_ROUTES:
		return answer_routes(context, ask, answer, room);
	case NC_WIRE_ROUTE:
		return set_route(context, ask, asked);
	case NC_WIRE_PURGE:
		return answer_purge(context, ask, asked, answer);
	default:
		return -EOPNOTSUPP;
	}
}

/* --- the operator's end ------------------------------------------------------- */

/* Asks for one structure of that size. */
static int ask_for(struct nc_cache *cache, struct nc_wire_ask *ask, void *room, size_t size)
{
	struct nc_session_load load = {.room = room, .room_size = size};
	struct nc_wire_answer answer;
	int error = nc_session_ask(&cache->session, ask, &load, &answer);

	if (error)
		return error;
	return answer.length == size ? 0 : -EPROTO;
}

int nc_operator_counters(struct nc_transmit *transmit, struct NC_cache_stat *stat)
{
	struct nc_wire_ask ask = {.op = NC_WIRE_COUNTERS, .size = sizeof(*stat)};
	int error;

	if (!transmit->cache->operates) {
		count_up(transmit, stat);
		return 0;
	}
	error = ask_for(transmit->cache, &ask, stat, sizeof(*stat));
	if (!error)
		stat->uring[sizeof(stat->uring) - 1] = stat->kernel[sizeof(stat->kernel) - 1] =
			'\0';
	return error;
}

int nc_operator_stat(struct nc_cache *cache, size_t id, struct NC_stat *stat)
{
	struct nc_wire_ask ask = {.op = NC_WIRE_STAT, .id = id};

	return cache->operates ? ask_for(cache, &ask, stat, sizeof(*stat))
			       : nc_catalogue_unit(cache, id, stat);
}

/* Some routes from the place filled on; *found: how many there are in all. */
static int ask_routes(struct nc_cache *cache, size_t filled, struct NC_route *routes,
		      unsigned count, size_t *found)
{
	struct nc_wire_ask ask = {
		.op = NC_WIRE_ROUTES, .id = filled, .size = sizeof(*routes), .who = count};
	struct nc_session_load load = {.room = routes, .room_size = count * sizeof(*routes)};
	struct nc_wire_answer answer;
	int error = nc_session_ask(&cache->session, &ask, &load, &answer);
	size_t got;

	if (error)
		return error;
	if (answer.length % sizeof(*routes) || answer.size > INT_MAX)
		return -EPROTO;
	got = answer.length / sizeof(*routes);
	for (size_t i = 0; i < got; i++) {
		routes[i].address[sizeof(routes[i].address) - 1] = '\0';
		routes[i].why[sizeof(routes[i].why) - 1] = '\0';
	}
	*found = answer.size;
	return (int)got;
}

int nc_operator_routes(struct nc_transmit *transmit, struct NC_route *routes, unsigned count)
{
	size_t found = 0, filled = 0;
	int got;

	if (!transmit->cache->operates)
		return nc_transmit_routes(transmit, routes, count);
	if (count && !routes)
		return -EINVAL;
	do {
		unsigned more = count - (unsigned)filled;

		if (more > ROUTES_ONCE)
			more = ROUTES_ONCE;
		got = ask_routes(transmit->cache, filled, routes + filled, more, &found);
		if (got < 0)
			return got;
		filled += (size_t)got;
	} while (got && filled < count && filled < found);
	/* Fewer than there were a moment ago: nothing that is counted is missing. */
	return (int)(filled < count ? filled : found > filled ? found : filled);
}

int nc_operator_route_set(struct nc_transmit *transmit, const char *address, int method)
{
	struct nc_wire_ask ask = {.op = NC_WIRE_ROUTE, .who = (uint32_t)method};
	struct nc_session_load load = {.bytes = address};
	struct nc_wire_answer answer;

	if (!transmit->cache->operates)
		return nc_transmit_route_set(transmit, address, method);
	if (!address || strlen(address) > ADDRESS_MAX)
		return -EINVAL;
	ask.length = (uint32_t)strlen(address);
	return nc_session_ask(&transmit->cache->session, &ask, &load, &answer);
}

int nc_operator_on_purge(struct nc_cache *cache, NC_purger purger, void *context)
{
	if (!cache->owner)
		return -EPERM;
	pthread_mutex_lock(&cache->purge.lock);
	cache->purge.purger = purger;
	cache->purge.context = context;
	pthread_mutex_unlock(&cache->purge.lock);
	return 0;
}

int nc_operator_purge(struct nc_cache *cache, const char *name)
{
	struct nc_wire_ask ask = {.op = NC_WIRE_PURGE};
	struct nc_session_load load = {.bytes = name};
	struct nc_wire_answer answer;
	int error;

	if (!name || strlen(name) > NC_PURGE_MAX)
		return -EINVAL;
	if (cache->owner)
		return forget(&cache->purge, name);
	if (!cache->operates)
		return -EPERM;
	ask.length = (uint32_t)strlen(name);
	error = nc_session_ask(&cache->session, &ask, &load, &answer);
	if (error)
		return error;
	return answer.size <= INT_MAX ? (int)answer.size : INT_MAX;
}
