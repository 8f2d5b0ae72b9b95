/* SPDX-License-Identifier: MIT */
/*
 * zerocopy.c - IORING_OP_SEND_ZC; see zerocopy.h.
 *
 * A flight is one send that the kernel has not finished.  It is entered before the
 * send, so that the notification finds it, and removed by the thread that reaps the
 * notification.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

#include "base/diagnostics.h"
#include "cache/index.h"
#include "os/registered.h"
#include "send/choice.h"
#include "send/message.h"
#include "send/route.h"
#include "send/zerocopy.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit.h"

/* The ways to name memory in a submission, for struct nc_choice. */
#define AS_IT_IS 0u
#define REGISTERED 1u
#define EITHER (1u << AS_IT_IS | 1u << REGISTERED)

struct nc_flight {
	struct nc_flight *next, **link;
	size_t id;
	struct nc_route_use route;
	uint32_t level; /* nc_route_level() when it was sent */
	struct nc_transmit_counts *counts;
	bool registered; /* from registered memory; period: for nc_registered_ended() */
	unsigned period;
};

static struct nc_flight *flight_open(struct nc_sending *sending, size_t id)
{
	struct nc_zerocopy *zerocopy = sending->zerocopy;
	struct nc_flight *flight = malloc(sizeof(*flight));
	struct nc_view hold;

	if (!flight)
		return NULL;
	/* The message already holds the unit, so this hold finds it. */
	if (nc_index_hold(zerocopy->index, id, true, &hold)) {
		free(flight);
		return NULL;
	}
	pthread_mutex_lock(&zerocopy->lock);
	*flight = (struct nc_flight){.next = zerocopy->flights,
				     .link = &zerocopy->flights,
				     .id = id,
				     .route = sending->route,
				     .level = nc_route_level(&sending->route),
				     .counts = sending->counts};
	if (flight->next)
		flight->next->link = &flight->next;
	zerocopy->flights = flight;
	pthread_mutex_unlock(&zerocopy->lock);
	return flight;
}

static void flight_close(struct nc_zerocopy *zerocopy, struct nc_flight *flight)
{
	pthread_mutex_lock(&zerocopy->lock);
	*flight->link = flight->next;
	if (flight->next)
		flight->next->link = flight->link;
	pthread_mutex_unlock(&zerocopy->lock);
	(void)nc_index_release(zerocopy->index, flight->id);
	free(flight);
}

/* The kernel no longer needs the bytes, or did not take any. */
static void ended(struct nc_zerocopy *zerocopy, struct nc_flight *flight)
{
	if (flight->registered)
		nc_registered_ended(zerocopy->registered, flight->period);
	flight_close(zerocopy, flight);
}

static void zerocopy_notified(void *context, uint64_t token, bool copied)
{
	struct nc_zerocopy *zerocopy = context;
	struct nc_flight *flight = (struct nc_flight *)(uintptr_t)token;

	nc_route_notified(&flight->route, flight->level, copied);
	atomic_fetch_add_explicit(copied ? &nc_index_counters(zerocopy->index)->zerocopy_copied
					 : &flight->counts->kept,
				  1, memory_order_relaxed);
	ended(zerocopy, flight);
}

static bool zerocopy_takes(const struct nc_sending *sending, unsigned range)
{
	const struct nc_message *message = &sending->message;

	if (range == message->range && (message->within || nc_message_is_cut(message)) &&
	    nc_message_piece(message) < NC_ZEROCOPY_REST)
		return false;
	return nc_unit_present(nc_sending_unit(sending, range)) &&
	       nc_sending_gapless(sending, range);
}

enum nc_reason nc_zerocopy_refused(struct nc_zerocopy *zerocopy, const struct nc_route_use *route,
				   uint32_t level, int error)
{
	const bool memory = error == -ENOMEM || error == -ENOBUFS;

	if (memory)
		nc_diagnostics_report(
			&zerocopy->index->diagnostics, NC_DIAGNOSTIC_MEMLOCK,
			"memory for zero-copy sends cannot be locked, so units are "
			"copied; raise RLIMIT_MEMLOCK and sysctl net.core.optmem_max");
	/* Errors of the stream itself are left to the copy, which reports them. */
	if (memory || error == -EOPNOTSUPP || error == -EINVAL || error == -EACCES)
		nc_route_refused(route, level);
	return memory ? NC_ZEROCOPY_MEMORY : NC_ZEROCOPY_REFUSED;
}

/*
 * Falls back to copy: to wait until the socket is writable, or because zero-copy is
 * unavailable here.
 */
static int declined(struct nc_sending *sending, uint32_t level, int error)
{
	enum nc_reason reason = NC_ZEROCOPY_FULL;

	if (error != -EAGAIN)
		reason = nc_zerocopy_refused(sending->zerocopy, &sending->route, level, error);
	nc_sending_drop(sending, NC_METHOD_ZEROCOPY, reason);
	return 1;
}

/*
 * Finds the registered block with the byte at `at` of the unit, if the route's sends from
 * registered memory cost no more.  Measured sends show which costs less.
 */
static bool take(struct nc_sending *sending, const struct nc_unit *unit, size_t at, size_t length,
		 struct nc_registered_use *use)
{
	struct nc_registered *table = sending->zerocopy->registered;
	struct nc_choice *choice = nc_route_registered(&sending->route, sending->class);
	unsigned way = REGISTERED;

	if (!nc_registered_take(table, &unit->store->segment, unit->at + at, length, use))
		return false;
	if (choice && sending->class) {
		if (!sending->measured)
			way = nc_choice_best(choice, EITHER, REGISTERED);
		else if (sending->registered || sending->unregistered)
			way = sending->registered ? REGISTERED : AS_IT_IS;
		else
			way = nc_choice_pick(choice, EITHER, REGISTERED).way;
	}
	if (way == REGISTERED) {
		sending->registered++;
		return true;
	}
	sending->unregistered++;
	nc_registered_put(use);
	nc_registered_ended(table, use->period);
	return false;
}

/*
 * Submits the bytes of the flight's unit at `at`, from registered memory if possible: then at
 * most to the end of the registered block.  *length: the bytes submitted.
 */
static ssize_t submit(struct nc_sending *sending, struct nc_flight *flight, size_t at,
		      size_t *length, bool *notify)
{
	struct nc_zerocopy *zerocopy = sending->zerocopy;
	struct nc_message *message = &sending->message;
	const struct nc_unit *unit = message->views[message->range].unit;
	struct nc_registered_use use;
	bool registered = take(sending, unit, at, *length, &use);
	struct nc_ring_piece piece = {.data = nc_unit_lent_base(unit) + at,
				      .length = registered ? use.length : *length,
				      .registered = registered ? &use : NULL};
	ssize_t sent;

	flight->registered = registered;
	flight->period = registered ? use.period : 0;
	piece.more = nc_message_more(message, piece.length);
	*length = piece.length;
	sent = nc_ring_send(&zerocopy->ring, sending->socket, &piece, (uintptr_t)flight, notify,
			    zerocopy_notified, zerocopy);
	if (!registered)
		return sent;
	nc_registered_put(&use);
	if (sent >= 0)
		atomic_fetch_add_explicit(&sending->counts->registered, 1, memory_order_relaxed);
	return sent;
}

static int zerocopy_send(struct nc_sending *sending)
{
	struct nc_zerocopy *zerocopy = sending->zerocopy;
	struct nc_message *message = &sending->message;
	const struct NC_range *range = &message->spec->ranges[message->range];
	uint32_t level = nc_route_level(&sending->route);
	struct nc_flight *flight = flight_open(sending, message->views[message->range].id);
	size_t length = nc_message_piece(message);
	ssize_t sent = -ENOMEM;
	bool notify;

	if (flight) {
		sent = submit(sending, flight, range->offset + message->within, &length, &notify);
		if (!notify)
			ended(zerocopy, flight);
	}
	if (sent < 0)
		return declined(sending, level, (int)sent);
	/* If the socket is full, the copy waits, or reports that it may not. */
	(void)nc_sending_moved(sending, NC_METHOD_ZEROCOPY, length, (size_t)sent);
	sending->retry_short |= nc_ring_waits(&zerocopy->ring);
	if ((size_t)sent < length)
		nc_sending_drop(sending, NC_METHOD_ZEROCOPY, NC_ZEROCOPY_FULL);
	return 1;
}

const struct nc_method nc_zerocopy_method = {.id = NC_METHOD_ZEROCOPY,
					     .name = "zerocopy",
					     .takes = zerocopy_takes,
					     .send = zerocopy_send};

unsigned nc_zerocopy_reap(struct nc_zerocopy *zerocopy)
{
	return nc_ring_reap(&zerocopy->ring, zerocopy_notified, zerocopy);
}

bool nc_zerocopy_registers(const struct nc_zerocopy *zerocopy)
{
	return zerocopy->ring.usable && !(zerocopy->index->flags & NC_CACHE_NO_REGISTER);
}

struct nc_registered *nc_zerocopy_open_table(struct nc_zerocopy *zerocopy, struct io_uring *ring)
{
	struct nc_registered *table =
		nc_registered_open(ring, &zerocopy->budget, zerocopy->index->own.budget,
				   &zerocopy->index->diagnostics);

	if (!table)
		return NULL;
	pthread_mutex_lock(&zerocopy->lock);
	table->next = zerocopy->tables;
	table->link = &zerocopy->tables;
	if (table->next)
		table->next->link = &table->next;
	zerocopy->tables = table;
	pthread_mutex_unlock(&zerocopy->lock);
	return table;
}

void nc_zerocopy_close_table(struct nc_zerocopy *zerocopy, struct nc_registered *table)
{
	struct nc_registered_counts counts;

	pthread_mutex_lock(&zerocopy->lock);
	*table->link = table->next;
	if (table->next)
		table->next->link = table->link;
	nc_registered_stat(table, &counts);
	zerocopy->closed.blocks += counts.blocks;
	zerocopy->closed.failed += counts.failed;
	pthread_mutex_unlock(&zerocopy->lock);
	nc_registered_close(table);
}

struct nc_registered_counts nc_zerocopy_registered(struct nc_zerocopy *zerocopy)
{
	struct nc_registered_counts sum, counts;

	pthread_mutex_lock(&zerocopy->lock);
	sum = zerocopy->closed;
	for (struct nc_registered *table = zerocopy->tables; table; table = table->next) {
		nc_registered_stat(table, &counts);
		sum.bytes += counts.bytes;
		sum.blocks += counts.blocks;
		sum.failed += counts.failed;
	}
	pthread_mutex_unlock(&zerocopy->lock);
	return sum;
}

bool nc_zerocopy_prefers_registered(const struct nc_route_use *route, size_t length)
{
	const struct nc_choice *choice = nc_route_registered(route, nc_route_class(length));

	return !choice || nc_choice_best(choice, EITHER, REGISTERED) == REGISTERED;
}

void nc_zerocopy_init(struct nc_zerocopy *zerocopy, struct nc_index *index)
{
	*zerocopy = (struct nc_zerocopy){.index = index};
	pthread_mutex_init(&zerocopy->lock, NULL);
	nc_ring_init(&zerocopy->ring, !(index->flags & NC_CACHE_NO_URING));
	nc_registered_budget_init(&zerocopy->budget,
				  zerocopy->ring.usable ? &zerocopy->ring.uring : NULL,
				  index->own.budget);
	if (nc_zerocopy_registers(zerocopy))
		zerocopy->registered = nc_zerocopy_open_table(zerocopy, &zerocopy->ring.uring);
}

void nc_zerocopy_fini(struct nc_zerocopy *zerocopy)
{
	if (zerocopy->registered)
		nc_zerocopy_close_table(zerocopy, zerocopy->registered);
	nc_ring_fini(&zerocopy->ring);
	while (zerocopy->flights)
		ended(zerocopy, zerocopy->flights);
	pthread_mutex_destroy(&zerocopy->lock);
}
