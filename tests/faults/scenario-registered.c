/* SPDX-License-Identifier: MIT */
/*
 * scenario-registered.c - a unit is sent without a copy until its memory is registered
 * with io_uring; then it is destroyed, its segment closed, and another one registered: with the
 * library's ring, and with the program's own.
 */
#include "scenario.h"

#include <errno.h>
#include <liburing.h>
#include <nabc-async.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * More than half of a segment of a small cache, so that it has its own; and less than an eighth of
 * the cache: older kernels register no more.
 */
#define SIZE ((size_t)140000)
/* Enough for the registration; see nabc(7). */
#define SENDS 28u

static void send_one(NC_cache *cache, size_t id, const int ends[2])
{
	const struct NC_range range = {.id = id, .length = SIZE};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	size_t at = 0;
	ssize_t sent;

	while (message.skip < SIZE) {
		call_begin();
		sent = NC_send(cache, ends[0], &message);
		if (!call_end("NC_send", sent >= 0 || errno == EAGAIN))
			break;
		message.skip += sent > 0 ? (size_t)sent : 0;
		while (at < message.skip && await_either(ends[1], -1))
			take_bytes(ends[1], &at, SIZE);
	}
	while (at < message.skip && await_either(ends[1], -1))
		take_bytes(ends[1], &at, SIZE);
	MUST(at == message.skip);
}

/* The program's ring, or none. */
struct own {
	struct io_uring ring;
	NC_ring_buffers *buffers;
};

/* The header is the unit's first bytes.  Returns false if the stream is broken off. */
static bool operate_one(NC_cache *cache, size_t id, const int ends[2], struct own *own)
{
	const struct NC_range range = {.id = id, .offset = 6, .length = SIZE - 6};
	char first[6];
	struct NC_send message = NC_SEND_INIT(.header = first, .header_length = sizeof(first),
					      .ranges = &range, .range_count = 1);
	NC_send_op *operation;
	bool whole;
	size_t at = 0;

	for (size_t i = 0; i < sizeof(first); i++)
		first[i] = (char)byte_of(i);
	if (!GOT(operation, NC_send_op_open(cache, ends[0], &message, 0)))
		return false;
	whole = run_operation(&own->ring, operation, own->buffers, ends[1], &at, SIZE);
	while (whole && at < SIZE && await_either(ends[1], -1))
		take_bytes(ends[1], &at, SIZE);
	MUST(!whole || at == SIZE);
	end_operation(operation);
	return whole;
}

static void send_often(NC_cache *cache, const int ends[2], struct own *own)
{
	size_t id = make_unit(cache, NC_KIND_APPENDED, SIZE, 0);

	for (unsigned i = 0; id && i < SENDS; i++) {
		if (!own->buffers)
			send_one(cache, id, ends);
		else if (!operate_one(cache, id, ends, own))
			break;
		(void)OK(NC_cache_dispatch(cache));
	}
	if (id)
		(void)OK(NC_destroy(cache, id));
}

/* Nothing has failed, and nothing forbids it. */
static bool may_register(const struct NC_cache_stat *stat)
{
	return is_clean() && geteuid() == 0 && strcmp(stat->uring, "used") == 0 &&
	       stat->registrations_failed == 0;
}

/* Opens the ring of the program, sends from its registered memory, and closes all of it. */
static void use_own(NC_cache *cache, uint64_t before)
{
	struct own own = {0};
	struct NC_cache_stat stat;
	int ends[2];

	if (io_uring_queue_init(8, &own.ring, 0) < 0)
		return;
	call_begin();
	own.buffers = NC_ring_buffers_open(cache, &own.ring, NULL, NULL);
	(void)call_end("NC_ring_buffers_open", own.buffers || errno == EOPNOTSUPP);
	if (own.buffers) {
		open_stream(ends, true);
		for (unsigned i = 0; i < 2; i++)
			send_often(cache, ends, &own);
		if (OK(NC_cache_stat(cache, &stat, sizeof(stat))) && may_register(&stat))
			MUST(stat.registrations > before);
		(void)OK(NC_ring_buffers_clear(own.buffers));
		close_pair(ends);
		(void)OK(NC_ring_buffers_close(own.buffers));
	}
	io_uring_queue_exit(&own.ring);
}

static void round_of_registered(void)
{
	const struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 2 * MIB, .max_unit = MIB / 4,
				      .flags = NC_CACHE_NO_THREAD);
	struct own none = {0};
	struct NC_cache_stat stat;
	NC_cache *cache;
	int ends[2];

	if (!GOT(cache, NC_cache_open(&options)))
		return;
	open_stream(ends, true);
	call_begin();
	/* It fails if io_uring is unavailable. */
	(void)call_end("NC_route_set",
		       NC_route_set(cache, "*", NC_METHOD_ZEROCOPY) == 0 || errno == EOPNOTSUPP);
	for (unsigned i = 0; i < 2; i++)
		send_often(cache, ends, &none);
	close_pair(ends);
	if (OK(NC_cache_stat(cache, &stat, sizeof(stat)))) {
		if (may_register(&stat))
			MUST(stat.registrations > 0);
		use_own(cache, stat.registrations);
	}
	(void)OK(NC_cache_close(cache));
}

const struct scenario scenario_registered = {.name = "registered", .round = round_of_registered};
