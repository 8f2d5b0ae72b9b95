/* SPDX-License-Identifier: MIT */
/*
 * scenario-registered.c - a unit is sent without a copy until its memory is registered
 * with io_uring; then it is destroyed, its segment closed, and another one registered.
 */
#include "scenario.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* More than half of a segment of the smallest cache, so that it has its own. */
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

static void send_often(NC_cache *cache, const int ends[2])
{
	size_t id = make_unit(cache, NC_KIND_APPENDED, SIZE, 0);

	for (unsigned i = 0; id && i < SENDS; i++) {
		send_one(cache, id, ends);
		(void)OK(NC_cache_dispatch(cache));
	}
	if (id)
		(void)OK(NC_destroy(cache, id));
}

static void round_of_registered(void)
{
	const struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = MIB, .max_unit = MIB / 4,
				      .flags = NC_CACHE_NO_THREAD);
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
		send_often(cache, ends);
	if (OK(NC_cache_stat(cache, &stat, sizeof(stat))) && is_clean() && geteuid() == 0 &&
	    strcmp(stat.uring, "used") == 0 && stat.registrations_failed == 0)
		MUST(stat.registrations > 0);
	close_pair(ends);
	(void)OK(NC_cache_close(cache));
}

const struct scenario scenario_registered = {.name = "registered", .round = round_of_registered};
