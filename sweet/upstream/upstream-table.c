/* SPDX-License-Identifier: MIT */
/*
 * upstream-table.c - see upstream-table.h.
 *
 * A name gets at most half of its share of the places, so that there are others for its next
 * addresses while requests to the former ones last.  If there is none, the next lookup tries again.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <glib.h>

#include "base/address.h"
#include "base/balancer.h"
#include "upstream/name-lookup.h"
#include "upstream/upstream-table.h"

void upstream_table_init(struct upstream_table *table, unsigned threads, unsigned names)
{
	*table = (struct upstream_table){
		.threads = threads, .names = names, .held = g_new0(uint64_t, threads)};
	pthread_mutex_init(&table->lock, NULL);
}

void upstream_table_clear(struct upstream_table *table)
{
	pthread_mutex_destroy(&table->lock);
	g_clear_pointer(&table->held, g_free);
}

static uint64_t bit(unsigned place)
{
	return UINT64_C(1) << place;
}

static void use_locked(struct upstream_table *table, unsigned place)
{
	table->used |= bit(place);
	for (unsigned i = 0; i < table->threads; i++)
		table->held[i] |= bit(place);
}

void upstream_table_add(struct upstream_table *table, const struct listen_address *address)
{
	unsigned place = table->fixed++;

	table->places[place] =
		(struct upstream_table_place){.address = *address, .name = UPSTREAM_FIXED};
	use_locked(table, place);
}

/* --- with the lock held --------------------------------------------------------------- */

static bool has_address(const struct upstream_table *table, unsigned place,
			const struct sockaddr_storage *address, uint16_t port)
{
	const struct listen_address *own = &table->places[place].address;

	return own->length && address_port(own) == port &&
	       name_address_compare((const struct sockaddr *)&own->address,
				    (const struct sockaddr *)address) == 0;
}

/* Returns the place of the name in the set that has the address; or BALANCER_MAX. */
static unsigned find_locked(const struct upstream_table *table, uint64_t set, unsigned name,
			    const struct sockaddr_storage *address, uint16_t port)
{
	unsigned place = table->fixed;

	while (place < BALANCER_MAX && !(set & bit(place) && table->places[place].name == name &&
					 has_address(table, place, address, port)))
		place++;
	return place;
}

/* Returns a place that is not in the set and that no thread uses; or BALANCER_MAX. */
static unsigned find_free_locked(const struct upstream_table *table, uint64_t set)
{
	for (unsigned i = 0; i < table->threads; i++)
		set |= table->held[i];
	for (unsigned place = table->fixed; place < BALANCER_MAX; place++)
		if (!(set & bit(place)))
			return place;
	return BALANCER_MAX;
}

static unsigned most_of_name(const struct upstream_table *table)
{
	return MAX(1, (BALANCER_MAX - table->fixed) / 2 / MAX(1, table->names));
}

static void place_locked(struct upstream_table *table, unsigned place, unsigned name,
			 const struct sockaddr_storage *address, uint16_t port)
{
	struct upstream_table_place *at = &table->places[place];

	at->name = name;
	at->address = (struct listen_address){
		.address = *address, .length = name_address_size((const struct sockaddr *)address)};
	address_set_port(&at->address, port);
}

/* Returns a place with the address, which the name does not have: one whose address was gone. */
static unsigned get_locked(struct upstream_table *table, uint64_t taken, unsigned name,
			   const struct sockaddr_storage *address, uint16_t port)
{
	unsigned place = find_locked(table, ~taken & ~table->used, name, address, port);

	if (place < BALANCER_MAX)
		return place;
	place = find_free_locked(table, taken | table->used);
	if (place < BALANCER_MAX)
		place_locked(table, place, name, address, port);
	return place;
}

static uint64_t places_of(const struct upstream_table *table, unsigned name)
{
	uint64_t own = 0;

	for (unsigned place = table->fixed; place < BALANCER_MAX; place++)
		if (table->used & bit(place) && table->places[place].name == name)
			own |= bit(place);
	return own;
}

static struct upstream_table_change set_locked(struct upstream_table *table, unsigned name,
					       const struct name_addresses *addresses,
					       uint16_t port)
{
	uint64_t before = places_of(table, name), wanted = 0, added = 0;
	unsigned most = most_of_name(table), count = 0;
	struct upstream_table_change change = {0};

	/* What it has comes first: so it has the same ones after each lookup of too many. */
	for (unsigned i = 0; i < addresses->count; i++) {
		unsigned place = find_locked(table, before, name, &addresses->all[i], port);

		if (place < BALANCER_MAX && count < most) {
			wanted |= bit(place);
			count++;
		}
	}
	for (unsigned i = 0; i < addresses->count; i++) {
		unsigned place = find_locked(table, before, name, &addresses->all[i], port);

		if (place < BALANCER_MAX) {
			change.left_out += !(wanted & bit(place));
			continue;
		}
		if (count < most)
			place = get_locked(table, added, name, &addresses->all[i], port);
		if (place == BALANCER_MAX) {
			change.left_out++;
			continue;
		}
		added |= bit(place);
		count++;
	}
	change.left_out += addresses->left_out;
	if (!count)
		return change;
	change.added = added;
	change.removed = before & ~wanted;
	table->used &= ~change.removed;
	for (unsigned place = 0; place < BALANCER_MAX; place++)
		if (added & bit(place))
			use_locked(table, place);
	return change;
}

/* --- taking the lock ------------------------------------------------------------------ */

struct upstream_table_change upstream_table_set(struct upstream_table *table, unsigned name,
						const struct name_addresses *addresses,
						uint16_t port)
{
	struct upstream_table_change change;

	pthread_mutex_lock(&table->lock);
	change = set_locked(table, name, addresses, port);
	pthread_mutex_unlock(&table->lock);
	return change;
}

uint64_t upstream_table_read(struct upstream_table *table, uint64_t known,
			     struct listen_address addresses[BALANCER_MAX])
{
	uint64_t used;

	pthread_mutex_lock(&table->lock);
	used = table->used;
	for (unsigned place = 0; place < BALANCER_MAX; place++)
		if (used & ~known & bit(place))
			addresses[place] = table->places[place].address;
	pthread_mutex_unlock(&table->lock);
	return used;
}

void upstream_table_release(struct upstream_table *table, unsigned thread, unsigned place)
{
	pthread_mutex_lock(&table->lock);
	/* Unless the address has come back. */
	if (!(table->used & bit(place)))
		table->held[thread] &= ~bit(place);
	pthread_mutex_unlock(&table->lock);
}
