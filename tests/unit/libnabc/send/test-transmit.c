/* SPDX-License-Identifier: MIT */
/*
 * test-transmit.c - unit tests of transmit.c over real sockets: every method, partial
 * sends through the smallest buffers, options.  Each test owns its cache and its
 * reader threads.
 */
#include <nabc-worker.h>
#include <nabc.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>

#include <linux/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cache/hold.h"
#include "cache/index.h"
#include "send/transmit.h"
#include "suite.h"
#include "tcp-info.h"
#include "transmit-fixture.h"

static size_t message_length(const struct NC_send *message)
{
	size_t length = message->header_length;

	for (unsigned i = 0; i < message->range_count; i++)
		length += message->ranges[i].length;
	return length;
}

/* Reads what has arrived; returns false at the end. */
static bool drain(int fd, char *to, size_t limit, size_t *have)
{
	for (;;) {
		ssize_t got = recv(fd, to + *have, limit - *have, MSG_DONTWAIT);

		if (got < 0) {
			ck_assert_int_eq(errno, EAGAIN);
			return true;
		}
		if (got == 0)
			return false;
		*have += (size_t)got;
	}
}

/*
 * Sends a message over a non-blocking socket piece by piece; reads only when the
 * socket accepts no more.  Returns the number of pieces.
 */
static unsigned send_in_pieces(const int pair[2], struct NC_send message, char *to)
{
	size_t total = message_length(&message), have = 0;
	unsigned pieces = 0;

	set_nonblocking(pair[0]);
	while (message.skip < total) {
		ssize_t sent = nc_transmit_send(&transmit, pair[0], &message);

		if (sent < 0) {
			ck_assert_int_eq(sent, -EAGAIN);
			ck_assert(drain(pair[1], to, total + 1, &have));
			await(pair[0], POLLOUT);
			continue;
		}
		ck_assert_int_gt(sent, 0);
		message.skip += (size_t)sent;
		ck_assert_uint_le(message.skip, total);
		pieces++;
	}
	while (message.flags & NC_SEND_MORE && send(pair[0], ".", 1, 0) < 0) {
		ck_assert(drain(pair[1], to, total + 1, &have));
		await(pair[0], POLLOUT);
	}
	if (!(message.flags & (NC_SEND_MORE | NC_SEND_CLOSE)))
		shutdown(pair[0], SHUT_WR);
	total += message.flags & NC_SEND_MORE ? 1 : 0;
	/* To the last byte, and, unless more follows, only the end behind it. */
	while (have < total) {
		await(pair[1], POLLIN);
		if (!drain(pair[1], to, total + 1, &have))
			break;
	}
	ck_assert_uint_eq(have, total);
	if (!(message.flags & NC_SEND_MORE)) {
		await(pair[1], POLLIN);
		ck_assert(!drain(pair[1], to, total + 1, &have));
	}
	ck_assert_uint_eq(have, total);
	return pieces;
}

#define UNITS 3
#define UNIT_SIZE (100 * KIB + 77)

/* Header, and five ranges of three units with seeds 1, 2, 3, checked byte for byte. */
static void check_message(enum NC_kind kind, size_t fraglen, unsigned flags, int send_size,
			  bool header)
{
	struct NC_range ranges[6] = {
		{.offset = 0, .length = UNIT_SIZE}, {.offset = 1000, .length = 50 * KIB},
		{.offset = 5, .length = 0},	    {.offset = UNIT_SIZE - 1, .length = 1},
		{.offset = 1448, .length = 1448},   {.offset = 4095, .length = 40 * KIB},
	};
	static const unsigned which[6] = {0, 1, 2, 2, 1, 0};
	struct NC_send message = NC_SEND_INIT(.ranges = ranges, .range_count = 6, .flags = flags);
	char *got, head[3000];
	size_t ids[UNITS], at = 0;
	int pair[2];

	open_cache(8 * MIB, NC_CACHE_NO_URING);
	for (unsigned i = 0; i < UNITS; i++)
		ids[i] = insert(i + 1, UNIT_SIZE, fraglen, kind);
	for (unsigned i = 0; i < 6; i++)
		ranges[i].id = ids[which[i]];
	if (header) {
		pattern_fill(head, 99, 0, sizeof(head));
		message.header = head;
		message.header_length = sizeof(head);
	}
	/* Space for bytes that must not arrive, too. */
	got = must_alloc(message_length(&message) + 2);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", send_size, send_size ? 4096 : 0);
	/* Small buffers must cause many pieces, or the test tests nothing. */
	ck_assert_uint_ge(send_in_pieces(pair, message, got), send_size ? 8 : 1);
	if (header) {
		ck_assert_uint_eq(pattern_match(got, 99, 0, sizeof(head)), sizeof(head));
		at = sizeof(head);
	}
	for (unsigned i = 0; i < 6; i++) {
		ck_assert_uint_eq(
			pattern_match(got + at, which[i] + 1, ranges[i].offset, ranges[i].length),
			ranges[i].length);
		at += ranges[i].length;
	}
	for (unsigned i = 0; i < UNITS; i++)
		ck_assert_uint_eq(holds_of(ids[i]), 0);
	/* Pages are spliced where possible, and only there. */
	if (kind == NC_KIND_APPENDED && fraglen != 1448 && !(flags & NC_SEND_DONTWAIT))
		ck_assert_uint_gt(statistics().by_splice.sends, 0);
	else
		ck_assert_uint_eq(statistics().by_splice.sends, 0);
	ck_assert_uint_eq(statistics().by_splice.bytes + statistics().by_copy.bytes,
			  message_length(&message) - message.header_length);
	close_pair(pair);
	free(got);
	close_cache();
}

static const struct {
	enum NC_kind kind;
	size_t fraglen;
	unsigned flags;
} ways[] = {
	{NC_KIND_RECYCLED, 0, 0},
	{NC_KIND_RECYCLED, 1448, 0},
	{NC_KIND_RECYCLED, 1448, NC_SEND_CLOSE},
	{NC_KIND_RECYCLED, 0, NC_SEND_MORE},
	{NC_KIND_RECYCLED, 0, NC_SEND_DONTWAIT},
	{NC_KIND_APPENDED, 0, 0},
	{NC_KIND_APPENDED, 1448, 0},
	{NC_KIND_APPENDED, 64, NC_SEND_CLOSE},
	{NC_KIND_APPENDED, 8192, NC_SEND_MORE},
	{NC_KIND_APPENDED, 0, NC_SEND_DONTWAIT | NC_SEND_CLOSE},
	{NC_KIND_APPENDED, 0, NC_SEND_CLOSE},
	{NC_KIND_APPENDED, 1448, NC_SEND_MORE},
};

START_TEST(test_partial)
{
	check_message(ways[_i].kind, ways[_i].fraglen, ways[_i].flags, 4608, true);
	check_message(ways[_i].kind, ways[_i].fraglen, ways[_i].flags, 4608, false);
}
END_TEST

START_TEST(test_ample)
{
	check_message(ways[_i].kind, ways[_i].fraglen, ways[_i].flags, 0, true);
	check_message(ways[_i].kind, ways[_i].fraglen, ways[_i].flags, 0, false);
}
END_TEST

struct reader {
	int fd;
	char *to;
	size_t length;
};

static void *read_all(void *context)
{
	struct reader *reader = context;
	size_t done = 0;

	while (done < reader->length) {
		ssize_t got = read(reader->fd, reader->to + done, reader->length - done);

		if (got <= 0)
			break;
		done += (size_t)got;
	}
	reader->length = done;
	return NULL;
}

/* On a blocking socket one call sends all, also with the smallest buffers. */
START_TEST(test_blocking)
{
	static const enum NC_kind kinds[] = {NC_KIND_RECYCLED, NC_KIND_APPENDED};
	size_t size = 300 * KIB;

	for (unsigned i = 0; i < 4; i++) {
		struct NC_range range = {.length = size};
		struct NC_send message =
			NC_SEND_INIT(.header = "head", .header_length = 4, .ranges = &range,
				     .range_count = 1, .flags = i & 2 ? NC_SEND_CLOSE : 0);
		struct reader reader = {.to = must_alloc(size + 4), .length = size + 4};
		pthread_t thread;
		int pair[2];

		open_cache(8 * MIB, NC_CACHE_NO_URING);
		range.id = insert(7, size, 0, kinds[i % 2]);
		tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4608, 4096);
		reader.fd = pair[1];
		ck_assert_int_eq(pthread_create(&thread, NULL, read_all, &reader), 0);
		ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), (ssize_t)size + 4);
		pthread_join(thread, NULL);
		ck_assert_uint_eq(reader.length, size + 4);
		ck_assert_mem_eq(reader.to, "head", 4);
		ck_assert_uint_eq(pattern_match(reader.to + 4, 7, 0, size), size);
		free(reader.to);
		close_pair(pair);
		close_cache();
	}
}
END_TEST

/* More iovecs than one call accepts: many small fragments, 64 ranges. */
START_TEST(test_many_pieces)
{
	struct NC_range ranges[NC_RANGES_MAX];
	struct NC_send message = NC_SEND_INIT(.ranges = ranges, .range_count = NC_RANGES_MAX);
	size_t length = 1500, size = 20000;
	char *got = must_alloc(length * NC_RANGES_MAX + 1);
	int pair[2];

	open_cache(4 * MIB, NC_CACHE_NO_URING);
	for (unsigned i = 0; i < NC_RANGES_MAX; i++)
		ranges[i] = (struct NC_range){.id = insert(i, size, 100, NC_KIND_RECYCLED),
					      .offset = i * 31,
					      .length = length};
	tcp_pair(pair);
	(void)send_in_pieces(pair, message, got);
	for (unsigned i = 0; i < NC_RANGES_MAX; i++)
		ck_assert_uint_eq(pattern_match(got + i * length, i, i * 31, length), length);
	free(got);
	close_pair(pair);
	close_cache();
}
END_TEST

/* --- options ----------------------------------------------------------------- */

#define ATTEMPTS 20

/*
 * MORE: two small messages leave as one segment.  The kernel waits 200 ms for the
 * second one, so the test retries if the machine stalls between the two calls.
 */
START_TEST(test_more)
{
	static const unsigned flags[] = {0, NC_SEND_MORE};

	open_cache(MIB, NC_CACHE_NO_URING);
	for (unsigned i = 0; i < 2; i++) {
		struct NC_range range = {.id = insert(1, 500, 0, NC_KIND_RECYCLED), .length = 500};
		struct NC_send message =
			NC_SEND_INIT(.ranges = &range, .range_count = 1, .flags = flags[i]);
		unsigned segments = 0;

		for (unsigned attempt = 0; attempt < ATTEMPTS && segments != 1; attempt++) {
			char got[1000] = {0};
			int pair[2];

			tcp_pair(pair);
			ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), 500);
			ck_assert_int_eq(send(pair[0], got, 500, 0), 500);
			read_exactly(pair[1], got, sizeof(got));
			segments = tcp_info(pair[0]).tcpi_data_segs_out;
			close_pair(pair);
		}
		ck_assert_uint_eq(segments, flags[i] ? 1 : 2);
	}
	close_cache();
}
END_TEST

/* CLOSE: the last segment of data carries the end of the stream. */
START_TEST(test_close_on_last_segment)
{
	struct NC_range range = {.length = 500};
	struct NC_send message =
		NC_SEND_INIT(.header = "head", .header_length = 4, .ranges = &range,
			     .range_count = 1, .flags = NC_SEND_CLOSE);
	unsigned segments = 0;

	open_cache(MIB, NC_CACHE_NO_URING);
	range.id = insert(1, 500, 0, NC_KIND_RECYCLED);
	for (unsigned attempt = 0; attempt < ATTEMPTS && segments != 1; attempt++) {
		unsigned before;
		char got[504];
		int pair[2];

		tcp_pair(pair);
		before = tcp_info(pair[0]).tcpi_segs_out;
		ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), 504);
		read_exactly(pair[1], got, sizeof(got));
		ck_assert_int_eq(read(pair[1], got, 1), 0);
		segments = tcp_info(pair[0]).tcpi_segs_out - before;
		close_pair(pair);
	}
	ck_assert_uint_eq(segments, 1);
	close_cache();
}
END_TEST

/* A part of a message leaves the stream open, with any flags. */
START_TEST(test_close_of_a_part)
{
	struct NC_range range = {.length = 300 * KIB};
	struct NC_send message =
		NC_SEND_INIT(.ranges = &range, .range_count = 1, .flags = NC_SEND_CLOSE);
	ssize_t sent;
	int pair[2];

	open_cache(8 * MIB, NC_CACHE_NO_URING);
	range.id = insert(1, range.length, 0, NC_KIND_APPENDED);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4608, 4096);
	set_nonblocking(pair[0]);
	sent = nc_transmit_send(&transmit, pair[0], &message);
	ck_assert_int_gt(sent, 0);
	ck_assert_int_lt(sent, (ssize_t)range.length);
	ck_assert_int_eq(tcp_info(pair[0]).tcpi_state, 1 /* TCP_ESTABLISHED */);
	close_pair(pair);
	close_cache();
}
END_TEST

START_TEST(test_empty_message)
{
	struct NC_send message = NC_SEND_INIT();
	struct NC_range range = {.length = 0};
	char byte;
	int pair[2];

	open_cache(MIB, NC_CACHE_NO_URING);
	tcp_pair(pair);
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), 0);
	range.id = insert(1, 10, 0, NC_KIND_AUTO);
	message.ranges = &range;
	message.range_count = 1;
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), 0);
	message.header = "done";
	message.header_length = message.skip = 4;
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), 0);
	ck_assert(!readable(pair[1]));
	message.flags = NC_SEND_CLOSE;
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), 0);
	ck_assert_int_eq(read(pair[1], &byte, 1), 0);
	close_pair(pair);
	close_cache();
}
END_TEST

/* DONTWAIT: a blocking socket does not block, with either kind of memory. */
START_TEST(test_dontwait)
{
	static const enum NC_kind kinds[] = {NC_KIND_RECYCLED, NC_KIND_APPENDED};

	for (unsigned i = 0; i < 2; i++) {
		struct NC_range range = {.length = MIB};
		struct NC_send message =
			NC_SEND_INIT(.ranges = &range, .range_count = 1, .flags = NC_SEND_DONTWAIT);
		ssize_t sent;
		int pair[2];

		open_cache(8 * MIB, NC_CACHE_NO_URING);
		range.id = insert(1, range.length, 0, kinds[i]);
		tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4608, 4096);
		while ((sent = nc_transmit_send(&transmit, pair[0], &message)) > 0)
			message.skip += (size_t)sent;
		ck_assert_int_eq(sent, -EAGAIN);
		ck_assert_uint_gt(message.skip, 0);
		ck_assert_uint_lt(message.skip, MIB);
		close_pair(pair);
		close_cache();
	}
}
END_TEST

START_TEST(test_held)
{
	struct NC_range range = {.length = 1000};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	struct NC_hold lent;
	struct nc_view view;
	char got[1000];
	int pair[2];

	open_cache(MIB, NC_CACHE_NO_URING);
	tcp_pair(pair);
	range.id = insert(1, 1000, 0, NC_KIND_AUTO);
	ck_assert_int_eq(nc_index_hold(&cache, range.id, false, &view), 0);
	ck_assert_int_eq(nc_index_destroy(&cache, range.id), 0);
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), -ENOENT);
	nc_hold_write(&lent, &cache, &view);
	message.holds = &lent;
	message.hold_count = 1;
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), 1000);
	read_exactly(pair[1], got, 1000);
	ck_assert_uint_eq(pattern_match(got, 1, 0, 1000), 1000);
	ck_assert_int_eq(nc_index_release(&cache, range.id), 0);
	/* No longer held: the hold is invalid. */
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), -EINVAL);
	close_pair(pair);
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	int count = sizeof(ways) / sizeof(ways[0]);

	tcase_add_loop_test(tcase, test_partial, 0, count);
	tcase_add_loop_test(tcase, test_ample, 0, count);
	tcase_add_test(tcase, test_blocking);
	tcase_add_test(tcase, test_many_pieces);
	tcase_add_test(tcase, test_more);
	tcase_add_test(tcase, test_close_on_last_segment);
	tcase_add_test(tcase, test_close_of_a_part);
	tcase_add_test(tcase, test_empty_message);
	tcase_add_test(tcase, test_dontwait);
	tcase_add_test(tcase, test_held);
}

RUN_SUITE("transmit", fill)
