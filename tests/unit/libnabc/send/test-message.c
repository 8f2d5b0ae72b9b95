/* SPDX-License-Identifier: MIT */
/*
 * test-message.c - unit tests of message.c: which messages it refuses and which units
 * it holds, and that plans of any step size yield the message.
 */
#include <errno.h>
#include <limits.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include "cache/hold.h"
#include "cache/index.h"
#include "send/message.h"
#include "suite.h"
#include "transmit-fixture.h"

#define UNITS 3

static size_t ids[UNITS];
static const size_t fraglens[UNITS] = {0, 100, 1448};

static void open_units(void)
{
	open_cache(4 * MIB, NC_CACHE_NO_URING);
	for (unsigned i = 0; i < UNITS; i++)
		ids[i] = insert(i, 10000, fraglens[i], NC_KIND_RECYCLED);
}

static unsigned all_holds(void)
{
	unsigned holds = 0;

	for (unsigned i = 0; i < UNITS; i++)
		holds += holds_of(ids[i]);
	return holds;
}

/* Header and ranges, among them empty ones, in the expected order. */
static char wanted[64 * KIB];
static struct NC_range ranges[6];
static struct NC_send spec;

static size_t write_message(unsigned flags)
{
	static const struct {
		unsigned unit;
		size_t offset, length;
	} parts[6] = {{0, 0, 0},    {1, 17, 9000}, {2, 1447, 2},
		      {0, 9999, 1}, {2, 5, 0},	   {0, 0, 10000}};
	static char header[300];
	size_t at = sizeof(header);

	pattern_fill(header, 99, 0, sizeof(header));
	memcpy(wanted, header, sizeof(header));
	for (unsigned i = 0; i < 6; i++) {
		ranges[i] = (struct NC_range){ids[parts[i].unit], parts[i].offset, parts[i].length};
		pattern_fill(wanted + at, parts[i].unit, parts[i].offset, parts[i].length);
		at += parts[i].length;
	}
	spec = (struct NC_send)NC_SEND_INIT(.header = header, .header_length = sizeof(header),
					    .ranges = ranges, .range_count = 6, .flags = flags);
	return at;
}

/* Walks the message in steps of one size, from every n-th byte. */
START_TEST(test_plans)
{
	static const size_t steps[] = {1, 7, 300, 1448, 4096, 100000};
	struct nc_view views[6];
	size_t total;

	open_units();
	total = write_message(0);
	for (unsigned i = 0; i < 6; i++) {
		struct nc_message message;

		spec.skip = i * 1999;
		ck_assert_int_eq(nc_message_open(&message, &cache, &spec, views), 0);
		ck_assert_uint_eq(message.total, total);
		ck_assert_uint_eq(all_holds(), 6);
		while (message.at < total) {
			struct iovec iov[5];
			size_t planned, step = steps[i], at = message.at, sum = 0;
			unsigned count = nc_message_plan(&message, 6, iov, 5, &planned);

			ck_assert_uint_gt(count, 0);
			for (unsigned j = 0; j < count; j++) {
				expect(memcmp(iov[j].iov_base, wanted + at + sum, iov[j].iov_len) ==
				       0);
				sum += iov[j].iov_len;
			}
			ck_assert_uint_eq(sum, planned);
			ck_assert(nc_message_more(&message, planned) ==
				  (at + planned < message.total));
			nc_message_advance(&message, step < planned ? step : planned);
		}
		ck_assert_uint_eq(message.at, total);
		ck_assert_uint_eq(message.range, 6);
		nc_message_close(&message);
		ck_assert_uint_eq(all_holds(), 0);
	}
	close_cache();
}
END_TEST

/* A plan ends at the given byte, and header bytes do not count as bytes of units. */
START_TEST(test_parts)
{
	struct nc_message message;
	struct nc_view views[6];
	struct iovec iov[64];
	size_t planned;

	open_units();
	(void)write_message(NC_SEND_MORE);
	ck_assert_int_eq(nc_message_open(&message, &cache, &spec, views), 0);
	ck_assert_uint_eq(nc_message_plan(&message, 0, iov, 64, &planned), 1);
	ck_assert_uint_eq(planned, 300);
	ck_assert_uint_eq(nc_message_plan(&message, 0, iov, 0, &planned), 0);
	ck_assert_uint_eq(planned, 0);
	ck_assert_uint_eq(nc_message_moved(&message, NC_METHOD_COPY, 200), 0);
	ck_assert_uint_eq(nc_message_moved(&message, NC_METHOD_COPY, 250), 150);
	ck_assert_uint_eq(message.range, 1);
	ck_assert_uint_eq(nc_message_piece(&message), 9000 - 150);
	ck_assert_uint_eq(statistics().by_copy.bytes, 150);
	ck_assert_uint_eq(statistics().by_copy.sends, 1);
	ck_assert(nc_message_more(&message, message.total - message.at));
	message.push = true;
	ck_assert(!nc_message_more(&message, message.total - message.at));
	nc_message_close(&message);
	close_cache();
}
END_TEST

START_TEST(test_refused)
{
	struct nc_message message;
	struct nc_view views[NC_RANGES_MAX];
	struct NC_range bad = {.length = 1};
	struct NC_send wrong;

	open_units();
	(void)write_message(0);
#define REFUSED(error)                                                                             \
	do {                                                                                       \
		ck_assert_int_eq(nc_message_open(&message, &cache, &wrong, views), (error));       \
		ck_assert_uint_eq(all_holds(), 0);                                                 \
		wrong = spec;                                                                      \
	} while (0)
	ck_assert_int_eq(nc_message_open(&message, &cache, NULL, views), -EINVAL);
	wrong = spec;
	wrong.range_count = NC_RANGES_MAX + 1;
	REFUSED(-EINVAL);
	wrong.flags = 0x20;
	REFUSED(-EINVAL);
	wrong.header = NULL;
	REFUSED(-EINVAL);
	wrong.ranges = NULL;
	REFUSED(-EINVAL);
	wrong.skip = 1 << 20;
	REFUSED(-EINVAL);
	wrong.header_length = SIZE_MAX;
	REFUSED(-ERANGE);
	wrong.header_length = SSIZE_MAX;
	REFUSED(-ERANGE);
	/* The last range is wrong: the units before it are released. */
	bad = ranges[5];
	ranges[5].length = SIZE_MAX;
	REFUSED(-ERANGE);
	ranges[5] = bad;
	ranges[5].offset = SIZE_MAX;
	REFUSED(-ERANGE);
	ranges[5] = (struct NC_range){.id = bad.id, .offset = 1, .length = 10000};
	REFUSED(-ERANGE);
	ranges[5] = (struct NC_range){.id = bad.id + 1, .length = 1};
	REFUSED(-ENOENT);
	ranges[5] = (struct NC_range){.id = 0};
	REFUSED(-ENOENT);
#undef REFUSED
	close_cache();
}
END_TEST

/* A caller that holds the units lends its holds to a short message; a released hold is refused. */
START_TEST(test_borrowed)
{
	struct nc_message message;
	struct nc_view views[6];
	struct NC_hold holds[UNITS];

	open_units();
	(void)write_message(0);
	spec.holds = holds;
	spec.hold_count = UNITS;
	for (unsigned i = 0; i < UNITS; i++) {
		ck_assert_int_eq(nc_index_hold(&cache, ids[i], false, views), 0);
		nc_hold_write(&holds[i], &cache, views);
	}
	ck_assert_int_eq(nc_index_destroy(&cache, ids[1]), 0);
	ck_assert_int_eq(nc_message_open(&message, &cache, &spec, views), 0);
	ck_assert_uint_eq(all_holds(), UNITS);
	nc_message_close(&message);
	ck_assert_uint_eq(all_holds(), UNITS);
	/* A lasting message has holds of its own, until it does not need them. */
	ck_assert_int_eq(nc_message_open(&message, &cache, &spec, views), 0);
	ck_assert_int_eq(nc_message_keep(&message), 0);
	ck_assert_uint_eq(all_holds(), UNITS + 6);
	nc_message_release_early(&message);
	ck_assert_uint_eq(all_holds(), UNITS);
	nc_message_close(&message);
	ck_assert_uint_eq(all_holds(), UNITS);
	/* A short one has, too, for units without a hold of the caller. */
	spec.hold_count = 2;
	ck_assert_int_eq(nc_message_open(&message, &cache, &spec, views), 0);
	ck_assert_uint_eq(all_holds(), UNITS + 2);
	nc_message_close(&message);
	ck_assert_uint_eq(all_holds(), UNITS);
	/* A hold of another cache. */
	spec.hold_count = UNITS;
	cache.serial++;
	ck_assert_int_eq(nc_message_open(&message, &cache, &spec, views), -EINVAL);
	cache.serial--;
	for (unsigned i = 0; i < UNITS; i++)
		ck_assert_int_eq(nc_index_release(&cache, ids[i]), 0);
	ck_assert_int_eq(nc_message_open(&message, &cache, &spec, views), -EINVAL);
	ck_assert_uint_eq(all_holds(), 0);
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_plans);
	tcase_add_test(tcase, test_parts);
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_borrowed);
}

RUN_SUITE("message", fill)
