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

/* Texts, some of them empty, before, between and behind the ranges. */
static const struct NC_text texts[] = {
	{"first", 5, 0}, {NULL, 0, 0}, {"second", 6, 1},
	{"third", 5, 1}, {"4", 1, 4},  {"end", 3, 6},
};

#define TEXTS (sizeof(texts) / sizeof(texts[0]))

/* Puts the texts into the message and among the expected bytes; returns its length. */
static size_t add_texts(void)
{
	static char plain[sizeof(wanted)];
	size_t from = spec.header_length, at = from;
	unsigned text = 0;

	memcpy(plain, wanted, sizeof(wanted));
	for (unsigned i = 0; i <= 6; i++) {
		for (; text < TEXTS && texts[text].before == i; text++) {
			if (texts[text].length)
				memcpy(wanted + at, texts[text].data, texts[text].length);
			at += texts[text].length;
		}
		if (i == 6)
			break;
		memcpy(wanted + at, plain + from, ranges[i].length);
		at += ranges[i].length;
		from += ranges[i].length;
	}
	spec.texts = texts;
	spec.text_count = TEXTS;
	return at;
}

/* Plans what may be sent before range `end`, and compares.  Returns its bytes. */
static size_t check_plan(const struct nc_message *message, unsigned end, unsigned max)
{
	struct iovec iov[16];
	size_t planned, sum = 0;
	unsigned count = nc_message_plan(message, end, iov, max, &planned);

	ck_assert_uint_le(count, max);
	for (unsigned j = 0; j < count; j++) {
		expect(iov[j].iov_len > 0);
		expect(memcmp(iov[j].iov_base, wanted + message->at + sum, iov[j].iov_len) == 0);
		sum += iov[j].iov_len;
	}
	ck_assert_uint_eq(sum, planned);
	ck_assert_uint_le(sum, message->end - message->at);
	return sum;
}

/* Walks a message with texts with all limits, numbers of iovecs, and steps. */
START_TEST(test_texts)
{
	static const size_t limits[] = {0, 1, 4, 305, 9310, 20000, SIZE_MAX};
	static const size_t steps[] = {1, 7, 300, 1448, 4096, 100000};
	struct nc_view views[6];
	size_t total;

	open_units();
	(void)write_message(0);
	total = add_texts();
	for (unsigned i = 0; i < 7 * 6; i++) {
		struct nc_message message;

		spec.limit = limits[i / 6];
		spec.skip = 0;
		while (spec.skip < total) {
			size_t left = total - spec.skip;

			ck_assert_int_eq(nc_message_open(&message, &cache, &spec, views), 0);
			ck_assert_uint_eq(message.total, total);
			ck_assert_uint_eq(message.end - message.at,
					  spec.limit && spec.limit < left ? spec.limit : left);
			while (message.at < message.end) {
				size_t planned = check_plan(&message, 6, 1 + i % 16);

				ck_assert_uint_gt(planned, 0);
				ck_assert(nc_message_more(&message, planned) ==
					  (message.at + planned < total));
				/* All memory before a range is planned for the range's own method. */
				(void)check_plan(&message, message.range, 16);
				nc_message_advance(&message,
						   steps[i % 6] < planned ? steps[i % 6] : planned);
			}
			ck_assert(nc_message_is_cut(&message) == (message.at < total));
			spec.skip = message.at;
			nc_message_close(&message);
		}
		ck_assert_uint_eq(message.range, 6);
		ck_assert_uint_eq(message.memory, 0);
	}
	ck_assert_uint_eq(all_holds(), 0);
	close_cache();
}
END_TEST

/* From every byte on, the rest of the memory before a range and of the range is known. */
START_TEST(test_positions)
{
	struct nc_message message;
	struct nc_view views[6];
	size_t total, body = 0;

	open_units();
	(void)write_message(0);
	total = add_texts();
	ck_assert_int_eq(nc_message_open(&message, &cache, &spec, views), 0);
	for (spec.skip = 1; spec.skip <= total; spec.skip++) {
		struct nc_message skipped;
		struct nc_view others[6];

		body += nc_message_advance(&message, 1);
		ck_assert_int_eq(nc_message_open(&skipped, &cache, &spec, others), 0);
		expect(skipped.at == message.at && skipped.memory == message.memory &&
		       skipped.range == message.range && skipped.text == message.text &&
		       skipped.within == message.within);
		if (message.memory)
			expect(check_plan(&message, message.range, 16) == message.memory);
		nc_message_close(&skipped);
	}
	ck_assert_uint_eq(body, 9000 + 2 + 1 + 10000);
	nc_message_close(&message);
	close_cache();
}
END_TEST

START_TEST(test_refused_texts)
{
	struct NC_text bad[NC_TEXTS_MAX + 1] = {{0}};
	struct nc_message message;
	struct nc_view views[6];

	open_units();
	(void)write_message(0);
	spec.texts = bad;
#define REFUSED(count, ...)                                                                        \
	do {                                                                                       \
		bad[0] = (struct NC_text){__VA_ARGS__};                                            \
		spec.text_count = (count);                                                         \
		ck_assert_int_eq(nc_message_open(&message, &cache, &spec, views), -EINVAL);        \
		ck_assert_uint_eq(all_holds(), 0);                                                 \
	} while (0)
	REFUSED(NC_TEXTS_MAX + 1, "a", 1, 0);
	REFUSED(UINT_MAX, "a", 1, 0);
	REFUSED(1, NULL, 1, 0);
	REFUSED(1, "a", 1, 7);
	REFUSED(1, "a", 1, UINT_MAX);
	/* Not in order. */
	REFUSED(2, "a", 1, 1);
	/* With a sum that is too large, or overflows. */
	REFUSED(1, "a", SIZE_MAX, 0);
	REFUSED(1, "a", SSIZE_MAX, 0);
	bad[1] = (struct NC_text){"b", SIZE_MAX - 19303, 0};
	REFUSED(2, "a", SSIZE_MAX - 19303, 0);
	spec.texts = NULL;
	REFUSED(1, "a", 1, 0);
	/* Texts without a count are none. */
	spec.text_count = 0;
	ck_assert_int_eq(nc_message_open(&message, &cache, &spec, views), 0);
	nc_message_close(&message);
	/* The largest that fits into the count of bytes, not sent here. */
	spec.texts = bad;
	spec.text_count = 1;
	bad[0] = (struct NC_text){"a", SSIZE_MAX - 300 - 19003, 6};
	ck_assert_int_eq(nc_message_open(&message, &cache, &spec, views), 0);
	ck_assert_uint_eq(message.total, SSIZE_MAX);
	nc_message_close(&message);
#undef REFUSED
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
	tcase_add_test(tcase, test_texts);
	tcase_add_test(tcase, test_positions);
	tcase_add_test(tcase, test_refused_texts);
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_borrowed);
}

RUN_SUITE("message", fill)
