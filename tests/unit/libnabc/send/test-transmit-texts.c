/* SPDX-License-Identifier: MIT */
/*
 * test-transmit-texts.c - unit tests of transmit.c: messages with texts between their ranges,
 * and calls with a limit, from every byte on, by each method, to both kinds of sockets.
 */
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "os/ring.h"
#include "send/transmit.h"
#include "send/zerocopy.h"

#include "suite.h"
#include "tcp-info.h"
#include "transmit-fixture.h"

static const enum NC_kind kinds[] = {NC_KIND_RECYCLED, NC_KIND_APPENDED, NC_KIND_SEALED};
static const enum NC_method methods[] = {NC_METHOD_COPY, NC_METHOD_SPLICE, NC_METHOD_ZEROCOPY};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))
#define METHODS (sizeof(methods) / sizeof(methods[0]))
#define COMBINATIONS (KINDS * METHODS * 2)

/* A message of chunks, one of them empty, one of two ranges; `scale` times as long ranges. */
struct chunks {
	struct NC_range ranges[4];
	struct NC_text texts[7];
	struct NC_send message;
	size_t total, body;
	char *bytes; /* those that are to arrive */
};

static void put(struct chunks *chunks, const void *data, size_t length)
{
	memcpy(chunks->bytes + chunks->total, data, length);
	chunks->total += length;
}

static void make_chunks(struct chunks *chunks, enum NC_kind kind, size_t fraglen, size_t scale)
{
	static const struct NC_text texts[7] = {
		{"<a>", 3, 0}, {NULL, 0, 0}, {"<b>", 3, 1},	  {"bb", 2, 1},
		{"<c>", 3, 2}, {"<e", 2, 4}, {"nd of all", 9, 4},
	};
	static const size_t lengths[4] = {20, 0, 11, 9};
	char *body = must_alloc(20 * scale);
	unsigned text = 0;

	*chunks = (struct chunks){.bytes = must_alloc(40 * scale + 100)};
	memcpy(chunks->texts, texts, sizeof(texts));
	put(chunks, "HEAD", 4);
	for (unsigned i = 0; i <= 4; i++) {
		for (; text < 7 && texts[text].before == i; text++)
			if (texts[text].length)
				put(chunks, texts[text].data, texts[text].length);
		if (i == 4)
			break;
		chunks->ranges[i] =
			(struct NC_range){.id = insert(i + 1, 25 * scale, fraglen, kind),
					  .offset = 3 * i,
					  .length = lengths[i] * scale};
		pattern_fill(body, i + 1, 3 * i, lengths[i] * scale);
		put(chunks, body, lengths[i] * scale);
		chunks->body += lengths[i] * scale;
	}
	free(body);
	chunks->message = (struct NC_send)NC_SEND_INIT(.header = "HEAD", .header_length = 4,
						       .ranges = chunks->ranges, .range_count = 4,
						       .texts = chunks->texts, .text_count = 7);
}

/* Closes the units when the kernel no longer needs their memory. */
static void free_chunks(struct chunks *chunks)
{
	while (transmit.zerocopy.flights)
		if (nc_transmit_reap(&transmit) == 0)
			await(nc_ring_fd(&transmit.zerocopy.ring), POLLIN);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_uint_eq(holds_of(chunks->ranges[i].id), 0);
	free(chunks->bytes);
}

/* Opens a cache that sends by a method, if that is possible here. */
static bool open_for(enum NC_method method)
{
	open_cache(16 * MIB, method == NC_METHOD_ZEROCOPY ? 0 : NC_CACHE_NO_URING);
	if ((method != NC_METHOD_ZEROCOPY || !getenv("NABC_TEST_NO_URING")) &&
	    nc_transmit_route_set(&transmit, "*", method) == 0)
		return true;
	close_cache();
	return false;
}

static void open_pair(int pair[2], bool tcp)
{
	if (tcp)
		tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 1 << 20, 1 << 20);
	else
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
}

/* Exactly these bytes arrive. */
static void expect_bytes(int fd, const char *wanted, size_t length)
{
	char *got = must_alloc(length + 1);

	read_exactly(fd, got, length);
	expect(memcmp(got, wanted, length) == 0);
	expect(recv(fd, got, 1, MSG_DONTWAIT) < 0);
	free(got);
}

/* From `skip` on, a call with a limit, then one for the rest. */
static void send_twice(const int pair[2], const struct chunks *chunks, size_t skip, size_t limit)
{
	struct NC_send message = chunks->message;
	size_t left = chunks->total - skip, part = limit < left ? limit : left;

	message.skip = skip;
	message.limit = limit;
	expect(nc_transmit_send(&transmit, pair[0], &message) == (ssize_t)part);
	message.skip += part;
	message.limit = 0;
	expect(nc_transmit_send(&transmit, pair[0], &message) == (ssize_t)(left - part));
	expect_bytes(pair[1], chunks->bytes + skip, left);
}

static void check_every_split(enum NC_method method, enum NC_kind kind, size_t fraglen, bool tcp)
{
	struct chunks chunks;
	int pair[2];

	if (!open_for(method))
		return;
	make_chunks(&chunks, kind, fraglen, 1);
	open_pair(pair, tcp);
	for (size_t skip = 0; skip <= chunks.total; skip++) {
		for (size_t limit = 1; limit <= chunks.total - skip + 1; limit++)
			send_twice(pair, &chunks, skip, limit);
		send_twice(pair, &chunks, skip, SIZE_MAX);
		(void)nc_transmit_reap(&transmit);
	}
	close_pair(pair);
	free_chunks(&chunks);
	close_cache();
}

START_TEST(test_every_split)
{
	const enum NC_method method = methods[_i % METHODS];
	const enum NC_kind kind = kinds[_i / METHODS % KINDS];

	check_every_split(method, kind, 0, _i >= (int)(COMBINATIONS / 2));
}
END_TEST

/* Fragments with gaps between them. */
START_TEST(test_fragments)
{
	check_every_split(NC_METHOD_COPY, NC_KIND_RECYCLED, 7, _i);
}
END_TEST

/* Sends by steps of at most `limit` bytes, reading when the socket is full. */
static void send_in_turns(const int pair[2], const struct chunks *chunks, size_t limit, char *got)
{
	struct NC_send message = chunks->message;
	size_t have = 0;

	message.limit = limit;
	set_nonblocking(pair[0]);
	while (have < chunks->total) {
		size_t left = chunks->total - message.skip;
		ssize_t sent = left ? nc_transmit_send(&transmit, pair[0], &message) : 0, more;

		ck_assert(sent >= 0 || sent == -EAGAIN);
		ck_assert_int_le(sent, (ssize_t)(limit < left ? limit : left));
		message.skip += sent > 0 ? (size_t)sent : 0;
		if (sent == (ssize_t)limit && left > limit)
			continue;
		await(pair[1], POLLIN);
		more = recv(pair[1], got + have, chunks->total - have, MSG_DONTWAIT);
		ck_assert_int_gt(more, 0);
		have += (size_t)more;
	}
}

/* Zero-copy sends need a ring, and pages of the process that can be locked. */
static bool may_lock(void)
{
	struct rlimit limit;

	return transmit.zerocopy.ring.usable &&
	       (geteuid() == 0 ||
		(getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur >= 8 * MIB));
}

/* Ranges for which the methods are made, in turns of all sizes, through small buffers. */
static void check_turns(enum NC_method method, enum NC_kind kind, bool tcp)
{
	static const size_t limits[] = {1000, 4096, 65536, 100000, 1 << 20};
	struct NC_cache_stat stat;
	struct chunks chunks;
	char *got;

	if (!open_for(method))
		return;
	make_chunks(&chunks, kind, 0, 10000);
	got = must_alloc(chunks.total);
	for (unsigned i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		int pair[2];

		if (tcp)
			tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 65536, 65536);
		else
			open_pair(pair, false);
		memset(got, 0, chunks.total);
		send_in_turns(pair, &chunks, limits[i], got);
		ck_assert(memcmp(got, chunks.bytes, chunks.total) == 0);
		close_pair(pair);
	}
	/* Header and texts are no bytes of units. */
	stat = statistics();
	ck_assert_uint_eq(stat.by_copy.bytes + stat.by_splice.bytes + stat.by_zerocopy.bytes,
			  chunks.body * sizeof(limits) / sizeof(limits[0]));
	if (method == NC_METHOD_SPLICE && kind != NC_KIND_RECYCLED)
		ck_assert_uint_eq(stat.by_copy.bytes, 0);
	if (method == NC_METHOD_ZEROCOPY && tcp && may_lock())
		ck_assert_uint_gt(stat.by_zerocopy.bytes, 0);
	free(got);
	free_chunks(&chunks);
	close_cache();
}

START_TEST(test_turns)
{
	const enum NC_method method = methods[_i % METHODS];
	const enum NC_kind kind = kinds[_i / METHODS % KINDS];

	check_turns(method, kind, _i >= (int)(COMBINATIONS / 2));
}
END_TEST

/* Copied, the whole message is one call, whatever the number of its pieces. */
START_TEST(test_one_call)
{
	struct NC_range ranges[NC_RANGES_MAX];
	struct NC_text texts[NC_TEXTS_MAX];
	struct NC_send message = NC_SEND_INIT(.header = "HEAD", .header_length = 4,
					      .ranges = ranges, .range_count = NC_RANGES_MAX,
					      .texts = texts, .text_count = NC_TEXTS_MAX);
	size_t id, at = 4, total = 4 + NC_RANGES_MAX * 1000 + NC_TEXTS_MAX;
	char *got = must_alloc(total + 1);
	int pair[2];

	open_cache(MIB, NC_CACHE_NO_URING);
	id = insert(1, 1000, 0, NC_KIND_RECYCLED);
	for (unsigned i = 0; i < NC_RANGES_MAX; i++)
		ranges[i] = (struct NC_range){.id = id, .length = 1000};
	for (unsigned i = 0; i < NC_TEXTS_MAX; i++)
		texts[i] = (struct NC_text){.data = "t", .length = 1, .before = (i + 1) / 2};
	/* Records show which bytes one call sent. */
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), (ssize_t)total);
	ck_assert_int_eq(recv(pair[1], got, total + 1, MSG_DONTWAIT), (ssize_t)total);
	for (unsigned i = 0; i < NC_RANGES_MAX; i++) {
		at += i ? 2 : 1;
		ck_assert_int_eq(got[at - 1], 't');
		ck_assert_uint_eq(pattern_match(got + at, 1, 0, 1000), 1000);
		at += 1000;
	}
	ck_assert_int_eq(got[at], 't');
	free(got);
	close_pair(pair);
	close_cache();
}
END_TEST

#define ATTEMPTS 20

/*
 * What the limit leaves follows: both calls make one segment.  The kernel waits 200 ms for the
 * second one, so the test retries if the machine stalls between them.
 */
START_TEST(test_more)
{
	struct NC_range range = {.length = 400};
	struct NC_text text = {.data = "end", .length = 3, .before = 1};
	struct NC_send message =
		NC_SEND_INIT(.ranges = &range, .range_count = 1, .texts = &text, .text_count = 1);
	unsigned segments = 0;

	open_cache(MIB, NC_CACHE_NO_URING);
	range.id = insert(1, 400, 0, NC_KIND_RECYCLED);
	for (unsigned attempt = 0; attempt < ATTEMPTS && segments != 1; attempt++) {
		char got[403];
		int pair[2];

		tcp_pair(pair);
		message.skip = 0;
		message.limit = 150;
		ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), 150);
		message.skip = 150;
		message.limit = 253;
		ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), 253);
		read_exactly(pair[1], got, sizeof(got));
		segments = tcp_info(pair[0]).tcpi_data_segs_out;
		close_pair(pair);
	}
	ck_assert_uint_eq(segments, 1);
	close_cache();
}
END_TEST

/* CLOSE takes effect in the call that sends the last byte, by each method, and not before. */
START_TEST(test_close)
{
	struct chunks chunks;
	char byte;
	int pair[2];

	if (!open_for(methods[_i]))
		return;
	make_chunks(&chunks, NC_KIND_APPENDED, 0, 10000);
	chunks.message.flags = NC_SEND_CLOSE;
	chunks.message.limit = chunks.total / 2;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4 << 20, 4 << 20);
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &chunks.message),
			 (ssize_t)chunks.total / 2);
	ck_assert_int_eq(tcp_info(pair[0]).tcpi_state, 1 /* TCP_ESTABLISHED */);
	chunks.message.skip = chunks.total / 2;
	chunks.message.limit = chunks.total;
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &chunks.message),
			 (ssize_t)(chunks.total - chunks.total / 2));
	ck_assert_int_ne(tcp_info(pair[0]).tcpi_state, 1);
	for (size_t at = 0; at < chunks.total; at += 4) {
		char got[4];

		read_exactly(pair[1], got, chunks.total - at < 4 ? chunks.total - at : 4);
		expect(memcmp(got, chunks.bytes + at,
			      chunks.total - at < 4 ? chunks.total - at : 4) == 0);
	}
	ck_assert_int_eq(read(pair[1], &byte, 1), 0);
	close_pair(pair);
	free_chunks(&chunks);
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_every_split, 0, COMBINATIONS);
	tcase_add_loop_test(tcase, test_fragments, 0, 2);
	tcase_add_loop_test(tcase, test_turns, 0, COMBINATIONS);
	tcase_add_test(tcase, test_one_call);
	tcase_add_test(tcase, test_more);
	tcase_add_loop_test(tcase, test_close, 0, METHODS);
}

RUN_SUITE("transmit-texts", fill)
